// How a runtime ends, and what it tells about itself: shutdown, dump, watchdog, idleness.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <ctime>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gate.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/exec/runtime.hpp"
#include "support/abroad.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::abroad;
using test::gate;
using test::permits;

// Notes its end.
class leaves_a_note {
  public:
    explicit leaves_a_note(std::atomic<int>* notes) noexcept : notes_(notes) {}
    leaves_a_note(leaves_a_note const&) = delete;
    leaves_a_note& operator=(leaves_a_note const&) = delete;
    ~leaves_a_note() { notes_->fetch_add(1); }

  private:
    std::atomic<int>* notes_;
};

task<void> wait_for_ever(permits* p, std::atomic<int>* notes) {
    leaves_a_note const note{notes};
    auto never = co_await p->acquire();
}
task<void> sleep_for_ever() { co_await sleep_for(24h); }
task<void> take_one(permits* p) { auto one = co_await p->acquire(); }
task<void> will_not_stop(permits* p) { co_await shield(take_one(p)); }
task<void> nothing() { co_return; }

class EveryEnd : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Runtime, EveryEnd, testing::Values(0U, 1U, 3U),
                         [](auto const& of) { return std::to_string(of.param) + "Workers"; });

TEST_P(EveryEnd, DestructionStopsWhatIsAliveAndWaitsForItsDestructors) {
    permits p{0};
    std::atomic<int> notes{0};
    {
        runtime rt{{.workers = GetParam()}};
        for (int i = 0; i < 10; ++i) rt.spawn(wait_for_ever(&p, &notes)).detach();
        rt.spawn(sleep_for_ever()).detach();
        rt.spawn_pinned(wait_for_ever(&p, &notes)).detach();
        rt.block_on(nothing());
    }
    // Those that had not begun were stopped in their first wait.
    EXPECT_EQ(notes, 11);
}

TEST_P(EveryEnd, ShutdownReportsThatAllHaveEnded) {
    permits p{0};
    std::atomic<int> notes{0};
    runtime rt{{.workers = GetParam()}};
    for (int i = 0; i < 10; ++i) rt.spawn(wait_for_ever(&p, &notes)).detach();
    runtime::still_alive const left = rt.shutdown(1h);
    EXPECT_EQ(left.tasks, 0U);
    EXPECT_EQ(notes, 10);
}

TEST_P(EveryEnd, ShutdownNamesWhatDidNotEndInTime) {
    permits p{0};
    runtime rt{{.workers = GetParam()}};
    auto h = rt.spawn(will_not_stop(&p));
    runtime::still_alive left = rt.shutdown(5ms);
    ASSERT_EQ(left.tasks, 1U);
    EXPECT_NE(left.origins.front().find("will_not_stop"), std::string::npos)
        << left.origins.front();
    p.release();
    left = rt.shutdown(1h);
    EXPECT_EQ(left.tasks, 0U);
}

task<void> tell_and_wait(permits* p, gate* stopped) {
    environment const env = co_await this_environment();
    stop_callback const asked{env.stop, [stopped] { stopped->open(); }};
    co_await shield(take_one(p));
}

TEST_P(EveryEnd, ShutdownKeepsItsLimitBesideOneThatHasMoreTime) {
    permits p{0};
    gate asked;
    runtime rt{{.workers = GetParam()}};
    auto h = rt.spawn(tell_and_wait(&p, &asked));
    std::jthread const patient{[&] { EXPECT_EQ(rt.shutdown(1h).tasks, 0U); }};
    asked.wait();
    EXPECT_EQ(rt.shutdown(5ms).tasks, 1U);
    p.release();
}

TEST_P(EveryEnd, WhatIsSpawnedAfterAShutdownIsStoppedInItsFirstWait) {
    permits p{0};
    std::atomic<int> notes{0};
    runtime rt{{.workers = GetParam()}};
    EXPECT_EQ(rt.shutdown(1h).tasks, 0U);
    rt.spawn(wait_for_ever(&p, &notes)).detach();
    EXPECT_EQ(rt.shutdown(1h).tasks, 0U);
    EXPECT_EQ(notes, 1);
}

task<void> end_abroad(abroad* there) {
    co_await *there;
    throw std::runtime_error{"reported while the runtime waits to go"};
}
task<int> return_abroad(abroad* there) {
    co_await *there;
    co_return 42;
}

TEST_P(EveryEnd, WaitsForATaskThatEndsInAForeignThread) {
    for (int i = 0; i < 50; ++i) {
        abroad there;
        std::atomic<int> reported{0};
        std::jthread foreign;
        {
            runtime rt{{.workers = GetParam(),
                        .on_unobserved = [&](std::exception_ptr const&) { ++reported; }}};
            rt.spawn(end_abroad(&there)).detach();
            foreign = std::jthread{[&] { there.resume(); }};
        }
        EXPECT_EQ(reported, 1);
    }
}

TEST_P(EveryEnd, MayFollowABlockOnThatEndedInAForeignThread) {
    for (int i = 0; i < 50; ++i) {
        abroad there;
        std::jthread const foreign{[&] { there.resume(); }};
        runtime rt{{.workers = GetParam()}};
        EXPECT_EQ(rt.block_on(return_abroad(&there)), 42);
    }
}

TEST(RuntimeEnd, AnAbandonedRuntimeTakesNoFurtherTurn) {
    // What is abandoned stays where it is, and so does what it refers to.
    static permits& p = *new permits{0};
    static std::atomic<int> notes{0};
    {
        runtime rt{{.workers = 2}};
        rt.spawn(wait_for_ever(&p, &notes)).detach();
        rt.block_on(nothing());
        rt.abandon();
    }
    EXPECT_EQ(notes, 0);
}

// One that sleeps would run handlers in its sleep.
TEST(RuntimeEnd, AnAbandonedRuntimeRunsNoFurtherHandler) {
    static std::atomic<bool> ran{false};
    boost::asio::io_context* left = nullptr;
    {
        runtime rt{{.workers = 1}};
        while (rt.measure().workers[0].parks == 0) std::this_thread::yield();
        left = &rt.context(0);
        rt.abandon();
    }
    boost::asio::post(*left, [] { ran = true; });
    // In real time: in which the handler would run.
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(ran);
}

TEST(RuntimeEnd, AnAbandonedRuntimeBeginsNoFurtherBlockingFunction) {
    static gate& begun = *new gate;
    static gate& over = *new gate;
    static gate& is_over = *new gate;
    static std::atomic<bool> ran{false};
    {
        runtime rt{{.workers = 1, .blocking_threads = 1}};
        (void)rt.spawn_blocking([] {
            begun.open();
            over.wait();
            is_over.open();
        });
        (void)rt.spawn_blocking([] { ran = true; });
        begun.wait();
        rt.abandon();
        EXPECT_EQ(rt.spawn_blocking([] { ran = true; }).blocking_get(),
                  std::unexpected{job_error::closed});
    }
    over.open();
    is_over.wait();
    // In real time: in which the next one would begin.
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(ran);
}

TEST(RuntimeEnd, AnAbandonedRuntimeStartsNoThreadsThatMayBlock) {
    runtime rt{{.workers = 1}};
    rt.abandon();
    EXPECT_EQ(rt.spawn_blocking([] { return 1; }).blocking_get(),
              std::unexpected{job_error::closed});
}

// --- what it tells ---

// A worker may be without a processor for longer than a dump waits for it.
runtime::snapshot complete_dump(runtime& rt) {
    for (;;) {
        runtime::snapshot s = rt.dump();
        if (s.complete) return s;
    }
}

TEST(RuntimeDump, NamesEachTaskAndWhereItWaits) {
    runtime rt{{.workers = 2}};
    permits p{0};
    gate begun;
    auto outer = [](permits* from, gate* g) -> task<void> {
        g->open();
        co_await take_one(from);
    };
    auto a = rt.spawn(outer(&p, &begun));
    begun.wait();
    runtime::snapshot s = complete_dump(rt);
    // The turn in which the gate was opened may go on to the wait a moment later.
    while (s.tasks.size() == 1 && s.tasks.front().doing != task_trace::activity::waiting) {
        s = complete_dump(rt);
    }
    ASSERT_EQ(s.tasks.size(), 1U);
    ASSERT_EQ(s.tasks.front().frames.size(), 2U) << to_text(s.tasks);
    EXPECT_NE(s.tasks.front().frames.front().function.find("take_one"), std::string::npos);
    p.release();
    (void)a.blocking_join();
}

TEST(RuntimeDump, SaysWhenATurnWouldNotEnd) {
    runtime rt{{.workers = 2}};
    gate begun;
    gate over;
    auto hog = [](gate* begins, gate* ends) -> task<void> {
        begins->open();
        ends->wait();
        co_return;
    };
    auto h = rt.spawn(hog(&begun, &over));
    begun.wait();
    runtime::snapshot const s = rt.dump();
    EXPECT_FALSE(s.complete);
    EXPECT_EQ(s.tasks.size(), 1U);
    over.open();
    (void)h.blocking_join();
}

task<int> return_through_a_child(abroad* there) {
    int const got = co_await return_abroad(there);
    co_return got;
}
task<int> return_through_a_fork(abroad* there) {
    auto const both = co_await when_all(return_through_a_child(there), return_abroad(there + 1));
    co_return std::get<0>(both);
}

// No worker has anything to do with how these tasks go on and end: to pause the workers does not
// keep them from it. What the sanitizers say is the test.
TEST(RuntimeDump, MayComeWhileTasksGoOnInForeignThreads) {
    for (int i = 0; i < 200; ++i) {
        std::array<abroad, 3> there;
        runtime rt{{.workers = 1}};
        auto one = rt.spawn(return_through_a_child(&there[0]));
        auto forked = rt.spawn(return_through_a_fork(&there[1]));
        std::jthread const foreign{[&] {
            for (abroad& a : there) a.resume();
        }};
        while (!one.ended() || !forked.ended()) {
            runtime::snapshot const s = rt.dump();
            for (task_trace const& t : s.tasks) ASSERT_FALSE(t.frames.empty());
        }
        EXPECT_EQ(one.blocking_join(), 42);
        EXPECT_EQ(forked.blocking_join(), 42);
    }
}

// Between its end and the return of block_on() the frame of the task is gone.
TEST(RuntimeDump, NamesATaskThatWasBlockedOnAndHasEnded) {
    run_loop loop;
    detail::awaited_root<void> root{loop, nullptr, nothing()};
    (void)root.begin();
    loop.run_ready();
    live_task const& ended = root;
    task_trace const t = ended.trace();
    EXPECT_EQ(t.doing, task_trace::activity::running);
    ASSERT_EQ(t.frames.size(), 1U);
    EXPECT_NE(t.frames.front().function.find("nothing"), std::string::npos);
}

TEST(RuntimeDump, NamesTheLineOfSomethingForeign) {
    abroad there;
    runtime rt{{.workers = 1}};
    auto h = rt.spawn(return_through_a_child(&there));
    there.arrival();
    runtime::snapshot const s = complete_dump(rt);
    ASSERT_EQ(s.tasks.size(), 1U);
    EXPECT_EQ(s.tasks.front().doing, task_trace::activity::elsewhere);
    EXPECT_EQ(s.tasks.front().frames.size(), 2U) << to_text(s.tasks);
    there.resume();
    EXPECT_EQ(h.blocking_join(), 42);
}

task<void> return_and_wait(abroad* there, permits* p, permits* q) {
    co_await *there;
    co_await take_one(p);
    co_await take_one(q);
}

// As long as it has had no turn on a worker nobody knows whether the foreign thread has left it.
TEST(RuntimeDump, NamesWhatWentOnInAForeignThreadUntilItsNextTurn) {
    permits p{0};
    permits q{0};
    abroad there;
    runtime rt{{.workers = 1}};
    auto h = rt.spawn(return_and_wait(&there, &p, &q));
    there.resume();
    runtime::snapshot s = complete_dump(rt);
    ASSERT_EQ(s.tasks.size(), 1U);
    EXPECT_EQ(s.tasks.front().doing, task_trace::activity::elsewhere);
    ASSERT_EQ(s.tasks.front().frames.size(), 1U) << to_text(s.tasks);
    EXPECT_NE(s.tasks.front().frames.front().function.find("return_and_wait"), std::string::npos);
    p.release();
    do {
        s = rt.dump();
        ASSERT_EQ(s.tasks.size(), 1U);
    } while (s.tasks.front().doing != task_trace::activity::waiting);
    EXPECT_EQ(s.tasks.front().frames.size(), 2U) << to_text(s.tasks);
    q.release();
    (void)h.blocking_join();
}

task<void> hold_the_worker(gate* until) {
    until->wait();
    co_return;
}

TEST(RuntimeWatchdog, NamesATaskThatHoldsItsWorker) {
    gate told;
    runtime::overdue report{};
    runtime rt{{.workers = 2, .watchdog = 5ms, .on_overdue = [&](runtime::overdue const& o) {
                    report = o;
                    told.open();
                }}};
    auto h = rt.spawn(hold_the_worker(&told));  // until it is reported
    (void)h.blocking_join();
    EXPECT_GE(report.held, 5ms);
    EXPECT_NE(report.task.find("hold_the_worker"), std::string::npos) << report.task;
}

TEST(RuntimeWatchdog, SaysNothingAfterTheEndOfARuntimeThatIsAbandoned) {
    // What is abandoned stays where it is, and so does what it refers to.
    static gate& begun = *new gate;
    static gate& over = *new gate;
    static std::atomic<bool> gone{false};
    static std::atomic<bool> told_late{false};
    auto hog = []() -> task<void> {
        begun.open();
        over.wait();
        co_return;
    };
    {
        runtime rt{{.workers = 1, .watchdog = 50ms, .on_overdue = [](runtime::overdue const&) {
                        told_late = told_late || gone;
                    }}};
        rt.spawn(hog()).detach();
        begun.wait();
        rt.abandon();
    }
    gone = true;
    // In real time: in which the turn would be reported.
    std::this_thread::sleep_for(150ms);
    EXPECT_FALSE(told_late);
    over.open();
}

TEST(RuntimeWatchdog, ThatAllowsTheLongestTurnOfAllSleeps) {
    runtime rt{{.workers = 1, .watchdog = std::chrono::milliseconds::max()}};
    rt.block_on(nothing());
    auto const used = [] { return std::clock() * 1000 / CLOCKS_PER_SEC; };
    std::clock_t const before = used();
    // In real time: in which it would look again and again.
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(used() - before, 30) << "milliseconds of 300";
}

// A worker that sleeps is not woken by the clock.
TEST(RuntimeIdle, NobodyWakesUpForNothing) {
    runtime rt{{.workers = 3}};
    rt.block_on(nothing());
    auto parks = [&rt] {
        std::uint64_t sum = 0;
        for (auto const& w : rt.measure().workers) sum += w.parks;
        return sum;
    };
    // A worker goes to sleep when it has looked around for long enough, for which a busy machine
    // has to give it a processor. From then on the clock would wake it, again and again.
    bool woken = true;
    for (int i = 0; i < 50 && woken; ++i) {
        std::uint64_t const before = parks();
        // In real time: so would the clock.
        std::this_thread::sleep_for(100ms);
        woken = before < 3 || before != parks();
    }
    EXPECT_FALSE(woken);
}

}  // namespace
}  // namespace rondo
