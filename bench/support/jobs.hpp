// jobs.hpp: what pools are measured with, ours and others alike.
//
// A Pool is made with a number of workers and has start(f).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <semaphore>
#include <thread>
#include <vector>

#include "tally.hpp"

namespace rondo::bench {

// Empty jobs from one thread that is none of the pool's, until the last has run: ns per job.
template <class Pool>
double empty_jobs(Pool& pool) {
    constexpr std::size_t jobs = 500'000;
    struct countdown {
        std::atomic<std::size_t> left;
        std::binary_semaphore done{0};
    };
    return warm_ns_per_operation(jobs, [&](std::size_t n) {
        countdown c{n};
        for (std::size_t i = 0; i < n; ++i) {
            pool.start([&c] {
                count();
                if (c.left.fetch_sub(1, std::memory_order_acq_rel) == 1) c.done.release();
            });
        }
        c.done.acquire();
    });
}

// Jobs that come one by one and keep a quarter of the processors busy, each of them for `length`:
// a quantile of the time from submit to start, in ns. Every worker is up and has had a job
// before.
template <class Pool>
double submit_to_start(Pool& pool, std::size_t workers, std::chrono::microseconds length,
                       double quantile) {
    using clock = std::chrono::steady_clock;
    constexpr std::size_t jobs = 4000;
    std::counting_semaphore<> met{0}, go{0};
    for (std::size_t i = 0; i < workers; ++i) {
        pool.start([&] {
            met.release();
            go.acquire();
        });
    }
    for (std::size_t i = 0; i < workers; ++i) met.acquire();
    go.release(static_cast<std::ptrdiff_t>(workers));

    auto const interval = length * 4 / std::max(1U, std::thread::hardware_concurrency());
    std::vector<double> waited(jobs);  // each job has a place of its own
    std::atomic<std::size_t> left{jobs};
    std::binary_semaphore done{0};
    auto next = clock::now() + std::chrono::milliseconds{1};
    for (double& place : waited) {
        while (clock::now() < next) std::this_thread::yield();
        next += interval;
        pool.start([&left, &done, &place, length, submitted = clock::now()] {
            auto const started = clock::now();
            place = std::chrono::duration<double, std::nano>(started - submitted).count();
            while (clock::now() < started + length) {
            }
            if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) done.release();
        });
    }
    done.acquire();
    std::ranges::sort(waited);
    return waited[static_cast<std::size_t>(quantile * static_cast<double>(jobs - 1))];
}

}  // namespace rondo::bench
