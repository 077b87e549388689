// Numbers drawn in characters.
#include "rondo/plots.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace rondo::gateway {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

std::string ascii(std::vector<double> values, std::size_t longest, std::size_t width) {
    series s{.values = std::move(values), .number_of_last = 0};
    s.number_of_last = s.values.size() - 1;
    return sparkline(s, longest, 8, width, false);
}

TEST(Plots, DrawABarFromNothingToFull) {
    EXPECT_EQ(bar(0, 4, false), "....");
    EXPECT_EQ(bar(0.5, 4, false), "##..");
    EXPECT_EQ(bar(7, 4, false), "####");
    EXPECT_EQ(bar(0.5, 4, true), "██░░");
    for (double const odd : {-1.0, no_number}) EXPECT_EQ(bar(odd, 4, false), "....");
}

TEST(Plots, MarkAPlaceInABar) {
    EXPECT_EQ(bar(0.75, 4, false, 0.25), "#|#.");
    EXPECT_EQ(bar(0, 4, false, 1.0), "...|");
    EXPECT_EQ(bar(1, 0, false, 1.0), "");
}

TEST(Plots, DrawALineFromTheLowestToTheHighest) {
    EXPECT_EQ(ascii({0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 9), " .:-=+*#@");
    series const s{.values = {0, 1, 8}, .number_of_last = 2};
    EXPECT_EQ(sparkline(s, 3, 8, 3, true), " ▁█");
}

TEST(Plots, ShowWhatIsLittleAsSomething) {
    EXPECT_EQ(ascii({0, 0.001, 99, infinite, no_number, -1}, 6, 6), " .@@  ");
}

TEST(Plots, HaveTheLatestAtTheRight) {
    EXPECT_EQ(ascii({8, 4}, 6, 6), "    @=");
    EXPECT_EQ(ascii({8, 4}, 2, 6), "@=");
}

TEST(Plots, ShowTheMeanOfSecondsThatShareAColumn) {
    EXPECT_EQ(ascii({8, 0, 2, 0, 4, 4}, 6, 3), "=.=");
    EXPECT_EQ(ascii({8, 8, 1, 8, 8, 1}, 6, 4), "@.@.");  // 2 of them alone
    EXPECT_EQ(ascii({8, 8}, 6, 0), "");
}

// Else all of it would flicker each second.
TEST(Plots, LeaveThePastAsItWasWhenTimeGoesOn) {
    constexpr std::size_t longest = 12;
    constexpr std::size_t width = 5;
    std::vector<double> const all{8, 0, 2, 7, 1, 5, 3, 8, 6, 2, 4, 1, 8, 0, 5, 7, 3, 2};
    std::string before;
    for (std::size_t n = longest; n <= all.size(); ++n) {
        auto const end = all.begin() + static_cast<std::ptrdiff_t>(n);
        series const s{.values = {end - longest, end}, .number_of_last = n - 1};
        std::string const now = sparkline(s, longest, 8, width, false);
        ASSERT_EQ(now.size(), width);
        // The first has lost some of its seconds, the last may have got one.
        bool const stays = before.empty() || now.substr(1, 3) == before.substr(1, 3);
        bool const moved = !before.empty() && now.substr(1, 2) == before.substr(2, 2);
        EXPECT_TRUE(stays || moved) << '[' << before << "] [" << now << ']';
        before = now;
    }
}

TEST(Plots, HaveARoundNumberAtTheTop) {
    EXPECT_EQ(round_up(1), 1);
    EXPECT_EQ(round_up(742), 1000);
    EXPECT_EQ(round_up(12), 20);
    EXPECT_NEAR(round_up(0.37), 0.5, 1e-12);
    for (double const odd : {0.0, -5.0, no_number, infinite}) EXPECT_EQ(round_up(odd), 1);
}

}  // namespace
}  // namespace rondo::gateway
