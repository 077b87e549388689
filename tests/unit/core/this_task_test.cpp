// this_environment, yield and the sleeps; and ticks that meet something else in one instant. (When
// ticks come is tested in a simulated world: tests/unit/sim/interval_test.cpp.)
#include "rondo/core/this_task.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/core.hpp"
#include "rondo/core/interval.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;

using log = std::vector<std::string>;

TEST(ThisEnvironment, NamesExecutorTimersAndStopToken) {
    manual_loop loop;
    stop_source parent;
    auto t = spawn(
        loop,
        [](manual_loop& expected) -> task<bool> {
            environment const& env = co_await this_environment();
            EXPECT_EQ(env.where, &expected);
            EXPECT_EQ(&env.timers(), &expected.timers());
            EXPECT_TRUE(env.stop.stop_possible());
            co_return env.stop.stop_requested();
        }(loop),
        parent.token());
    t.request_stop();
    loop.run_ready();
    EXPECT_TRUE(t.blocking_join().value());
    EXPECT_FALSE(parent.stop_requested());
}

TEST(Yield, LetsOthersHaveATurn) {
    manual_loop loop;
    log l;
    auto const speak = [](log& out, std::string name) -> task<void> {
        for (int i = 0; i < 3; ++i) {
            out.push_back(name + std::to_string(i));
            co_await yield();
        }
    };
    spawn(loop, speak(l, "a")).detach();
    spawn(loop, speak(l, "b")).detach();
    loop.run_ready();
    EXPECT_EQ(l, (log{"a0", "b0", "a1", "b1", "a2", "b2"}));
}

TEST(Sleep, EndsAtItsMomentAndNotBefore) {
    manual_loop loop;
    auto a = spawn(
        loop, [](time_point until) -> task<void> { co_await sleep_until(until); }(loop.now() + 5s));
    auto b = spawn(loop, []() -> task<void> { co_await sleep_for(5s); }());
    loop.advance(5s - 1ns);
    EXPECT_FALSE(a.ended() || b.ended());
    loop.advance(1ns);
    EXPECT_TRUE(a.ended() && b.ended());
}

TEST(Sleep, SleepersWakeInTheOrderOfTheirDeadlines) {
    manual_loop loop;
    log l;
    auto const speak = [](log& out, clock::duration delay, std::string name) -> task<void> {
        co_await sleep_for(delay);
        out.push_back(std::move(name));
    };
    spawn(loop, speak(l, 3s, "third")).detach();
    spawn(loop, speak(l, 1s, "first")).detach();
    spawn(loop, speak(l, 2s, "second")).detach();
    loop.advance(3s);
    EXPECT_EQ(l, (log{"first", "second", "third"}));
}

TEST(Sleep, UntilAMomentThatHasPassedGoesOnInTheSameTurn) {
    manual_loop loop;
    auto t = spawn(loop, [](time_point past) -> task<int> {
        co_await sleep_until(past);
        co_await sleep_until(time_point{});
        co_await sleep_for(0s);
        co_await sleep_for(-1h);
        co_return 1;
    }(loop.now() - 1h));
    EXPECT_TRUE(loop.step());
    EXPECT_TRUE(t.ended());
}

TEST(Sleep, ForeverEndsWhenItIsStopped) {
    manual_loop loop;
    auto a = spawn(loop, []() -> task<void> { co_await sleep_for(clock::duration::max()); }());
    auto b = spawn(loop, []() -> task<void> { co_await sleep_until(time_point::max()); }());
    loop.advance(1h);
    EXPECT_FALSE(a.ended() || b.ended());
    a.request_stop();
    b.request_stop();
    loop.run_ready();
    EXPECT_TRUE(a.ended() && b.ended());
}

TEST(Sleep, WithATokenSaysWhetherItSleptToTheEnd) {
    manual_loop loop;
    stop_source source;
    auto const sleep = [](clock::duration d, stop_token token) -> task<bool> {
        std::expected<void, wait_error> const r = co_await sleep_for(d, token);
        EXPECT_TRUE(r.has_value() || r.error() == wait_error::stopped);
        co_return r.has_value();
    };
    auto whole = spawn(loop, sleep(1s, source.token()));
    auto cut = spawn(loop, sleep(3s, source.token()));
    loop.advance(2s);
    source.request_stop();
    loop.run_ready();
    EXPECT_TRUE(whole.blocking_join().value());
    EXPECT_FALSE(cut.blocking_join().value());
}

TEST(Sleep, BlockOnSleepsInRealTime) {
    time_point const before = clock::now();
    block_on([]() -> task<void> { co_await sleep_for(3ms); }());  // real time is what is tested
    EXPECT_GE(clock::now() - before, 3ms);
}

class TickInAWhenAny : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tick_now(), beginning); }

    // Nothing when none is due.
    std::optional<time_point> tick_now() {
        auto handle = spawn(loop, [](interval& e) -> task<time_point> {
            time_point const due = co_await e.tick();
            co_return due;
        }(every));
        loop.run_ready();
        if (handle.ended()) return handle.blocking_join().value();
        handle.request_stop();
        loop.run_ready();
        return std::nullopt;
    }

    // The permit and the tick of 10 ms come in one instant.
    std::size_t winner(task<std::size_t> race) {
        auto handle = spawn(loop, std::move(race));
        loop.run_ready();
        p.release();
        loop.pass(10ms);
        loop.run_ready();
        return handle.blocking_join().value();
    }

    manual_loop loop;
    permits p{0};
    interval every{10ms};
    time_point const beginning = loop.now();
};

TEST_F(TickInAWhenAny, IsNotLostIfItLosesInTheInstantInWhichItIsDue) {
    EXPECT_EQ(winner([](permits& from, interval& e) -> task<std::size_t> {
                  auto const r = co_await when_any(from.acquire(), e.tick());
                  co_return r.index();
              }(p, every)),
              0U);
    EXPECT_EQ(tick_now(), beginning + 10ms);
    EXPECT_EQ(tick_now(), std::nullopt);
}

TEST_F(TickInAWhenAny, WithATokenIsNotLostEither) {
    stop_source source;
    EXPECT_EQ(winner([](permits& from, interval& e, stop_token t) -> task<std::size_t> {
                  auto const r = co_await when_any(from.acquire(), e.tick(t));
                  co_return r.index();
              }(p, every, source.token())),
              0U);
    EXPECT_EQ(tick_now(), beginning + 10ms);
}

TEST_F(TickInAWhenAny, LeavesTheOtherItsPermitIfItWins) {
    auto race = spawn(loop, [](permits& from, interval& e) -> task<std::size_t> {
        auto const r = co_await when_any(from.acquire(), e.tick());
        co_return r.index();
    }(p, every));
    loop.run_ready();
    loop.pass(10ms);
    p.release();
    loop.run_ready();
    ASSERT_TRUE(race.ended());
    EXPECT_EQ(race.blocking_join().value(), 1U);
    EXPECT_EQ(p.available(), 1U);
    EXPECT_EQ(tick_now(), std::nullopt);
    loop.pass(10ms);
    EXPECT_EQ(tick_now(), beginning + 20ms);
}

TEST(Tick, MayBeAwaitedByACoroutineThatIsNoTask) {
    interval every{1ms, time_point{}};  // in the past: real time does not matter
    std::vector<time_point> due;
    [](interval& e, std::vector<time_point>& seen) -> test::foreign {
        time_point const first = co_await e.tick();
        std::expected<time_point, wait_error> const second = co_await e.tick(stop_token{});
        seen = {first, second.value()};
    }(every, due);
    EXPECT_EQ(due, (std::vector{time_point{}, time_point{} + 1ms}));
}

}  // namespace
}  // namespace rondo
