// Semaphore: turns, permits and what may be done with them, close, stop in every world. What
// happens when these meet in one instant is model-checked in tests/model/sync.
#include "rondo/sync/semaphore.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
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
#include "rondo/core/when_any.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::foreign;
using test::manual_loop;
using test::owned_foreign;

using acquired = semaphore::acquired;
using names = std::vector<std::string>;
using permit = semaphore::permit;

// Acquires n, says so, and keeps them for ever.
task<void> take(semaphore& s, std::size_t n, names& got, std::string name) {
    auto held = co_await s.acquire(n);
    if (!held) {
        got.push_back(name + " refused");
    } else {
        held->forget();
        got.push_back(name);
    }
}

// Several who wait in line, in the order in which they were told to.
class Semaphore : public testing::Test {
  protected:
    join_handle<void> line_up(semaphore& s, std::size_t n, std::string name) {
        auto t = spawn(loop, take(s, n, got, std::move(name)));
        loop.run_ready();
        return t;
    }
    void then(names const& expected) {
        loop.run_ready();
        EXPECT_EQ(got, expected);
    }

    manual_loop loop;
    names got;
};

// --- turns -----------------------------------------------------------------------------------

TEST_F(Semaphore, GivesAtOnceWhatIsThere) {
    semaphore s{3};
    auto one = s.try_acquire();
    auto two = s.try_acquire(2);
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->count(), 1U);
    EXPECT_EQ(two->count(), 2U);
    EXPECT_EQ(s.available(), 0U);
    EXPECT_EQ(s.try_acquire().error(), try_acquire_error::no_permits);
    two->release();
    EXPECT_EQ(s.available(), 2U);
    EXPECT_EQ(s.try_acquire(3).error(), try_acquire_error::no_permits);
}

TEST_F(Semaphore, GivesPermitsInTheOrderInWhichTheyWereAskedFor) {
    semaphore s{0};
    for (auto const* name : {"a", "b", "c"}) line_up(s, 1, name).detach();
    s.add_permits(2);
    EXPECT_TRUE(got.empty()) << "nobody is resumed inside add_permits()";
    then({"a", "b"});
    s.add_permits(1);
    then({"a", "b", "c"});
}

TEST_F(Semaphore, LetsPermitsAccrueToTheFirstInLineWhomNobodyOvertakes) {
    semaphore s{1};
    line_up(s, 3, "large").detach();
    line_up(s, 1, "small").detach();
    EXPECT_EQ(s.available(), 0U) << "what was there is the first one's";
    s.add_permits(1);
    EXPECT_EQ(s.try_acquire().error(), try_acquire_error::no_permits);
    then({});
    s.add_permits(1);
    then({"large"});
    s.add_permits(1);
    then({"large", "small"});
}

TEST_F(Semaphore, HasWhatThoseInLineDidNotNeed) {
    semaphore s{0};
    line_up(s, 2, "a").detach();
    line_up(s, 1, "b").detach();
    s.add_permits(5);
    then({"a", "b"});
    EXPECT_EQ(s.available(), 2U);
}

TEST_F(Semaphore, GivesNoPermitsAtOnceToWhoAsksForNone) {
    semaphore s{0};
    line_up(s, 1, "waits").detach();
    line_up(s, 0, "asks for none").detach();
    then({"asks for none"});
    EXPECT_TRUE(s.try_acquire(0).has_value());
    s.add_permits(1);
    then({"asks for none", "waits"});
}

// --- permits ---------------------------------------------------------------------------------

TEST(SemaphorePermit, IsGivenBackOnceHoweverItIsMoved) {
    semaphore s{2};
    {
        permit first = s.try_acquire().value();
        permit second{std::move(first)};
        first = s.try_acquire().value();
        first = std::move(second);
        EXPECT_EQ(first.count(), 1U);
        EXPECT_EQ(second.count(), 0U);
        EXPECT_EQ(s.available(), 1U) << "the one that was overwritten";
        permit& same = first;
        first = std::move(same);
        EXPECT_EQ(first.count(), 1U);
        EXPECT_EQ(s.available(), 1U);
    }
    EXPECT_EQ(s.available(), 2U);
}

TEST(SemaphorePermit, IsSplitAndMerged) {
    semaphore s{5};
    permit all = s.try_acquire(5).value();
    std::optional<permit> two = all.split(2);
    ASSERT_TRUE(two);
    EXPECT_EQ(all.count(), 3U);
    EXPECT_EQ(two->count(), 2U);
    EXPECT_FALSE(all.split(4)) << "there are fewer";
    EXPECT_EQ(all.count(), 3U);
    EXPECT_EQ(all.split(0)->count(), 0U);
    two.reset();
    EXPECT_EQ(s.available(), 2U);
    all.merge(s.try_acquire(1).value());
    EXPECT_EQ(all.count(), 4U);
    all.release();
    EXPECT_EQ(all.count(), 0U);
    EXPECT_EQ(s.available(), 5U);
}

TEST(SemaphorePermit, ThatIsForgottenIsNotGivenBack) {
    semaphore s{3};
    {
        permit held = s.try_acquire(2).value();
        held.forget();
        EXPECT_EQ(held.count(), 0U);
    }
    EXPECT_EQ(s.available(), 1U);
    s.add_permits(2);
    EXPECT_EQ(s.available(), 3U);
}

TEST(SemaphorePermit, OwnedKeepsTheSemaphoreAlive) {
    auto s = std::make_shared<semaphore>(3U);
    std::weak_ptr<semaphore> const alive{s};
    std::optional<semaphore::owned_permit> held{s->try_acquire(3).value().owned(s)};
    EXPECT_EQ(held->owner(), s);
    s.reset();
    EXPECT_FALSE(alive.expired());
    {
        auto part = held->split(1);
        ASSERT_TRUE(part);
        EXPECT_FALSE(held->split(3));
        held->forget();
        held.emplace(std::move(*part));
    }
    EXPECT_EQ(alive.lock()->available(), 0U);
    held.reset();
    EXPECT_TRUE(alive.expired());
}

TEST(SemaphorePermit, OwnedIsGivenBackBeforeItsSemaphoreGoes) {
    auto const make = [] {
        auto s = std::make_shared<semaphore>(2U);
        return s->try_acquire().value().owned(s);
    };
    auto held = make();
    std::weak_ptr<semaphore> const first{held.owner()};
    held = make();  // the address sanitizer would see a permit given back too late
    EXPECT_TRUE(first.expired());
    EXPECT_EQ(held.owner()->available(), 1U);
    held.merge(held.owner()->try_acquire().value().owned(held.owner()));
    EXPECT_EQ(held.count(), 2U);
    held.release();
    EXPECT_EQ(held.owner()->available(), 2U);
}

TEST(SemaphorePermit, OwnedThatWasMovedFromKeepsAliveWhatIsMergedIntoIt) {
    auto s = std::make_shared<semaphore>(3U);
    std::weak_ptr<semaphore> const alive{s};
    auto gathered = s->try_acquire(1).value().owned(s);
    {
        auto const handed_out = std::move(gathered);
        gathered.merge(s->try_acquire(2).value().owned(s));
        s.reset();
    }
    EXPECT_EQ(gathered.count(), 2U);
    ASSERT_FALSE(alive.expired());
    EXPECT_EQ(gathered.owner(), alive.lock());
    gathered.release();
    EXPECT_EQ(gathered.owner()->available(), 3U);
}

TEST(SemaphorePermit, OwnedThatWasMovedFromIsSplitIntoNothing) {
    auto const s = std::make_shared<semaphore>(2U);
    auto moved_from = s->try_acquire(2).value().owned(s);
    auto const taken = std::move(moved_from);
    EXPECT_FALSE(moved_from.split(1)) << "there are fewer";
    auto none = moved_from.split(0);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->count(), 0U);
    EXPECT_EQ(none->owner(), nullptr);
    none->merge(s->try_acquire(0).value().owned(s));
    EXPECT_EQ(none->owner(), s);
    EXPECT_EQ(taken.count(), 2U);
}

// --- how many there are ----------------------------------------------------------------------

TEST_F(Semaphore, ForgetsPermitsThatAreThereAndSaysHowMany) {
    semaphore s{5};
    EXPECT_EQ(s.forget_permits(2), 2U);
    EXPECT_EQ(s.available(), 3U);
    EXPECT_EQ(s.forget_permits(7), 3U);
    EXPECT_EQ(s.forget_permits(1), 0U);
    line_up(s, 2, "waits").detach();
    s.add_permits(1);
    EXPECT_EQ(s.forget_permits(1), 0U) << "it has accrued to the one in line";
    s.add_permits(1);
    then({"waits"});
}

TEST_F(Semaphore, HoldsAsManyPermitsAsItsMaximum) {
    semaphore s{0};
    s.add_permits(semaphore::maximum);
    EXPECT_EQ(s.available(), semaphore::maximum);
    permit all = s.try_acquire(semaphore::maximum).value();
    line_up(s, 1, "waits").detach();
    all.release();
    then({"waits"});
    EXPECT_EQ(s.available(), semaphore::maximum - 1);
}

TEST(SemaphoreDeathTest, MorePermitsThanTheMaximumAreRefusedBeforeAnyIsAdded) {
    constexpr auto most = semaphore::maximum;
    auto const add_too_many = [] {
        semaphore s{1};
        s.add_permits(most);
    };
    auto const add_too_many_to_a_line = [] {
        manual_loop loop;
        names got;
        semaphore s{0};
        spawn(loop, take(s, 1, got, "waits")).detach();
        loop.run_ready();
        s.add_permits(most + 1);
    };
    auto const ask_for_too_many = [] {
        semaphore s{1};
        (void)s.acquire(most + 1);
    };
    auto const try_for_too_many = [] {
        semaphore s{1};
        (void)s.try_acquire(most + 1);
    };
    EXPECT_DEATH(semaphore{most + 1}, "no more permits than the maximum");
    EXPECT_DEATH(add_too_many(), "no more permits than the maximum");
    EXPECT_DEATH(add_too_many_to_a_line(), "no more permits than the maximum");
    EXPECT_DEATH(ask_for_too_many(), "no more permits than the maximum");
    EXPECT_DEATH(try_for_too_many(), "no more permits than the maximum");
}

TEST(SemaphoreDeathTest, PermitsOfTwoSemaphoresDoNotMix) {
    auto const merge = [] {
        semaphore a{1}, b{1};
        permit held = a.try_acquire().value();
        held.merge(b.try_acquire().value());
    };
    auto const own = [] {
        auto a = std::make_shared<semaphore>(1U);
        semaphore b{1};
        (void)b.try_acquire().value().owned(a);
    };
    EXPECT_DEATH(merge(), "permits of one semaphore are merged");
    EXPECT_DEATH(own(), "a permit is kept with its own semaphore");
}

// --- close -----------------------------------------------------------------------------------

TEST_F(Semaphore, RefusesThoseInLineAndThoseWhoComeLaterOnceItIsClosed) {
    semaphore s{1};
    line_up(s, 2, "first").detach();
    line_up(s, 1, "second").detach();
    EXPECT_FALSE(s.is_closed());
    s.close();
    EXPECT_TRUE(s.is_closed());
    then({"first refused", "second refused"});
    line_up(s, 1, "late").detach();
    then({"first refused", "second refused", "late refused"});
    EXPECT_EQ(s.try_acquire().error(), try_acquire_error::closed);
    EXPECT_EQ(s.try_acquire(2).error(), try_acquire_error::closed);
    EXPECT_EQ(s.blocking_acquire().error(), acquire_error::closed);
    EXPECT_EQ(s.available(), 1U) << "what the first in line had accrued";
}

TEST_F(Semaphore, TakesPermitsBackAlthoughItIsClosed) {
    semaphore s{2};
    permit held = s.try_acquire().value();
    s.close();
    s.close();
    EXPECT_EQ(held.count(), 1U);
    held.release();
    EXPECT_EQ(s.available(), 2U);
    EXPECT_EQ(s.forget_permits(1), 1U);
    EXPECT_TRUE(s.is_closed());
}

// --- stop ------------------------------------------------------------------------------------

TEST_F(Semaphore, AStoppedWaiterAtTheHeadLetsFollowersThatFitGoAtOnce) {
    semaphore s{2};
    auto head = line_up(s, 5, "head");
    line_up(s, 1, "second").detach();
    line_up(s, 1, "third").detach();
    line_up(s, 1, "fourth").detach();
    then({});
    head.request_stop();
    then({"second", "third"});
    EXPECT_EQ(head.blocking_join().error(), wait_error::stopped);
    s.add_permits(1);
    then({"second", "third", "fourth"});
}

TEST_F(Semaphore, AHeadThatTimesOutLetsFollowersThatFitGoAtOnce) {
    semaphore s{2};
    auto head = spawn(
        loop, [](semaphore& t) -> task<acquired> { co_return co_await t.acquire_for(5, 1s); }(s));
    line_up(s, 2, "follower").detach();
    loop.advance(1s - 1ns);
    then({});
    loop.advance(1ns);
    then({"follower"});
    EXPECT_EQ(head.blocking_join().value().error(), acquire_error::timed_out);
}

TEST_F(Semaphore, APermitGrantedInTheInstantOfTheStopIsInTheResultOrPassedOn) {
    semaphore s{0};
    auto first = line_up(s, 1, "granted first");
    auto second = line_up(s, 1, "stopped first");
    line_up(s, 1, "follower").detach();
    s.add_permits(1);
    first.request_stop();  // too late: it has its permit, and goes on with it
    second.request_stop();
    s.add_permits(1);  // too late for the second: it is the follower's
    then({"granted first", "follower"});
    EXPECT_TRUE(first.blocking_join().has_value());
    EXPECT_EQ(second.blocking_join().error(), wait_error::stopped);
}

TEST_F(Semaphore, TheLastInLineThatIsStoppedLeavesItOpenToAnybody) {
    semaphore s{2};
    auto waits = line_up(s, 3, "waits");
    EXPECT_EQ(s.available(), 0U);
    waits.request_stop();
    EXPECT_EQ(s.available(), 2U);
    EXPECT_TRUE(s.try_acquire(2).has_value());
    then({});
}

TEST_F(Semaphore, WhatLosesAWhenAnyHasTakenNothing) {
    semaphore s{1};
    auto t = spawn(loop, [](semaphore& q) -> task<std::size_t> {
        auto const won = co_await when_any(q.acquire(2), sleep_for(1s));
        co_return won.index();
    }(s));
    loop.run_ready();
    EXPECT_EQ(s.available(), 0U);
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_EQ(s.available(), 1U);
}

TEST_F(Semaphore, ATaskWhoseAcquireIsAlwaysReadyGivesWay) {
    semaphore s{1};
    bool other_ran = false;
    auto t = spawn(loop, [](semaphore& q, bool& ran) -> task<int> {
        int rounds = 0;
        while (!ran) {
            auto const held = co_await q.acquire();
            ++rounds;
        }
        co_return rounds;
    }(s, other_ran));
    spawn(loop,
          [](bool& ran) -> task<void> {
              ran = true;
              co_return;
          }(other_ran))
        .detach();
    loop.run_ready();
    EXPECT_GT(t.blocking_join().value(), 1);
}

// --- every form, in every world --------------------------------------------------------------

using reasons = std::vector<std::optional<acquire_error>>;

std::optional<acquire_error> why(acquired const& result) {
    return result ? std::nullopt : std::optional{result.error()};
}

task<reasons> every_form(semaphore& s, stop_token token, time_point late) {
    reasons all;
    all.push_back(why(co_await s.acquire(1, token)));
    all.push_back(why(co_await s.acquire_until(1, late)));
    all.push_back(why(co_await s.acquire_until(1, late, token)));
    all.push_back(why(co_await s.acquire_for(1, 0ns)));
    all.push_back(why(co_await s.acquire_for(1, 0ns, token)));
    co_return all;
}

TEST_F(Semaphore, EveryAwaitedFormGivesTheSameKindOfResult) {
    using enum acquire_error;
    semaphore none{0}, one{1}, ended{1};
    ended.close();
    stop_source source;
    source.request_stop();
    auto refused = spawn(loop, every_form(none, source.token(), loop.now()));
    auto served = spawn(loop, every_form(one, source.token(), loop.now()));
    auto too_late = spawn(loop, every_form(ended, source.token(), loop.now()));
    loop.run_ready();
    EXPECT_EQ(refused.blocking_join().value(),
              (reasons{stopped, timed_out, stopped, timed_out, stopped}));
    EXPECT_EQ(served.blocking_join().value(), reasons(5));
    EXPECT_EQ(too_late.blocking_join().value(), reasons(5, closed));
    EXPECT_EQ(one.available(), 1U);
}

TEST(SemaphoreThread, EveryBlockingFormGivesTheSameKindOfResult) {
    semaphore s{1};
    stop_source source;
    EXPECT_TRUE(s.blocking_acquire().has_value());
    EXPECT_TRUE(s.blocking_acquire(1, source.token()).has_value());
    EXPECT_TRUE(s.blocking_acquire_until(1, clock::now()).has_value());
    EXPECT_TRUE(s.blocking_acquire_for(1, 0ns).has_value());
    EXPECT_EQ(s.blocking_acquire_until(2, clock::now()).error(), acquire_error::timed_out);
    EXPECT_EQ(s.blocking_acquire_for(2, 1us).error(), acquire_error::timed_out);
    source.request_stop();
    EXPECT_EQ(s.blocking_acquire(2, source.token()).error(), acquire_error::stopped);
    EXPECT_EQ(s.blocking_acquire_until(2, time_point::max(), source.token()).error(),
              acquire_error::stopped);
    EXPECT_EQ(s.blocking_acquire_for(2, 24h, source.token()).error(), acquire_error::stopped);
    EXPECT_EQ(s.available(), 1U);
}

TEST(SemaphoreThread, WaitsUntilAnotherThreadGivesBack) {
    semaphore s{1};
    int written = 0;
    std::optional<permit> held{s.try_acquire().value()};
    std::thread other{[&] {
        auto const got = s.blocking_acquire();
        EXPECT_TRUE(got.has_value());
        EXPECT_EQ(written, 7);
    }};
    written = 7;
    held.reset();
    other.join();
}

foreign take_foreign(semaphore& s, names& got) {
    auto held = co_await s.acquire(2);
    got.push_back(held ? "foreign" : "foreign refused");
}

TEST_F(Semaphore, AForeignCoroutineTakesItsTurnBetweenTasks) {
    semaphore s{0};
    line_up(s, 1, "before").detach();
    take_foreign(s, got);
    line_up(s, 1, "after").detach();
    s.add_permits(3);  // the coroutine belongs nowhere: it goes on in here, and gives back
    then({"foreign", "before", "after"});
    EXPECT_EQ(s.available(), 1U);
    take_foreign(s, got);
    s.close();
    then({"foreign", "before", "after", "foreign refused"});
}

owned_foreign wait_for_ever(semaphore& s, std::size_t n) {
    auto const held = co_await s.acquire(n);
    co_await std::suspend_always{};
}

TEST_F(Semaphore, ACoroutineDestroyedWhileItWaitsLeavesTheLine) {
    semaphore s{1};
    {
        owned_foreign const waits = wait_for_ever(s, 2);
        line_up(s, 1, "follower").detach();
        then({});
    }
    then({"follower"});
}

TEST(SemaphoreForeign, DestroyedAfterTheGrantOnAnExecutorThatRunsNoMoreHandsItOn) {
    semaphore granted{0}, refused{1};
    {
        manual_loop ended;  // is destroyed without having run what was posted to it
        executor::scope const here{&ended};
        owned_foreign const never_resumed = wait_for_ever(granted, 2);
        owned_foreign const never_told = wait_for_ever(refused, 2);
        granted.add_permits(2);
        refused.close();
        EXPECT_EQ(granted.available(), 0U);
    }
    EXPECT_EQ(granted.available(), 2U);
    EXPECT_EQ(refused.available(), 1U) << "it had been given nothing";
}

// --- stress ----------------------------------------------------------------------------------

TEST(SemaphoreStress, ThreadsThatStopEachOtherLoseNoPermit) {
    constexpr int rounds = 2000;
    constexpr std::size_t threads = 4;
    semaphore s{3};
    std::vector<std::thread> crowd;
    for (std::size_t i = 0; i < threads; ++i) {
        crowd.emplace_back([&s, i] {
            for (int round = 0; round < rounds; ++round) {
                auto held = s.blocking_acquire_for(1 + i % 3, round % 2 == 0 ? 10us : 1h);
                if (held && held->count() > 1) (void)held->split(1);
            }
        });
    }
    for (auto& t : crowd) t.join();
    EXPECT_EQ(s.available(), 3U);
}

}  // namespace
}  // namespace rondo
