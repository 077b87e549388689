// join_set: who waits for a task in line, behind others, no longer than it wants to, or beside
// other things.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>

#include "joining.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/join_set.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using test::answer;
using test::manual_loop;
using test::next;
using test::permits;
using test::result;
using test::wait_and_answer;
using namespace std::chrono_literals;

using JoinSet = test::joining;

TEST_F(JoinSet, WakesWhoeverWaitsFirst) {
    set.spawn(wait_and_answer(gate, 1));
    set.spawn(wait_and_answer(gate, 2));
    loop.run_ready();
    auto first = spawn(loop, next(set));
    auto second = spawn(loop, next(set));
    auto third = spawn(loop, next(set));
    loop.run_ready();
    gate.release();
    loop.run_ready();
    EXPECT_TRUE(first.ended());
    EXPECT_FALSE(second.ended());
    EXPECT_FALSE(third.ended());
    gate.release();
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value(), result{1});
    EXPECT_EQ(second.blocking_join().value(), result{2});
    EXPECT_EQ(third.blocking_join().value(), std::unexpected{join_error::empty})
        << "who waits when the last one is joined";
}

TEST_F(JoinSet, AJoinThatIsStoppedTakesNothing) {
    set.spawn(wait_and_answer(gate, 1));
    auto stopped = spawn(loop, next(set));
    loop.run_ready();
    stopped.request_stop();
    gate.release();
    loop.run_ready();
    EXPECT_EQ(stopped.blocking_join(), std::unexpected{wait_error::stopped});
    EXPECT_EQ(set.try_join_next().value(), result{1});
}

TEST_F(JoinSet, BoundedJoinsSayWhyTheyEnded) {
    set.spawn(wait_and_answer(gate, 1));
    loop.run_ready();
    stop_source source;
    source.request_stop();
    EXPECT_EQ(set.blocking_join_next(source.token()), std::unexpected{join_error::stopped});
    EXPECT_EQ(set.blocking_join_next_for(0s), std::unexpected{join_error::timed_out});
    EXPECT_EQ(set.blocking_join_next_until(clock::now()), std::unexpected{join_error::timed_out});

    auto for_a_while = spawn(loop, [](join_set<int>& s) -> task<result> {
        co_return co_await s.join_next_for(10ms);
    }(set));
    auto until_a_moment = spawn(loop, [](join_set<int>& s, time_point when) -> task<result> {
        co_return co_await s.join_next_until(when);
    }(set, loop.now() + 10ms));
    auto until_asked = spawn(loop, [](join_set<int>& s, stop_token t) -> task<result> {
        co_return co_await s.join_next(t);
    }(set, source.token()));
    loop.advance(10ms);
    EXPECT_EQ(for_a_while.blocking_join().value(), std::unexpected{join_error::timed_out});
    EXPECT_EQ(until_a_moment.blocking_join().value(), std::unexpected{join_error::timed_out});
    EXPECT_EQ(until_asked.blocking_join().value(), std::unexpected{join_error::stopped});
}

TEST_F(JoinSet, AJoinMayLoseAWhenAny) {
    set.spawn(wait_and_answer(gate, 1));
    auto handle = spawn(loop, [](join_set<int>& s) -> task<std::size_t> {
        auto const r = co_await when_any(s.join_next(), sleep_for(10ms));
        co_return r.index();
    }(set));
    loop.advance(10ms);
    EXPECT_EQ(handle.blocking_join(), 1U);
    gate.release();
    loop.run_ready();
    EXPECT_EQ(set.try_join_next().value(), result{1});
}

task<std::size_t> first_of(permits& p, join_set<int>& s) {
    auto const r = co_await when_any(p.acquire(), s.join_next());
    co_return r.index();
}

TEST_F(JoinSet, AJoinThatLosesInTheInstantInWhichItIsGrantedPutsTheTaskBack) {
    manual_loop other;
    set.spawn(other, answer(1));
    auto handle = spawn(loop, first_of(gate, set));
    loop.run_ready();
    gate.release();
    other.run_ready();
    EXPECT_EQ(set.size(), 1U) << "it is granted, and not joined";
    set.spawn(other, answer(2));
    other.run_ready();
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join(), 0U);
    EXPECT_EQ(set.try_join_next().value(), result{1}) << "it is the first again";
    EXPECT_EQ(set.try_join_next().value(), result{2});
}

// Who is second in line, behind one that is granted the last task and may not take it.
class JoinSetSecondInLine : public JoinSet {
  protected:
    void SetUp() override {
        set.spawn(other, answer(1));
        first.emplace(spawn(loop, first_of(gate, set)));
        second.emplace(spawn(behind, next(set)));
        loop.run_ready();
        behind.run_ready();
    }

    manual_loop other, behind;
    std::optional<join_handle<std::size_t>> first;
    std::optional<join_handle<result>> second;
};

TEST_F(JoinSetSecondInLine, IsGivenATaskThatTheFirstWasGrantedAndDidNotTake) {
    gate.release();
    other.run_ready();
    behind.run_ready();
    EXPECT_FALSE(second->ended()) << "the task is not joined yet";
    loop.run_ready();
    behind.run_ready();
    EXPECT_EQ(first->blocking_join(), 0U);
    EXPECT_EQ(second->blocking_join().value(), result{1});
}

TEST_F(JoinSetSecondInLine, HearsThatNoneIsLeftWhenTheFirstHasTakenTheLast) {
    other.run_ready();
    behind.run_ready();
    EXPECT_FALSE(second->ended());
    loop.run_ready();
    behind.run_ready();
    EXPECT_EQ(first->blocking_join(), 1U);
    EXPECT_EQ(second->blocking_join().value(), std::unexpected{join_error::empty});
}

TEST_F(JoinSetSecondInLine, HearsThatNoneIsLeftWhenAllAreDetached) {
    gate.release();
    other.run_ready();
    set.detach_all();
    EXPECT_TRUE(set.empty());
    behind.run_ready();
    EXPECT_EQ(second->blocking_join().value(), std::unexpected{join_error::empty});
    loop.run_ready();
    EXPECT_EQ(first->blocking_join(), 0U);
    EXPECT_TRUE(set.empty()) << "what was detached does not come back";
}

}  // namespace
}  // namespace rondo
