#include "outage.hpp"

#include <gtest/gtest.h>

#include "rondo/sim/seeds.hpp"

namespace {

using rondo::test::outage;
namespace sim = rondo::sim;

TEST(Outage, WhatWasAcknowledgedIsOnTheDiskWhateverHappened) {
    std::uint64_t crashes = 0;
    for (std::uint64_t const seed : sim::seeds(300)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        outage o{seed};
        EXPECT_EQ(o.run(), "");
        crashes += o.crashes();
    }
    if (sim::seeds(300).size() > 1) {
        EXPECT_GT(crashes, 300U);
    }
}

TEST(Outage, TheSameSeedIsTheSameRun) {
    for (std::uint64_t const seed : sim::seeds(10)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        outage one{seed};
        outage two{seed};
        outage other{seed + 1};
        EXPECT_EQ(one.run(), two.run());
        (void)other.run();
        EXPECT_EQ(one.digest(), two.digest());
        EXPECT_NE(one.digest(), other.digest());
    }
}

}  // namespace
