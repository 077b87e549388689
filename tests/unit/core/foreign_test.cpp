// Coroutines that are not tasks: where they are resumed, and what they may await.
#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <deque>
#include <exception>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/timer_queue.hpp"
#include "rondo/core/waker.hpp"
#include "rondo/core/when_all.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"
#include "support/stack_gauge.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;
using test::stack_gauge;

struct foreign_promise {
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
};

// Belongs nowhere and destroys itself.
struct loose {
    struct promise_type : foreign_promise {
        loose get_return_object() { return {}; }
    };
};

// Belongs to the executor that is its first argument.
struct homed {
    struct promise_type : foreign_promise {
        template <class... Rest>
        explicit promise_type(executor& home, Rest&...) : home_(home) {}
        homed get_return_object() { return {}; }
        executor& rondo_executor() noexcept { return home_; }

      private:
        executor& home_;
    };
};

// Destroyed by its owner, wherever it is suspended.
class owned {
  public:
    struct promise_type : foreign_promise {
        owned get_return_object() {
            return owned{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always final_suspend() noexcept { return {}; }
    };

    owned(owned&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    owned& operator=(owned&&) = delete;
    ~owned() {
        if (frame_) frame_.destroy();
    }

  private:
    explicit owned(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

    std::coroutine_handle<promise_type> frame_;
};

// Where a coroutine went on.
struct place {
    std::thread::id thread;
    executor* current = nullptr;

    void note() {
        thread = std::this_thread::get_id();
        current = executor::current();
    }
    bool reached() const { return thread != std::thread::id{}; }
};

loose take_loose(permits& p, place& where) {
    auto const got = co_await p.acquire();
    where.note();
}

homed take_homed(executor&, permits& p, place& where) {
    auto const got = co_await p.acquire();
    where.note();
}

TEST(ForeignPlace, IsTheExecutorThatThePromiseNames) {
    permits p{0};
    manual_loop home;
    manual_loop other;
    place where;
    {
        executor::scope const elsewhere{&other};
        take_homed(home, p, where);
    }
    p.release();
    EXPECT_FALSE(where.reached());
    EXPECT_EQ(other.run_ready(), 0U);
    EXPECT_EQ(home.run_ready(), 1U);
    EXPECT_EQ(where.current, &home);
}

TEST(ForeignPlace, IsElseTheExecutorThatWasCurrentWhenItSuspended) {
    permits p{0};
    manual_loop first;
    manual_loop second;
    place where;
    {
        executor::scope const here{&first};
        take_loose(p, where);
    }
    {
        executor::scope const elsewhere{&second};
        p.release();
    }
    EXPECT_FALSE(where.reached());
    EXPECT_EQ(second.run_ready(), 0U);
    EXPECT_EQ(first.run_ready(), 1U);
    EXPECT_EQ(where.current, &first);
}

TEST(ForeignPlace, IsElseTheThreadThatWakesIt) {
    permits p{0};
    place where;
    std::thread{[&] { take_loose(p, where); }}.join();
    p.release();
    EXPECT_EQ(where.thread, std::this_thread::get_id());
    EXPECT_EQ(p.available(), 1U);
}

TEST(ForeignPlace, IsNotTheExecutorOfWhoeverWakesIt) {
    permits p{0};
    manual_loop loop;
    place where;
    take_loose(p, where);
    executor::scope const here{&loop};
    p.release();
    EXPECT_TRUE(where.reached());
    EXPECT_EQ(where.current, nullptr);
    EXPECT_EQ(executor::current(), &loop);
}

TEST(Trampoline, RunsWhenTheOutermostScopeOfTheThreadCloses) {
    permits p{0};
    place where;
    take_loose(p, where);
    {
        wake_scope const outer;
        {
            wake_scope const inner;
            p.release();
        }
        EXPECT_FALSE(where.reached());
    }
    EXPECT_TRUE(where.reached());
}

loose pass_on(permits& mine, permits& next, std::vector<std::string>& log, std::string name) {
    auto got = co_await mine.acquire();
    got.forget();
    log.push_back(name + " releases");
    next.release();
    log.push_back(name + " goes on");
}

TEST(Trampoline, ResumesOneAfterTheOtherAndNeverOneInsideAnother) {
    permits a{0};
    permits b{0};
    permits c{0};
    std::vector<std::string> log;
    pass_on(b, c, log, "second");
    pass_on(a, b, log, "first");
    a.release();
    EXPECT_EQ(log, (std::vector<std::string>{"first releases", "first goes on", "second releases",
                                             "second goes on"}));
    EXPECT_EQ(c.available(), 1U);
}

loose use_again(permits& p, std::size_t& seen) {
    auto got = co_await p.acquire();
    got.forget();
    p.release(2);
    seen = p.available();
}

TEST(Trampoline, HoldsNoLockOfTheObjectThatWoke) {
    permits p{0};
    std::size_t seen = 0;
    use_again(p, seen);
    p.release();
    EXPECT_EQ(seen, 2U);
}

constexpr std::size_t million = 1'000'000;
constexpr std::size_t one_stack = 64 * 1024;  // bytes; a million levels would take tens of MB

loose wake_next(permits& mine, permits& next, stack_gauge& gauge) {
    auto got = co_await mine.acquire();
    gauge.mark();
    got.forget();
    next.release();
}

TEST(Trampoline, AMillionCoroutinesEachWakingTheNextDoNotGrowTheStack) {
    stack_gauge gauge;
    std::deque<permits> turns;
    turns.emplace_back(0U);
    for (std::size_t i = 0; i < million; ++i) {
        permits& mine = turns.back();
        wake_next(mine, turns.emplace_back(0U), gauge);
    }
    turns.front().release();
    EXPECT_EQ(gauge.marks(), million);
    EXPECT_EQ(turns.back().available(), 1U);
    EXPECT_LT(gauge.span(), one_stack);
}

task<void> give_way_often(std::size_t times, stack_gauge& gauge) {
    for (std::size_t i = 0; i < times; ++i) {
        co_await yield();
        gauge.mark();
    }
}

loose await_nothing(task<void> t, bool& ended) {
    co_await std::move(t);
    ended = true;
}

TEST(Trampoline, ATaskThatGivesWayAMillionTimesDoesNotGrowTheStack) {
    stack_gauge gauge;
    bool ended = false;
    await_nothing(give_way_often(million, gauge), ended);
    EXPECT_TRUE(ended);
    EXPECT_EQ(gauge.marks(), million);
    EXPECT_LT(gauge.span(), one_stack);
}

owned hold_two(permits& p) {
    auto const first = co_await p.acquire(2);
    auto const second = co_await p.acquire();
}

TEST(Foreign, DestroyedWhileItWaitsLeavesTheQueueAndLetsFollowersGo) {
    permits p{0};
    place where;
    std::optional<owned> first{hold_two(p)};
    take_loose(p, where);
    p.release();  // accrues to the first, who needs two
    EXPECT_FALSE(where.reached());
    first.reset();
    EXPECT_TRUE(where.reached());
    EXPECT_EQ(p.available(), 1U);
}

TEST(Foreign, DestroyedWhileItWaitsReleasesWhatItHolds) {
    permits p{2};
    std::optional<owned> holder{hold_two(p)};
    EXPECT_TRUE(p.awaited());
    EXPECT_EQ(p.available(), 0U);
    holder.reset();
    EXPECT_FALSE(p.awaited());
    EXPECT_EQ(p.available(), 2U);
}

TEST(Foreign, DestroyedAfterTheGrantOnAnExecutorThatRunsNoMoreHandsItOn) {
    permits p{0};
    {
        manual_loop ended;  // is destroyed without having run what was posted to it
        executor::scope const here{&ended};
        owned const never_resumed = hold_two(p);
        p.release(2);
        EXPECT_EQ(p.available(), 0U);
    }
    EXPECT_EQ(p.available(), 2U);
}

using maybe_permit = std::expected<permits::permit, wait_error>;

loose take_unless(permits& p, stop_token token, std::optional<wait_error>& error) {
    maybe_permit const got = co_await p.acquire(1, token);
    if (!got) error = got.error();
}

TEST(Foreign, ATokenEndsItsWaitWithAValue) {
    permits p{0};
    stop_source stop;
    std::optional<wait_error> error;
    take_unless(p, stop.token(), error);
    EXPECT_FALSE(error);
    stop.request_stop();
    EXPECT_EQ(error, wait_error::stopped);
    EXPECT_FALSE(p.awaited());
}

TEST(Foreign, ATokenThatHasAskedEndsItsWaitInPlace) {
    permits p{0};
    stop_source stop;
    stop.request_stop();
    std::optional<wait_error> error;
    take_unless(p, stop.token(), error);
    EXPECT_EQ(error, wait_error::stopped);
}

homed take_until(executor&, permits& p, time_point deadline, std::optional<wait_error>& error) {
    maybe_permit const got = co_await p.acquire_until(1, deadline);
    if (!got) error = got.error();
}

TEST(Foreign, ADeadlineIsKeptByTheTimersOfItsExecutor) {
    permits p{0};
    manual_loop loop;
    std::optional<wait_error> error;
    take_until(loop, p, loop.now() + 10ms, error);
    loop.advance(9ms);
    EXPECT_FALSE(error);
    loop.advance(1ms);
    EXPECT_EQ(error, wait_error::timed_out);
    EXPECT_FALSE(p.awaited());
}

loose time_out_nowhere(permits& p, std::promise<wait_error>& error) {
    maybe_permit const got = co_await p.acquire_until(1, clock::now() + 2ms);
    error.set_value(got.error());
}

TEST(Foreign, WithoutAnExecutorADeadlineIsKeptByTheDefaultTimers) {
    permits p{0};
    std::promise<wait_error> error;
    time_point const start = clock::now();
    time_out_nowhere(p, error);
    EXPECT_EQ(error.get_future().get(), wait_error::timed_out);
    EXPECT_GE(clock::now() - start, 2ms);
}

// real time: sleep_for is what is tested, by a clock that the test moves
homed sleep_at_home(executor&, stop_token token, std::vector<bool>& slept) {
    co_await sleep_for(10ms);
    slept.push_back(true);
    auto const cut_short = co_await sleep_for(10ms, token);
    slept.push_back(cut_short.has_value());
}

TEST(Foreign, SleepsByTheClockOfItsExecutor) {
    manual_loop loop;
    stop_source stop;
    std::vector<bool> slept;
    sleep_at_home(loop, stop.token(), slept);
    loop.advance(9ms);
    EXPECT_TRUE(slept.empty());
    loop.advance(1ms);
    EXPECT_EQ(slept, (std::vector<bool>{true}));
    stop.request_stop();
    loop.run_ready();
    EXPECT_EQ(slept, (std::vector<bool>{true, false}));
}

// real time: the default timers have no other clock
loose sleep_nowhere(clock::duration how_long, std::promise<void>& ended) {
    co_await sleep_for(how_long);
    ended.set_value();
}

TEST(Foreign, SleepsWithoutAnExecutor) {
    std::promise<void> ended;
    time_point const start = clock::now();
    sleep_nowhere(2ms, ended);
    ended.get_future().wait();
    EXPECT_GE(clock::now() - start, 2ms);
}

task<int> take_and_count(permits& p) {
    auto const got = co_await p.acquire();
    co_return static_cast<int>(p.available());
}

loose await_in_place(permits& p, std::optional<int>& result) {
    result = co_await take_and_count(p);
}

TEST(ForeignTask, RunsInPlaceAndGivesItsResult) {
    permits p{1};
    std::optional<int> result;
    await_in_place(p, result);
    EXPECT_EQ(result, 0);
}

TEST(ForeignTask, ThatWaitsGoesOnInTheThreadThatWakesIt) {
    permits p{0};
    std::optional<int> result;
    std::thread{[&] { await_in_place(p, result); }}.join();
    EXPECT_FALSE(result);
    p.release(3);
    EXPECT_EQ(result, 2);
}

homed await_at_home(executor&, permits& p, place& where) {
    (void)co_await take_and_count(p);
    where.note();
}

TEST(ForeignTask, RunsOnTheExecutorOfTheCoroutine) {
    permits p{0};
    manual_loop home;
    place where;
    await_at_home(home, p, where);
    EXPECT_FALSE(p.awaited());  // it was posted there
    EXPECT_EQ(home.run_ready(), 1U);
    EXPECT_TRUE(p.awaited());
    p.release();
    EXPECT_EQ(home.run_ready(), 1U);
    EXPECT_EQ(where.current, &home);
}

task<int> failing(permits& p) {
    auto const got = co_await p.acquire();
    throw std::runtime_error{"from the task"};
}

loose await_failing(permits& p, std::string& what) {
    try {
        (void)co_await failing(p);
    } catch (std::runtime_error const& e) {
        what = e.what();
    }
}

TEST(ForeignTask, ThrowsWhereItIsAwaited) {
    permits p{0};
    std::string what;
    await_failing(p, what);
    p.release();
    EXPECT_EQ(what, "from the task");
    EXPECT_EQ(p.available(), 1U);
}

task<int> both(permits& a, permits& b) {
    auto const [x, y] = co_await when_all(take_and_count(a), take_and_count(b));
    co_return x + y;
}

loose await_both(permits& a, permits& b, std::optional<int>& result) {
    result = co_await both(a, b);
}

TEST(ForeignTask, MayForkWithoutAnExecutor) {
    permits a{0};
    permits b{0};
    std::optional<int> result;
    await_both(a, b, result);
    a.release(2);
    EXPECT_FALSE(result);
    b.release(3);
    EXPECT_EQ(result, 3);
}

task<void> note(std::string& order, char letter) {
    order += letter;
    co_return;
}

task<void> spawn_beside_itself(std::string& order) {
    environment const& env = co_await this_environment();
    spawn(*env.where, note(order, 'b')).detach();
    order += 'a';
}

TEST(ForeignTask, WhatItSpawnsRunsAfterItAlthoughThereIsNoExecutor) {
    std::string order;
    bool ended = false;
    await_nothing(spawn_beside_itself(order), ended);
    EXPECT_TRUE(ended);
    EXPECT_EQ(order, "ab");
}

owned await_and_be_destroyed(permits& p) { (void)co_await take_and_count(p); }

TEST(ForeignTask, IsDestroyedWithTheCoroutineThatAwaitsIt) {
    permits p{0};
    {
        owned const waiting = await_and_be_destroyed(p);
        EXPECT_TRUE(p.awaited());
    }
    EXPECT_FALSE(p.awaited());
    p.release();
    EXPECT_EQ(p.available(), 1U);
}

}  // namespace
}  // namespace rondo
