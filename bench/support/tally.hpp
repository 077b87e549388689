// tally.hpp: which thread did how much of a multi-threaded workload.
//
// A low figure may only mean that one thread did everything and no line ever passed between cores.
// So every operation is counted by the thread that does it, on both sides of a comparison: here,
// and in bench/peers/measure.rs for the Rust ones. It costs a nanosecond or two.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

namespace rondo::bench {

using counts = std::vector<std::uint64_t>;

namespace detail {

struct alignas(64) tally {
    std::atomic<std::uint64_t> count{0};
};
inline std::array<tally, 128> tallies;
inline std::atomic<std::size_t> threads{0};

}  // namespace detail

// The calling thread has done one operation. Not inlined: a coroutine that calls it may be in
// another thread than the last time.
[[gnu::noinline]] inline void count() noexcept {
    constinit thread_local detail::tally* mine = nullptr;
    asm volatile("" ::: "memory");
    if (mine == nullptr) {
        mine = &detail::tallies[detail::threads.fetch_add(1) % detail::tallies.size()];
    }
    mine->count.store(mine->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline void forget_counts() noexcept {
    for (detail::tally& t : detail::tallies) t.count.store(0, std::memory_order_relaxed);
}

// Of each thread that did something, the busiest first.
inline counts counted() {
    counts all;
    for (detail::tally const& t : detail::tallies) {
        if (auto const n = t.count.load(std::memory_order_relaxed); n != 0) all.push_back(n);
    }
    std::ranges::sort(all, std::greater{});
    return all;
}

// The line of a peer program: workload,param,ns_per_op,operations per thread.
inline void report(char const* workload, char const* param, double ns_per_operation) {
    std::printf("%s,%s,%.2f,", workload, param, ns_per_operation);
    char const* between = "";
    for (std::uint64_t const n : counted()) {
        std::printf("%s%llu", between, static_cast<unsigned long long>(n));
        between = "/";
    }
    std::putchar('\n');
}

// Runs `body(operations)` once with a tenth of them, to warm up, and once for the record.
template <typename Body>
double warm_ns_per_operation(std::size_t operations, Body body) {
    body(operations / 10);
    forget_counts();
    auto const begin = std::chrono::steady_clock::now();
    body(operations);
    std::chrono::duration<double, std::nano> const took = std::chrono::steady_clock::now() - begin;
    return took.count() / static_cast<double>(operations);
}

}  // namespace rondo::bench
