// How often, and how soon, an actor that fails begins again.
#include "rondo/actor/restarts.hpp"

#include <gtest/gtest.h>

namespace rondo::actor {
namespace {

using namespace std::chrono_literals;
using detail::restart_limit;

constexpr time_point start{1h};

TEST(Restarts, ByDefaultThereAreNone) {
    restart_limit limit{{}};
    EXPECT_EQ(limit.next(start), std::nullopt);
}

TEST(Restarts, SoManyInOneSpanAndNoMore) {
    restart_limit limit{{.at_most = 2, .within = 10s}};
    EXPECT_EQ(limit.next(start), 0s);
    EXPECT_EQ(limit.next(start + 9s), 0s);
    EXPECT_EQ(limit.next(start + 9999ms), std::nullopt);
}

TEST(Restarts, AnOldOneNoLongerCounts) {
    restart_limit limit{{.at_most = 2, .within = 10s}};
    EXPECT_EQ(limit.next(start), 0s);
    EXPECT_EQ(limit.next(start + 9s), 0s);
    EXPECT_EQ(limit.next(start + 10s), 0s);
    EXPECT_EQ(limit.next(start + 11s), std::nullopt);
    EXPECT_EQ(limit.next(start + 19s), 0s);
}

TEST(Restarts, TheDelayDoublesUpToTheLongest) {
    restart_limit limit{{.at_most = 5, .within = 1h, .delay = 100ms, .longest_delay = 500ms}};
    EXPECT_EQ(limit.next(start), 100ms);
    EXPECT_EQ(limit.next(start), 200ms);
    EXPECT_EQ(limit.next(start), 400ms);
    EXPECT_EQ(limit.next(start), 500ms);
    EXPECT_EQ(limit.next(start), 500ms);
    EXPECT_EQ(limit.next(start), std::nullopt);
}

TEST(Restarts, TheDelayIsThatOfTheFirstAgainWhenTheSpanHasPassed) {
    restart_limit limit{{.at_most = 3, .within = 10s, .delay = 1s}};
    EXPECT_EQ(limit.next(start), 1s);
    EXPECT_EQ(limit.next(start + 1s), 2s);
    EXPECT_EQ(limit.next(start + 20s), 1s);
}

TEST(Restarts, ADelayBeyondTheLongestIsTheLongest) {
    restart_limit limit{{.at_most = 1, .delay = 1min, .longest_delay = 5s}};
    EXPECT_EQ(limit.next(start), 5s);
}

TEST(Restarts, TheLongestDelayThereIsDoesNotOverflow) {
    constexpr auto ages = clock::duration::max();
    restart_limit limit{{.at_most = 3, .delay = ages / 2 + 1ns, .longest_delay = ages}};
    EXPECT_EQ(limit.next(start), ages / 2 + 1ns);
    EXPECT_EQ(limit.next(start), ages);
}

}  // namespace
}  // namespace rondo::actor
