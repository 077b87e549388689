#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "after.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sim/world.hpp"
#include "support/permits.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::task;
using rondo::test::after;
using rondo::test::permits;
namespace sim = rondo::sim;

// Tasks that end, wait, spin and throw in one world.
struct program {
    explicit program(sim::options chosen = {}) : w(chosen) {}

    permits gate{0};
    bool tired = false;
    int unwound = 0;
    sim::world w;

    struct witness {
        explicit witness(program& p) noexcept : counted_in(p) {}
        ~witness() { ++counted_in.unwound; }
        witness(witness const&) = delete;
        witness& operator=(witness const&) = delete;
        program& counted_in;
    };

    task<int> answer() { co_return 42; }
    task<int> wait_at_the_gate() {
        witness const here{*this};
        permits::permit const p = co_await gate.acquire();
        co_return 1;
    }
    task<void> spin() {
        while (!tired) co_await rondo::yield();
    }
    // Every wait is ready: only the budget makes it give way.
    task<void> spin_on_ready_waits(permits* ready) {
        while (!tired) {
            permits::permit const p = co_await ready->acquire();
        }
    }
    task<void> tick_for_ever() {
        for (;;) co_await after(1s);
    }
    task<int> fail(std::string why) {
        co_await rondo::yield();
        throw std::runtime_error{why};
    }
    task<void> get_tired(std::chrono::nanoseconds when) {
        co_await after(when);
        tired = true;
    }
};

TEST(Outcome, AnEmptyWorldIsFinished) {
    program p;
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
    EXPECT_EQ(p.w.run_ready(), sim::outcome::finished);
    EXPECT_EQ(p.w.turns(), 0U);
}

TEST(Outcome, LiveTasksAreCountedFromSpawnToEnd) {
    program p;
    rondo::join_handle<int> handle = p.w.spawn(p.answer());
    EXPECT_EQ(p.w.live_tasks(), 1U);
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
    EXPECT_EQ(p.w.live_tasks(), 0U);
    EXPECT_TRUE(handle.ended());
}

TEST(Outcome, TasksThatNobodyCanWakeAreStuck) {
    program p;
    p.w.spawn(p.wait_at_the_gate()).detach();
    p.w.spawn(p.answer()).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::stuck);
    EXPECT_EQ(p.w.live_tasks(), 1U);
    p.gate.release();
    EXPECT_EQ(p.w.run(), sim::outcome::finished) << "the world was not broken, only waiting";
}

TEST(Outcome, StuckIsToldAlsoBeforeTheTimeIsUp) {
    program p;
    p.w.spawn(p.wait_at_the_gate()).detach();
    EXPECT_EQ(p.w.run_for(1h), sim::outcome::stuck);
    EXPECT_EQ(p.w.run_ready(), sim::outcome::stuck);
    p.gate.release();
}

TEST(Outcome, ALivelockRunsOutOfTurns) {
    program p{{.max_turns = 1000}};
    p.w.spawn(p.spin()).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::out_of_turns);
    EXPECT_EQ(p.w.turns(), 1000U);
    EXPECT_EQ(p.w.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_EQ(p.w.turns(), 2000U) << "each call has its own allowance";
    EXPECT_EQ(p.w.now(), rondo::time_point{}) << "what was to happen in that second has not";
    p.tired = true;
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
}

TEST(Outcome, TimersWithoutEndRunOutOfTurns) {
    program p{{.max_turns = 1000}};
    p.w.spawn(p.tick_for_ever()).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::out_of_turns);
    EXPECT_EQ(p.w.run_for(100s), sim::outcome::paused);
}

TEST(Outcome, EndingOnTheLastTurnIsFinished) {
    program counted;
    counted.w.spawn(counted.answer()).detach();
    (void)counted.w.run();
    program p{{.max_turns = counted.w.turns()}};
    p.w.spawn(p.answer()).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
}

TEST(Outcome, EachHasADescription) {
    EXPECT_STREQ(sim::describe(sim::outcome::finished), "finished");
    EXPECT_NE(std::string{sim::describe(sim::outcome::paused)}.find("later"), std::string::npos);
    EXPECT_NE(std::string{sim::describe(sim::outcome::stuck)}.find("stuck"), std::string::npos);
    EXPECT_NE(std::string{sim::describe(sim::outcome::out_of_turns)}.find("turns"),
              std::string::npos);
}

TEST(Budget, AlwaysReadyWaitsDoNotKeepOthersFromTheirTurns) {
    program p;
    permits plenty{1};
    p.w.spawn(p.spin_on_ready_waits(&plenty)).detach();
    EXPECT_EQ(p.w.block_on(p.answer()), 42);
    p.tired = true;
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
}

TEST(Budget, AlwaysReadyWaitsDoNotKeepATimerFromFiringWhereTurnsTakeTime) {
    program p{{.turn_time = 1us}};
    permits plenty{1};
    p.w.spawn(p.spin_on_ready_waits(&plenty)).detach();
    p.w.spawn(p.get_tired(1ms)).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
    EXPECT_GE(p.w.now(), rondo::time_point{1ms});
    EXPECT_LT(p.w.now(), rondo::time_point{2ms});
}

TEST(Budget, AlwaysReadyWaitsStopAClockWhereTurnsTakeNoTime) {
    program p{{.max_turns = 1000}};
    permits plenty{1};
    p.w.spawn(p.spin_on_ready_waits(&plenty)).detach();
    p.w.spawn(p.get_tired(1ms)).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::out_of_turns);
    EXPECT_EQ(p.w.now(), rondo::time_point{});
    p.tired = true;
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
}

TEST(BlockOn, GivesTheResultAndLeavesTheRestForLater) {
    program p;
    p.w.spawn(p.tick_for_ever()).detach();
    EXPECT_EQ(p.w.block_on(p.answer()), 42);
    EXPECT_TRUE(p.w.block_on(p.get_tired(10s)));
    EXPECT_EQ(p.w.now(), rondo::time_point{10s});
    EXPECT_EQ(p.w.live_tasks(), 1U);
}

TEST(BlockOn, RethrowsWhatTheTaskThrew) {
    program p;
    EXPECT_THROW(EXPECT_TRUE(p.w.block_on(p.fail("as expected"))), std::runtime_error);
    EXPECT_TRUE(p.w.take_unobserved().empty());
}

TEST(BlockOn, SaysThatItIsStuckAndUnwindsTheTaskFirst) {
    program p;
    EXPECT_EQ(p.w.block_on(p.wait_at_the_gate()), std::unexpected{sim::outcome::stuck});
    EXPECT_EQ(p.unwound, 1);
    EXPECT_EQ(p.w.live_tasks(), 0U);
}

TEST(BlockOn, RemembersWhereEachTaskWasWhenItWasStuck) {
    program p;
    EXPECT_EQ(p.w.block_on(p.wait_at_the_gate()), std::unexpected{sim::outcome::stuck});
    EXPECT_TRUE(p.w.dump().empty());
    ASSERT_EQ(p.w.dump_at_failure().size(), 1U);
    rondo::task_trace const& trace = p.w.dump_at_failure().front();
    EXPECT_EQ(trace.doing, rondo::task_trace::activity::waiting);
    EXPECT_NE(trace.frames.back().function.find("wait_at_the_gate"), std::string::npos);
}

TEST(BlockOn, SaysThatTurnsRanOut) {
    program p{{.max_turns = 1000}};
    p.w.spawn(p.tick_for_ever()).detach();
    EXPECT_EQ(p.w.block_on(p.wait_at_the_gate()), std::unexpected{sim::outcome::out_of_turns});
    EXPECT_EQ(p.unwound, 1);
}

TEST(Unobserved, ExceptionsThatNobodyJoinsAreCollected) {
    program p{{.order = sim::schedule::fifo}};
    p.w.spawn(p.fail("first")).detach();
    p.w.spawn(p.fail("second")).detach();
    EXPECT_EQ(p.w.run(), sim::outcome::finished);
    std::vector<std::string> reasons;
    for (std::exception_ptr const& e : p.w.take_unobserved()) {
        try {
            std::rethrow_exception(e);
        } catch (std::runtime_error const& error) {
            reasons.emplace_back(error.what());
        }
    }
    EXPECT_EQ(reasons, (std::vector<std::string>{"first", "second"}));
    EXPECT_TRUE(p.w.take_unobserved().empty());
}

TEST(Unobserved, WhatNobodyTookIsPrintedAtTheEnd) {
    testing::internal::CaptureStderr();
    {
        program p;
        p.w.spawn(p.fail("into the void")).detach();
        (void)p.w.run();
    }
    EXPECT_NE(testing::internal::GetCapturedStderr().find("into the void"), std::string::npos);
}

TEST(Outcome, ATaskThatAnotherTaskSpawnedOnTheWorldCountsAndIsStoppedWithIt) {
    permits gate{0};
    bool unwound = false;
    {
        sim::world w;
        w.spawn([](permits& g, bool& gone) -> task<void> {
             rondo::environment const& env = co_await rondo::this_environment();
             struct witness {
                 explicit witness(bool& b) noexcept : told(b) {}
                 ~witness() { told = true; }
                 witness(witness const&) = delete;
                 witness& operator=(witness const&) = delete;
                 bool& told;
             };
             rondo::spawn(*env.where,
                          [](permits& h, bool& b) -> task<void> {
                              witness const here{b};
                              permits::permit const never = co_await h.acquire();
                          }(g, gone))
                 .detach();
         }(gate, unwound))
            .detach();
        EXPECT_EQ(w.run(), sim::outcome::stuck);
        EXPECT_EQ(w.live_tasks(), 1U);
        EXPECT_FALSE(unwound);
    }
    EXPECT_TRUE(unwound);
}

TEST(Outcome, AWorldDestroyedWithATaskThatIsAlwaysReadyEnds) {
    permits ready{1};
    program p;
    p.w.spawn(p.spin_on_ready_waits(&ready)).detach();
}

TEST(Outcome, AWorldMayBeginBeforeTheEpoch) {
    sim::world w{{.start = rondo::time_point{-1h}}};
    ASSERT_TRUE(w.block_on([]() -> task<void> { co_await rondo::sleep_for(2h); }()));
    EXPECT_EQ(w.now(), rondo::time_point{1h});
}

}  // namespace
