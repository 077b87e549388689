// The budget: a task whose waits are always ready gives way all the same.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "rondo/core/environment.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;

constexpr std::size_t turn_budget = detail::flow::turn_budget;

task<void> take_forever(permits& p, std::size_t& taken) {
    for (;;) {
        auto const got = co_await p.acquire();
        ++taken;
    }
}

TEST(Budget, AnAlwaysReadyTaskHasSoManyWaitsInATurnAndThenGivesWay) {
    manual_loop loop;
    permits p{1};
    std::size_t taken = 0;
    auto t = spawn(loop, take_forever(p, taken));
    for (std::size_t turn = 1; turn <= 5; ++turn) {
        ASSERT_TRUE(loop.step());
        EXPECT_EQ(taken, turn * turn_budget);
    }
    t.request_stop();
    loop.run_ready();
}

TEST(Budget, AnAlwaysReadyTaskIsStoppedWhereItGivesWay) {
    manual_loop loop;
    permits p{1};
    std::size_t taken = 0;
    auto t = spawn(loop, take_forever(p, taken));
    loop.step();
    t.request_stop();
    EXPECT_FALSE(t.ended());
    loop.step();
    EXPECT_TRUE(t.ended());
    EXPECT_EQ(taken, turn_budget) << "a stop is not beaten by a wait that has not begun";
}

TEST(Budget, TwoAlwaysReadyTasksTakeTurns) {
    manual_loop loop;
    permits p{2};
    std::size_t a = 0, b = 0;
    auto first = spawn(loop, take_forever(p, a));
    auto second = spawn(loop, take_forever(p, b));
    for (int i = 0; i < 10; ++i) loop.step();
    EXPECT_EQ(a, 5 * turn_budget);
    EXPECT_EQ(b, 5 * turn_budget);
    first.request_stop();
    second.request_stop();
    auto const all = [&] { return p.blocking_acquire(2); }();
    loop.run_ready();
}

TEST(Budget, ATimerFiresBesideATaskThatIsAlwaysReady) {
    run_loop loop;
    permits p{1};
    std::size_t taken = 0;
    auto busy = spawn(loop, take_forever(p, taken));
    auto sleeper = spawn(loop, [](permits& q, join_handle<void>& other) -> task<void> {
        co_await sleep_for(2ms);  // by real time, which run_loop goes by
        auto held = co_await q.acquire();
        held.forget();
        other.request_stop();
    }(p, busy));
    loop.run_ready();  // ends because the sleeper took its turn in time
    EXPECT_TRUE(sleeper.ended());
    EXPECT_TRUE(busy.ended());
    EXPECT_GT(taken, turn_budget);
}

TEST(Budget, IsSharedByTheTasksOfOneChainAndNotRefilledByAwaitingThem) {
    manual_loop loop;
    permits p{1};
    std::size_t taken = 0;
    auto t = spawn(loop, [](permits& q, std::size_t& n) -> task<void> {
        auto const one = [](permits& r) -> task<void> { auto const got = co_await r.acquire(); };
        for (;;) {
            co_await one(q);
            ++n;
            auto const r = co_await with_timeout(one(q), 1h);
            EXPECT_TRUE(r.has_value());
            ++n;
        }
    }(p, taken));
    loop.step();
    EXPECT_EQ(taken, turn_budget);
    loop.step();
    EXPECT_EQ(taken, 2 * turn_budget);
    t.request_stop();
    auto const held = p.blocking_acquire();
    loop.run_ready();
}

TEST(Budget, AWaitThatSuspendedStartsANewTurn) {
    manual_loop loop;
    permits p{turn_budget / 2};
    std::size_t taken = 0;
    auto t = spawn(loop, [](permits& q, std::size_t& n) -> task<void> {
        for (;;) {
            auto got = co_await q.acquire();
            got.forget();
            ++n;
        }
    }(p, taken));
    loop.run_ready();
    EXPECT_EQ(taken, turn_budget / 2);
    p.release(2 * turn_budget);
    loop.step();
    EXPECT_EQ(taken, turn_budget / 2 + turn_budget) << "the one that it waited for is of this turn";
    t.request_stop();
    loop.run_ready();
}

TEST(Budget, AWaitThatGivesWayAndFindsItsTurnTakenWaits) {
    manual_loop loop;
    permits p{turn_budget};
    std::size_t taken = 0;
    auto t = spawn(loop, [](permits& q, std::size_t& n) -> task<void> {
        for (;;) {
            auto got = co_await q.acquire();
            got.forget();
            if (++n == turn_budget) q.release();
        }
    }(p, taken));
    loop.step();
    EXPECT_EQ(taken, turn_budget);
    {
        auto const stolen = p.blocking_acquire();  // before its next turn
        loop.run_ready();
        EXPECT_EQ(taken, turn_budget);
        EXPECT_TRUE(p.awaited());
    }
    loop.run_ready();
    EXPECT_EQ(taken, turn_budget + 1);
    t.request_stop();
    loop.run_ready();
}

// Branches are flows of their own, but share the turns in which they run with the task above.
TEST(Budget, ForksOfOneBranchThatIsAlwaysReadyGiveWayToo) {
    manual_loop loop;
    permits p{1};
    std::size_t taken = 0;
    auto const one = [](permits& r) -> task<void> { auto const got = co_await r.acquire(); };
    auto t = spawn(loop, [](permits& q, std::size_t& n, auto& body) -> task<void> {
        for (; n < 10'000; ++n) {
            (void)co_await when_all(body(q));
            (void)co_await when_any(body(q));
        }
    }(p, taken, one));
    loop.step();
    EXPECT_EQ(taken, turn_budget / 2);
    loop.run_ready();
    EXPECT_EQ(taken, 10'000U);
    EXPECT_TRUE(t.ended());
}

}  // namespace
}  // namespace rondo
