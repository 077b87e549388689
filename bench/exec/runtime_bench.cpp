// What running costs: starting and joining tasks, giving way, timers. Beside Tokio, Boost.Asio's
// coroutines and, for tasks that are joined, oneTBB.
//
// spawn_join            a thousand empty tasks are spawned by a task, then joined in their order
// spawn_external        tasks are spawned by a thread outside, and nobody joins them
// yield                 a thousand tasks give way in turns
// timer_insert_cancel   a sleep of a minute is begun and given up
// timer_fire            1e5 tasks sleep until one moment; what the last one is late by, shared out
// skynet                a tree of tasks with ten children each, down to 1e6 leaves, per leaf
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <semaphore>
#include <string>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"

namespace {

using namespace rondo::bench;
using rondo::join_handle;
using rondo::task;

task<void> counts_itself() {
    count();
    co_return;
}

task<duration> spawn_join(std::size_t n) {
    constexpr std::size_t together = 1000;
    rondo::environment const& env = co_await rondo::this_environment();
    std::vector<join_handle<void>> handles;
    handles.reserve(together);
    stopwatch const watch;
    for (std::size_t done = 0; done < n; done += together) {
        for (std::size_t i = 0; i < together; ++i) {
            handles.push_back(spawn_here(env, counts_itself()));
        }
        for (auto& handle : handles) (void)co_await handle.join();
        handles.clear();
    }
    co_return watch.elapsed();
}

struct countdown {
    std::atomic<std::size_t> left;
    std::binary_semaphore done{0};
};

task<void> counts_down(countdown& c) {
    count();
    if (c.left.fetch_sub(1, std::memory_order_acq_rel) == 1) c.done.release();
    co_return;
}

double spawn_external() {
    return warm_ns_per_operation(300'000, [](std::size_t n) {
        rondo::runtime rt{{.workers = 2}};
        countdown c{n};
        for (std::size_t i = 0; i < n; ++i) rt.spawn(counts_down(c)).detach();
        c.done.acquire();
    });
}

task<void> gives_way(std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
        count();
        co_await rondo::yield();
    }
}

task<duration> yields(std::size_t n) {
    constexpr std::size_t tasks = 1000;
    rondo::environment const& env = co_await rondo::this_environment();
    std::vector<join_handle<void>> handles;
    stopwatch const watch;
    for (std::size_t i = 0; i < tasks; ++i) {
        handles.push_back(spawn_here(env, gives_way(n / tasks)));
    }
    co_await join_all(handles);
    co_return watch.elapsed();
}

// As a coroutine that suspends in the sleep and is destroyed there, without the coroutine.
task<duration> timer_insert_cancel(std::size_t n) {
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        auto sleep = rondo::sleep_for(std::chrono::seconds{60}).operator co_await();
        (void)sleep.await_suspend(std::noop_coroutine());
    }
    co_return watch.elapsed();
}

task<void> sleeps_until(rondo::time_point when) {
    co_await rondo::sleep_until(when);
    count();
}

task<duration> timer_fire(std::size_t n) {
    constexpr std::chrono::milliseconds ahead{100};
    rondo::environment const& env = co_await rondo::this_environment();
    std::vector<join_handle<void>> handles;
    handles.reserve(n);
    stopwatch const watch;
    rondo::time_point const due = rondo::clock::now() + ahead;
    for (std::size_t i = 0; i < n; ++i) handles.push_back(spawn_here(env, sleeps_until(due)));
    co_await join_all(handles);
    co_return watch.elapsed() - ahead;
}

task<std::uint64_t> subtree(std::uint64_t first, std::uint64_t size) {
    if (size == 1) {
        count();
        co_return first;
    }
    rondo::environment const& env = co_await rondo::this_environment();
    std::uint64_t const part = size / 10;
    std::vector<join_handle<std::uint64_t>> children;
    children.reserve(10);
    for (std::uint64_t i = 0; i < 10; ++i) {
        children.push_back(spawn_here(env, subtree(first + i * part, part)));
    }
    std::uint64_t sum = 0;
    for (auto& child : children) {
        auto const numbers = co_await child.join();
        sum += *numbers;
    }
    co_return sum;
}

task<duration> skynet(std::size_t n) {
    stopwatch const watch;
    std::uint64_t const sum = co_await subtree(0, n);
    duration const took = watch.elapsed();
    RONDO_ASSERT(sum == n * (n - 1) / 2, "every leaf counts once");
    co_return took;
}

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> all{
        on(mt, "spawn_join", 300'000, spawn_join, {{"tbb_group", "tbb_peer", "spawn_join", "mt"}}),
        on(ct, "spawn_join", 300'000, spawn_join,
           {{"asio_co_spawn", "asio_peer", "spawn_join", "ct"}}),
        {"spawn_external_mt",
         spawn_external,
         {{"tokio", "tokio_peer", "spawn_external", "mt"},
          {"asio_co_spawn", "asio_peer", "spawn_external", "mt"}}},
        on(mt, "yield", 2'000'000, yields, {{"asio_post", "asio_peer", "yield", "mt"}}),
        on(ct, "yield", 2'000'000, yields, {{"asio_post", "asio_peer", "yield", "ct"}}),
        on(mt, "timer_insert_cancel", 500'000, timer_insert_cancel),
        on(ct, "timer_insert_cancel", 500'000, timer_insert_cancel),
        on(mt, "timer_fire", 100'000, timer_fire),
        on(ct, "timer_fire", 100'000, timer_fire),
        on(mt, "skynet", 1'000'000, skynet),
    };
    all[5].threads = false;  // one task does it all
    return run("exec", argc, argv, all);
}
