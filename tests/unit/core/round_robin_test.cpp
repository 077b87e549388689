// Turns: in order, and even where the counter starts over. Threads that meet there are explored
// in tests/model/sync/ring_model_test.cpp.
#include "rondo/core/round_robin.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace rondo {
namespace {

TEST(RoundRobin, GoesRoundInOrder) {
    round_robin r{3};
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(r.next(), i % 3);
    EXPECT_EQ(r.size(), 3U);
}

TEST(RoundRobin, GoesOnFromTheTurnsThatWereTaken) {
    round_robin r{3, 5};
    EXPECT_EQ(r.next(), 2U);
    EXPECT_EQ(r.next(), 0U);
}

// A 64-bit counter taken modulo 3 would give two turns in a row to the first one where it wraps
// around.
TEST(RoundRobin, GoesOnEvenlyWhereItsCounterStartsOver) {
    for (std::size_t size = 1; size <= 7; ++size) {
        std::uint64_t const before = round_robin{size}.starts_over_at() - size;
        round_robin r{size, before};
        for (std::size_t i = 0; i < 5 * size; ++i) ASSERT_EQ(r.next(), i % size);
    }
}

TEST(RoundRobin, StartsOverAfterWholeRoundsFarFromTheEndOfItsCounter) {
    for (std::size_t size : {std::size_t{2}, std::size_t{3}, std::size_t{1000003}}) {
        round_robin const r{size};
        EXPECT_EQ(r.starts_over_at() % size, 0U);
        EXPECT_LE(r.starts_over_at(), UINT64_MAX / 2 + 1);
        EXPECT_GT(r.starts_over_at(), UINT64_MAX / 4);
    }
}

TEST(RoundRobin, ManyThreadsTakeEvenTurnsWhereItStartsOver) {
    constexpr int each = 3000;
    round_robin r{3, round_robin{3}.starts_over_at() - 3 * each};
    std::array<std::atomic<int>, 3> taken{};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < each; ++i) ++taken.at(r.next());
        });
    }
    for (std::thread& t : threads) t.join();
    for (auto const& t : taken) EXPECT_EQ(t, 4 * each / 3);
}

TEST(RoundRobinDeathTest, RefusesToBeEmpty) {
    EXPECT_DEATH({ round_robin r{0}; }, "at least one");
}

}  // namespace
}  // namespace rondo
