// What a stop does to the tasks above the wait that it ends: destructors, in order, on the task's
// own executor, no exception; up to whoever asked and no further.
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/shield.hpp"
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

using log = std::vector<std::string>;

// Notes its end, and that no exception is under way.
class local {
  public:
    local(log& l, std::string name) : log_(&l), name_(std::move(name)) {}
    local(local&& other) noexcept
        : log_(std::exchange(other.log_, nullptr)), name_(std::move(other.name_)) {}
    local& operator=(local&&) = delete;
    ~local() {
        if (log_ == nullptr) return;
        log_->push_back(std::uncaught_exceptions() == 0 ? name_ : name_ + " by an exception");
    }

  private:
    log* log_;
    std::string name_;
};

task<void> inner(permits& never, log& l, local) {
    local const first{l, "inner first"};
    local const second{l, "inner second"};
    try {
        auto const got = co_await never.acquire();
        l.push_back("not reached");
    } catch (...) {
        l.push_back("an exception was thrown");
        throw;
    }
    l.push_back("not reached");
}

task<int> outer(permits& never, log& l) {
    local const first{l, "outer first"};
    {
        local const scope{l, "outer scope"};
        co_await inner(never, l, local{l, "inner parameter"});
        l.push_back("not reached");
    }
    co_return 1;
}

log const order{"inner second", "inner first", "inner parameter", "outer scope", "outer first"};

TEST(Unwind, DestroysLocalsInReverseOrderInnermostFrameFirstWithoutAnException) {
    manual_loop loop;
    permits never{0};
    log l;
    auto t = spawn(loop, outer(never, l));
    loop.run_ready();
    t.request_stop();
    EXPECT_TRUE(l.empty()) << "not in the thread that asks";
    EXPECT_FALSE(never.awaited()) << "but the wait is over at once";
    loop.run_ready();
    EXPECT_EQ(l, order);
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
}

TEST(Unwind, HappensOnTheThreadOfTheTasksExecutor) {
    class names_thread {
      public:
        explicit names_thread(std::thread::id& id) : id_(id) {}
        ~names_thread() {
            id_ = std::this_thread::get_id();
            EXPECT_NE(executor::current(), nullptr);
        }

      private:
        std::thread::id& id_;
    };
    run_loop loop;
    permits never{0};
    std::thread::id destroyed_on;
    auto t = spawn(loop, [](permits& p, std::thread::id& id) -> task<void> {
        names_thread const here{id};
        auto const got = co_await p.acquire();
    }(never, destroyed_on));
    std::thread runs{[&] { loop.run(); }};
    std::thread::id const home = runs.get_id();
    while (!never.awaited()) std::this_thread::yield();
    t.request_stop();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(destroyed_on, home);
    loop.finish();
    runs.join();
}

TEST(Unwind, EndsAtAWaitThatIsNeverReadyInAYieldOrASleep) {
    manual_loop loop;
    log l;
    auto yields = spawn(loop, [](log& n) -> task<void> {
        local const end{n, "yields"};
        for (;;) co_await yield();
    }(l));
    auto sleeps = spawn(loop, [](log& n) -> task<void> {
        local const end{n, "sleeps"};
        for (;;) co_await sleep_for(1h);
    }(l));
    for (int i = 0; i < 10; ++i) loop.step();
    yields.request_stop();
    loop.run_ready();
    EXPECT_EQ(l, log{"yields"});
    sleeps.request_stop();
    loop.run_ready();
    EXPECT_EQ(l, (log{"yields", "sleeps"}));
}

TEST(Unwind, ASleepThatHasPassedIsNoExceptionFromStop) {
    manual_loop loop;
    auto t = spawn(loop, []() -> task<void> {
        for (;;) co_await sleep_for(-1h);
    }());
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
}

// --- up to whoever asked ---------------------------------------------------------------------

TEST(Unwind, ReachesWithTimeoutWhichAnswersWithAValue) {
    manual_loop loop;
    permits never{0};
    log l;
    auto t = spawn(loop, [](permits& p, log& n) -> task<void> {
        local const above{n, "above"};
        auto const r = co_await with_timeout(outer(p, n), 1s);
        n.push_back(!r && r.error() == wait_error::timed_out ? "timed out" : "?");
    }(never, l));
    loop.run_ready();
    loop.advance(1s);
    log expected = order;
    expected.insert(expected.end(), {"timed out", "above"});
    EXPECT_EQ(l, expected);
    EXPECT_TRUE(t.blocking_join().has_value());
}

TEST(Unwind, ReachesWithStopWhichAnswersWithAValue) {
    manual_loop loop;
    permits never{0};
    log l;
    stop_source source;
    auto t = spawn(loop, [](permits& p, log& n, stop_token token) -> task<void> {
        auto const r = co_await with_stop(outer(p, n), token);
        n.push_back(!r && r.error() == wait_error::stopped ? "stopped" : "?");
    }(never, l, source.token()));
    loop.run_ready();
    source.request_stop();
    loop.run_ready();
    log expected = order;
    expected.push_back("stopped");
    EXPECT_EQ(l, expected);
    EXPECT_TRUE(t.blocking_join().has_value());
}

TEST(Unwind, ReachesWhenAnyWhichGoesOnWithItsWinner) {
    manual_loop loop;
    permits never{0};
    log l;
    auto t = spawn(loop, [](permits& p, log& n) -> task<std::size_t> {
        auto const r = co_await when_any(outer(p, n), sleep_for(1s));
        n.push_back("after the race");
        co_return r.index();
    }(never, l));
    loop.advance(1s);
    log expected = order;
    expected.push_back("after the race");
    EXPECT_EQ(l, expected);
    EXPECT_EQ(t.blocking_join().value(), 1U);
}

TEST(Unwind, OfTheEnvironmentsStopGoesThroughTimeoutsRacesAndGroups) {
    manual_loop loop;
    permits never{0};
    log l;
    auto t = spawn(loop, [](permits& p, log& n) -> task<void> {
        local const top{n, "top"};
        auto race = [](permits& q, log& m) -> task<void> {
            local const here{m, "race"};
            (void)co_await when_any(q.acquire(), outer(q, m));
            m.push_back("not reached");
        };
        auto group = [](permits& q, log& m, auto& below) -> task<void> {
            local const here{m, "group"};
            (void)co_await when_all(below(q, m), yield());
            m.push_back("not reached");
        };
        (void)co_await with_timeout(group(p, n, race), 1h);
        n.push_back("not reached");
    }(never, l));
    loop.run_ready();
    t.request_stop();
    loop.run_ready();
    log expected = order;
    expected.insert(expected.end(), {"race", "group", "top"});
    EXPECT_EQ(l, expected);
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_FALSE(never.awaited());
}

TEST(Unwind, OfAJoinerLeavesTheJoinedTaskAlone) {
    manual_loop loop;
    permits p{0};
    log l;
    auto below = spawn(loop, [](permits& q, log& n) -> task<void> {
        auto const got = co_await q.acquire();
        n.push_back("went on");
    }(p, l));
    auto above = spawn(loop, [](join_handle<void>& h) -> task<void> {
        auto const r = co_await h.join();
        EXPECT_TRUE(r.has_value());
    }(below));
    loop.run_ready();
    above.request_stop();
    loop.run_ready();
    EXPECT_EQ(above.blocking_join().error(), wait_error::stopped);
    EXPECT_FALSE(below.ended());
    p.release();
    loop.run_ready();
    EXPECT_EQ(l, log{"went on"});
}

TEST(Unwind, ADestructorMayReleaseWhatTheNextInLineWaitsFor) {
    manual_loop loop;
    permits p{1}, never{0};
    log l;
    auto holder = spawn(loop, [](permits& q, permits& n) -> task<void> {
        auto const held = co_await q.acquire();
        auto const got = co_await n.acquire();
    }(p, never));
    auto next = spawn(loop, [](permits& q, log& n) -> task<void> {
        auto const held = co_await q.acquire();
        n.push_back("next");
    }(p, l));
    loop.run_ready();
    holder.request_stop();
    loop.run_ready();
    EXPECT_EQ(l, log{"next"});
    EXPECT_TRUE(next.ended());
    EXPECT_EQ(p.available(), 1U);
}

TEST(Unwind, ADestructorMayStopAndDetachOtherTasks) {
    manual_loop loop;
    permits never{0};
    log l;
    struct owner {
        join_handle<int> child;
        ~owner() { child.request_stop(); }
    };
    auto parent = spawn(loop, [](manual_loop& where, permits& p, log& n) -> task<void> {
        owner const o{spawn(where, outer(p, n))};
        auto const got = co_await p.acquire();
    }(loop, never, l));
    loop.run_ready();
    parent.request_stop();
    loop.run_ready();
    EXPECT_TRUE(parent.ended());
    EXPECT_EQ(l, order);
}

// --- shield ----------------------------------------------------------------------------------

task<int> commit(permits& p, log& l) {
    auto const got = co_await p.acquire();
    co_await yield();
    environment const& env = co_await this_environment();
    l.push_back(env.stop.stop_possible() ? "can be stopped" : "committed");
    co_return 5;
}

TEST(Shield, RunsToItsEndAndTheStopTakesEffectAtTheNextWait) {
    manual_loop loop;
    permits p{0};
    log l;
    auto t = spawn(loop, [](permits& q, log& n) -> task<void> {
        local const end{n, "unwound"};
        int const r = co_await shield(commit(q, n));
        n.push_back("result " + std::to_string(r));
        co_await yield();
        n.push_back("not reached");
    }(p, l));
    loop.run_ready();
    t.request_stop();
    loop.run_ready();
    EXPECT_TRUE(l.empty()) << "it waits on";
    p.release();
    loop.run_ready();
    EXPECT_EQ(l, (log{"committed", "result 5", "unwound"}));
}

TEST(Shield, MayBeEnteredAfterTheRequestWithoutAWaitBefore) {
    manual_loop loop;
    permits p{1};
    log l;
    auto t = spawn(loop, [](permits& q, log& n) -> task<int> {
        co_return co_await shield(commit(q, n));
    }(p, l));
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 5);
}

TEST(Shield, ATimeoutInsideItStillStopsWhatIsBelow) {
    manual_loop loop;
    permits never{0};
    auto t = spawn(loop, [](permits& q) -> task<bool> {
        auto const r = co_await shield(with_timeout(q.acquire(), 1s));
        co_return r.has_value();
    }(never));
    loop.run_ready();
    t.request_stop();
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    loop.advance(1s);
    EXPECT_FALSE(t.blocking_join().value());
}

TEST(Shield, PassesExceptionsAndReferencesThrough) {
    int x = 0;
    auto const refers = [](int& i) -> task<int&> { co_return i; };
    auto const throws = []() -> task<void> {
        throw 1;
        co_return;
    };
    EXPECT_EQ(&block_on(shield(refers(x))), &x);
    EXPECT_THROW(block_on(shield(throws())), int);
}

}  // namespace
}  // namespace rondo
