// Tasks that wake one another, beside Tokio.
//
// notify_pingpong       two tasks notify each other in turn
// notify_waiters_1000   a thousand tasks wait for one notify, again and again; per task woken
// watch                 the time to send while four tasks look at what they can catch
// watch_1000            a thousand tasks see each value before the next is sent; per task woken
// barrier               eight tasks, per generation
// once_cell_hot         a value that is there
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"
#include "rondo/sync/barrier.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/once_cell.hpp"
#include "rondo/sync/watch.hpp"

namespace {

using namespace rondo::bench;
using rondo::environment;
using rondo::join_handle;
using rondo::notify;
using rondo::task;
namespace watch = rondo::watch;

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
    stopwatch const time;
    auto server = spawn_here(env, serves(ping, pong, n));
    auto client = spawn_here(env, asks(ping, pong, n));
    (void)co_await client.join();
    (void)co_await server.join();
    co_return time.elapsed();
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
    stopwatch const time;
    for (std::size_t round = 0; round < rounds; ++round) {
        co_await b.all_there.notified();
        b.arrived.store(0, std::memory_order_release);
        b.of(round).notify_waiters();
    }
    co_await join_all(waiters);
    co_return time.elapsed();
}

// --- watch ---

task<void> catches(watch::receiver<std::uint64_t> receiver) {
    std::uint64_t sum = 0;
    for (;;) {
        auto const changed = co_await receiver.changed();
        if (!changed) break;
        sum += *receiver.borrow_and_update();
        count();
    }
    asm volatile("" ::"r"(sum));
}

task<duration> shows(watch::sender<std::uint64_t> sender, std::size_t n) {
    stopwatch const time;
    for (std::size_t i = 1; i <= n; ++i) {
        (void)sender.send(i);
        count();
    }
    co_return time.elapsed();
}

task<duration> watched_by_four(std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    watch::sender<std::uint64_t> sender{0U};
    std::vector<join_handle<void>> watchers;
    for (int i = 0; i < 4; ++i) {
        watchers.push_back(spawn_here(env, catches(sender.subscribe())));
    }
    for (int i = 0; i < 100; ++i) co_await rondo::yield();  // so that they are waiting
    auto sending = spawn_here(env, shows(std::move(sender), n));
    auto const took = co_await sending.join();
    co_await join_all(watchers);
    co_return *took;
}

struct audience {
    std::atomic<std::size_t> seen{0};
    notify all_saw_it;
};

task<void> looks(watch::receiver<std::uint64_t> receiver, audience& others) {
    for (;;) {
        auto const changed = co_await receiver.changed();
        if (!changed) break;
        asm volatile("" ::"r"(*receiver.borrow_and_update()));
        count();
        if (others.seen.fetch_add(1, std::memory_order_acq_rel) + 1 == crowd) {
            others.all_saw_it.notify_one();
        }
    }
}

task<duration> watched_by_a_thousand(std::size_t n) {
    environment const& env = co_await rondo::this_environment();
    audience others;
    std::vector<join_handle<void>> watchers;
    duration took{};
    {
        watch::sender<std::uint64_t> const sender{0U};
        for (std::size_t i = 0; i < crowd; ++i) {
            watchers.push_back(spawn_here(env, looks(sender.subscribe(), others)));
        }
        stopwatch const time;
        for (std::size_t round = 1; round <= n / crowd; ++round) {
            others.seen.store(0, std::memory_order_release);
            (void)sender.send(round);
            co_await others.all_saw_it.notified();
        }
        took = time.elapsed();
    }
    co_await join_all(watchers);
    co_return took;
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
    stopwatch const time;
    for (std::size_t i = 0; i < tasks; ++i) all.push_back(spawn_here(env, arrives(b, n, led)));
    co_await join_all(all);
    RONDO_ASSERT(led == n, "one leader in each generation");
    co_return time.elapsed();
}

// --- once_cell ---

task<duration> once_cell_hot(std::size_t n) {
    auto const make = [] { return std::uint64_t{42}; };
    rondo::once_cell<std::uint64_t> cell;
    (void)co_await cell.get_or_init(make);
    rondo::once_cell<std::uint64_t>* hidden = &cell;
    stopwatch const time;
    for (std::size_t i = 0; i < n; ++i) {
        asm volatile("" : "+r"(hidden)::"memory");
        std::uint64_t const* const value = co_await hidden->get_or_init(make);
        asm volatile("" ::"r"(*value));
    }
    co_return time.elapsed();
}

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> const all{
        on(mt, "notify_pingpong", 200'000, notify_pingpong),
        on(ct, "notify_pingpong", 200'000, notify_pingpong),
        on(mt, "notify_waiters_1000", 200'000, notify_a_thousand),
        on(ct, "notify_waiters_1000", 200'000, notify_a_thousand),
        on(mt, "watch", 400'000, watched_by_four),
        on(mt, "watch_1000", 200'000, watched_by_a_thousand),
        on(ct, "watch_1000", 200'000, watched_by_a_thousand),
        on(mt, "barrier", 40'000, barrier_of_eight),
        on(ct, "barrier", 40'000, barrier_of_eight),
        on(ct, "once_cell_hot", 20'000'000, once_cell_hot),
    };
    return run("sync", argc, argv, all);
}
