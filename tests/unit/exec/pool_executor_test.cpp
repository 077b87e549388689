// The pool as an executor: tasks run on its workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/thread_pool.hpp"
#include "support/abroad.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::gate;
using test::permits;

class PoolExecutor : public testing::TestWithParam<dispatch> {};
INSTANTIATE_TEST_SUITE_P(Every, PoolExecutor,
                         testing::Values(dispatch::per_worker, dispatch::shared,
                                         dispatch::stealing));

TEST_P(PoolExecutor, TasksRunOnItsWorkersAndStayThere) {
    thread_pool pool{{.workers = 2, .how = GetParam()}};
    auto const yields = [](thread_pool& p) -> task<int> {
        for (int i = 0; i < 1000; ++i) {
            EXPECT_TRUE(p.this_worker());
            EXPECT_EQ(executor::current(), &p);
            co_await yield();
        }
        co_return 7;
    };
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < 8; ++i) handles.push_back(spawn(pool, yields(pool)));
    for (auto& h : handles) EXPECT_EQ(h.blocking_join(), 7);
}

TEST_P(PoolExecutor, TasksOfTwoPoolsWaitForEachOther) {
    permits turn{1};
    int inside = 0;  // plain: the permit orders its uses
    auto const visits = [](permits& p, int& count) -> task<void> {
        for (int i = 0; i < 500; ++i) {
            auto const permit = co_await p.acquire();
            ++count;
        }
    };
    thread_pool left{{.workers = 2, .how = GetParam()}}, right{{.workers = 2, .how = GetParam()}};
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 4; ++i)
        handles.push_back(spawn(i % 2 ? left : right, visits(turn, inside)));
    for (auto& h : handles) EXPECT_TRUE(h.blocking_join());
    EXPECT_EQ(inside, 2000);
}

// Real time: the default timers know no other.
TEST_P(PoolExecutor, TasksSleep) {
    thread_pool pool{{.workers = 1, .how = GetParam()}};
    auto const sleeps = []() -> task<void> { co_await sleep_for(2ms); };
    time_point const before = clock::now();
    EXPECT_TRUE(spawn(pool, sleeps()).blocking_join());
    EXPECT_GE(clock::now() - before, 2ms);
}

TEST_P(PoolExecutor, PostedJobsIgnoreTheBound) {
    thread_pool pool{{.workers = 1, .how = GetParam(), .capacity = 1}};
    auto const yields = []() -> task<void> { co_await yield(); };
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 100; ++i) handles.push_back(spawn(pool, yields()));
    for (auto& h : handles) EXPECT_TRUE(h.blocking_join());
}

// Also those for whom a worker has no room in a queue of its own.
TEST_P(PoolExecutor, ManyTasksOnOneWorkerGetAboutAsManyTurnsEach) {
    constexpr std::size_t count = 1000;
    constexpr int fair = 100;
    thread_pool pool{{.workers = 1, .how = GetParam()}};
    std::vector<std::atomic<int>> turns(count);
    std::atomic<int> left{static_cast<int>(count) * fair};
    gate all_are_there;
    auto held = pool.submit([&] { all_are_there.wait(); });
    auto const yields = [](std::atomic<int>* mine, std::atomic<int>* turns_left) -> task<void> {
        while (turns_left->fetch_sub(1) > 0) {
            mine->fetch_add(1);
            co_await yield();
        }
    };
    std::vector<join_handle<void>> handles;
    for (auto& mine : turns) handles.push_back(spawn(pool, yields(&mine, &left)));
    all_are_there.open();
    for (auto& h : handles) EXPECT_TRUE(h.blocking_join());
    EXPECT_TRUE(held.blocking_get());
    auto const [least, most] = std::ranges::minmax_element(turns);
    EXPECT_GE(*least, fair / 4);
    EXPECT_LE(*most, fair * 4);
}

TEST_P(PoolExecutor, AJobMayBlockForATask) {
    permits none{0};
    thread_pool pool{{.workers = 2, .how = GetParam()}};
    auto blocked = pool.submit([&] { (void)none.blocking_acquire(); });
    auto const releases = [](permits& p) -> task<void> {
        p.release();
        co_return;
    };
    EXPECT_TRUE(spawn(pool, releases(none)).blocking_join());
    EXPECT_TRUE(blocked.blocking_get());
}

TEST(PoolExecutorUnobserved, AnExceptionOfATaskThatNobodyJoinsGoesToTheHook) {
    gate hooked;
    thread_pool pool{{.workers = 1, .on_failure = [&](auto const&) { hooked.open(); }}};
    auto const throws = []() -> task<void> {
        throw 7;
        co_return;
    };
    spawn(pool, throws()).detach();
    hooked.wait();
}

task<int> return_abroad(test::abroad* there) {
    co_await *there;
    co_return 42;
}

TEST_P(PoolExecutor, MayGoAsSoonAsATaskHasEndedInAForeignThread) {
    for (int i = 0; i < 50; ++i) {
        test::abroad there;
        std::jthread foreign;
        {
            thread_pool pool{{.workers = 1, .how = GetParam()}};
            auto ends = spawn(pool, return_abroad(&there));
            foreign = std::jthread{[&] { there.resume(); }};
            EXPECT_EQ(ends.blocking_join(), 42);
        }
    }
}

task<void> throw_abroad(test::abroad* there) {
    co_await *there;
    throw std::runtime_error{"reported while the pool waits to go"};
}

TEST_P(PoolExecutor, WaitsForATaskThatIsEndingInAForeignThread) {
    test::abroad there;
    gate reporting;
    std::atomic<bool> reported{false};
    std::jthread foreign;
    {
        auto const report = [&](std::exception_ptr const&) {
            reporting.open();
            parker p;
            (void)p.park_until(clock::now() + 20ms);
            reported = true;
        };
        thread_pool pool{{.workers = 1, .how = GetParam(), .on_failure = report}};
        spawn(pool, throw_abroad(&there)).detach();
        foreign = std::jthread{[&] { there.resume(); }};
        reporting.wait();
    }
    EXPECT_TRUE(reported);
}

}  // namespace
}  // namespace rondo
