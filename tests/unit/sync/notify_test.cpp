// Notify: who is reached by which call. What becomes of a notification that nobody sees is in
// notify_unseen_test.cpp; what happens when calls and waiters meet in one instant is model-checked
// in tests/model/sync.
#include "rondo/sync/notify.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "hearing.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "support/foreign.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::foreign;
using test::hear;
using test::names;
using test::outcome;

using Notify = test::hearing;

// --- notify_one ------------------------------------------------------------------------------

TEST_F(Notify, OneIsForTheFirstInLine) {
    for (int i = 0; i < 3; ++i) wait_in_line(i).detach();
    n.notify_one();
    EXPECT_TRUE(heard.empty()) << "nobody runs inside notify_one()";
    loop.run_ready();
    EXPECT_EQ(heard, names{0});
    n.notify_one();
    n.notify_one();
    loop.run_ready();
    EXPECT_EQ(heard, (names{0, 1, 2}));
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, OneIsStoredIfNobodyWaits) {
    n.notify_one();
    auto t = spawn(loop, hear(n, heard, 1));
    EXPECT_TRUE(loop.step());
    EXPECT_TRUE(t.ended()) << "in its first turn";
    wait_in_line(2).detach();
    EXPECT_EQ(heard, names{1}) << "and it was taken";
    n.notify_one();
    loop.run_ready();
}

TEST_F(Notify, NoMoreThanOneIsStored) {
    for (int i = 0; i < 3; ++i) n.notify_one();
    n.notify_last();
    EXPECT_TRUE(n.try_notified());
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, OneDoesNotReachWhoWasMadeAndDoesNotWaitYet) {
    auto made = n.notified();
    wait_in_line(1).detach();
    n.notify_one();
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
    EXPECT_FALSE(made.enable());
}

TEST_F(Notify, AfterAllHaveLeftOneIsStoredAgain) {
    auto a = wait_in_line(1), b = wait_in_line(2);
    a.request_stop();
    b.request_stop();
    loop.run_ready();
    n.notify_one();
    EXPECT_TRUE(n.try_notified());
}

// --- notify_last -----------------------------------------------------------------------------

TEST_F(Notify, LastIsForTheLastInLine) {
    for (int i = 0; i < 3; ++i) wait_in_line(i).detach();
    n.notify_last();
    loop.run_ready();
    EXPECT_EQ(heard, names{2});
    n.notify_one();
    n.notify_last();
    loop.run_ready();
    EXPECT_EQ(heard, (names{2, 0, 1}));
}

TEST_F(Notify, LastIsStoredIfNobodyWaits) {
    n.notify_last();
    wait_in_line(1).detach();
    EXPECT_EQ(heard, names{1});
}

// --- notify_waiters --------------------------------------------------------------------------

TEST_F(Notify, WaitersReachesAllInLineInTheirOrderHoweverMany) {
    names expected;
    for (int i = 0; i < 100; ++i) {
        wait_in_line(i).detach();
        expected.push_back(i);
    }
    n.notify_waiters();
    EXPECT_TRUE(heard.empty());
    loop.run_ready();
    EXPECT_EQ(heard, expected);
}

TEST_F(Notify, WaitersIsNotStored) {
    n.notify_waiters();
    wait_in_line(1).detach();
    EXPECT_TRUE(heard.empty());
    n.notify_waiters();
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, WaitersReachesWhoWasMadeBeforeAndWaitsLater) {
    auto before = n.notified();
    n.notify_waiters();
    auto after = n.notified();
    EXPECT_TRUE(before.enable());
    EXPECT_FALSE(after.enable());
}

TEST_F(Notify, WaitersReachesWhoWasMadeBeforeAlthoughOthersAreInLine) {
    auto before = n.notified();
    n.notify_waiters();
    wait_in_line(1).detach();
    EXPECT_TRUE(before.enable());
    EXPECT_TRUE(heard.empty());
    n.notify_one();
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
}

TEST_F(Notify, WaitersLeavesWhatIsStoredToOthers) {
    auto before = n.notified();
    n.notify_one();
    n.notify_waiters();
    EXPECT_TRUE(before.enable()) << "by notify_waiters()";
    EXPECT_TRUE(n.try_notified()) << "still there";
}

// --- enable ----------------------------------------------------------------------------------

TEST_F(Notify, AnEnabledOneHasItsPlaceInLine) {
    auto enabled = n.notified();
    EXPECT_FALSE(enabled.enable());
    wait_in_line(1).detach();
    n.notify_one();
    loop.run_ready();
    EXPECT_TRUE(heard.empty());
    EXPECT_TRUE(enabled.enable()) << "asking again tells";
    n.notify_one();
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
}

TEST_F(Notify, EnableTakesWhatIsStored) {
    n.notify_one();
    auto enabled = n.notified();
    EXPECT_TRUE(enabled.enable());
    EXPECT_FALSE(n.try_notified());
    EXPECT_TRUE(enabled.enable()) << "and stays notified";
    enabled.blocking_wait();
}

TEST_F(Notify, AnEnabledOneIsAwaitedInEveryForm) {
    auto const each = [](notify& on, int& ended) -> task<void> {
        auto plain = on.notified();
        plain.enable();
        co_await plain;
        ++ended;
        auto by_token = on.notified();
        by_token.enable();
        stop_source source;
        outcome const stoppable = co_await by_token.wait(source.token());
        ended += stoppable ? 1 : 0;
        auto timed = on.notified();
        timed.enable();
        environment const& env = co_await this_environment();
        time_point const soon = env.timers().now() + 1s;
        outcome const in_time = co_await timed.wait_until(soon);
        ended += in_time ? 1 : 0;
        auto late = on.notified();
        late.enable();
        outcome const too_late = co_await late.wait_for(1s);
        ended += !too_late && too_late.error() == wait_error::timed_out ? 1 : 0;
        auto lent = on.notified();
        co_await lent.wait();
        ++ended;
    };
    int ended = 0;
    auto t = spawn(loop, each(n, ended));
    for (int i = 1; i <= 3; ++i) {
        loop.run_ready();
        n.notify_one();
        loop.run_ready();
        EXPECT_EQ(ended, i);
    }
    loop.advance(1s);
    EXPECT_EQ(ended, 4);
    EXPECT_FALSE(n.try_notified());
    n.notify_waiters();
    loop.run_ready();
    EXPECT_EQ(ended, 5);
    EXPECT_TRUE(t.ended());
}

TEST_F(Notify, AnEnabledOneThatWasNotifiedIsNotStoppedAnyMore) {
    auto t = spawn(loop, [](notify& on, names& said) -> task<void> {
        auto change = on.notified();
        change.enable();
        co_await shield(sleep_for(1s));
        co_await change;
        said.push_back(1);
    }(n, heard));
    loop.run_ready();
    n.notify_one();
    t.request_stop();
    loop.advance(1s);
    EXPECT_EQ(heard, names{1});
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, AnEnabledOneThatIsStoppedInsteadLeavesTheLine) {
    auto t = spawn(loop, [](notify& on) -> task<void> {
        auto change = on.notified();
        change.enable();
        co_await change;
    }(n));
    loop.run_ready();
    t.request_stop();
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    n.notify_one();
    EXPECT_TRUE(n.try_notified());
}

TEST_F(Notify, WhatHasEndedEndsAgainAtOnceAndTakesNothing) {
    auto heard_it = n.notified(), enabled = n.notified(), late = n.notified();
    enabled.enable();
    n.notify_one();
    n.notify_one();
    heard_it.blocking_wait();
    enabled.blocking_wait();
    EXPECT_EQ(late.blocking_wait_for(1ns).error(), wait_error::timed_out);
    n.notify_one();
    heard_it.blocking_wait();
    enabled.blocking_wait();
    EXPECT_TRUE(heard_it.enable());
    EXPECT_TRUE(enabled.enable());
    EXPECT_EQ(late.blocking_wait_for(1h).error(), wait_error::timed_out);
    EXPECT_TRUE(n.try_notified()) << "the third one is still there";
    EXPECT_FALSE(n.try_notified());
}

// A wait that lost to another one was stopped, which is nothing to those who await it after that.
TEST_F(Notify, AnEnabledOneThatWasStoppedEndsAtOnceWhenItIsAwaitedAgain) {
    auto enabled = n.notified();
    EXPECT_FALSE(enabled.enable());
    notify other;
    auto const twice = [](notified* first, notify* wins) -> task<bool> {
        auto either = when_any(first->wait(), wins->notified());
        (void)co_await std::move(either);
        co_await *first;
        co_return true;
    };
    auto t = spawn(loop, twice(&enabled, &other));
    loop.run_ready();
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.try_join(), true);
    n.notify_one();
    EXPECT_TRUE(n.try_notified()) << "it is in line no more";
}

// --- other worlds ----------------------------------------------------------------------------

TEST_F(Notify, PlainThreadsWaitInEveryForm) {
    notify back;
    std::thread thread{[&] {
        n.blocking_notified();
        back.notify_one();
        stop_source never;
        EXPECT_TRUE(n.blocking_notified(never.token()).has_value());
        back.notify_one();
        EXPECT_TRUE(n.blocking_notified_until(time_point::max()).has_value());
        back.notify_one();
        EXPECT_TRUE(n.blocking_notified_for(1h).has_value());
        back.notify_one();
        auto enabled = n.notified();
        enabled.enable();
        enabled.blocking_wait();
        back.notify_one();
    }};
    for (int i = 0; i < 5; ++i) {  // one at a time: two would be stored as one
        n.notify_one();
        back.blocking_notified();
    }
    thread.join();
    auto late = n.notified();
    EXPECT_EQ(late.blocking_wait_for(1ns).error(), wait_error::timed_out);
    EXPECT_EQ(n.blocking_notified_until(clock::now()).error(), wait_error::timed_out);
    stop_source source;
    source.request_stop();
    auto stopped = n.notified(), timed = n.notified();
    EXPECT_EQ(stopped.blocking_wait(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(timed.blocking_wait_until(time_point::max(), source.token()).error(),
              wait_error::stopped);
}

TEST_F(Notify, AForeignCoroutineIsResumedAfterTheCallByItsThread) {
    bool resumed = false;
    auto const waits = [](notify& on, bool& done) -> foreign {
        co_await on.notified();
        done = true;
    };
    waits(n, resumed);
    EXPECT_FALSE(resumed);
    n.notify_waiters();
    EXPECT_TRUE(resumed);
}

TEST_F(Notify, AnOwnedOneKeepsTheObjectAlive) {
    auto shared = std::make_shared<notify>();
    std::weak_ptr<notify> const alive = shared;
    auto const waits = [](owned_notified owned, names& said) -> task<void> {
        co_await owned;
        said.push_back(1);
    };
    auto t = spawn(loop, waits(notify::notified_owned(shared), heard));
    loop.run_ready();
    shared->notify_waiters();
    shared.reset();
    EXPECT_FALSE(alive.expired());
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
    EXPECT_TRUE(alive.expired());
}

TEST_F(Notify, AReadyOneSpendsTheBudget) {
    bool others_had_a_turn = false;
    auto t = spawn(loop, [](notify& on, bool const& others) -> task<int> {
        int waits = 0;
        while (!others) {
            on.notify_one();
            co_await on.notified();
            ++waits;
        }
        co_return waits;
    }(n, others_had_a_turn));
    spawn(loop,
          [](bool& mine) -> task<void> {
              mine = true;
              co_return;
          }(others_had_a_turn))
        .detach();
    loop.run_ready();
    EXPECT_LE(t.blocking_join().value(), detail::flow::turn_budget + 1) << "it gave way";
}

// --- what it is for --------------------------------------------------------------------------

// Two consumers and two producers: with enable() before the look into the queue nobody sleeps on
// while there is something.
TEST_F(Notify, EnableBeforeLookingMissesNothing) {
    std::deque<int> queue;
    auto const consume = [](notify& on, std::deque<int>& from, names& got) -> task<void> {
        for (;;) {
            auto change = on.notified();
            change.enable();
            if (!from.empty()) {
                got.push_back(from.front());
                from.pop_front();
                co_return;
            }
            co_await yield();
            co_await change;
        }
    };
    auto a = spawn(loop, consume(n, queue, heard)), b = spawn(loop, consume(n, queue, heard));
    loop.step();
    loop.step();  // both have looked, neither sleeps
    for (int i : {1, 2}) {
        queue.push_back(i);
        n.notify_one();
    }
    loop.run_ready();
    EXPECT_EQ(heard, (names{1, 2}));
    EXPECT_TRUE(a.ended() && b.ended());
}

TEST(NotifyDeathTest, IsNotDestroyedWhileSomebodyWaits) {
    EXPECT_DEATH(
        {
            std::optional<notify> n{std::in_place};
            auto waits = n->notified();
            waits.enable();
            n.reset();
        },
        "everyone has left");
}

}  // namespace
}  // namespace rondo
