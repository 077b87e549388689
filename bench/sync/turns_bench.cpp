// What those who wait for one another get, of ours alone.
//
//   fact sync handoff_mutex_mt p50_ns=210 p999_ns=4100 jain=1.000
//
// handoff_*       eight tasks queue for a mutex, and for a semaphore of two permits; whoever has it
//                 gives way once. From the moment one lets go (of the semaphore: the last of the
//                 two) to the moment the next one has it; and Jain's index over how often each had
//                 its turn in a fixed time: 1 is fair, 1/8 is one that has it all.
// cancel_storm    a million waits in line for a permit that never comes, stopped from another
//                 thread; per wait, from its beginning to its end
// size            bytes of a wait: what is called, and what it becomes when a task awaits it, into
//                 which its operation moves
// frame           bytes of the frame of a task that does nothing, and of one that waits once; only
//                 where the compiler says
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "../support/tasks.hpp"
#include "rondo/core/histogram.hpp"
#include "rondo/sync/sync.hpp"

namespace {

using namespace rondo::bench;
using namespace std::chrono_literals;
using rondo::environment;
using rondo::join_handle;
using rondo::task;

constexpr std::size_t contenders = 8;

// --- from hand to hand ---

struct race {
    rondo::time_point end;
    std::array<std::uint64_t, contenders> turns{};
    std::array<rondo::histogram, contenders> waited;
    std::atomic<rondo::clock::rep> let_go{0};  // when somebody last did
};

template <class Lock, class Acquire>
task<void> takes_turns(Lock& lock, Acquire acquire, race& r, std::size_t who) {
    for (;;) {
        auto waiting = acquire(lock);
        auto held = co_await std::move(waiting);
        rondo::time_point const now = rondo::clock::now();
        auto const let_go = r.let_go.load(std::memory_order_relaxed);
        if (let_go != 0)
            r.waited[who].record(now.time_since_epoch() - rondo::clock::duration{let_go});
        ++r.turns[who];
        if (now >= r.end) break;
        co_await rondo::yield();
        r.let_go.store(rondo::clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    }
}

double jain(std::array<std::uint64_t, contenders> const& turns) {
    double sum = 0, squares = 0;
    for (std::uint64_t const n : turns) {
        auto const x = static_cast<double>(n);
        sum += x;
        squares += x * x;
    }
    return sum * sum / (static_cast<double>(contenders) * squares);
}

template <class Lock, class Acquire>
task<void> all_contend(Lock& lock, Acquire acquire, race& r) {
    environment const& env = co_await rondo::this_environment();
    std::vector<join_handle<void>> all;
    for (std::size_t i = 0; i < contenders; ++i) {
        all.push_back(spawn_here(env, takes_turns(lock, acquire, r, i)));
    }
    co_await join_all(all);
}

template <class Lock, class Acquire>
void hand_off(char const* name, Lock& lock, Acquire acquire) {
    for (place const where : {place::ct, place::mt}) {
        auto r = std::make_unique<race>();
        r->end = rondo::clock::now() + 500ms;
        if (where == place::ct) {
            rondo::block_on(all_contend(lock, acquire, *r));
        } else {
            rondo::runtime rt{{.workers = 2}};
            rt.block_on(all_contend(lock, acquire, *r));
        }
        rondo::histogram all;
        for (rondo::histogram const& h : r->waited) all.merge(h);
        std::printf("fact sync %s_%s p50_ns=%llu p999_ns=%llu jain=%.3f\n", name,
                    where == place::mt ? "mt" : "ct",
                    static_cast<unsigned long long>(all.quantile(0.5)),
                    static_cast<unsigned long long>(all.quantile(0.999)), jain(r->turns));
    }
}

// --- stopped ---

task<void> waits_in_vain(rondo::semaphore& s) { (void)co_await s.acquire(); }

void cancel_storm() {
    constexpr std::size_t waits = 1'000'000, together = 1000;
    rondo::runtime rt{{.workers = 2}};
    rondo::semaphore s{0};
    stopwatch const watch;
    for (std::size_t done = 0; done < waits; done += together) {
        rondo::stop_source stop;
        std::vector<join_handle<void>> all;
        all.reserve(together);
        for (std::size_t i = 0; i < together; ++i) {
            all.push_back(rt.spawn(waits_in_vain(s), stop.token()));
        }
        stop.request_stop();
        for (auto& handle : all) std::ignore = handle.blocking_join();
    }
    std::chrono::duration<double, std::nano> const took = watch.elapsed();
    std::printf("fact sync cancel_storm ns_per_wait=%.1f waits=%zu\n",
                took.count() / static_cast<double>(waits), waits);
}

// --- sizes ---

template <class Wait>
void print_size(char const* name, Wait const& wait) {
    using awaiter =
        decltype(std::declval<Wait>().rondo_await(std::declval<rondo::detail::promise_base&>()));
    std::printf("fact sync size %s bytes=%zu awaiter=%zu\n", name, sizeof(wait), sizeof(awaiter));
}

void sizes() {
    rondo::mutex<int> m{0};
    rondo::rwlock<int> rw{0};
    rondo::semaphore s{1};
    rondo::notify n;
    rondo::barrier b{2};
    auto [tx, rx] = rondo::mpsc::channel<int>(1);
    auto [answer, answered] = rondo::oneshot::channel<int>();
    auto [news, listener] = rondo::broadcast::channel<int>(1);
    auto [shown, watched] = rondo::watch::channel(0);
    print_size("mutex.lock", m.lock());
    print_size("mutex.lock_for", m.lock_for(1s));
    print_size("rwlock.read", rw.read());
    print_size("rwlock.write", rw.write());
    print_size("semaphore.acquire", s.acquire());
    print_size("notify.notified_for", n.notified_for(1s));
    print_size("barrier.arrive_and_wait", b.arrive_and_wait());
    print_size("mpsc.send", tx.send(1));
    print_size("mpsc.recv", rx.recv());
    print_size("oneshot.recv", answered.recv());
    print_size("broadcast.recv", listener.recv());
    print_size("watch.changed", watched.changed());
}

#if defined(__clang__)

task<std::size_t> frame_of_nothing() { co_return __builtin_coro_size(); }
task<std::size_t> frame_of_lock(rondo::mutex<>& m) {
    auto const held = co_await m.lock();
    co_return __builtin_coro_size();
}
task<std::size_t> frame_of_lock_for(rondo::mutex<>& m) {
    auto const held = co_await m.lock_for(1s);
    co_return __builtin_coro_size();
}
task<std::size_t> frame_of_recv(rondo::mpsc::receiver<int> rx) {
    (void)co_await rx.recv();
    co_return __builtin_coro_size();
}

void frames() {
    rondo::mutex<> m;
    auto const print = [](char const* name, task<std::size_t> t) {
        std::printf("fact sync frame %s bytes=%zu\n", name, rondo::block_on(std::move(t)));
    };
    print("nothing", frame_of_nothing());
    print("mutex.lock", frame_of_lock(m));
    print("mutex.lock_for", frame_of_lock_for(m));
    auto [tx, rx] = rondo::mpsc::channel<int>(1);
    std::ignore = tx.try_send(1);
    print("mpsc.recv", frame_of_recv(std::move(rx)));
}

#else

void frames() {}

#endif

}  // namespace

int main() {
    rondo::mutex<> m;
    rondo::semaphore s{2};
    hand_off("handoff_mutex", m, [](rondo::mutex<>& l) { return l.lock(); });
    hand_off("handoff_semaphore", s, [](rondo::semaphore& l) { return l.acquire(); });
    cancel_storm();
    sizes();
    frames();
}
