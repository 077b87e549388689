// Frames come and go in three shapes: one at a time (an awaited task that completes), as a stack
// (a chain of awaits) and as a queue (tasks spawned together that end in order).

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "../support/ratio.hpp"
#include "rondo/core/frame_allocator.hpp"

namespace {

using rondo::bench::ns_per_operation;

constexpr std::size_t rounds = 20'000;
constexpr std::array<std::size_t, 64> sizes = [] {
    constexpr std::array<std::size_t, 8> typical{56, 112, 120, 200, 264, 344, 520, 1048};
    std::array<std::size_t, 64> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = typical[(i * 5) % typical.size()];
    }
    return all;
}();

struct recycled {
    static void* take(std::size_t size) { return rondo::allocate_frame(size); }
    static void give(void* frame, std::size_t size) { rondo::deallocate_frame(frame, size); }
};

struct malloced {
    static void* take(std::size_t size) { return std::malloc(size); }
    static void give(void* frame, std::size_t) { std::free(frame); }
};

template <typename Memory>
double one_at_a_time() {
    return ns_per_operation(rounds * sizes.size(), [] {
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t size : sizes) {
                void* frame = Memory::take(size);
                benchmark::DoNotOptimize(frame);
                Memory::give(frame, size);
            }
        }
    });
}

template <typename Memory, bool Lifo>
double all_together() {
    return ns_per_operation(rounds * sizes.size(), [] {
        std::array<void*, sizes.size()> live{};
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                live[i] = Memory::take(sizes[i]);
            }
            benchmark::DoNotOptimize(live);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                std::size_t const next = Lifo ? sizes.size() - 1 - i : i;
                Memory::give(live[next], sizes[next]);
            }
        }
    });
}

}  // namespace

int main() {
    using rondo::bench::compare;
    compare("core", "frame_pair", {"rondo", one_at_a_time<recycled>},
            {{"malloc", one_at_a_time<malloced>}});
    compare("core", "frame_stack_of_64", {"rondo", all_together<recycled, true>},
            {{"malloc", all_together<malloced, true>}});
    compare("core", "frame_queue_of_64", {"rondo", all_together<recycled, false>},
            {{"malloc", all_together<malloced, false>}});
}
