// run_loop, executor::scope, the trampoline.
#include "rondo/core/run_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/waker.hpp"
#include "support/abroad.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;

// A job that calls a function.
class call final : public job {
  public:
    explicit call(std::function<void()> f)
        : job([](job& j) noexcept { static_cast<call&>(j).function_(); }),
          function_(std::move(f)) {}

  private:
    std::function<void()> function_;
};

class timer_call final : public timer {
  public:
    explicit timer_call(std::function<void()> f)
        : timer([](timer& t) noexcept { static_cast<timer_call&>(t).function_(); }),
          function_(std::move(f)) {}

  private:
    std::function<void()> function_;
};

using numbers = std::vector<int>;

TEST(RunLoop, RunsJobsInTheOrderTheyWerePosted) {
    run_loop loop;
    numbers ran;
    std::deque<call> jobs;
    for (int i = 0; i < 10; ++i) loop.post(jobs.emplace_back([&ran, i] { ran.push_back(i); }));
    EXPECT_TRUE(ran.empty()) << "never inside post()";
    EXPECT_EQ(loop.run_ready(), 10U);
    EXPECT_EQ(ran, (numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(loop.run_ready(), 0U);
}

TEST(RunLoop, RunReadyAlsoRunsWhatJobsPost) {
    run_loop loop;
    int left = 3;
    std::unique_ptr<call> again;
    again = std::make_unique<call>([&] {
        if (--left > 0) loop.post(*again);
    });
    loop.post(*again);
    EXPECT_EQ(loop.run_ready(), 3U);
}

TEST(RunLoop, IsCurrentWhileItRunsAJobAndOnlyThen) {
    run_loop outer, inner;
    executor* seen = nullptr;
    executor* nested = nullptr;
    executor* after = nullptr;
    call innermost{[&] { nested = executor::current(); }};
    call job{[&] {
        seen = executor::current();
        inner.post(innermost);
        inner.run_ready();
        after = executor::current();
    }};
    outer.post(job);
    outer.run_ready();
    EXPECT_EQ(seen, &outer);
    EXPECT_EQ(nested, &inner);
    EXPECT_EQ(after, &outer);
    EXPECT_EQ(executor::current(), nullptr);
}

TEST(RunLoop, RunsWhatOtherThreadsPostEachThreadsInItsOrder) {
    run_loop loop;
    constexpr int threads = 4, each = 5000;
    std::vector<numbers> ran(threads);
    std::vector<std::deque<call>> jobs(threads);
    int left = threads * each;
    for (std::size_t t = 0; t < threads; ++t) {
        for (int i = 0; i < each; ++i) {
            jobs[t].emplace_back([&, t, i] {
                ran[t].push_back(i);
                if (--left == 0) loop.finish();
            });
        }
    }
    std::vector<std::thread> posters;
    for (auto& mine : jobs) {
        posters.emplace_back([&] {
            for (call& j : mine) loop.post(j);
        });
    }
    loop.run();
    for (auto& p : posters) p.join();
    for (numbers const& r : ran) {
        ASSERT_EQ(r.size(), static_cast<std::size_t>(each));
        for (int i = 0; i < each; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)], i);
    }
}

TEST(RunLoop, RunsWhatItsJobsAndOthersPostInOneOrder) {
    run_loop loop;
    numbers ran;
    std::deque<call> jobs;
    for (int i = 0; i < 4; ++i) jobs.emplace_back([&ran, i] { ran.push_back(i); });
    auto const post_from_elsewhere = [&](job& j) { std::thread{[&] { loop.post(j); }}.join(); };
    call first{[&] {
        loop.post(jobs[0]);
        post_from_elsewhere(jobs[1]);
        loop.post(jobs[2]);
        post_from_elsewhere(jobs[3]);
    }};
    loop.post(first);
    loop.run_ready();
    EXPECT_EQ(ran, (numbers{0, 1, 2, 3}));
}

TEST(RunLoop, FinishLetsItRunWhatWasPostedBefore) {
    run_loop loop;
    numbers ran;
    call a{[&] {
        ran.push_back(1);
        loop.finish();
    }};
    call b{[&] { ran.push_back(2); }};
    loop.post(a);
    loop.post(b);
    loop.run();
    EXPECT_EQ(ran, (numbers{1, 2}));
}

TEST(RunLoop, FinishEndsItAlthoughJobsNeverEnd) {
    run_loop loop;
    int left = 1000;
    std::unique_ptr<call> busy;
    busy = std::make_unique<call>([&] {
        if (--left > 0) loop.post(*busy);
    });
    call ends{[&] { loop.finish(); }};
    loop.post(*busy);
    loop.post(ends);
    loop.run();
    EXPECT_GT(left, 990) << "it ran what was there, not what that posted for ever";
    loop.run_ready();
    EXPECT_EQ(left, 0);
}

TEST(RunLoop, CanRunAgainAfterItFinishedAndBeFinishedBeforeItRuns) {
    run_loop loop;
    int ran = 0;
    call job{[&] {
        ++ran;
        loop.finish();
    }};
    for (int i = 0; i < 3; ++i) {
        loop.post(job);
        loop.run();
    }
    loop.finish();
    loop.run();
    EXPECT_EQ(ran, 3);
}

TEST(RunLoop, AFinishFromAnotherThreadWakesItFromItsSleep) {
    for (int i = 0; i < 500; ++i) {
        run_loop loop;
        std::thread ends{[&] { loop.finish(); }};
        loop.run();
        ends.join();
    }
}

TEST(RunLoop, MayBeDestroyedWhileThePostThatEndedItReturns) {
    for (int i = 0; i < 500; ++i) {
        auto loop = std::make_unique<run_loop>();
        call last{[&] { loop->finish(); }};
        std::thread posts{[&, where = loop.get()] { where->post(last); }};
        loop->run();
        loop.reset();
        posts.join();
    }
}

TEST(RunLoop, TimersFireInRealTimeAndNotBefore) {
    run_loop loop;
    time_point fired{};
    timer_call t{[&] {
        fired = clock::now();
        loop.finish();
    }};
    time_point const deadline = clock::now() + 3ms;
    loop.timers().add(t, deadline);
    loop.run();
    EXPECT_GE(fired, deadline);
}

TEST(RunLoop, ATimerAddedFromAnotherThreadBeforeAllOthersWakesIt) {
    run_loop loop;
    timer_call never{[] {}};
    timer_call soon{[&] { loop.finish(); }};
    loop.timers().add(never, clock::now() + 1h);
    std::thread adds{[&] { loop.timers().add(soon, clock::now() + 1ms); }};
    loop.run();
    adds.join();
    EXPECT_FALSE(loop.timers().cancel(soon));
    EXPECT_TRUE(loop.timers().cancel(never));
}

TEST(RunLoop, ADueTimerFiresAlthoughJobsNeverEnd) {
    run_loop loop;
    bool fired = false;
    timer_call t{[&] { fired = true; }};
    std::unique_ptr<call> busy;
    busy = std::make_unique<call>([&] {
        if (!fired) loop.post(*busy);
    });
    loop.timers().add(t, clock::now() + 1ms);
    loop.post(*busy);
    loop.run_ready();
    EXPECT_TRUE(fired);
}

TEST(RunLoop, RunsWhatWasPostedBeforeItIsDestroyed) {
    bool ran = false;
    call job{[&] { ran = true; }};
    {
        run_loop loop;
        loop.post(job);
    }
    EXPECT_TRUE(ran);
}

task<void> sleep_an_hour(bool& ended) {
    struct witness {
        explicit witness(bool& b) noexcept : told(b) {}
        ~witness() { told = true; }
        witness(witness const&) = delete;
        witness& operator=(witness const&) = delete;
        bool& told;
    } const here{ended};
    co_await sleep_for(1h);
}

TEST(RunLoop, StopsWhatAStopCallbackSpawnsWhileItIsDestroyed) {
    bool ended = false;
    {
        run_loop loop;
        spawn(loop,
              [](run_loop& l, bool& b) -> task<void> {
                  environment const& env = co_await this_environment();
                  auto const spawns = [&] { spawn(l, sleep_an_hour(b)).detach(); };
                  stop_callback const cleanup{env.stop, spawns};
                  co_await sleep_for(1h);
              }(loop, ended))
            .detach();
        loop.run_ready();
    }
    EXPECT_TRUE(ended);
}

TEST(RunLoop, StopsWhatAnUnwindingDestructorSpawnsWhileItIsDestroyed) {
    bool ended = false;
    {
        run_loop loop;
        struct spawner {
            spawner(run_loop& l, bool& b) noexcept : loop(l), told(b) {}
            ~spawner() { spawn(loop, sleep_an_hour(told)).detach(); }
            spawner(spawner const&) = delete;
            spawner& operator=(spawner const&) = delete;
            run_loop& loop;
            bool& told;
        };
        spawn(loop,
              [](run_loop& l, bool& b) -> task<void> {
                  spawner const last_words{l, b};
                  co_await sleep_for(1h);
              }(loop, ended))
            .detach();
        loop.run_ready();
    }
    EXPECT_TRUE(ended);
}

TEST(RunLoop, WaitsForAShieldedTaskWhenItIsDestroyed) {
    bool done = false;
    {
        run_loop loop;
        spawn(loop,
              [](bool& b) -> task<void> {
                  co_await shield(sleep_for(100ms));  // by real time, which run_loop goes by
                  b = true;
              }(done))
            .detach();
        loop.run_ready();
    }
    EXPECT_TRUE(done) << "the stop takes effect at the next wait, and there is none";
}

// --- tasks that end elsewhere ----------------------------------------------------------------

task<int> return_abroad(test::abroad* there) {
    co_await *there;
    co_return 42;
}

TEST(RunLoop, WaitsForATaskThatEndsInAForeignThread) {
    for (int i = 0; i < 50; ++i) {
        test::abroad there;
        std::jthread foreign;
        std::optional<join_handle<int>> ends;
        {
            run_loop loop;
            ends = spawn(loop, return_abroad(&there));
            foreign = std::jthread{[&] { there.resume(); }};
        }
        EXPECT_TRUE(ends->ended());
    }
}

TEST(RunLoop, MayGoAfterABlockOnThatEndedInAForeignThread) {
    for (int i = 0; i < 50; ++i) {
        test::abroad there;
        std::jthread const foreign{[&] { there.resume(); }};
        EXPECT_EQ(block_on(return_abroad(&there)), 42);
    }
}

// --- the trampoline --------------------------------------------------------------------------

TEST(Trampoline, RunsAtTheEndOfTheOutermostScopeInOrderAndWithoutRecursion) {
    numbers ran;
    call third{[&] { ran.push_back(3); }};
    call first{[&] {
        EXPECT_EQ(executor::current(), nullptr);
        post_to_trampoline(third);
        ran.push_back(1);
    }};
    call second{[&] { ran.push_back(2); }};
    {
        wake_scope const outer;
        {
            wake_scope const inner;
            post_to_trampoline(first);
            post_to_trampoline(second);
        }
        EXPECT_TRUE(ran.empty());
    }
    EXPECT_EQ(ran, (numbers{1, 2, 3}));
}

TEST(Trampoline, OutsideAnyScopeRunsAtOnce) {
    int ran = 0;
    call job{[&] { ++ran; }};
    post_to_trampoline(job);
    EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace rondo
