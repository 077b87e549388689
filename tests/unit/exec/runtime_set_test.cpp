// Sets of tasks and intervals on a runtime: the threads are real, and so is the time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rondo/core/interval.hpp"
#include "rondo/core/join_set.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;

class EveryRuntimeSet : public testing::TestWithParam<std::size_t> {
  protected:
    runtime rt_{{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Runtime, EveryRuntimeSet, testing::Values(0U, 1U, 3U),
                         [](auto const& of) { return std::to_string(of.param) + "Workers"; });

task<int> give(int n) {
    co_await yield();
    co_return n;
}
task<int> sleep_long() {
    co_await sleep_for(1h);
    co_return 0;
}
task<int> fail() {
    co_await yield();
    throw std::runtime_error{"no"};
}

// Half of the tasks may go to any worker, half are pinned to one after the other.
task<long> sum_of_many(runtime* rt, int tasks) {
    join_set<int> set{rt->anywhere()};
    for (int i = 0; i < tasks; i += 2) {
        set.spawn(give(i));
        set.spawn(rt->worker(static_cast<std::size_t>(i / 2) % rt->workers()), give(i + 1));
    }
    long sum = 0;
    for (;;) {
        std::expected<int, join_error> const r = co_await set.join_next();
        if (!r) break;
        sum += *r;
    }
    co_return sum;
}

TEST_P(EveryRuntimeSet, EachOfManyTasksIsJoinedOnce) {
    constexpr int tasks = 2000;
    EXPECT_EQ(rt_.block_on(sum_of_many(&rt_, tasks)), long{tasks} * (tasks - 1) / 2);
    EXPECT_EQ(rt_.measure().tasks, 0U);
}

task<bool> stop_sleepers(runtime* rt) {
    join_set<int> set{rt->anywhere()};
    for (int i = 0; i < 100; ++i) set.spawn(sleep_long());
    co_await yield();
    co_await set.shutdown();
    bool const none = set.empty();
    co_return none;
}

TEST_P(EveryRuntimeSet, ShutdownWaitsForTheEndOfAll) {
    EXPECT_TRUE(rt_.block_on(stop_sleepers(&rt_)));
    EXPECT_EQ(rt_.measure().tasks, 0U);
}

task<int> count_failures(runtime* rt) {
    join_set<int> set{rt->anywhere()};
    for (int i = 0; i < 10; ++i) set.spawn(fail());
    int failed = 0;
    while (!set.empty()) {
        try {
            (void)co_await set.join_next();
        } catch (std::runtime_error const&) {
            ++failed;
        }
    }
    co_return failed;
}

TEST_P(EveryRuntimeSet, ExceptionsTravelToTheJoiner) {
    EXPECT_EQ(rt_.block_on(count_failures(&rt_)), 10);
}

// Sets that go while their tasks run, wait and end on other workers.
task<void> drop_sets(runtime* rt) {
    for (int i = 0; i < 100; ++i) {
        join_set<int> set{rt->anywhere()};
        for (int n = 0; n < 8; ++n) set.spawn(n % 2 == 0 ? give(n) : sleep_long());
        if (i % 2 == 0) co_await yield();
        if (i % 3 == 0) (void)co_await set.join_next();
    }
}

TEST(RuntimeSetStress, SetsGoWhileTheirTasksEnd) {
    runtime rt{{.workers = 3}};
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 4; ++i) handles.push_back(rt.spawn(drop_sets(&rt)));
    for (auto& h : handles) EXPECT_TRUE(h.blocking_join());
}

// Needs real time: a few periods of it. By the clock of the runtime no tick is early, and being
// late for one does not move those after it.
task<std::vector<time_point>> ticks(int n, std::vector<time_point>* came) {
    interval every{2ms};
    std::vector<time_point> due;
    for (int i = 0; i < n; ++i) {
        time_point const t = co_await every.tick();
        due.push_back(t);
        came->push_back(clock::now());
    }
    co_return due;
}

TEST_P(EveryRuntimeSet, AnIntervalTicksByTheRuntimesClock) {
    std::vector<time_point> came;
    std::vector<time_point> const due = rt_.block_on(ticks(5, &came));
    for (std::size_t i = 0; i < due.size(); ++i) {
        EXPECT_EQ(due[i], due[0] + i * 2ms);
        EXPECT_GE(came[i], due[i]);
    }
}

}  // namespace
}  // namespace rondo
