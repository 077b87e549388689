// Mutex: turns, stop, the forms, in every world. Guards are in guard_test.cpp; what happens when
// these meet in one instant is model-checked in tests/model/sync.
#include "rondo/sync/mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::fenced;
using test::foreign;
using test::manual_loop;
using test::owned_foreign;

using names = std::vector<std::string>;

// Adds its name to what the mutex protects, and gives way once before it unlocks.
task<void> sign(mutex<names>& m, std::string name) {
    auto const list = co_await m.lock();
    list->push_back(std::move(name));
    co_await yield();
}

class Mutex : public testing::Test {
  protected:
    join_handle<void> line_up(std::string name) {
        auto t = spawn(loop, sign(m, std::move(name)));
        loop.run_ready();
        return t;
    }
    names signed_so_far() {
        loop.run_ready();
        return *m.try_lock().value();
    }

    manual_loop loop;
    mutex<names> m;
};

// --- turns -----------------------------------------------------------------------------------

TEST_F(Mutex, LetsOneInAtATimeInTheOrderInWhichTheyAsked) {
    auto held = m.try_lock();
    ASSERT_TRUE(held);
    for (auto const* name : {"a", "b", "c"}) line_up(name).detach();
    EXPECT_TRUE((*held)->empty());
    held.reset();
    EXPECT_EQ(signed_so_far(), (names{"a", "b", "c"}));
}

TEST_F(Mutex, IsHandedOverByTheUnlockAndNobodyOvertakes) {
    auto held = m.try_lock();
    line_up("waits").detach();
    held.reset();
    EXPECT_FALSE(m.try_lock()) << "it is the waiter's, which has not run yet";
    EXPECT_EQ(signed_so_far(), names{"waits"});
}

TEST_F(Mutex, TryLockSucceedsOnlyIfNobodyHasIt) {
    {
        auto const held = m.try_lock();
        ASSERT_TRUE(held);
        EXPECT_FALSE(m.try_lock());
    }
    EXPECT_TRUE(m.try_lock());
}

TEST_F(Mutex, ATaskWhoseLockIsAlwaysFreeGivesWay) {
    bool other_ran = false;
    spawn(loop,
          [](mutex<names>& n, bool& ran) -> task<void> {
              while (!ran) auto const held = co_await n.lock();
          }(m, other_ran))
        .detach();
    spawn(loop,
          [](bool& ran) -> task<void> {
              ran = true;
              co_return;
          }(other_ran))
        .detach();
    loop.run_ready();
    EXPECT_TRUE(other_ran);
}

TEST_F(Mutex, IsUnlockedByAnExceptionThatLeavesTheScope) {
    auto t = spawn(loop, [](mutex<names>& n) -> task<void> {
        auto const held = co_await n.lock();
        throw std::runtime_error{"in the critical section"};
    }(m));
    loop.run_ready();
    EXPECT_THROW((void)t.blocking_join(), std::runtime_error);
    EXPECT_TRUE(m.try_lock());
}

// --- stop ------------------------------------------------------------------------------------

TEST_F(Mutex, AStoppedWaiterAtTheHeadLeavesTheLineToItsFollowers) {
    auto held = m.try_lock();
    auto head = line_up("head");
    line_up("follower").detach();
    head.request_stop();
    loop.run_ready();
    EXPECT_EQ(head.blocking_join().error(), wait_error::stopped);
    held.reset();
    EXPECT_EQ(signed_so_far(), names{"follower"});
}

TEST_F(Mutex, TheLastInLineThatIsStoppedLeavesNothingBehind) {
    auto held = m.try_lock();
    auto waits = line_up("waits");
    waits.request_stop();
    held.reset();
    EXPECT_TRUE(m.try_lock()) << "although the stopped task has not had its turn yet";
    EXPECT_EQ(signed_so_far(), names{});
}

TEST_F(Mutex, ALockGrantedInTheInstantOfTheStopIsKeptUntilTheNextWaitAndThenPassedOn) {
    auto held = m.try_lock();
    auto granted = line_up("granted");
    auto stopped = line_up("stopped");
    line_up("follower").detach();
    held.reset();  // hands it to the first
    granted.request_stop();
    stopped.request_stop();
    EXPECT_EQ(signed_so_far(), (names{"granted", "follower"}));
    EXPECT_EQ(granted.blocking_join().error(), wait_error::stopped) << "at its yield";
}

TEST_F(Mutex, WhatLosesAWhenAnyIsNotInLineAnyMore) {
    auto held = m.try_lock();
    auto t = spawn(loop, [](mutex<names>& n) -> task<std::size_t> {
        auto const won = co_await when_any(n.lock(), sleep_for(1s));
        co_return won.index();
    }(m));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(), 1U);
    held.reset();
    EXPECT_TRUE(m.try_lock());
}

// --- every form, in every world --------------------------------------------------------------

using reasons = std::vector<std::optional<wait_error>>;

std::optional<wait_error> why(mutex<names>::locked const& result) {
    return result ? std::nullopt : std::optional{result.error()};
}

task<reasons> every_form(mutex<names>& m, stop_token token, time_point late) {
    reasons all;
    all.push_back(why(co_await m.lock(token)));
    all.push_back(why(co_await m.lock_until(late)));
    all.push_back(why(co_await m.lock_until(late, token)));
    all.push_back(why(co_await m.lock_for(0ns)));
    all.push_back(why(co_await m.lock_for(0ns, token)));
    co_return all;
}

TEST_F(Mutex, EveryBoundedFormSaysWhyThereIsNoLock) {
    using enum wait_error;
    stop_source source;
    source.request_stop();
    auto served = spawn(loop, every_form(m, source.token(), loop.now()));
    loop.run_ready();
    auto const held = m.try_lock();
    auto refused = spawn(loop, every_form(m, source.token(), loop.now()));
    loop.run_ready();
    EXPECT_EQ(served.blocking_join().value(), reasons(5));
    EXPECT_EQ(refused.blocking_join().value(),
              (reasons{stopped, timed_out, stopped, timed_out, stopped}));
}

TEST(MutexThread, EveryBlockingFormLocksOrSaysWhyNot) {
    mutex<int> m{5};
    stop_source source;
    EXPECT_EQ(*m.blocking_lock(), 5);
    EXPECT_EQ(**m.blocking_lock(source.token()), 5);
    EXPECT_EQ(**m.blocking_lock_until(clock::now()), 5);
    EXPECT_EQ(**m.blocking_lock_for(0ns), 5);
    auto const held = m.blocking_lock();
    EXPECT_EQ(m.blocking_lock_until(clock::now()).error(), wait_error::timed_out);
    EXPECT_EQ(m.blocking_lock_for(1us).error(), wait_error::timed_out);
    source.request_stop();
    EXPECT_EQ(m.blocking_lock(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(m.blocking_lock_until(time_point::max(), source.token()).error(),
              wait_error::stopped);
    EXPECT_EQ(m.blocking_lock_for(24h, source.token()).error(), wait_error::stopped);
}

TEST(MutexThread, ThreadsExcludeEachOther) {
    constexpr int rounds = 5000;
    mutex<int> count{0};
    std::vector<std::thread> crowd;
    for (int i = 0; i < 4; ++i) {
        crowd.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                if (round % 3 == 0) {
                    if (auto const held = count.blocking_lock_for(10us)) ++**held;
                } else if (round % 3 == 1) {
                    if (auto const held = count.try_lock()) ++**held;
                } else {
                    ++*count.blocking_lock();
                }
            }
        });
    }
    for (auto& t : crowd) t.join();
    EXPECT_GE(count.get_mut(), 4 * rounds / 3);
}

foreign sign_foreign(mutex<names>& m) {
    auto const list = co_await m.lock();
    list->push_back("foreign");
}

TEST_F(Mutex, TasksForeignCoroutinesAndThreadsTakeTurns) {
    auto held = m.try_lock();
    line_up("task").detach();
    sign_foreign(m);
    std::atomic<bool> asks{false};
    std::thread thread{[&] {
        asks = true;
        m.blocking_lock()->push_back("thread");
    }};
    while (!asks) std::this_thread::yield();
    held.reset();
    loop.run_ready();
    thread.join();
    loop.run_ready();
    names signed_in_turn = signed_so_far();
    std::erase(signed_in_turn, "thread");  // which came when it pleased
    EXPECT_EQ(signed_in_turn, (names{"task", "foreign"}));
}

owned_foreign hold_for_ever(mutex<>& m) {
    auto const held = co_await m.lock();
    co_await std::suspend_always{};
}

TEST(MutexForeign, DestroyedWhileItWaitsLeavesTheLine) {
    mutex m;
    auto held = m.try_lock();
    {
        owned_foreign const waits = hold_for_ever(m);
    }
    held.reset();
    EXPECT_TRUE(m.try_lock());
}

TEST(MutexForeign, DestroyedAfterTheGrantOnAnExecutorThatRunsNoMoreHandsItOn) {
    mutex m;
    auto held = m.try_lock();
    {
        fenced nowhere;
        executor::scope const here{&nowhere};
        owned_foreign const never_resumed = hold_for_ever(m);
        held.reset();
        EXPECT_FALSE(m.try_lock()) << "it has been granted";
    }
    EXPECT_TRUE(m.try_lock());
}

// --- the value -------------------------------------------------------------------------------

TEST(MutexValue, IsMadeInPlaceAndTakenOut) {
    mutex<std::unique_ptr<std::string>> m{std::make_unique<std::string>("moved in")};
    *m.get_mut() += ", changed";
    std::unique_ptr<std::string> const out = std::move(m).into_inner();
    EXPECT_EQ(*out, "moved in, changed");
}

TEST(MutexValue, TakesTheArgumentsOfItsConstructor) {
    mutex<std::string> m{3U, 'x'};
    EXPECT_EQ(*m.try_lock().value(), "xxx");
    mutex<int> zero;
    EXPECT_EQ(zero.get_mut(), 0);
    static_assert(std::is_same_v<decltype(mutex{5}), mutex<int>>);
    static_assert(std::is_same_v<decltype(mutex{}), mutex<void>>);
}

TEST(MutexValue, MayBeNothing) {
    mutex m;
    static_assert(sizeof(mutex<void>) == sizeof(detail::permit_pool));
    auto held = m.try_lock();
    EXPECT_FALSE(m.try_lock());
    held->unlock();
    EXPECT_TRUE(m.try_lock());
}

TEST(MutexValue, MayThrowWhenItIsMade) {
    struct refuses {
        refuses() { throw std::runtime_error{"no"}; }
    };
    EXPECT_THROW(mutex<refuses>{}, std::runtime_error);
}

TEST(MutexDeathTest, TheValueIsNotReachedPastSomebodyWhoHasTheMutex) {
    mutex<int> m;
    auto const held = m.try_lock();
    EXPECT_DEATH(m.get_mut(), "nobody has the mutex");
    EXPECT_DEATH((void)std::move(m).into_inner(), "nobody has the mutex");
}

}  // namespace
}  // namespace rondo
