// Nothing in sync allocates in order to wait, counted.
//
// Each test has somebody wait again and again, a few times so that frames are there and threads
// have started, then many times more, and compares the count before and after.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/sync.hpp"
#include "support/counted_new.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::allocation_count;

constexpr int warm_up = 100;
constexpr int rounds = 1000;

// Takes the lock by `how`, keeps it while the other one asks for it, and lets go.
template <class Lock, class How>
task<long> contend(Lock& lock, How how) {
    long before = 0;
    allocation_count const c;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        auto waiting = how(lock);
        auto const held = co_await std::move(waiting);
        co_await yield();
    }
    co_return c.count() - before;
}

template <class Lock, class One, class Other>
void expect_no_allocation(Lock& lock, One one, Other other) {
    run_loop loop;
    auto first = spawn(loop, contend(lock, one));
    auto second = spawn(loop, contend(lock, other));
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value(), 0);
    std::ignore = second.blocking_join();  // it saw the end of the first one too
}

TEST(SyncAllocation, TasksThatWaitForALockAllocateNothing) {
    mutex<int> m{0};
    rwlock<int> rw{0};
    semaphore s{2};
    auto const lock = [](auto& l) { return l.lock(); };
    auto const read = [](auto& l) { return l.read(); };
    auto const write = [](auto& l) { return l.write(); };
    auto const acquire = [](auto& l) { return l.acquire(2); };
    expect_no_allocation(m, lock, lock);
    expect_no_allocation(rw, read, write);
    expect_no_allocation(rw, write, write);
    expect_no_allocation(s, acquire, acquire);
}

TEST(SyncAllocation, TasksThatWaitForALockWithATokenAndADeadlineAllocateNothing) {
    mutex<int> m{0};
    rwlock<int> rw{0};
    semaphore s{2};
    stop_source source;
    stop_token const token = source.token();
    auto const lock = [&](auto& l) { return l.lock_for(1h, token); };
    auto const read = [&](auto& l) { return l.read_for(1h, token); };
    auto const write = [&](auto& l) { return l.write_for(1h, token); };
    auto const acquire = [&](auto& l) { return l.acquire_for(2, 1h, token); };
    expect_no_allocation(m, lock, lock);
    expect_no_allocation(rw, read, write);
    expect_no_allocation(s, acquire, acquire);
}

TEST(SyncAllocation, WaitsForALockThatAreGivenUpAllocateNothing) {
    run_loop loop;
    mutex<int> m{0};
    auto const held = m.try_lock();
    stop_source stopped;
    stopped.request_stop();
    auto t = spawn(loop, [](mutex<int>& n, stop_token token) -> task<long> {
        allocation_count const c;
        for (int i = 0; i < rounds; ++i) {
            auto const late = co_await n.lock_for(0ns);
            auto const refused = co_await n.lock(token);
            EXPECT_FALSE(late || refused);
        }
        co_return c.count();
    }(m, stopped.token()));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 0);
}

TEST(SyncAllocation, ThreadsThatWaitForALockAllocateNothing) {
    semaphore there{0}, back{0};
    auto const turn = [](semaphore& s) { s.blocking_acquire_for(1, 1h).value().forget(); };
    std::thread other{[&] {
        for (int i = 0; i < warm_up + rounds; ++i) {
            turn(there);
            back.add_permits(1);
        }
    }};
    allocation_count const c;
    long before = 0;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        there.add_permits(1);
        turn(back);
    }
    EXPECT_EQ(c.count() - before, 0);
    other.join();
}

}  // namespace
}  // namespace rondo
