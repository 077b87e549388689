#include "rondo/core/frame_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "rondo/core/detail/recycled.hpp"

namespace {

using rondo::allocate_frame;
using rondo::deallocate_frame;
using rondo::frame_allocator_stats;
using rondo::this_thread_frame_stats;
using rondo::trim_frames;

bool recycling() { return this_thread_frame_stats().recycling; }

// Magazines belong to threads, so a test that counts starts on a new one, with an empty depot.
void on_a_new_thread(std::function<void()> const& body) {
    trim_frames();
    std::thread(body).join();
}

constexpr std::size_t kib = 1024;
constexpr std::size_t kept_by_the_depot = 16 * kib * kib;

// Blocks in the two magazines of a class, when they are full.
std::size_t kept_by_a_thread(std::size_t size) {
    return 2 * std::min<std::size_t>(32 * kib / size, 64);
}

std::vector<void*> allocate(std::size_t count, std::size_t size) {
    std::vector<void*> blocks(count);
    for (void*& block : blocks) block = allocate_frame(size);
    return blocks;
}

void deallocate(std::vector<void*> const& blocks, std::size_t size) {
    for (void* const block : blocks) deallocate_frame(block, size);
}

struct alignas(128) wide : rondo::detail::recycled {
    std::byte bytes[200];
};

TEST(FrameAllocator, AnObjectOfExtendedAlignmentIsRecycledToo) {
    on_a_new_thread([] {
        auto* const one = new wide;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one) % alignof(wide), 0U);
        std::memset(one->bytes, 1, sizeof one->bytes);
        delete one;
        EXPECT_EQ(this_thread_frame_stats().cached_blocks, recycling() ? 1U : 0U);
        auto* const other = new wide;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other) % alignof(wide), 0U);
        EXPECT_EQ(this_thread_frame_stats().cached_blocks, 0U);
        delete other;
    });
}

TEST(FrameAllocator, BlocksAreUsableAlignedAndDistinct) {
    for (std::size_t size : {1U, 48U, 63U, 64U, 65U, 128U, 1000U, 2047U, 2048U, 2049U, 100'000U}) {
        void* a = allocate_frame(size);
        void* b = allocate_frame(size);
        EXPECT_NE(a, b);
        for (void* block : {a, b}) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                      0U);
            std::memset(block, 0xa5, size);
        }
        deallocate_frame(a, size);
        deallocate_frame(b, size);
    }
}

TEST(FrameAllocator, SizeZeroIsServed) {
    void* block = allocate_frame(0);
    EXPECT_NE(block, nullptr);
    deallocate_frame(block, 0);
}

TEST(FrameAllocator, LastFreedIsFirstReused) {
    void* a = allocate_frame(100);
    void* b = allocate_frame(100);
    deallocate_frame(a, 100);
    deallocate_frame(b, 100);
    void* first = allocate_frame(100);
    void* second = allocate_frame(100);
    if (recycling()) {  // otherwise it is for the system to say
        EXPECT_EQ(first, b);
        EXPECT_EQ(second, a);
    }
    deallocate_frame(second, 100);
    deallocate_frame(first, 100);
}

TEST(FrameAllocator, SizesOfOneClassShareBlocksAndClassesDoNot) {
    on_a_new_thread([] {
        deallocate_frame(allocate_frame(65), 65);
        void* smaller_class = allocate_frame(64);
        EXPECT_EQ(this_thread_frame_stats().system_allocations, 2U);
        void* same_class = allocate_frame(128);
        EXPECT_EQ(this_thread_frame_stats().system_allocations, recycling() ? 2U : 3U);
        std::memset(same_class, 0, 128);
        deallocate_frame(same_class, 128);
        deallocate_frame(smaller_class, 64);
    });
}

TEST(FrameAllocator, SteadyStateReachesTheSystemNoMore) {
    on_a_new_thread([] {
        auto spawn_and_finish = [] {
            std::vector<void*> live;
            for (std::size_t size = 1; size <= 2048; size += 31) {
                live.push_back(allocate_frame(size));
            }
            for (std::size_t size = 1; size <= 2048; size += 31) {
                deallocate_frame(live[(size - 1) / 31], size);
            }
            return live.size();
        };
        std::size_t const live = spawn_and_finish();
        for (int i = 1; i < 1000; ++i) {
            spawn_and_finish();
        }
        frame_allocator_stats const stats = this_thread_frame_stats();
        EXPECT_EQ(stats.system_allocations, recycling() ? live : 1000 * live);
        EXPECT_EQ(stats.cached_blocks, recycling() ? live : 0);
        EXPECT_EQ(stats.system_frees, stats.system_allocations - stats.cached_blocks);
    });
}

TEST(FrameAllocator, LargeFramesAreNotKept) {
    on_a_new_thread([] {
        deallocate_frame(allocate_frame(2049), 2049);
        frame_allocator_stats const stats = this_thread_frame_stats();
        EXPECT_EQ(stats.cached_blocks, 0U);
        EXPECT_EQ(stats.system_allocations, 1U);
        EXPECT_EQ(stats.system_frees, 1U);
    });
}

TEST(FrameAllocator, AThreadKeepsTwoMagazinesOfAClassAndTheDepotTheRest) {
    for (std::size_t size : {64U, 640U, 2048U}) {
        on_a_new_thread([size] {
            std::size_t const kept = recycling() ? kept_by_a_thread(size) : 0;
            std::size_t const count = kept_by_a_thread(size) * 5;
            deallocate(allocate(count, size), size);
            frame_allocator_stats const stats = this_thread_frame_stats();
            EXPECT_EQ(stats.cached_blocks, kept);
            EXPECT_EQ(stats.cached_bytes, kept * size);
            EXPECT_LE(stats.cached_bytes, 64 * kib);
            EXPECT_EQ(stats.depot_bytes, recycling() ? (count - kept) * size : 0);
            EXPECT_EQ(stats.system_frees, recycling() ? 0 : count);
            deallocate(allocate(count, size), size);
            EXPECT_EQ(this_thread_frame_stats().system_allocations,
                      recycling() ? count : 2 * count);
        });
    }
}

TEST(FrameAllocator, TheDepotIsBounded) {
    if (!recycling()) return;  // there is no depot
    on_a_new_thread([] {
        constexpr std::size_t size = 2048, count = kept_by_the_depot / size + 2000;
        deallocate(allocate(count, size), size);
        frame_allocator_stats const stats = this_thread_frame_stats();
        EXPECT_EQ(stats.depot_bytes, kept_by_the_depot);
        EXPECT_LE(stats.cached_bytes, 64 * kib);
        EXPECT_EQ(stats.system_frees * size + stats.cached_bytes + stats.depot_bytes, count * size);
        trim_frames();
        EXPECT_EQ(this_thread_frame_stats().depot_bytes, 0U);
        EXPECT_EQ(this_thread_frame_stats().system_frees, count - stats.cached_blocks);
    });
}

TEST(FrameAllocator, CacheOfAThreadIsBounded) {
    on_a_new_thread([] {
        for (std::size_t size = 64; size <= 2048; size += 64) {
            deallocate(allocate(1100, size), size);
        }
        EXPECT_LE(this_thread_frame_stats().cached_bytes, 2U * 1024 * 1024);
    });
}

TEST(FrameAllocator, FrameFreedOnAnotherThreadIsReusedThere) {
    void* frame = allocate_frame(200);
    std::memset(frame, 1, 200);
    on_a_new_thread([frame] {
        deallocate_frame(frame, 200);
        if (recycling()) {
            EXPECT_EQ(this_thread_frame_stats().cached_blocks, 1U);
            void* again = allocate_frame(200);
            EXPECT_EQ(again, frame);
            EXPECT_EQ(this_thread_frame_stats().system_allocations, 0U);
            deallocate_frame(again, 200);
        }
    });
}

// As when one thread only submits and another one only runs.
TEST(FrameAllocator, WhatOneThreadFreesAnotherAllocates) {
    if (!recycling()) return;  // as documented
    on_a_new_thread([] {
        constexpr std::size_t count = 1000, size = 64;
        for (int round = 0; round < 20; ++round) {
            std::vector<void*> const blocks = allocate(count, size);
            std::thread{[&] { deallocate(blocks, size); }}.join();
        }
        // Each time but the first, what the other thread had in magazines that were not full.
        EXPECT_LE(this_thread_frame_stats().system_allocations, count + 19 * std::size_t{128});
    });
}

TEST(FrameAllocator, ABlockBelongsToOneOfManyThreads) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (int round = 0; round < 200; ++round) {
                std::size_t const size = round % 2 == 0 ? 64 : 128;
                std::vector<void*> const mine = allocate(300, size);
                for (void* const p : mine) std::memset(p, t, size);
                for (void* const p : mine) {
                    auto const* const bytes = static_cast<unsigned char const*>(p);
                    ASSERT_EQ(bytes[0], t);
                    ASSERT_EQ(bytes[size - 1], t);
                }
                deallocate(mine, size);
            }
        });
    }
    for (std::thread& t : threads) t.join();
}

TEST(FrameAllocator, ThreadsPassFramesInARing) {
    std::vector<std::vector<void*>> hands(4);
    for (int round = 0; round < 20; ++round) {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < hands.size(); ++i) {
            threads.emplace_back([&mine = hands[i]] {
                for (void* frame : mine) {
                    deallocate_frame(frame, 300);
                }
                mine.clear();
                for (int n = 0; n < 500; ++n) {
                    mine.push_back(allocate_frame(300));
                    std::memset(mine.back(), n, 300);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        std::rotate(hands.begin(), hands.begin() + 1, hands.end());
    }
    for (auto& hand : hands) {
        for (void* frame : hand) {
            deallocate_frame(frame, 300);
        }
    }
}

// Made before the allocator's own guard, so destroyed after it: sees the thread's cache as it is
// left.
struct last_look {
    frame_allocator_stats* on_entry = nullptr;
    frame_allocator_stats* on_leaving = nullptr;
    void* frame = nullptr;

    last_look() = default;
    last_look(last_look const&) = delete;
    last_look& operator=(last_look const&) = delete;
    ~last_look() {
        if (on_entry == nullptr) {
            return;
        }
        *on_entry = this_thread_frame_stats();
        deallocate_frame(frame, 100);
        deallocate_frame(allocate_frame(100), 100);
        *on_leaving = this_thread_frame_stats();
    }
};

thread_local last_look look;

TEST(FrameAllocator, EndingThreadGivesItsCacheBackAndKeepsNothingMore) {
    frame_allocator_stats during{};
    frame_allocator_stats after_guard{};
    frame_allocator_stats at_the_end{};
    on_a_new_thread([&] {
        look.on_entry = &after_guard;
        look.on_leaving = &at_the_end;
        look.frame = allocate_frame(100);
        std::vector<void*> frames;
        for (std::size_t size = 1; size <= 3000; size += 10) {
            frames.push_back(allocate_frame(size));
        }
        for (std::size_t size = 1; size <= 3000; size += 10) {
            deallocate_frame(frames[(size - 1) / 10], size);
        }
        during = this_thread_frame_stats();
    });
    EXPECT_EQ(after_guard.cached_blocks, 0U);
    EXPECT_EQ(after_guard.system_frees, during.system_frees + during.cached_blocks);
    EXPECT_EQ(after_guard.system_frees + 1, after_guard.system_allocations);  // look.frame
    EXPECT_EQ(at_the_end.cached_blocks, 0U);
    EXPECT_EQ(at_the_end.system_frees, at_the_end.system_allocations);
}

TEST(FrameAllocator, EndingThreadLeavesItsFullMagazinesToTheOthers) {
    if (!recycling()) return;  // it has none
    on_a_new_thread([] { deallocate(allocate(64 + 10, 64), 64); });
    EXPECT_EQ(this_thread_frame_stats().depot_bytes, 64U * 64);
    std::thread{[] {
        deallocate(allocate(64, 64), 64);
        EXPECT_EQ(this_thread_frame_stats().system_allocations, 0U);
    }}.join();
}

}  // namespace
