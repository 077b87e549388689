// The stealing queue with real threads; every interleaving of a few steps is explored in
// tests/model/exec/steal_queue_model_test.cpp.
#include "rondo/exec/detail/steal_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace rondo {
namespace {

using detail::steal_queue;

struct counted final : job {
    counted() noexcept : job([](job& j) noexcept { ++static_cast<counted&>(j).runs; }) {}
    int runs = 0;  // plain: the queue orders its uses
};

TEST(StealQueue, TheOwnerPopsInTheOrderOfItsPushes) {
    std::vector<counted> jobs(steal_queue::capacity);
    steal_queue q;
    for (counted& j : jobs) ASSERT_TRUE(q.push(j));
    counted beyond;
    EXPECT_FALSE(q.push(beyond));
    for (counted& j : jobs) EXPECT_EQ(q.pop(), &j);
    EXPECT_EQ(q.pop(), nullptr);
}

TEST(StealQueue, AThiefTakesTheOlderHalfRoundedUp) {
    std::vector<counted> jobs(5);
    steal_queue q, mine;
    for (counted& j : jobs) ASSERT_TRUE(q.push(j));
    EXPECT_EQ(q.steal_into(mine), &jobs[0]);
    EXPECT_EQ(mine.size(), 2U);
    EXPECT_EQ(q.size(), 2U);
    EXPECT_EQ(mine.pop(), &jobs[1]);
    EXPECT_EQ(mine.pop(), &jobs[2]);
    EXPECT_EQ(q.pop(), &jobs[3]);
    EXPECT_EQ(q.pop(), &jobs[4]);
}

TEST(StealQueue, PositionsWrapAround) {
    counted j;
    steal_queue q{UINT32_MAX - 10};
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(q.push(j));
        ASSERT_EQ(q.size(), 1U);
        ASSERT_EQ(q.pop(), &j);
    }
}

TEST(StealQueue, StressOwnerAgainstThieves) {
    constexpr std::size_t count = 200'000;
    std::vector<counted> jobs(count);
    steal_queue q{UINT32_MAX - 5000};
    std::atomic<bool> over{false};
    std::vector<std::thread> thieves;
    for (int t = 0; t < 3; ++t) {
        thieves.emplace_back([&] {
            steal_queue mine;
            while (!over.load(std::memory_order_relaxed)) {
                if (job* const j = q.steal_into(mine)) j->run(*j);
                while (job* const j = mine.pop()) j->run(*j);
            }
        });
    }
    for (std::size_t i = 0; i < count; ++i) {
        while (!q.push(jobs[i])) {
            if (job* const j = q.pop()) j->run(*j);
        }
        if (i % 3 == 0) {
            if (job* const j = q.pop()) j->run(*j);
        }
    }
    while (job* const j = q.pop()) j->run(*j);
    over = true;
    for (std::thread& t : thieves) t.join();
    for (counted const& j : jobs) ASSERT_EQ(j.runs, 1);
}

}  // namespace
}  // namespace rondo
