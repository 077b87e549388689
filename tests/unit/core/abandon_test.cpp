// What live_tasks::abandon_all() does to tasks that are suspended in every way there is.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "rondo/core/live_tasks.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/timer_queue.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"
#include "support/stack_gauge.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;

// An executor that can be fenced.
class machine final : public executor, timer_service {
  public:
    void post(job& j) noexcept override {
        if (!fenced_) jobs_.push(j);
    }
    timer_service& timers() noexcept override { return *this; }
    void began(live_task& t) noexcept override { tasks_.add(t); }
    void ended(live_task& t) noexcept override { live_tasks::remove(t); }

    bool step() {
        job* const j = jobs_.pop();
        if (j == nullptr) return false;
        scope const here{this};
        j->run(*j);
        return true;
    }
    void run_ready() {
        while (step()) {
        }
    }
    void stop_all() { tasks_.stop_all(); }
    void lose_power() {
        fenced_ = true;
        while (jobs_.pop() != nullptr) {
        }
        tasks_.abandon_all();
    }
    std::size_t alive() const { return tasks_.size(); }

  private:
    time_point now() const noexcept override { return {}; }
    void add(timer& t, time_point deadline) noexcept override { queue_.add(t, deadline); }
    bool cancel(timer& t) noexcept override { return queue_.cancel(t); }

    job_queue jobs_;
    bool fenced_ = false;
    timer_queue queue_{1ns, {}};
    live_tasks tasks_;
};

struct witness {
    explicit witness(std::string n, std::vector<std::string>* l) : name(std::move(n)), log(l) {}
    ~witness() { log->push_back(name); }
    witness(witness const&) = delete;
    witness& operator=(witness const&) = delete;
    std::string name;
    std::vector<std::string>* log;
};

class Abandon : public testing::Test {
  protected:
    task<void> wait_here(std::string name) {
        witness const w{std::move(name), &log};
        permits::permit const p = co_await gate.acquire();
        log.emplace_back("never");
    }
    task<void> sleep_here(std::string name) {
        witness const w{std::move(name), &log};
        co_await sleep_for(1h);
        log.emplace_back("never");
    }
    task<void> call(std::string name, task<void> inner) {
        witness const w{std::move(name), &log};
        co_await std::move(inner);
        log.emplace_back("never");
    }
    task<void> limited(task<void> inner) {
        auto const r = co_await with_timeout(std::move(inner), 1h);
        log.emplace_back(r ? "never" : "never either");
    }
    task<void> both(task<void> a, task<void> b) {
        co_await when_all(std::move(a), std::move(b));
        log.emplace_back("never");
    }
    task<void> either(task<void> a, task<void> b) {
        co_await when_any(std::move(a), std::move(b));
        log.emplace_back("never");
    }
    task<void> shielded(task<void> inner) {
        co_await shield(std::move(inner));
        log.emplace_back("never");
    }
    task<void> yield_for_ever() {
        witness const w{"yields", &log};
        for (;;) co_await yield();
    }

    task<void> nest(int levels, test::stack_gauge* depth) {
        test::marks_its_end const here{*depth};
        if (levels > 0) {
            co_await nest(levels - 1, depth);
        } else {
            permits::permit const p = co_await gate.acquire();
        }
        log.emplace_back("never");
    }

    std::vector<std::string> log;
    permits gate{0};
    machine m;
};

TEST_F(Abandon, DestroysTheInnermostFrameFirstAndRunsNothingElse) {
    auto const h = spawn(m, call("outer", call("inner", wait_here("leaf"))));
    m.run_ready();
    m.lose_power();
    EXPECT_EQ(log, (std::vector<std::string>{"leaf", "inner", "outer"}));
    EXPECT_FALSE(gate.awaited());
    EXPECT_TRUE(h.ended());
    EXPECT_EQ(m.alive(), 0U);
}

TEST_F(Abandon, EndsTasksThatHaveNotBegunSleepOrAreShielded) {
    spawn(m, sleep_here("sleeps")).detach();
    spawn(m, shielded(sleep_here("shielded"))).detach();
    m.run_ready();
    spawn(m, wait_here("not begun")).detach();
    m.lose_power();
    EXPECT_EQ(log, (std::vector<std::string>{"shielded", "sleeps"}));
    EXPECT_EQ(m.alive(), 0U);
}

TEST_F(Abandon, EndsTheNewestFirstAlsoAfterAllWereAskedToStop) {
    spawn(m, wait_here("oldest")).detach();
    spawn(m, wait_here("old")).detach();
    m.run_ready();
    m.stop_all();  // which they hear of in their next turn
    m.lose_power();
    EXPECT_EQ(log, (std::vector<std::string>{"old", "oldest"}));
}

TEST_F(Abandon, EndsATaskThatHasGivenWay) {
    spawn(m, yield_for_ever()).detach();
    m.step();
    m.lose_power();
    EXPECT_EQ(log, (std::vector<std::string>{"yields"}));
    EXPECT_EQ(m.alive(), 0U);
}

TEST_F(Abandon, EndsBranchesAndWhatHasADeadline) {
    spawn(m, limited(both(sleep_here("a"), wait_here("b")))).detach();
    spawn(m, limited(either(sleep_here("c"), limited(wait_here("d"))))).detach();
    m.run_ready();
    m.lose_power();
    EXPECT_EQ(log.size(), 4U);
    for (std::string const& line : log) EXPECT_NE(line.substr(0, 5), "never");
    EXPECT_FALSE(gate.awaited());
}

// It recurses, unlike a stop: so many levels have to fit on a thread's stack, whatever the build.
TEST_F(Abandon, AChainOfTenThousandTasksTakesLittleStack) {
#ifdef __OPTIMIZE__
    constexpr std::size_t levels = 10'000;
    constexpr std::size_t most = 400;
#else  // three functions a level that are inlined otherwise, and more of each with a sanitizer
    constexpr std::size_t levels = 1'000;
    constexpr std::size_t most = 2'000;
#endif
    test::stack_gauge depth;
    auto t = spawn(m, nest(levels, &depth));
    m.run_ready();
    m.lose_power();
    EXPECT_FALSE(t.blocking_join().has_value());
    EXPECT_EQ(depth.marks(), levels + 1);
    EXPECT_LT(depth.span() / levels, most) << "bytes a level";
    std::printf("[  measured] %zu bytes of stack for each task that awaits another\n",
                depth.span() / levels);
}

TEST_F(Abandon, WhatWasGrantedButNotTakenGoesToTheNextInLine) {
    manual_loop elsewhere;
    spawn(m, wait_here("granted")).detach();
    m.run_ready();
    auto next = spawn(elsewhere, wait_here("next"));
    elsewhere.run_ready();
    gate.release();
    m.lose_power();
    elsewhere.run_ready();
    EXPECT_TRUE(next.ended());
    EXPECT_EQ(log, (std::vector<std::string>{"granted", "never", "next"}));
}

TEST_F(Abandon, TheNewestTaskGoesFirstAndItsJoinerElsewhereIsTold) {
    manual_loop elsewhere;
    struct joining {
        static task<bool> stopped(join_handle<void>* of) {
            auto const r = co_await of->join();
            co_return !r.has_value();
        }
    };
    join_handle<void> old = spawn(m, wait_here("old"));
    spawn(m, wait_here("new")).detach();
    auto told = spawn(elsewhere, joining::stopped(&old));
    m.run_ready();
    elsewhere.run_ready();
    m.lose_power();
    elsewhere.run_ready();
    EXPECT_EQ(log, (std::vector<std::string>{"new", "old"}));
    EXPECT_TRUE(told.blocking_join().value());
}

}  // namespace
}  // namespace rondo
