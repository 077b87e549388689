// A set of tasks, explored: tasks that end, joiners that come and go, and the end of the set.
#include <expected>
#include <optional>
#include <utility>

#include "rondo/core/join_set.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "support/model.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using check::thread;
using test::permits;
using result = std::expected<int, join_error>;

task<int> answer(int n) { co_return n; }
task<int> take_one(permits& p) {
    auto const got = co_await p.acquire();
    co_return 7;
}
task<result> next(join_set<int>& set) { co_return co_await set.join_next(); }

TEST(JoinSetModel, WhoeverWaitsIsGivenWhatEndsElsewhere) {
    EXPECT_HOLDS([] {
        run_loop loop;
        join_set<int> set{loop};
        set.spawn(answer(7));
        thread runs{[&] { loop.run_ready(); }};
        RONDO_CHECK_EXPECT(set.blocking_join_next() == 7);
        RONDO_CHECK_EXPECT(set.blocking_join_next() == std::unexpected{join_error::empty});
        runs.join();
    });
}

TEST(JoinSetModel, ATaskThatEndsWhileItIsSpawnedIsInTheSet) {
    EXPECT_HOLDS([] {
        run_loop loop;
        join_set<int> set{loop};
        atomic<bool> joined{false};
        thread runs{[&] {
            while (!joined.load()) {
                loop.run_ready();
                spin_pause();
            }
        }};
        set.spawn(answer(7));
        RONDO_CHECK_EXPECT(set.blocking_join_next() == 7);
        joined.store(true);
        runs.join();
    });
}

TEST(JoinSetModel, TwoTasksThatEndAtOnceAreJoinedOneAfterTheOther) {
    EXPECT_HOLDS(
        [] {
            run_loop one, two;
            join_set<int> set{one};
            set.spawn(answer(1));
            set.spawn(two, answer(2));
            thread runs_one{[&] { one.run_ready(); }};
            thread runs_two{[&] { two.run_ready(); }};
            result const a = set.blocking_join_next();
            result const b = set.blocking_join_next();
            RONDO_CHECK_EXPECT(a && b && *a + *b == 3);
            RONDO_CHECK_EXPECT(set.empty());
            runs_one.join();
            runs_two.join();
        },
        1);
}

TEST(JoinSetModel, OfTwoJoinersOneHasTheTaskAndTheOtherHearsThatThereIsNone) {
    EXPECT_HOLDS(
        [] {
            run_loop loop;
            join_set<int> set{loop};
            set.spawn(answer(7));
            result mine{std::unexpect, join_error::timed_out};
            result theirs = mine;
            thread other{[&] { theirs = set.blocking_join_next(); }};
            thread runs{[&] { loop.run_ready(); }};
            mine = set.blocking_join_next();
            runs.join();
            other.join();
            RONDO_CHECK_EXPECT(mine.has_value() != theirs.has_value());
            RONDO_CHECK_EXPECT((mine ? theirs : mine) == std::unexpected{join_error::empty});
        },
        1);
}

TEST(JoinSetModel, ATaskThatEndsAsItsSetGoesIsFreedOnce) {
    EXPECT_HOLDS([] {
        run_loop loop;
        permits p{0};
        std::optional<join_set<int>> set{std::in_place, loop};
        set->spawn(take_one(p));
        loop.run_ready();
        p.release();
        thread runs{[&] { loop.run_ready(); }};
        set.reset();
        runs.join();
        loop.run_ready();
    });
}

TEST(JoinSetModel, ATaskThatIsDetachedAsItEndsIsJoinedOrNot) {
    EXPECT_HOLDS(
        [] {
            run_loop loop;
            join_set<int> set{loop};
            set.spawn(answer(7));
            result joined{std::unexpect, join_error::timed_out};
            thread joins{[&] { joined = set.blocking_join_next(); }};
            thread runs{[&] { loop.run_ready(); }};
            set.detach_all();
            RONDO_CHECK_EXPECT(set.empty());
            joins.join();
            runs.join();
            RONDO_CHECK_EXPECT(joined == 7 || joined == std::unexpected{join_error::empty});
        },
        1);
}

TEST(JoinSetModel, AStopMeetsTheEndOfATask) {
    EXPECT_HOLDS([] {
        run_loop loop;
        permits p{0};
        join_set<int> set{loop};
        set.spawn(take_one(p));
        loop.run_ready();
        p.release();
        thread runs{[&] { loop.run_ready(); }};
        set.stop_all();
        RONDO_CHECK_EXPECT(set.blocking_join_next() == 7);
        runs.join();
    });
}

TEST(JoinSetModel, AStopMeetsTheJoinThatFreesTheTask) {
    EXPECT_HOLDS([] {
        run_loop loop;
        permits p{1};
        join_set<int> set{loop};
        set.spawn(take_one(p));
        thread stops{[&] { set.stop_all(); }};
        loop.run_ready();
        result const r = set.blocking_join_next();
        RONDO_CHECK_EXPECT(r ? *r == 7 : r.error() == join_error::task_stopped);
        stops.join();
    });
}

TEST(JoinSetModel, AJoinThatIsStoppedLeavesTheTaskForAnother) {
    EXPECT_HOLDS([] {
        run_loop loop, joiners;
        join_set<int> set{loop};
        set.spawn(answer(7));
        auto handle = spawn(joiners, next(set));
        joiners.run_ready();
        thread runs{[&] { loop.run_ready(); }};
        handle.request_stop();
        joiners.run_ready();
        runs.join();
        joiners.run_ready();
        auto const joined = handle.blocking_join();
        if (joined) {
            RONDO_CHECK_EXPECT(*joined == 7 && set.empty());
        } else {
            RONDO_CHECK_EXPECT(set.try_join_next().value() == 7);
        }
    });
}

task<std::size_t> first_of(permits& p, join_set<int>& set) {
    auto const r = co_await when_any(p.acquire(), set.join_next());
    co_return r.index();
}

TEST(JoinSetModel, WhoIsSecondHearsThatThereIsNoneOnlyIfTheFirstHasTakenTheLast) {
    EXPECT_HOLDS(
        [] {
            run_loop loop, joiners;
            permits p{0};
            join_set<int> set{loop};
            set.spawn(answer(7));
            auto first = spawn(joiners, first_of(p, set));
            joiners.run_ready();
            thread runs{[&] { loop.run_ready(); }};
            thread goes_on{[&] {
                p.release();
                joiners.run_ready();
                runs.join();
                joiners.run_ready();
            }};
            result const second = set.blocking_join_next();
            goes_on.join();
            bool const taken = first.blocking_join() == 1U;
            RONDO_CHECK_EXPECT(second == (taken ? result{std::unexpect, join_error::empty} : 7));
            RONDO_CHECK_EXPECT(set.empty());
        },
        1);
}

TEST(JoinSetModel, WhatIsDetachedWhileItIsGrantedDoesNotComeBack) {
    EXPECT_HOLDS([] {
        run_loop loop, joiners;
        permits p{0};
        join_set<int> set{loop};
        set.spawn(answer(7));
        auto first = spawn(joiners, first_of(p, set));
        joiners.run_ready();
        p.release();
        thread runs{[&] {
            loop.run_ready();
            joiners.run_ready();
        }};
        set.detach_all();
        RONDO_CHECK_EXPECT(set.empty());
        runs.join();
        joiners.run_ready();
        RONDO_CHECK_EXPECT(first.ended());
        RONDO_CHECK_EXPECT(set.empty());
    });
}

TEST(JoinSetModel, ShutdownIsOverWhenTheLastTaskHasEnded) {
    EXPECT_HOLDS([] {
        run_loop loop;
        permits p{0};
        join_set<int> set{loop};
        set.spawn(take_one(p));
        loop.run_ready();
        thread runs{[&] {
            while (!set.empty()) {
                loop.run_ready();
                spin_pause();
            }
        }};
        set.blocking_shutdown();
        RONDO_CHECK_EXPECT(set.empty());
        RONDO_CHECK_EXPECT(!p.awaited());
        runs.join();
    });
}

}  // namespace
}  // namespace rondo
