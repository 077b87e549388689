// join_set: who is joined when, what becomes of those that are not, and how a set ends. Who waits
// for a task in line is in join_set_line_test.cpp.
#include "rondo/core/join_set.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "joining.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/this_task.hpp"
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

task<int> fail(char const* what) {
    throw std::runtime_error{what};
    co_return 0;
}

TEST_F(JoinSet, GivesResultsInTheOrderInWhichTasksEnd) {
    permits first{0};
    permits second{0};
    set.spawn(wait_and_answer(second, 2));
    set.spawn(wait_and_answer(first, 1));
    loop.run_ready();
    EXPECT_EQ(set.size(), 2U);
    EXPECT_FALSE(joined());
    first.release();
    loop.run_ready();
    second.release();
    loop.run_ready();
    EXPECT_EQ(set.size(), 2U) << "an ended task is there until it is joined";
    EXPECT_EQ(joined().value(), result{1});
    EXPECT_EQ(joined().value(), result{2});
    EXPECT_TRUE(set.empty());
}

TEST_F(JoinSet, SaysThatItIsEmpty) {
    EXPECT_TRUE(set.empty());
    EXPECT_EQ(joined().value(), std::unexpected{join_error::empty});
    EXPECT_EQ(set.blocking_join_next(), std::unexpected{join_error::empty});
    EXPECT_FALSE(set.try_join_next());
}

TEST_F(JoinSet, AnExceptionIsThrownToTheJoiner) {
    set.spawn(fail("as expected"));
    loop.run_ready();
    EXPECT_THROW((void)set.blocking_join_next(), std::runtime_error);
    EXPECT_TRUE(set.empty());
    EXPECT_TRUE(loop.unobserved().empty());
}

TEST_F(JoinSet, TryJoinNextTakesWhatHasEnded) {
    set.spawn(answer(7));
    set.spawn(wait_and_answer(gate, 8));
    EXPECT_FALSE(set.try_join_next());
    loop.run_ready();
    EXPECT_EQ(set.try_join_next().value(), result{7});
    EXPECT_FALSE(set.try_join_next());
    EXPECT_EQ(set.size(), 1U);
}

TEST_F(JoinSet, TasksMayRunOnOtherExecutors) {
    manual_loop other;
    set.spawn(other, answer(7));
    loop.run_ready();
    EXPECT_FALSE(set.try_join_next());
    other.run_ready();
    EXPECT_EQ(set.try_join_next().value(), result{7});
}

task<void> nothing() { co_return; }

TEST_F(JoinSet, HasTasksWithoutAResult) {
    join_set<void> done{loop};
    done.spawn(nothing());
    loop.run_ready();
    EXPECT_TRUE(done.blocking_join_next());
    EXPECT_EQ(done.blocking_join_next(), std::unexpected{join_error::empty});
}

task<std::unique_ptr<int>> make(int n) { co_return std::make_unique<int>(n); }

TEST_F(JoinSet, ResultsAreMoved) {
    join_set<std::unique_ptr<int>> made{loop};
    made.spawn(make(7));
    loop.run_ready();
    auto const one = made.blocking_join_next();
    EXPECT_EQ(**one, 7);
}

// --- stop ---

TEST_F(JoinSet, StopAllStopsThoseThatAreThere) {
    set.spawn(wait_and_answer(gate, 1));
    set.spawn(wait_and_answer(gate, 2));
    loop.run_ready();
    set.stop_all();
    set.spawn(wait_and_answer(gate, 3));
    loop.run_ready();
    EXPECT_EQ(joined().value(), std::unexpected{join_error::task_stopped});
    EXPECT_EQ(joined().value(), std::unexpected{join_error::task_stopped});
    EXPECT_FALSE(joined()) << "the third came later";
    gate.release();
    EXPECT_EQ(joined().value(), result{3});
}

// Spawns another one when it is asked to stop.
task<int> leave_it_to_another(join_set<int>& set, permits& p) {
    environment const& env = co_await this_environment();
    auto const spawn_it = [&set, &p]() noexcept { set.spawn(wait_and_answer(p, 2)); };
    stop_callback const when_asked{env.stop, spawn_it};
    co_return co_await wait_and_answer(p, 1);
}

TEST_F(JoinSet, StopAllDoesNotStopWhatIsSpawnedMeanwhile) {
    set.spawn(leave_it_to_another(set, gate));
    loop.run_ready();
    set.stop_all();
    EXPECT_EQ(set.size(), 2U);
    EXPECT_EQ(joined().value(), std::unexpected{join_error::task_stopped});
    EXPECT_FALSE(joined());
    gate.release();
    EXPECT_EQ(joined().value(), result{2});
}

TEST_F(JoinSet, AParentTokenStopsATask) {
    stop_source parent;
    set.spawn(wait_and_answer(gate, 1), parent.token());
    loop.run_ready();
    parent.request_stop();
    EXPECT_EQ(joined().value(), std::unexpected{join_error::task_stopped});
}

task<void> shut_down(join_set<int>& set) { co_await set.shutdown(); }

TEST_F(JoinSet, ShutdownStopsWhatIsSpawnedMeanwhileToo) {
    set.spawn(leave_it_to_another(set, gate));
    loop.run_ready();
    auto ended = spawn(loop, shut_down(set));
    loop.run_ready();
    EXPECT_TRUE(ended.try_join().has_value());
    EXPECT_TRUE(set.empty());
}

// Has somebody to spawn for when it is asked to stop: it was granted its permit before.
task<int> spawn_for_each(join_set<int>& set, permits& knocks, permits& p) {
    for (;;) {
        auto knock = co_await knocks.acquire();
        knock.forget();
        set.spawn(wait_and_answer(p, 2));
    }
}

TEST_F(JoinSet, ShutdownStopsWhatIsSpawnedByWhoWasGrantedBeforeItWasAsked) {
    permits knocks{0};
    set.spawn(spawn_for_each(set, knocks, gate));
    loop.run_ready();
    auto ended = spawn(loop, shut_down(set));
    knocks.release();  // the shutdown has its turn first
    loop.run_ready();
    EXPECT_TRUE(ended.try_join().has_value());
    EXPECT_TRUE(set.empty());
}

class spawns_at_the_end {
  public:
    spawns_at_the_end(join_set<int>& set, permits& p) noexcept : set_(set), permits_(p) {}
    spawns_at_the_end(spawns_at_the_end const&) = delete;
    spawns_at_the_end& operator=(spawns_at_the_end const&) = delete;
    ~spawns_at_the_end() { set_.spawn(wait_and_answer(permits_, 2)); }

  private:
    join_set<int>& set_;
    permits& permits_;
};

task<int> spawn_when_it_unwinds(join_set<int>& set, permits& p) {
    spawns_at_the_end const another{set, p};
    co_return co_await wait_and_answer(p, 1);
}

TEST_F(JoinSet, ShutdownStopsWhatIsSpawnedByWhoUnwinds) {
    set.spawn(spawn_when_it_unwinds(set, gate));
    loop.run_ready();
    auto ended = spawn(loop, shut_down(set));
    loop.run_ready();
    EXPECT_TRUE(ended.try_join().has_value());
    EXPECT_TRUE(set.empty());
}

TEST_F(JoinSet, AfterAShutdownItMayBeUsedAgain) {
    set.blocking_shutdown();
    set.spawn(wait_and_answer(gate, 2));
    loop.run_ready();
    gate.release();
    loop.run_ready();
    EXPECT_EQ(set.try_join_next(), result{2});
}

task<int> clean_up(permits& p) {
    auto const got = co_await shield(wait_and_answer(p, 0));
    co_return got;
}

TEST_F(JoinSet, ShutdownStopsAllAndWaitsForTheirEnd) {
    permits cleaned{0};
    set.spawn(wait_and_answer(gate, 1));
    set.spawn(clean_up(cleaned));
    set.spawn(answer(3));
    loop.run_ready();
    auto ends = spawn(loop, shut_down(set));
    loop.run_ready();
    EXPECT_FALSE(ends.ended());
    EXPECT_FALSE(set.try_join_next()) << "the shutdown is in line";
    cleaned.release();
    loop.run_ready();
    EXPECT_TRUE(ends.ended());
    EXPECT_TRUE(set.empty());
    set.blocking_shutdown();  // once more, with nothing to do
}

TEST_F(JoinSet, ShutdownReportsExceptionsToTheExecutor) {
    set.spawn(fail("nobody will hear of it"));
    loop.run_ready();
    EXPECT_TRUE(loop.unobserved().empty());
    set.blocking_shutdown();
    EXPECT_EQ(loop.unobserved().size(), 1U);
}

TEST_F(JoinSet, BoundedShutdownsSayWhyTheyEnded) {
    set.spawn(clean_up(gate));
    loop.run_ready();
    stop_source source;
    source.request_stop();
    EXPECT_EQ(set.blocking_shutdown(source.token()), std::unexpected{wait_error::stopped});
    EXPECT_EQ(set.blocking_shutdown_for(0s), std::unexpected{wait_error::timed_out});
    EXPECT_EQ(set.blocking_shutdown_until(clock::now()), std::unexpected{wait_error::timed_out});
    using how = std::expected<void, wait_error>;
    auto for_a_while = spawn(
        loop, [](join_set<int>& s) -> task<how> { co_return co_await s.shutdown_for(10ms); }(set));
    auto until_a_moment = spawn(loop, [](join_set<int>& s, time_point when) -> task<how> {
        co_return co_await s.shutdown_until(when);
    }(set, loop.now() + 10ms));
    auto until_asked = spawn(loop, [](join_set<int>& s, stop_token t) -> task<how> {
        co_return co_await s.shutdown(t);
    }(set, source.token()));
    loop.advance(10ms);
    EXPECT_EQ(for_a_while.blocking_join().value(), std::unexpected{wait_error::timed_out});
    EXPECT_EQ(until_a_moment.blocking_join().value(), std::unexpected{wait_error::timed_out});
    EXPECT_EQ(until_asked.blocking_join().value(), std::unexpected{wait_error::stopped});
    gate.release();
    loop.run_ready();
    EXPECT_EQ(set.size(), 1U) << "a shutdown that was cut short has taken nothing";
}

// --- the end of a set ---

TEST_F(JoinSet, DestructionStopsTheTasksAndDoesNotWait) {
    auto alive = std::make_shared<int>(0);
    auto hold = [](permits& p, std::shared_ptr<int>) -> task<int> {
        auto const got = co_await p.acquire();
        co_return 1;
    };
    {
        join_set<int> brief{loop};
        brief.spawn(hold(gate, alive));
        loop.run_ready();
    }
    EXPECT_EQ(alive.use_count(), 2) << "it unwinds on its executor";
    loop.run_ready();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_FALSE(gate.awaited());
}

TEST_F(JoinSet, DestructionDropsResultsAndReportsExceptions) {
    auto value = std::make_shared<int>(7);
    {
        join_set<std::shared_ptr<int>> brief{loop};
        brief.spawn(
            [](std::shared_ptr<int> v) -> task<std::shared_ptr<int>> { co_return v; }(value));
        brief.spawn([]() -> task<std::shared_ptr<int>> {
            throw std::runtime_error{"nobody joined"};
            co_return nullptr;
        }());
        loop.run_ready();
        EXPECT_EQ(value.use_count(), 2);
    }
    EXPECT_EQ(value.use_count(), 1);
    EXPECT_EQ(loop.unobserved().size(), 1U);
}

TEST_F(JoinSet, DetachedTasksRunOn) {
    int ran = 0;
    set.spawn([](permits& p, int& n) -> task<int> {
        auto const got = co_await p.acquire();
        co_return ++n;
    }(gate, ran));
    auto waits = spawn(loop, next(set));
    loop.run_ready();
    set.detach_all();
    EXPECT_TRUE(set.empty());
    loop.run_ready();
    EXPECT_EQ(waits.blocking_join().value(), std::unexpected{join_error::empty});
    gate.release();
    loop.run_ready();
    EXPECT_EQ(ran, 1);
    EXPECT_TRUE(set.empty());
}

// A value that looks at its set as it goes.
class curious {
  public:
    curious(join_set<curious>& set, std::size_t& seen) noexcept : set_(&set), seen_(&seen) {}
    curious(curious&& other) noexcept
        : set_(std::exchange(other.set_, nullptr)), seen_(other.seen_) {}
    curious& operator=(curious&&) = delete;
    ~curious() {
        if (set_ != nullptr) *seen_ = set_->size();
    }

  private:
    join_set<curious>* set_;
    std::size_t* seen_;
};

TEST_F(JoinSet, AResultThatIsDroppedMayUseTheSet) {
    std::size_t seen = 99;
    join_set<curious> guests{loop};
    guests.spawn([](join_set<curious>& s, std::size_t& n) -> task<curious> {
        co_return curious{s, n};
    }(guests, seen));
    loop.run_ready();
    guests.blocking_shutdown();
    EXPECT_EQ(seen, 0U);
}

task<int> work_on_several(join_set<int>& set, executor& where) {
    for (int i = 1; i <= 3; ++i) set.spawn(where, answer(i));
    int sum = 0;
    for (;;) {
        result const r = co_await set.join_next();
        if (!r) break;
        sum += *r;
        if (*r == 3) set.spawn(where, answer(10));  // the set grows while it is joined
    }
    co_return sum;
}

TEST_F(JoinSet, MayGrowWhileItIsJoined) {
    auto handle = spawn(loop, work_on_several(set, loop));
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join(), 16);
}

TEST(JoinSetThreads, TasksEndOnManyThreadsAndEachIsJoinedOnce) {
    constexpr int tasks_each = 500;
    std::array<run_loop, 2> loops;
    std::array<std::thread, 2> threads;
    for (std::size_t i = 0; i < 2; ++i) threads[i] = std::thread{[&loops, i] { loops[i].run(); }};
    {
        join_set<int> set{loops[0]};
        std::thread spawner{[&] {
            for (int i = 0; i < tasks_each; ++i) {
                set.spawn(answer(i));
                set.spawn(loops[1], answer(i));
            }
        }};
        std::vector<int> joined(tasks_each, 0);
        for (int n = 0; n < 2 * tasks_each;) {
            result const r = set.blocking_join_next();
            if (!r) continue;  // the spawner is behind
            ++joined[static_cast<std::size_t>(*r)];
            ++n;
        }
        spawner.join();
        EXPECT_EQ(joined, std::vector<int>(tasks_each, 2));
        EXPECT_TRUE(set.empty());
    }
    for (run_loop& l : loops) l.finish();
    for (std::thread& t : threads) t.join();
}

using JoinSetDeathTest = JoinSet;

TEST_F(JoinSetDeathTest, ASetIsNotDestroyedUnderAJoinerThatWasGrantedATask) {
    EXPECT_DEATH(
        {
            manual_loop other;
            auto doomed = std::make_unique<join_set<int>>(other);
            doomed->spawn(answer(1));
            auto waits = spawn(loop, next(*doomed));
            loop.run_ready();
            other.run_ready();
            doomed.reset();
        },
        "after everyone has left it");
}

TEST_F(JoinSetDeathTest, ASetIsNotDestroyedUnderAJoiner) {
    EXPECT_DEATH(
        {
            auto doomed = std::make_unique<join_set<int>>(loop);
            doomed->spawn(wait_and_answer(gate, 1));
            auto waits = spawn(loop, next(*doomed));
            loop.run_ready();
            doomed.reset();
        },
        "after everyone has left it");
}

}  // namespace
}  // namespace rondo
