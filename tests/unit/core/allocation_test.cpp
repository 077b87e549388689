// No allocation per wait, counted.
//
// Each test does something a few times, so that frames are there and threads have started, then
// many times more, and compares the count before and after.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "rondo/core/block_on.hpp"
#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/interval.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/counted_new.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::permits;
using counter = test::allocation_count;

constexpr int warm_up = 100;
constexpr int rounds = 1000;

TEST(Allocation, TheCounterCounts) {
    counter const c;
    ::operator delete(::operator new(1));  // a new-expression might be optimised away
    EXPECT_EQ(c.count(), 1);
}

// How a task waits for its turn; each is awaited where it is written, in the caller's frame.
struct plainly {
    auto operator()(permits& p) const { return p.acquire(); }
};
struct with_token {
    stop_token token;
    auto operator()(permits& p) const { return p.acquire(1, token); }
};
struct with_deadline_and_token {
    stop_token token;
    auto operator()(permits& p) const { return p.acquire_until(1, clock::now() + 1h, token); }
};

inline void keep(permits::permit got) { got.forget(); }
inline void keep(std::expected<permits::permit, wait_error> got) { got.value().forget(); }

// Waits for its own turn and gives the other one theirs; every wait suspends.
template <class How>
task<long> ping(permits& mine, permits& theirs, How wait_for) {
    long counted_before = 0;
    counter const c;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) counted_before = c.count();
        auto waiting = wait_for(mine);
        keep(co_await std::move(waiting));
        theirs.release();
    }
    co_return c.count() - counted_before;
}

template <class How>
void expect_no_allocation_by_tasks(How how) {
    run_loop loop;
    permits a{0}, b{0};
    auto first = spawn(loop, ping(a, b, how));
    auto second = spawn(loop, ping(b, a, how));
    a.release();
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value(), 0);
    std::ignore = second.blocking_join();
}

TEST(Allocation, TasksThatWakeEachOtherAllocateNothing) {
    expect_no_allocation_by_tasks(plainly{});
}

TEST(Allocation, TasksThatWaitWithATokenAllocateNothing) {
    stop_source source;
    expect_no_allocation_by_tasks(with_token{source.token()});
}

TEST(Allocation, TasksThatWaitWithADeadlineAllocateNothing) {
    stop_source source;
    expect_no_allocation_by_tasks(with_deadline_and_token{source.token()});
}

TEST(Allocation, WaitsThatTimeOutOrAreStoppedAllocateNothing) {
    run_loop loop;
    permits never{0};
    stop_source stopped;
    stopped.request_stop();
    long const counted_in_loop = block_on(loop, [](permits& p, stop_token token) -> task<long> {
        counter const c;
        for (int i = 0; i < rounds; ++i) {
            auto const late = co_await p.acquire_until(1, clock::now());
            auto const refused = co_await p.acquire(1, token);
            EXPECT_FALSE(late || refused);
        }
        co_return c.count();
    }(never, stopped.token()));
    EXPECT_EQ(counted_in_loop, 0);
}

TEST(Allocation, YieldsSleepsAndTicksAllocateNothing) {
    long const counted_in_loop = block_on([]() -> task<long> {
        interval every{1ns, time_point{}};
        counter const c;
        for (int i = 0; i < rounds; ++i) {
            co_await yield();
            (void)co_await every.tick();
            co_await sleep_until(clock::now());
        }
        // Real time: three sleeps that really go through the timers.
        for (int i = 0; i < 3; ++i) co_await sleep_for(100us);
        co_return c.count();
    }());
    EXPECT_EQ(counted_in_loop, 0);
}

template <class Wait>
void expect_no_allocation_by_threads(Wait wait) {
    permits there{0}, back{0};
    std::thread other{[&] {
        for (int i = 0; i < warm_up + rounds; ++i) {
            wait(there);
            back.release();
        }
    }};
    counter const c;
    long before = 0;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        there.release();
        wait(back);
    }
    EXPECT_EQ(c.count() - before, 0);
    other.join();
}

TEST(Allocation, ThreadsThatWakeEachOtherAllocateNothing) {
    expect_no_allocation_by_threads([](permits& p) { keep(p.blocking_acquire()); });
}

TEST(Allocation, ThreadsThatWaitWithADeadlineAndATokenAllocateNothing) {
    stop_source source;
    expect_no_allocation_by_threads(
        [&](permits& p) { keep(p.blocking_acquire_until(1, clock::now() + 1h, source.token())); });
}

TEST(Allocation, AThreadAndATaskThatWakeEachOtherAllocateNothing) {
    permits there{0}, back{0};
    std::thread thread{[&] {
        for (int i = 0; i < warm_up + rounds; ++i) {
            keep(there.blocking_acquire());
            back.release();
        }
    }};
    there.release();
    EXPECT_EQ(block_on(ping(back, there, plainly{})), 0);
    thread.join();
    keep(there.blocking_acquire());
}

// Tasks and combinators have frames, which come back from the thread's cache.
TEST(Allocation, InSteadyStateTasksAndCombinatorsReuseTheirFrames) {
    if (!this_thread_frame_stats().recycling)
        return;  // sanitizers: each frame is a block of its own
    long const counted_in_loop = block_on([]() -> task<long> {
        permits p{1}, never{0};
        environment const& env = co_await this_environment();
        executor& where = *env.where;
        long before = 0;
        counter const c;
        for (int i = 0; i < warm_up + rounds; ++i) {
            if (i == warm_up) before = c.count();
            (void)co_await when_all(p.acquire(), yield());
            (void)co_await when_any(never.acquire(), p.acquire());
            (void)co_await with_timeout(p.acquire(), 1h);
            auto child = spawn(where, []() -> task<int> { co_return 1; }());
            (void)co_await child.join();
        }
        co_return c.count() - before;
    }());
    EXPECT_EQ(counted_in_loop, 0);
}

}  // namespace
}  // namespace rondo
