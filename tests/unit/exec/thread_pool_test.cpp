// How a pool runs its jobs, in each of the three ways to dispatch them.
#include "rondo/exec/thread_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "rondo/core/round_robin.hpp"
#include "rondo/exec/dispatch.hpp"

namespace rondo {
namespace {

using test::countdown;
using test::gate;

class EveryDispatch : public testing::TestWithParam<dispatch> {
  protected:
    static thread_pool::options of(std::size_t workers) {
        return {.workers = workers, .how = GetParam()};
    }
};
std::string name_of(testing::TestParamInfo<dispatch> const& how) {
    constexpr std::array names{"PerWorker", "Shared", "Stealing"};
    return names.at(static_cast<std::size_t>(how.param));
}
INSTANTIATE_TEST_SUITE_P(ThreadPool, EveryDispatch,
                         testing::Values(dispatch::per_worker, dispatch::shared,
                                         dispatch::stealing),
                         name_of);

TEST_P(EveryDispatch, DestructionRunsEverythingThatWasAccepted) {
    std::atomic<int> ran{0};
    {
        thread_pool pool{of(4)};
        for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.try_execute([&] { ++ran; }));
    }
    EXPECT_EQ(ran, 1000);
}

TEST(ThreadPool, AnOverAlignedClosureIsAligned) {
    struct alignas(256) wide {
        bool aligned() const noexcept {
            return reinterpret_cast<std::uintptr_t>(this) % alignof(wide) == 0;
        }
    };
    thread_pool pool{{.workers = 1}};
    std::vector<job_result<bool>> results;
    for (int i = 0; i < 8; ++i) {
        results.push_back(pool.submit([w = wide{}] { return w.aligned(); }));
    }
    for (auto& r : results) EXPECT_TRUE(r.blocking_get().value());
}

TEST_P(EveryDispatch, APoolOfOneRunsJobsInTheirOrder) {
    std::vector<int> order;  // plain: one worker, and its end is joined
    {
        thread_pool pool{of(1)};
        for (int i = 0; i < 100; ++i) {
            ASSERT_TRUE(pool.try_execute([&order, i] { order.push_back(i); }));
        }
    }
    ASSERT_EQ(order.size(), 100U);
    EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_P(EveryDispatch, AnIdlePoolEnds) {
    thread_pool const pool{of(8)};
    EXPECT_EQ(pool.workers(), 8U);
}

TEST_P(EveryDispatch, WorkersRunSideBySide) {
    countdown all_there{4};
    thread_pool pool{of(4)};
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(pool.try_execute([&] {
            all_there.count();
            all_there.wait();  // each needs the three others
        }));
    }
    all_there.wait();
}

TEST_P(EveryDispatch, JobsSubmitJobs) {
    std::atomic<int> ran{0};
    {
        thread_pool pool{of(3)};
        struct tree {
            thread_pool& pool;
            std::atomic<int>& ran;
            int depth;
            void operator()() const {
                ++ran;
                if (depth == 0) return;
                EXPECT_TRUE(pool.try_execute(tree{pool, ran, depth - 1}));
                EXPECT_TRUE(pool.try_execute(tree{pool, ran, depth - 1}));
            }
        };
        ASSERT_TRUE(pool.try_execute(tree{pool, ran, 10}));
        // The pool is destroyed while the tree grows.
    }
    EXPECT_EQ(ran, (1 << 11) - 1);
}

TEST_P(EveryDispatch, ManyThreadsSubmitAtOnce) {
    constexpr int submitters = 4, each = 5000;
    std::atomic<int> ran{0};
    {
        thread_pool pool{of(2)};
        std::vector<std::thread> threads;
        for (int t = 0; t < submitters; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < each; ++i) {
                    EXPECT_TRUE(pool.blocking_execute([&] { ++ran; }));
                }
            });
        }
        for (std::thread& t : threads) t.join();
    }
    EXPECT_EQ(ran, submitters * each);
}

TEST_P(EveryDispatch, WhatHappenedBeforeASubmitIsSeenByTheJob) {
    int value = 0;  // plain: the pool orders its uses
    thread_pool pool{of(2)};
    for (int i = 0; i < 1000; ++i) {
        value = i;
        gate done;
        ASSERT_TRUE(pool.try_execute([&] {
            EXPECT_EQ(value, i);
            ++value;
            done.open();
        }));
        done.wait();
        ASSERT_EQ(value, i + 1);
    }
}

TEST_P(EveryDispatch, CountsWhatItRan) {
    countdown done{10};
    thread_pool pool{of(2)};
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(pool.try_execute([&] { done.count(); }));
    done.wait();
    EXPECT_EQ(pool.count().run, 10U);
    EXPECT_EQ(pool.count(0).run + pool.count(1).run, 10U);
    EXPECT_EQ(pool.count().failed, 0U);
}

TEST_P(EveryDispatch, ThreadsAreNamed) {
    std::array<char, 32> name{};
    gate done;
    thread_pool pool{{.workers = 1, .how = GetParam(), .name = "kitchen"}};
    ASSERT_TRUE(pool.try_execute([&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        done.open();
    }));
    done.wait();
    EXPECT_STREQ(name.data(), "kitchen-0");
}

TEST(ThreadPool, ALongNameKeepsTheNumber) {
    std::array<char, 32> name{};
    gate done;
    thread_pool pool{{.workers = 11,
                      .how = dispatch::per_worker,
                      .name = "a very long prefix",
                      .turns_taken = 10}};
    ASSERT_TRUE(pool.try_execute([&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        done.open();
    }));
    done.wait();
    EXPECT_STREQ(name.data(), "a very long -10");
}

TEST(ThreadPoolDeathTest, AWorkerThatIsNotThereHasNoDepth) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto const look = [](auto at) {
        thread_pool const pool{{.workers = 2}};
        (void)at(pool);
    };
    EXPECT_DEATH(look([](auto& p) { return p.depth(2); }), "a pool has no more workers than that");
    EXPECT_DEATH(look([](auto& p) { return p.count(2); }), "a pool has no more workers than that");
}

TEST(ThreadPoolDeathTest, APoolWithoutWorkersIsRefused) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(thread_pool{{.workers = 0}}, "a thread pool has at least one worker");
    EXPECT_DEATH((thread_pool{{.workers = 1, .capacity = 0}}), "room for at least one job");
}

TEST(ThreadPool, KnowsItsWorkers) {
    gate done;
    thread_pool pool{{.workers = 1}};
    thread_pool other{{.workers = 1}};
    EXPECT_FALSE(pool.this_worker());
    ASSERT_TRUE(pool.try_execute([&] {
        EXPECT_EQ(pool.this_worker(), 0U);
        EXPECT_FALSE(other.this_worker());
        done.open();
    }));
    done.wait();
}

// --- per_worker ---

// How many of the jobs each worker ran.
std::vector<std::uint64_t> turns(std::size_t workers, int jobs, std::uint64_t taken) {
    countdown done{jobs};
    thread_pool pool{{.workers = workers, .how = dispatch::per_worker, .turns_taken = taken}};
    for (int i = 0; i < jobs; ++i) EXPECT_TRUE(pool.try_execute([&] { done.count(); }));
    done.wait();
    std::vector<std::uint64_t> ran;
    for (std::size_t w = 0; w < workers; ++w) ran.push_back(pool.count(w).run);
    return ran;
}

TEST(ThreadPoolPerWorker, EightJobsOnFourWorkersAreTwoEach) {
    EXPECT_EQ(turns(4, 8, 0), (std::vector<std::uint64_t>{2, 2, 2, 2}));
}

TEST(ThreadPoolPerWorker, TurnsPassTheWrapAroundEvenly) {
    auto const near_the_end = [](std::size_t workers) {
        return round_robin{workers}.starts_over_at() - 2;
    };
    EXPECT_EQ(turns(4, 8, near_the_end(4)), (std::vector<std::uint64_t>{2, 2, 2, 2}));
    EXPECT_EQ(turns(3, 9, near_the_end(3)), (std::vector<std::uint64_t>{3, 3, 3}));
    EXPECT_EQ(turns(3, 4, near_the_end(3)), (std::vector<std::uint64_t>{1, 2, 1}));
    EXPECT_EQ(turns(1, 5, near_the_end(1)), (std::vector<std::uint64_t>{5}));
}

TEST(ThreadPoolPerWorker, DepthIsSeenPerWorker) {
    gate go;
    countdown started{2};
    thread_pool pool{{.workers = 2, .how = dispatch::per_worker}};
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(pool.try_execute([&] {
            started.count();
            go.wait();
        }));
    }
    started.wait();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.try_execute([] {}));
    EXPECT_EQ(pool.depth(0), 2U);
    EXPECT_EQ(pool.depth(1), 1U);
    EXPECT_EQ(pool.depth(), 3U);
    go.open();
}

// The seed's second edge case, and why stealing is the default.
TEST(ThreadPoolPerWorker, ALongJobDelaysThoseBehindIt) {
    gate go, other_ran;
    std::atomic<bool> ran{false};
    thread_pool pool{{.workers = 2, .how = dispatch::per_worker}};
    ASSERT_TRUE(pool.try_execute([&] { go.wait(); }));
    ASSERT_TRUE(pool.try_execute([] {}));
    ASSERT_TRUE(pool.try_execute([&] { ran = true; }));
    ASSERT_TRUE(pool.try_execute([&] { other_ran.open(); }));
    other_ran.wait();
    EXPECT_FALSE(ran);
    go.open();
}

// --- stealing ---

TEST(ThreadPoolStealing, ALongJobDelaysNobody) {
    gate go;
    countdown others{100};
    thread_pool pool{{.workers = 2}};
    ASSERT_TRUE(pool.try_execute([&] { go.wait(); }));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.try_execute([&] { others.count(); }));
    others.wait();
    go.open();
}

TEST(ThreadPoolStealing, JobsBehindALongOneOnItsWorkerAreStolen) {
    constexpr int jobs = 100;
    gate done;
    countdown others{jobs};
    thread_pool pool{{.workers = 2}};
    ASSERT_TRUE(pool.try_execute([&] {
        std::size_t const here = *pool.this_worker();
        for (int i = 0; i < jobs; ++i) {
            EXPECT_TRUE(pool.try_execute([&, here] {
                EXPECT_NE(pool.this_worker(), here);
                others.count();
            }));
        }
        others.wait();
        done.open();
    }));
    done.wait();
    EXPECT_GE(pool.count().stolen, 1U);
}

// Two jobs behind a long one that need each other: whoever steals one has the other one stolen too.
TEST(ThreadPoolStealing, WhoStealsWakesTheNextForWhatIsLeft) {
    for (int round = 0; round < 50; ++round) {
        countdown both{2};
        gate done;
        thread_pool pool{{.workers = 3}};
        ASSERT_TRUE(pool.try_execute([&] {
            for (int i = 0; i < 2; ++i) {
                EXPECT_TRUE(pool.try_execute([&] {
                    both.count();
                    both.wait();
                }));
            }
            both.wait();
            done.open();
        }));
        done.wait();
    }
}

TEST(ThreadPoolStealing, AThiefWithALongJobDelaysNobody) {
    gate stolen, go, ran;
    thread_pool pool{{.workers = 3}};
    ASSERT_TRUE(pool.try_execute([&] {
        EXPECT_TRUE(pool.try_execute([&] {
            stolen.open();
            go.wait();
        }));
        go.wait();
    }));
    stolen.wait();
    ASSERT_TRUE(pool.try_execute([&] { ran.open(); }));
    ran.wait();
    go.open();
}

TEST(ThreadPoolStealing, AJobThatAlwaysSubmitsAnotherStarvesNobody) {
    struct again {
        thread_pool& pool;
        gate& begun;
        std::atomic<bool>& over;
        void operator()() const {
            begun.open();
            if (over) return;
            EXPECT_TRUE(pool.try_execute(again{pool, begun, over}));
        }
    };
    gate begun, done;
    std::atomic<bool> over{false};
    thread_pool pool{{.workers = 1}};
    ASSERT_TRUE(pool.try_execute(again{pool, begun, over}));
    begun.wait();
    ASSERT_TRUE(pool.try_execute([&] {
        over = true;
        done.open();
    }));
    done.wait();
}

TEST(ThreadPoolStealing, DepthCountsWhatAWorkerHasForItself) {
    gate go, submitted;
    thread_pool pool{{.workers = 1}};
    ASSERT_TRUE(pool.try_execute([&] {
        for (int i = 0; i < 300; ++i) EXPECT_TRUE(pool.try_execute([] {}));
        submitted.open();
        go.wait();
    }));
    submitted.wait();
    EXPECT_EQ(pool.depth(0), 256U);
    EXPECT_EQ(pool.depth(), 300U);
    go.open();
}

// --- idle ---

// Real time is what is tested: the processor time of this process while its pool is idle.
TEST(ThreadPool, AnIdlePoolUsesNoProcessor) {
    countdown done{4};
    thread_pool pool{{.workers = 4}};
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.try_execute([&] { done.count(); }));
    done.wait();
    auto const used = [] { return std::clock() * 1000 / CLOCKS_PER_SEC; };
    std::clock_t const before = used();
    parker p;
    EXPECT_FALSE(p.park_until(clock::now() + std::chrono::milliseconds{300}));
    EXPECT_LT(used() - before, 30);
}

}  // namespace
}  // namespace rondo
