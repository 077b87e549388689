// Waits: turns, both forms of stop, deadlines, in tasks and in plain threads. What happens when
// these meet in the same instant is model-checked in tests/model/core.
#include "rondo/core/wait.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/wait_error.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/core/when_any.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;

using outcome = std::expected<permits::permit, wait_error>;
using names = std::vector<std::string>;

// Takes n permits, says so, and keeps them.
task<void> take(permits& p, std::size_t n, names& got, std::string name) {
    auto permit = co_await p.acquire(n);
    permit.forget();
    got.push_back(std::move(name));
}

// --- turns -----------------------------------------------------------------------------------

TEST(Wait, WaitersAreServedInTheOrderTheyCame) {
    manual_loop loop;
    permits p{0};
    names got;
    for (auto const* name : {"a", "b", "c"}) spawn(loop, take(p, 1, got, name)).detach();
    loop.run_ready();
    p.release(2);
    loop.run_ready();
    EXPECT_EQ(got, (names{"a", "b"}));
    p.release();
    loop.run_ready();
    EXPECT_EQ(got, (names{"a", "b", "c"}));
}

TEST(Wait, ALargeRequestIsNotOvertakenByASmallOneNotEvenByANewOne) {
    manual_loop loop;
    permits p{0};
    names got;
    spawn(loop, take(p, 3, got, "large")).detach();
    spawn(loop, take(p, 1, got, "small")).detach();
    loop.run_ready();
    p.release(2);
    spawn(loop, take(p, 1, got, "new")).detach();
    loop.run_ready();
    EXPECT_TRUE(got.empty());
    p.release(3);
    loop.run_ready();
    EXPECT_EQ(got, (names{"large", "small", "new"}));
}

TEST(Wait, IsNeverResumedInsideTheCallThatGrantsIt) {
    manual_loop loop;
    permits p{0};
    names got;
    spawn(loop, take(p, 1, got, "waiter")).detach();
    loop.run_ready();
    p.release();
    EXPECT_TRUE(got.empty());
    loop.run_ready();
    EXPECT_EQ(got, names{"waiter"});
}

// --- a waiter that leaves --------------------------------------------------------------------

TEST(Wait, AStoppedWaiterAtTheHeadLetsFollowersThatFitGoAtOnce) {
    manual_loop loop;
    permits p{2};
    names got;
    auto head = spawn(loop, take(p, 5, got, "head"));
    spawn(loop, take(p, 1, got, "second")).detach();
    spawn(loop, take(p, 1, got, "third")).detach();
    spawn(loop, take(p, 1, got, "fourth")).detach();
    loop.run_ready();
    EXPECT_EQ(p.available(), 0U) << "they accrue to the head";
    head.request_stop();
    loop.run_ready();
    EXPECT_EQ(got, (names{"second", "third"}));
    EXPECT_TRUE(p.awaited());
    p.release();
    loop.run_ready();
    EXPECT_EQ(got, (names{"second", "third", "fourth"}));
}

TEST(Wait, AHeadThatTimesOutLetsFollowersThatFitGoAtOnce) {
    manual_loop loop;
    permits p{2};
    names got;
    auto head = spawn(loop, [](permits& q, time_point until) -> task<bool> {
        auto const r = co_await q.acquire_until(5, until);
        co_return r.has_value();
    }(p, loop.now() + 1s));
    spawn(loop, take(p, 2, got, "follower")).detach();
    loop.advance(1s - 1ns);
    EXPECT_TRUE(got.empty());
    loop.advance(1ns);
    EXPECT_EQ(got, names{"follower"});
    EXPECT_FALSE(head.blocking_join().value());
}

TEST(Wait, AStoppedWaiterBehindTheHeadLeavesTheOthersInTheirOrder) {
    manual_loop loop;
    permits p{0};
    names got;
    spawn(loop, take(p, 1, got, "a")).detach();
    auto middle = spawn(loop, take(p, 1, got, "b"));
    spawn(loop, take(p, 1, got, "c")).detach();
    loop.run_ready();
    middle.request_stop();
    p.release(2);
    loop.run_ready();
    EXPECT_EQ(got, (names{"a", "c"}));
    EXPECT_EQ(middle.blocking_join().error(), wait_error::stopped);
}

// --- completion beats stop -------------------------------------------------------------------

task<void> two_waits(permits& first, permits& second, names& got) {
    co_await take(first, 1, got, "first");
    co_await take(second, 1, got, "second");
}

TEST(Wait, AReadyWaitSucceedsAlthoughStopWasRequestedAndOneThatIsNotUnwindsAtOnce) {
    manual_loop loop;
    permits ready{1}, empty{0};
    names got;
    auto t = spawn(loop, two_waits(ready, empty, got));
    t.request_stop();
    EXPECT_TRUE(loop.step());
    EXPECT_EQ(got, names{"first"});
    EXPECT_TRUE(t.ended()) << "in the same turn";
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_FALSE(empty.awaited());
}

TEST(Wait, WhatWasGrantedBeforeTheStopIsKeptUntilTheNextWait) {
    manual_loop loop;
    permits p{0}, empty{0};
    names got;
    auto t = spawn(loop, two_waits(p, empty, got));
    loop.run_ready();
    p.release();
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(got, names{"first"});
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(p.available(), 0U);
}

TEST(Wait, WhatComesAfterTheStopStaysForOthers) {
    manual_loop loop;
    permits p{0};
    names got;
    auto t = spawn(loop, take(p, 1, got, "stopped"));
    loop.run_ready();
    t.request_stop();
    p.release();
    loop.run_ready();
    EXPECT_TRUE(got.empty());
    EXPECT_EQ(p.available(), 1U);
}

TEST(Wait, ATaskThatNeverWaitsIsNeverStopped) {
    manual_loop loop;
    auto t = spawn(loop, []() -> task<int> { co_return 1; }());
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1);
}

// --- the form with a value -------------------------------------------------------------------

task<outcome> acquire_with(permits& p, stop_token token) { co_return co_await p.acquire(1, token); }
task<outcome> acquire_by(permits& p, time_point deadline, stop_token token = {}) {
    co_return co_await p.acquire_until(1, deadline, token);
}

TEST(BoundedWait, AnExplicitTokenEndsTheWaitWithAValue) {
    manual_loop loop;
    permits p{0};
    stop_source source;
    auto t = spawn(loop, acquire_with(p, source.token()));
    loop.run_ready();
    EXPECT_TRUE(p.awaited());
    source.request_stop();
    EXPECT_FALSE(p.awaited()) << "it leaves the queue at once";
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), wait_error::stopped);
}

TEST(BoundedWait, ARequestThatWasMadeBeforeEndsItUnlessItIsReady) {
    manual_loop loop;
    permits empty{0}, ready{1};
    stop_source source;
    source.request_stop();
    auto refused = spawn(loop, acquire_with(empty, source.token()));
    auto served = spawn(loop, acquire_with(ready, source.token()));
    loop.run_ready();
    EXPECT_EQ(refused.blocking_join().value().error(), wait_error::stopped);
    EXPECT_TRUE(served.blocking_join().value().has_value());
    EXPECT_EQ(ready.available(), 1U);
}

TEST(BoundedWait, TheEnvironmentsStopUnwindsItWhateverTokenWasPassed) {
    manual_loop loop;
    permits p{0};
    stop_source source;
    auto t = spawn(loop, acquire_with(p, source.token()));
    loop.run_ready();
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_FALSE(source.stop_requested());
}

TEST(BoundedWait, WhenBothHaveAskedTheEnvironmentWins) {
    manual_loop loop;
    permits p{0};
    stop_source source;
    source.request_stop();
    auto t = spawn(loop, acquire_with(p, source.token()));
    t.request_stop();
    loop.run_ready();
    EXPECT_FALSE(t.blocking_join().has_value());
}

TEST(BoundedWait, TheEnvironmentsOwnTokenPassedExplicitlyGivesAValue) {
    manual_loop loop;
    permits p{0};
    auto t = spawn(loop, [](permits& q) -> task<std::string> {
        environment const& env = co_await this_environment();
        auto const r = co_await q.acquire(1, env.stop);
        co_return r ? "granted" : "stopped, and still here to say so";
    }(p));
    loop.run_ready();
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), "stopped, and still here to say so");
}

TEST(BoundedWait, TimesOutAtItsDeadlineAndNotBefore) {
    manual_loop loop;
    permits p{0};
    auto t = spawn(loop, acquire_by(p, loop.now() + 10ms));
    loop.advance(10ms - 1ns);
    EXPECT_FALSE(t.ended());
    loop.advance(1ns);
    EXPECT_EQ(t.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_FALSE(p.awaited());
}

TEST(BoundedWait, ADurationCountsFromWhenItBeginsToWait) {
    manual_loop loop;
    permits p{0};
    auto t = spawn(loop, [](permits& q) -> task<outcome> {
        auto waiting = q.acquire_for(1, 10ms);
        co_await sleep_for(1h);
        co_return co_await std::move(waiting);
    }(p));
    loop.advance(1h + 10ms - 1ns);
    EXPECT_FALSE(t.ended());
    loop.advance(1ns);
    EXPECT_EQ(t.blocking_join().value().error(), wait_error::timed_out);
}

TEST(BoundedWait, ALongestDurationIsNoLimit) {
    manual_loop loop;
    permits p{0};
    auto t = spawn(loop, [](permits& q) -> task<outcome> {
        co_return co_await q.acquire_for(1, clock::duration::max());
    }(p));
    loop.advance(24h);
    p.release();
    loop.run_ready();
    EXPECT_TRUE(t.blocking_join().value().has_value());
}

TEST(BoundedWait, ADurationOfNothingEndsItUnlessItIsReady) {
    manual_loop loop;
    permits empty{0}, ready{1};
    auto const at_once = [](permits& q) -> task<outcome> {
        co_return co_await q.acquire_for(1, 0ns);
    };
    auto refused = spawn(loop, at_once(empty));
    auto served = spawn(loop, at_once(ready));
    EXPECT_EQ(loop.run_ready(), 2U) << "neither waits";
    EXPECT_EQ(refused.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_TRUE(served.blocking_join().value().has_value());
}

TEST(BoundedWait, GrantedBeforeItsDeadlineItLeavesNoTimerBehind) {
    manual_loop loop;
    permits p{0};
    auto t = spawn(loop, acquire_by(p, loop.now() + 10ms));
    loop.run_ready();
    p.release();
    loop.run_ready();
    EXPECT_TRUE(t.blocking_join().value().has_value());
    t.detach();        // frees the frame, and with it the timer
    loop.advance(1h);  // a timer left in the wheel would be used after it was freed
}

TEST(BoundedWait, ADeadlineThatHasPassedEndsItUnlessItIsReady) {
    manual_loop loop;
    permits empty{0}, ready{1};
    auto refused = spawn(loop, acquire_by(empty, loop.now()));
    auto served = spawn(loop, acquire_by(ready, loop.now() - 1h));
    EXPECT_EQ(loop.run_ready(), 2U) << "neither waits";
    EXPECT_EQ(refused.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_TRUE(served.blocking_join().value().has_value());
}

TEST(BoundedWait, WhatCameFirstStandsWhenGrantStopAndDeadlineMeet) {
    manual_loop loop;
    permits p{0};
    stop_source source;
    auto granted = spawn(loop, acquire_by(p, loop.now() + 10ms, source.token()));
    auto late = spawn(loop, acquire_by(p, loop.now() + 10ms, source.token()));
    loop.run_ready();
    p.release();
    loop.pass(10ms);
    source.request_stop();
    p.release();
    EXPECT_EQ(p.available(), 1U);
    loop.run_ready();
    EXPECT_EQ(late.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_TRUE(granted.blocking_join().value().has_value());
    EXPECT_EQ(p.available(), 2U);
}

TEST(BoundedWait, OfDeadlineAndTokenTheFirstToAskIsNamed) {
    manual_loop loop;
    permits p{0};
    stop_source early, late;
    auto by_token = spawn(loop, acquire_by(p, loop.now() + 10ms, early.token()));
    auto by_deadline = spawn(loop, acquire_by(p, loop.now() + 10ms, late.token()));
    loop.run_ready();
    early.request_stop();
    loop.advance(10ms);
    late.request_stop();
    EXPECT_EQ(by_token.blocking_join().value().error(), wait_error::stopped);
    EXPECT_EQ(by_deadline.blocking_join().value().error(), wait_error::timed_out);
}

// --- in a race -------------------------------------------------------------------------------

// A coin that is spent when ready() finds it, and only looked at where it may be handed on.
class coin final : wait_queue {
  public:
    class spend_op : public waiter {
      public:
        explicit spend_op(coin& c) noexcept : waiter(c), coin_(c) {}
        bool ready() noexcept { return !std::exchange(coin_.spent_, true); }
        bool ready_revocably() const noexcept { return !coin_.spent_; }
        void take() noexcept { coin_.spent_ = true; }
        void hand_on() noexcept { ++coin_.handed_on_; }

      private:
        coin& coin_;
    };

    wait<spend_op> spend() noexcept { return spend_op{*this}; }
    bool spent() const noexcept { return spent_; }
    int handed_on() const noexcept { return handed_on_; }

  private:
    bool grant(waiter&) noexcept override { return !spent_; }

    bool spent_ = false;
    int handed_on_ = 0;
};

task<void> nothing() { co_return; }

TEST(Wait, AWaitThatMayLoseIsReadyRevocably) {
    manual_loop loop;
    coin c;
    auto race = spawn(loop, when_any(when_any(sleep_for(1h), c.spend()), nothing()));
    loop.run_ready();
    EXPECT_EQ(race.blocking_join().value().index(), 1U);
    EXPECT_FALSE(c.spent());
    EXPECT_EQ(c.handed_on(), 1);
    auto other = spawn(loop, when_any(c.spend(), sleep_for(1h)));
    loop.run_ready();
    ASSERT_TRUE(other.ended());
    EXPECT_EQ(other.blocking_join().value().index(), 0U);
    EXPECT_TRUE(c.spent());
}

// --- plain threads ---------------------------------------------------------------------------

TEST(BlockingWait, AThreadAndATaskTakeTurnsAtOneObject) {
    manual_loop loop;
    permits p{0};
    names got;
    std::thread thread{[&] {
        permits::permit const held = p.blocking_acquire();
        got.push_back("thread");
    }};
    while (!p.awaited()) std::this_thread::yield();
    spawn(loop, take(p, 1, got, "task")).detach();
    loop.run_ready();
    p.release();
    thread.join();  // its permit goes back and on to the task
    loop.run_ready();
    EXPECT_EQ(got, (names{"thread", "task"}));
}

TEST(BlockingWait, TimesOutInRealTime) {
    permits p{0};
    time_point const deadline = clock::now() + 5ms;
    outcome const r = p.blocking_acquire_until(1, deadline);
    EXPECT_GE(clock::now(), deadline);
    EXPECT_EQ(r.error(), wait_error::timed_out);
    EXPECT_FALSE(p.awaited());
}

TEST(BlockingWait, ADurationCountsFromWhenItBeginsToWait) {
    permits p{0};
    time_point const began = clock::now();
    outcome const r = p.blocking_acquire_for(1, 5ms);  // real time: the thread sleeps
    EXPECT_GE(clock::now(), began + 5ms);
    EXPECT_EQ(r.error(), wait_error::timed_out);
}

TEST(BlockingWait, AThreadThatTimesOutAtTheHeadLetsFollowersGo) {
    manual_loop loop;
    permits p{1};
    names got;
    std::atomic<bool> over{false};
    std::thread thread{[&] {
        outcome const r = p.blocking_acquire_until(2, clock::now() + 5ms);
        EXPECT_EQ(r.error(), wait_error::timed_out);
        over = true;
    }};
    while (!p.awaited() && !over) std::this_thread::yield();
    spawn(loop, take(p, 1, got, "follower")).detach();
    loop.run_ready();
    thread.join();
    loop.run_ready();
    EXPECT_EQ(got, names{"follower"});
}

TEST(BlockingWait, ATokenEndsItFromAnotherThread) {
    permits p{0};
    stop_source source;
    std::optional<wait_error> why;
    std::thread thread{[&] {
        outcome const r = p.blocking_acquire(1, source.token());
        why = r.error();
    }};
    while (!p.awaited()) std::this_thread::yield();
    source.request_stop();
    thread.join();
    EXPECT_EQ(why, wait_error::stopped);
}

TEST(BlockingWait, ReadyBeatsAStopAndADeadlineThatHavePassed) {
    permits p{1};
    stop_source source;
    source.request_stop();
    EXPECT_TRUE(p.blocking_acquire_until(1, clock::now() - 1h, source.token()).has_value());
    outcome const r = p.blocking_acquire_until(2, clock::now() - 1h, source.token());
    EXPECT_EQ(r.error(), wait_error::stopped);
    EXPECT_EQ(p.available(), 1U);
}

TEST(BlockingWaitDeathTest, InsideAnExecutorIsAProgrammersError) {
    auto const block = [] {
        manual_loop loop;
        permits p{1};
        spawn(loop,
              [](permits& q) -> task<void> {
                  permits::permit const held = q.blocking_acquire();
                  co_return;
              }(p))
            .detach();
        loop.run_ready();
    };
    EXPECT_DEATH(block(), "blocking operations are for plain threads");
}

TEST(WaitDeathTest, APrimitiveIsNotDestroyedUnderItsWaiters) {
    auto const destroy = [] {
        manual_loop loop;
        names got;
        auto p = std::make_unique<permits>(0U);
        spawn(loop, take(*p, 1, got, "left behind")).detach();
        loop.run_ready();
        p.reset();
    };
    EXPECT_DEATH(destroy(), "a primitive is destroyed after everyone has left it");
}

}  // namespace
}  // namespace rondo
