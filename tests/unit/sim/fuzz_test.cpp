#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "crossing.hpp"
#include "rondo/sim/seeds.hpp"

namespace {

using rondo::test::crossing;
namespace sim = rondo::sim;

TEST(Fuzz, EveryScheduleKeepsTheRulesOfTheBridge) {
    for (std::uint64_t const seed : sim::seeds(2000)) {
        crossing c{{.seed = seed}};
        ASSERT_EQ(c.run(), "") << "replay with RONDO_SEED=" << seed;
    }
}

TEST(Fuzz, TheProgramReachesAllTheWaysATryCanEnd) {
    int crossed = 0;
    int gave_up = 0;
    int called_back = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        crossing c{{.seed = seed}};
        ASSERT_EQ(c.run(), "");
        crossed += c.crossed();
        gave_up += c.gave_up();
        called_back += c.called_back();
    }
    EXPECT_GT(crossed, 0);
    EXPECT_GT(gave_up, 0);
    EXPECT_GT(called_back, 0);
}

TEST(Fuzz, AlsoInOrderAndWhereTurnsTakeTime) {
    for (std::uint64_t const seed : sim::seeds(200)) {
        crossing in_order{{.seed = seed, .order = sim::schedule::fifo}};
        ASSERT_EQ(in_order.run(), "") << "replay with RONDO_SEED=" << seed;
        crossing slow{{.seed = seed, .turn_time = std::chrono::microseconds{300}}};
        ASSERT_EQ(slow.run(), "") << "replay with RONDO_SEED=" << seed;
    }
}

}  // namespace
