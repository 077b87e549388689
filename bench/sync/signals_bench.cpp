// Tasks that wake one another, beside Tokio.
//
// notify_pingpong       two tasks notify each other in turn
// notify_waiters_1000   a thousand tasks wait for one notify, again and again; per task woken
// barrier               eight tasks, per generation
// once_cell_hot         a value that is there
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"
#include "rondo/sync/barrier.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/once_cell.hpp"

namespace {

using namespace rondo::bench;
using rondo::environment;
using rondo::join_handle;
using rondo::notify;
using rondo::task;

// --- notify ---

task<void> serves(notify& ping, notify& pong, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        co_await ping.notified();
        count();
        pong.notify_one();
    }
}
task<void> asks(notify& ping, notify& pong, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        ping.notify_one();
        co_await pong.notified();
        count();
    }
}

task<duration> notify_pingpong(std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    notify ping, pong;
    stopwatch const watch;
    auto server = spawn_here(env, serves(ping, pong, n));
    auto client = spawn_here(env, asks(ping, pong, n));
    (void)co_await client.join();
    (void)co_await server.join();
    co_return watch.elapsed();
}

constexpr std::size_t crowd = 1000;

struct bells {
    notify odd, even;
    notify all_there;
    std::atomic<std::size_t> arrived{0};

    notify& of(std::size_t round) { return round % 2 == 0 ? even : odd; }
};

task<void> waits_for(bells& b, std::size_t rounds) {
    for (std::size_t round = 0; round < rounds; ++round) {
        auto rung = b.of(round).notified();
        rung.enable();
        if (b.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == crowd) {
            b.all_there.notify_one();
        }
        co_await rung;
        count();
    }
}

task<duration> notify_a_thousand(std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    bells b;
    std::size_t const rounds = n / crowd;
    std::vector<join_handle<void>> waiters;
    for (std::size_t i = 0; i < crowd; ++i)
        waiters.push_back(spawn_here(env, waits_for(b, rounds)));
    stopwatch const watch;
    for (std::size_t round = 0; round < rounds; ++round) {
        co_await b.all_there.notified();
        b.arrived.store(0, std::memory_order_release);
        b.of(round).notify_waiters();
    }
    co_await join_all(waiters);
    co_return watch.elapsed();
}

// --- barrier ---

task<void> arrives(rondo::barrier& b, std::size_t generations, std::atomic<std::size_t>& led) {
    std::size_t mine = 0;
    for (std::size_t i = 0; i < generations; ++i) {
        auto const passage = co_await b.arrive_and_wait();
        mine += passage.is_leader() ? 1 : 0;
        count();
    }
    led.fetch_add(mine);
}

task<duration> barrier_of_eight(std::size_t n) {
    constexpr std::size_t tasks = 8;
    environment const& env = co_await rondo::this_environment();
    rondo::barrier b{tasks};
    std::atomic<std::size_t> led{0};
    std::vector<join_handle<void>> all;
    stopwatch const watch;
    for (std::size_t i = 0; i < tasks; ++i) all.push_back(spawn_here(env, arrives(b, n, led)));
    co_await join_all(all);
    RONDO_ASSERT(led == n, "one leader in each generation");
    co_return watch.elapsed();
}

// --- once_cell ---

task<duration> once_cell_hot(std::size_t n) {
    auto const make = [] { return std::uint64_t{42}; };
    rondo::once_cell<std::uint64_t> cell;
    (void)co_await cell.get_or_init(make);
    rondo::once_cell<std::uint64_t>* hidden = &cell;
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        asm volatile("" : "+r"(hidden)::"memory");
        std::uint64_t const* const value = co_await hidden->get_or_init(make);
        asm volatile("" ::"r"(*value));
    }
    co_return watch.elapsed();
}

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> const all{
        on(mt, "notify_pingpong", 200'000, notify_pingpong),
        on(ct, "notify_pingpong", 200'000, notify_pingpong),
        on(mt, "notify_waiters_1000", 200'000, notify_a_thousand),
        on(ct, "notify_waiters_1000", 200'000, notify_a_thousand),
        on(mt, "barrier", 40'000, barrier_of_eight),
        on(ct, "barrier", 40'000, barrier_of_eight),
        on(ct, "once_cell_hot", 20'000'000, once_cell_hot),
    };
    return run("sync", argc, argv, all);
}
