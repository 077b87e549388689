// Memory of jobs, allocated in one thread and freed in another.
#include "rondo/exec/detail/job_memory.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "rondo/core/frame_allocator.hpp"

namespace rondo::detail {
namespace {

TEST(JobMemory, BlocksOfEverySizeAreAlignedAndDistinct) {
    for (std::size_t size : {1U, 24U, 63U, 64U, 65U, 128U, 129U, 2048U, 5000U}) {
        std::set<void*> blocks;
        for (int i = 0; i < 200; ++i) {
            void* const p = allocate_job(size);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignof(std::max_align_t), 0U);
            std::memset(p, 0xAB, size);
            EXPECT_TRUE(blocks.insert(p).second);
        }
        for (void* const p : blocks) deallocate_job(p, size);
    }
}

TEST(JobMemory, WhatOneThreadFreesAnotherAllocates) {
    if (!this_thread_frame_stats().recycling) return;  // as documented, not under sanitizers
    constexpr std::size_t count = 1024, size = 64;
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(allocate_job(size));
    std::set<void*> const before{blocks.begin(), blocks.end()};
    std::thread{[&] {
        for (void* const p : blocks) deallocate_job(p, size);
    }}.join();
    std::size_t again = 0;
    for (void*& p : blocks) {
        p = allocate_job(size);
        again += before.count(p);
    }
    EXPECT_GE(again, count - 128);  // but for what the ended thread had in half-full magazines
    for (void* const p : blocks) deallocate_job(p, size);
}

TEST(JobMemory, ManyThreadsPassBlocksOn) {
    constexpr int rounds = 200;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (int round = 0; round < rounds; ++round) {
                std::vector<unsigned char*> mine;
                std::size_t const size = round % 2 == 0 ? 64 : 128;
                for (int i = 0; i < 100; ++i) {
                    mine.push_back(static_cast<unsigned char*>(allocate_job(size)));
                    std::memset(mine.back(), t, size);
                }
                for (unsigned char* const p : mine) {
                    EXPECT_EQ(p[0], t);
                    EXPECT_EQ(p[size - 1], t);
                    deallocate_job(p, size);
                }
            }
        });
    }
    for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace rondo::detail
