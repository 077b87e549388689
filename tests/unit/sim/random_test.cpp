#include "rondo/sim/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rondo/sim/seeds.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::sim::random_source;
using rondo::sim::seeds;

TEST(Random, GivesTheNumbersThatSplitMix64IsKnownFor) {
    random_source random{1234567};
    std::array<std::uint64_t, 5> const known{6457827717110365317U, 3203168211198807973U,
                                             9817491932198370423U, 4593380528125082431U,
                                             16408922859458223821U};
    for (std::uint64_t const number : known) EXPECT_EQ(random.next(), number);
}

TEST(Random, BelowReachesEveryNumberAboutEquallyOftenAndNoOther) {
    for (std::uint64_t const seed : seeds(10)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        random_source random{seed};
        for (std::uint64_t const n : {1U, 2U, 3U, 7U, 8U, 100U}) {
            std::vector<int> count(n);
            int const expected = 1000;
            for (std::uint64_t i = 0; i < n * expected; ++i) ++count.at(random.below(n));
            for (int const c : count) EXPECT_NEAR(c, expected, 200) << "below " << n;
        }
    }
}

TEST(Random, BelowWorksForTheLargestRanges) {
    random_source random{1};
    std::uint64_t const n = (std::uint64_t{1} << 63) + 1;
    for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(n), n);
    EXPECT_LT(random.below(std::numeric_limits<std::uint64_t>::max()),
              std::numeric_limits<std::uint64_t>::max());
}

TEST(Random, ChanceIsNeverAtZeroAlwaysAtOneAndInProportionBetween) {
    for (std::uint64_t const seed : seeds(10)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        random_source random{seed};
        int quarter = 0;
        for (int i = 0; i < 10'000; ++i) {
            EXPECT_FALSE(random.chance(0));
            EXPECT_TRUE(random.chance(1));
            quarter += random.chance(0.25) ? 1 : 0;
        }
        EXPECT_NEAR(quarter, 2500, 250);
    }
}

TEST(Random, BetweenIncludesBothEnds) {
    random_source random{3};
    std::set<std::chrono::nanoseconds> seen;
    for (int i = 0; i < 200; ++i) seen.insert(random.between(-1ns, 2ns));
    EXPECT_EQ(seen, (std::set<std::chrono::nanoseconds>{-1ns, 0ns, 1ns, 2ns}));
    EXPECT_EQ(random.between(5ms, 5ms), 5ms);
    using rondo::clock;
    auto const any = random.between(clock::duration::min(), clock::duration::max());
    EXPECT_NE(any, random.between(clock::duration::min(), clock::duration::max()));
}

TEST(Random, PickGivesElementsToChange) {
    random_source random{4};
    std::vector<int> picked(5, 0);
    for (int i = 0; i < 200; ++i) ++random.pick(picked);
    for (int const times : picked) EXPECT_GT(times, 0);
    std::array<int, 1> const only{42};
    EXPECT_EQ(random.pick(only), 42);
}

TEST(Random, SplitSourcesDoNotShareTheirNumbers) {
    random_source random{5};
    random_source left = random.split();
    random_source right = random.split();
    random_source unrelated_draws = left;
    for (int i = 0; i < 10; ++i) unrelated_draws.next();
    random_source same_right = right;
    EXPECT_NE(left.next(), right.next());
    same_right.next();
    EXPECT_EQ(right.next(), same_right.next());
}

// Sets RONDO_SEED for as long as it lives, and puts back what was there.
class seed_in_environment {
  public:
    explicit seed_in_environment(char const* value) {
        if (char const* const before = std::getenv(name)) before_ = before;
        value != nullptr ? setenv(name, value, 1) : unsetenv(name);
    }
    ~seed_in_environment() { before_ ? setenv(name, before_->c_str(), 1) : unsetenv(name); }
    seed_in_environment(seed_in_environment const&) = delete;
    seed_in_environment& operator=(seed_in_environment const&) = delete;

  private:
    static constexpr char const* name = "RONDO_SEED";
    std::optional<std::string> before_;
};

std::vector<std::uint64_t> tried(std::uint64_t count) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t const seed : seeds(count)) all.push_back(seed);
    return all;
}

TEST(Seeds, AreTheSameInEveryRun) {
    seed_in_environment const none{nullptr};
    EXPECT_EQ(tried(3), (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_TRUE(tried(0).empty());
}

TEST(Seeds, OneThatIsAskedForIsTheOnlyOne) {
    seed_in_environment const one{"18446744073709551614"};
    EXPECT_EQ(tried(100), (std::vector<std::uint64_t>{18446744073709551614U}));
}

TEST(SeedsDeathTest, NonsenseIsRefused) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    seed_in_environment const nonsense{"7 or so"};
    EXPECT_DEATH((void)seeds(1), "RONDO_SEED is a number");
}

}  // namespace
