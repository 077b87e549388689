// Notify: what becomes of a notification that nobody sees, because who waits is dropped, stopped,
// too late, or has heard something else.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "hearing.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/foreign.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::fenced;
using test::names;
using test::outcome;
using test::owned_foreign;

using Notify = test::hearing;

// --- dropped ---------------------------------------------------------------------------------

TEST_F(Notify, AnEnabledOneThatIsDroppedLeavesTheLine) {
    {
        auto dropped = n.notified();
        dropped.enable();
    }
    n.notify_one();
    EXPECT_TRUE(n.try_notified());
}

TEST_F(Notify, ANotifiedOneThatIsDroppedPassesItOnToTheFirst) {
    {
        auto dropped = n.notified();
        dropped.enable();
        for (int i = 0; i < 2; ++i) wait_in_line(i).detach();
        n.notify_one();
    }
    loop.run_ready();
    EXPECT_EQ(heard, names{0});
    n.notify_one();
    loop.run_ready();
}

TEST_F(Notify, ANotifiedOneThatIsDroppedPassesItOnToTheLastIfItWasForTheLast) {
    for (int i = 0; i < 2; ++i) wait_in_line(i).detach();
    {
        auto dropped = n.notified();
        dropped.enable();
        n.notify_last();
    }
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
    n.notify_one();
    loop.run_ready();
}

TEST_F(Notify, ANotifiedOneThatIsDroppedStoresItIfNobodyElseWaits) {
    {
        auto dropped = n.notified();
        dropped.enable();
        n.notify_last();
    }
    EXPECT_TRUE(n.try_notified());
}

TEST_F(Notify, WhatWasForAllIsNotPassedOn) {
    {
        auto dropped = n.notified();
        dropped.enable();
        n.notify_waiters();
    }
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, AnAwaitedOneHasUsedItUp) {
    {
        auto awaited = n.notified();
        awaited.enable();
        n.notify_one();
        awaited.blocking_wait();
    }
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, ACoroutineThatIsDestroyedWhileItWaitsLosesNothing) {
    auto const waits = [](notify& on) -> owned_foreign { co_await on.notified(); };
    fenced nowhere;
    executor::scope const there{&nowhere};
    std::optional<owned_foreign> a{waits(n)}, b{waits(n)};
    wait_in_line(1).detach();
    a.reset();
    n.notify_one();  // reaches b, which does not run
    b.reset();
    loop.run_ready();
    EXPECT_EQ(heard, names{1});
}

// --- stop and deadlines ----------------------------------------------------------------------

TEST_F(Notify, AStoppedHeadLetsTheNextBeFirstAtOnce) {
    auto head = wait_in_line(1);
    wait_in_line(2).detach();
    head.request_stop();
    n.notify_one();
    loop.run_ready();
    EXPECT_EQ(heard, names{2});
    EXPECT_EQ(head.blocking_join().error(), wait_error::stopped);
}

TEST_F(Notify, ANotificationInTheInstantOfTheStopIsSeenAndNotLost) {
    auto t = wait_in_line(1);
    n.notify_one();
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(heard, names{1}) << "completion beats stop";
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, ATokenOrADeadlineEndsItWithAValue) {
    stop_source source;
    auto by_token = spawn(loop, [](notify& on, stop_token t) -> task<outcome> {
        co_return co_await on.notified(t);
    }(n, source.token()));
    auto in_time =
        spawn(loop, [](notify& on) -> task<outcome> { co_return co_await on.notified_for(1s); }(n));
    auto until = spawn(loop, [](notify& on, time_point d) -> task<outcome> {
        co_return co_await on.notified_until(d);
    }(n, loop.now() + 2s));
    loop.run_ready();
    source.request_stop();
    loop.advance(1s);
    n.notify_one();
    loop.run_ready();
    EXPECT_EQ(by_token.blocking_join().value().error(), wait_error::stopped);
    EXPECT_EQ(in_time.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_TRUE(until.blocking_join().value().has_value());
    EXPECT_FALSE(n.try_notified());
}

TEST_F(Notify, LosingAWhenAnyLosesThePlaceAndNoNotification) {
    notify other;
    auto t = spawn(loop, [](notify& a, notify& b) -> task<std::size_t> {
        auto const first = co_await when_any(a.notified(), b.notified());
        co_return first.index();
    }(n, other));
    loop.run_ready();
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1U);
    n.notify_one();
    EXPECT_TRUE(n.try_notified());
}

// Waits for `loses` beside what is notified first; says which was.
template <class Wait>
task<std::size_t> race(Wait loses, notify& wins) {
    auto const first = co_await when_any(std::move(loses), wins.notified());
    co_return first.index();
}

TEST_F(Notify, OfTwoNotifiedInOneInstantTheLoserOfAWhenAnyPassesItOn) {
    notify other;
    auto const expect_passed_on = [&](auto loses) {
        heard.clear();
        auto t = spawn(loop, race(std::move(loses), other));
        loop.run_ready();
        wait_in_line(1).detach();
        other.notify_one();  // is first
        n.notify_one();
        loop.run_ready();
        EXPECT_EQ(t.blocking_join().value(), 1U);
        EXPECT_EQ(heard, names{1});
        EXPECT_FALSE(n.try_notified() || other.try_notified());
    };
    auto enabled = n.notified();
    enabled.enable();
    expect_passed_on(enabled.wait());
    auto limited = n.notified();
    limited.enable();
    expect_passed_on(limited.wait_for(1h));
    expect_passed_on(n.notified());
    expect_passed_on(n.notified_for(1h));
}

}  // namespace
}  // namespace rondo
