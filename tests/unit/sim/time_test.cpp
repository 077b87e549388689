#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "after.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sim/seeds.hpp"
#include "rondo/sim/world.hpp"
#include "support/permits.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::clock;
using rondo::executor;
using rondo::task;
using rondo::time_point;
using rondo::wait_error;
using rondo::test::after;
using rondo::test::permits;
namespace sim = rondo::sim;

// A world, and tasks that note when something happened in it.
struct diary {
    explicit diary(sim::options chosen = {}) : w(chosen), start(chosen.start) {}

    sim::world w;
    time_point start;
    std::vector<std::pair<std::string, clock::duration>> entries;

    using expected_entries = decltype(entries);

    void note(std::string what) { entries.emplace_back(std::move(what), w.now() - start); }

    task<void> sleep_and_note(std::string name, clock::duration span) {
        co_await after(span);
        note(name);
    }
    task<int> seven_after(clock::duration span) {
        co_await after(span);
        co_return 7;
    }
};

TEST(VirtualTime, AYearOfSleepingTakesNoRealTime) {
    diary d;
    auto const before = std::chrono::steady_clock::now();
    EXPECT_TRUE(d.w.block_on(d.sleep_and_note("year", std::chrono::years{1})));
    EXPECT_LT(std::chrono::steady_clock::now() - before, 1min);
    EXPECT_EQ(d.w.now() - d.start, std::chrono::years{1});
}

TEST(VirtualTime, BeginsWhereItWasAskedTo) {
    time_point const start{1000h};
    diary d{{.start = start}};
    EXPECT_EQ(d.w.now(), start);
    EXPECT_TRUE(d.w.block_on(d.sleep_and_note("awake", 1ns)));
    EXPECT_EQ(d.w.now(), start + 1ns);
}

TEST(VirtualTime, IsWhatATaskSeesInItsEnvironment) {
    diary d;
    struct asking {
        static task<time_point> for_the_time() {
            co_await after(3s);
            rondo::environment const& env = co_await rondo::this_environment();
            co_return env.timers().now();
        }
    };
    EXPECT_EQ(d.w.block_on(asking::for_the_time()), time_point{3s});
}

TEST(VirtualTime, SleepersWakeInTheOrderOfTheirDeadlinesToTheNanosecond) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        diary d{{.seed = seed}};
        d.w.spawn(d.sleep_and_note("d", 1h + 1ns)).detach();
        d.w.spawn(d.sleep_and_note("b", 64ns)).detach();
        d.w.spawn(d.sleep_and_note("a", 63ns)).detach();
        d.w.spawn(d.sleep_and_note("c", 1h)).detach();
        EXPECT_EQ(d.w.run(), sim::outcome::finished);
        diary::expected_entries const in_order{
            {"a", 63ns}, {"b", 64ns}, {"c", 1h}, {"d", 1h + 1ns}};
        EXPECT_EQ(d.entries, in_order);
    }
}

TEST(VirtualTime, ASleepWithoutEndIsNoTimer) {
    diary d;
    d.w.spawn(d.sleep_and_note("never", clock::duration::max())).detach();
    EXPECT_EQ(d.w.run(), sim::outcome::stuck);
    EXPECT_EQ(d.w.now(), d.start);
}

TEST(VirtualTime, RunUntilIncludesItsMomentAndLeavesTheClockThere) {
    diary d;
    d.w.spawn(d.sleep_and_note("at", 10ms)).detach();
    d.w.spawn(d.sleep_and_note("beyond", 10ms + 1ns)).detach();
    EXPECT_EQ(d.w.run_until(d.start + 10ms), sim::outcome::paused);
    EXPECT_EQ(d.entries, (diary::expected_entries{{"at", 10ms}}));
    EXPECT_EQ(d.w.now(), d.start + 10ms);

    EXPECT_EQ(d.w.run_for(1h), sim::outcome::finished);
    EXPECT_EQ(d.entries.back().second, 10ms + 1ns);
    EXPECT_EQ(d.w.now(), d.start + 10ms + 1h);
    EXPECT_EQ(d.w.run_until(d.start), sim::outcome::finished) << "what is past is no work";
    EXPECT_EQ(d.w.now(), d.start + 10ms + 1h);
}

TEST(VirtualTime, EndsAtTheLastMomentThatATimePointCanSay) {
    diary d{{.start = time_point::max() - 2h}};
    d.w.spawn(d.sleep_and_note("before the end", 1h)).detach();
    EXPECT_EQ(d.w.run_for(clock::duration::max()), sim::outcome::finished);
    EXPECT_EQ(d.entries, (diary::expected_entries{{"before the end", 1h}}));
    EXPECT_EQ(d.w.now(), time_point::max());
}

TEST(VirtualTime, RunReadyLeavesTheClockAlone) {
    diary d;
    d.w.spawn(d.sleep_and_note("later", 1ns)).detach();
    EXPECT_EQ(d.w.run_ready(), sim::outcome::paused);
    EXPECT_EQ(d.w.now(), d.start);
    EXPECT_TRUE(d.entries.empty());
}

TEST(VirtualTime, WhatAnAdvancePassedWakesInTheNextRunAndSeesThatItIsLate) {
    diary d;
    d.w.spawn(d.sleep_and_note("late", 1s)).detach();
    d.w.spawn(d.sleep_and_note("in time", 5s)).detach();
    EXPECT_EQ(d.w.run_ready(), sim::outcome::paused);
    d.w.advance(4s);
    EXPECT_TRUE(d.entries.empty());
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    EXPECT_EQ(d.entries, (diary::expected_entries{{"late", 4s}, {"in time", 5s}}));
}

TEST(VirtualTime, ATaskThatAdvancesItDelaysTheOthers) {
    struct computing : diary {
        task<void> for_a_minute() {
            co_await after(1s);
            w.advance(1min);
            note("computed");
        }
    } d;
    d.w.spawn(d.for_a_minute()).detach();
    d.w.spawn(d.sleep_and_note("delayed", 2s)).detach();
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    diary::expected_entries const both_late{{"computed", 61s}, {"delayed", 61s}};
    EXPECT_EQ(d.entries, both_late);
}

TEST(VirtualTime, TurnsTakeTimeWhenTheyAreAskedTo) {
    struct polling : diary {
        using diary::diary;
        task<void> until(time_point moment) {
            while (w.now() < moment) co_await rondo::yield();
            note("reached");
        }
    } d{{.turn_time = 1us}};
    d.w.spawn(d.until(d.start + 1ms)).detach();
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    EXPECT_EQ(d.entries, (diary::expected_entries{{"reached", 1ms}}));
}

TEST(VirtualTime, RunUntilHoldsForTurnsThatTakeTime) {
    struct polling : diary {
        using diary::diary;
        task<void> for_ever() {
            for (;;) co_await rondo::yield();
        }
    } d{{.turn_time = 3us}};
    d.w.spawn(d.for_ever()).detach();
    EXPECT_EQ(d.w.run_until(d.start + 1ms), sim::outcome::paused);
    EXPECT_GE(d.w.now(), d.start + 1ms);
    EXPECT_LE(d.w.now(), d.start + 1ms + 3us);
}

TEST(VirtualTime, WithTimeoutCountsIt) {
    diary d;
    auto const late = d.w.block_on(rondo::with_timeout(d.seven_after(1h), 59min));
    ASSERT_TRUE(late);
    EXPECT_EQ(*late, std::unexpected{wait_error::timed_out});
    EXPECT_EQ(d.w.now(), d.start + 59min);

    auto const in_time = d.w.block_on(rondo::with_timeout(d.seven_after(1h), 61min));
    ASSERT_TRUE(in_time);
    EXPECT_EQ(*in_time, 7);
    EXPECT_EQ(d.w.now(), d.start + 59min + 1h);
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    EXPECT_EQ(d.w.now(), d.start + 59min + 1h) << "a cancelled timer does not move the clock";
}

TEST(VirtualTime, WhenAnyTakesTheEarlierAndEndsAtItsMoment) {
    diary d;
    auto const winner = d.w.block_on(rondo::when_any(d.seven_after(2h), after(1h)));
    ASSERT_TRUE(winner);
    EXPECT_EQ(winner->index(), 1U);
    EXPECT_EQ(d.w.now(), d.start + 1h);
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    EXPECT_EQ(d.w.now(), d.start + 1h);
}

TEST(VirtualTime, AWaitWithADeadlineEndsAtIt) {
    struct waiting : diary {
        permits none{0};
        task<bool> for_a_permit() {
            auto const got = co_await none.acquire_until(1, w.now() + 250us);
            co_return got.has_value();
        }
    } d;
    EXPECT_EQ(d.w.block_on(d.for_a_permit()), false);
    EXPECT_EQ(d.w.now(), d.start + 250us);
}

TEST(VirtualTime, JoinUntilGivesUpInIt) {
    struct joining : diary {
        task<bool> briefly() {
            rondo::join_handle<int> slow = w.spawn(seven_after(1h));
            auto const joined = co_await slow.join_until(w.now() + 1min);
            slow.request_stop();
            co_return joined.has_value();
        }
    } d;
    EXPECT_EQ(d.w.block_on(d.briefly()), false);
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    EXPECT_EQ(d.w.now(), d.start + 1min);
}

// A coroutine that knows nothing of rondo.
struct fire_and_forget {
    struct promise_type {
        fire_and_forget get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

TEST(VirtualTime, AForeignCoroutineInTheWorldSleepsByIt) {
    struct foreign : diary {
        executor* resumed_by = nullptr;
        fire_and_forget sleep_two_days() {
            co_await after(48h);
            resumed_by = executor::current();
            note("foreign");
        }
        task<void> start_it() {
            sleep_two_days();
            co_return;
        }
    } d;
    EXPECT_TRUE(d.w.block_on(d.start_it()));
    EXPECT_TRUE(d.entries.empty());
    EXPECT_EQ(d.w.run(), sim::outcome::finished);
    EXPECT_EQ(d.entries, (diary::expected_entries{{"foreign", 48h}}));
    EXPECT_EQ(d.resumed_by, &d.w);
}

}  // namespace
