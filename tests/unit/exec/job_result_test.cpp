// What submit() returns: awaited and blocked on, with a value, an exception, or no job at all.
#include "rondo/exec/job_result.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "gate.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/task.hpp"
#include "rondo/exec/thread_pool.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::gate;

TEST(JobResult, AThreadBlocksForTheValue) {
    thread_pool pool{{.workers = 2}};
    EXPECT_EQ(pool.submit([] { return 6 * 7; }).blocking_get(), 42);
    EXPECT_TRUE(pool.submit([] {}).blocking_get());
    auto r = pool.submit([] { return std::make_unique<std::string>("moves only"); });
    EXPECT_EQ(**r.blocking_get(), "moves only");
}

TEST(JobResult, ATaskAwaitsTheValue) {
    thread_pool pool{{.workers = 2}};
    auto const sum = [](thread_pool& p) -> task<int> {
        auto one = p.submit([] { return 1; });
        auto two = p.submit([] { return 2; });
        auto const b = co_await two.get();
        auto const a = co_await one.get();
        co_return *a + *b;
    };
    EXPECT_EQ(block_on(sum(pool)), 3);
}

TEST(JobResult, AnExceptionTravelsToWhoeverTakesIt) {
    int hooked = 0;
    thread_pool pool{{.workers = 1, .on_failure = [&](auto const&) { ++hooked; }}};
    auto r = pool.submit([]() -> int { throw std::runtime_error{"burnt"}; });
    EXPECT_THROW((void)r.blocking_get(), std::runtime_error);
    auto const awaits = [](thread_pool& p) -> task<std::string> {
        auto failing = p.submit([] { throw std::runtime_error{"burnt"}; });
        try {
            (void)co_await failing.get();
        } catch (std::exception const& e) {
            co_return e.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(block_on(awaits(pool)), "burnt");
    EXPECT_EQ(hooked, 0);
    EXPECT_EQ(pool.count().failed, 0U);
}

TEST(JobResult, AnExceptionThatNobodyTakesGoesToTheHook) {
    std::atomic<int> hooked{0};
    gate done;
    thread_pool pool{{.workers = 1, .on_failure = [&](auto const&) { ++hooked; }}};
    {
        auto r = pool.submit([]() { throw std::runtime_error{"burnt"}; });
        (void)pool.submit([&] { done.open(); });
        done.wait();
        EXPECT_TRUE(r.ended());
    }
    EXPECT_EQ(hooked, 1);
    EXPECT_EQ(pool.count().failed, 1U);
}

TEST(JobResult, WhatTheJobCapturedIsGoneBeforeTheResultIsThere) {
    thread_pool pool{{.workers = 1}};
    auto shared = std::make_shared<int>(7);
    auto r = pool.submit([shared] { return *shared; });
    EXPECT_EQ(r.blocking_get(), 7);
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(JobResult, AWaitThatTimesOutLeavesTheJobAlone) {
    gate go;
    thread_pool pool{{.workers = 1}};
    auto r = pool.submit([&] {
        go.wait();
        return 1;
    });
    auto const early = r.blocking_get_until(clock::now());
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error(), job_error::timed_out);
    go.open();
    EXPECT_EQ(r.blocking_get(), 1);
}

TEST(JobResult, EveryWaitThatGivesUpSaysWhyAndMayBeRepeated) {
    using namespace std::chrono_literals;
    gate go;
    thread_pool pool{{.workers = 1}};
    auto r = pool.submit([&] {
        go.wait();
        return 1;
    });
    stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(r.try_get());
    EXPECT_EQ(r.blocking_get(stop.token()).error(), job_error::stopped);
    EXPECT_EQ(r.blocking_get_for(1us).error(), job_error::timed_out);
    auto const tries = [](job_result<int>& result, stop_token token) -> task<void> {
        auto const by_token = co_await result.get(token);
        EXPECT_EQ(by_token.error(), job_error::stopped);
        auto const by_deadline = co_await result.get_until(clock::now());
        EXPECT_EQ(by_deadline.error(), job_error::timed_out);
        auto const by_duration = co_await result.get_for(0s);
        EXPECT_EQ(by_duration.error(), job_error::timed_out);
    };
    block_on(tries(r, stop.token()));
    go.open();
    EXPECT_EQ(r.blocking_get(), 1);
}

TEST(JobResult, TryGetTakesWhatIsThere) {
    gate ran;
    thread_pool pool{{.workers = 1}};
    auto r = pool.submit([] { return 1; });
    (void)pool.submit([&] { ran.open(); });
    ran.wait();
    auto const got = r.try_get();
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, 1);
}

TEST(JobResult, WhyAJobNeverRanMayBeAskedAgain) {
    thread_pool pool{{.workers = 1}};
    (void)pool.stop_now();
    auto r = pool.submit([] { return 1; });
    EXPECT_EQ(r.blocking_get().error(), job_error::closed);
    EXPECT_EQ(r.blocking_get().error(), job_error::closed);
}

TEST(JobResultDeathTest, IsTakenOnce) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto const take_twice = [](auto job) {
        thread_pool pool{{.workers = 1}};
        auto r = pool.submit(job);
        (void)r.blocking_get();
        (void)r.blocking_get();
    };
    EXPECT_DEATH(take_twice([] { return std::string{"moved by the first"}; }), "is taken once");
    EXPECT_DEATH(take_twice([] {}), "is taken once");
}

TEST(JobResultDeathTest, OneThatWasMovedSaysSo) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            thread_pool pool{{.workers = 1}};
            auto r = pool.submit([] { return 1; });
            auto const moved = std::move(r);
            (void)r.blocking_get();
        },
        "a result that was moved has no job");
}

TEST(JobResult, OfAJobThatFailedMayOutliveItsPool) {
    int hooked = 0;
    std::optional<job_result<int>> untaken;
    std::optional<job_result<int>> taken;
    {
        thread_pool pool{{.workers = 1, .on_failure = [&](auto const&) { ++hooked; }}};
        untaken = pool.submit([]() -> int { throw std::runtime_error{"burnt"}; });
        taken = pool.submit([]() -> int { throw std::runtime_error{"burnt"}; });
    }
    EXPECT_THROW((void)taken->blocking_get(), std::runtime_error);
    taken.reset();
    EXPECT_EQ(hooked, 0);
    untaken.reset();
    EXPECT_EQ(hooked, 1);
}

// As when a function returns a race in which it waits for a job.
TEST(JobResult, AGetOutlivesItsHandle) {
    gate go;
    std::weak_ptr<int> seen;
    thread_pool pool{{.workers = 1}};
    auto wait = [&] {
        auto r = pool.submit([&] {
            go.wait();
            auto value = std::make_shared<int>(42);
            seen = value;
            return value;
        });
        return r.get();
    }();
    go.open();
    (void)pool.submit([] {}).blocking_get();  // behind it
    ASSERT_FALSE(seen.expired()) << "what it waits for is gone";
    auto const awaits = [](auto get) -> task<int> {
        auto const got = co_await std::move(get);
        co_return **got;
    };
    EXPECT_EQ(block_on(awaits(std::move(wait))), 42);
}

TEST(JobResult, AnExceptionThatAGetLeavesBehindGoesToTheHook) {
    int hooked = 0;
    thread_pool pool{{.workers = 1, .on_failure = [&](auto const&) { ++hooked; }}};
    {
        [[maybe_unused]] auto const abandoned = [&] {
            auto r = pool.submit([]() -> int { throw std::runtime_error{"burnt"}; });
            return r.get();
        }();
        (void)pool.submit([] {}).blocking_get();  // behind it
        EXPECT_EQ(hooked, 0);
    }
    EXPECT_EQ(hooked, 1);
}

TEST(JobResult, MayBeDestroyedBeforeTheJobHasRun) {
    gate go, ran;
    thread_pool pool{{.workers = 1}};
    (void)pool.submit([&] { go.wait(); });
    (void)pool.submit([&] {
        ran.open();
        return std::string(100, 'x');
    });
    go.open();
    ran.wait();
}

}  // namespace
}  // namespace rondo
