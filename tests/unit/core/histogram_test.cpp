#include "rondo/core/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using rondo::histogram;

constexpr std::uint64_t highest_value = std::numeric_limits<std::uint64_t>::max();

static_assert(std::is_trivially_copyable_v<histogram>);
static_assert(histogram::max_relative_error == 1.0 / 128);
static_assert(histogram::bucket_index(0) == 0);
static_assert(histogram::bucket_index(127) == 127);
static_assert(histogram::bucket_index(128) == histogram::bucket_index(129));
static_assert(histogram::bucket_index(129) != histogram::bucket_index(130));
static_assert(histogram::bucket_index(highest_value) == histogram::bucket_count - 1);

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a < b ? b - a : a - b; }

// Truncation makes it no looser: a distance is whole, and below sample / 128 or not.
bool within_error(std::uint64_t reported, std::uint64_t sample) {
    return distance(reported, sample) <= sample / 128;
}

std::uint64_t seed_from_environment() {
    char const* given = std::getenv("RONDO_SEED");
    std::uint64_t const seed = given != nullptr ? std::stoull(given) : std::random_device{}();
    std::printf("RONDO_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

// Every magnitude as likely as the next.
std::uint64_t random_value(std::mt19937_64& random) { return random() >> (random() % 64); }

TEST(Histogram, EmptyIsAllZero) {
    histogram h;
    EXPECT_TRUE(h.empty());
    EXPECT_EQ(h.count(), 0U);
    EXPECT_EQ(h.sum(), 0U);
    EXPECT_EQ(h.min(), 0U);
    EXPECT_EQ(h.max(), 0U);
    EXPECT_EQ(h.mean(), 0.0);
    EXPECT_EQ(h.quantile(0.5), 0U);
    h.for_each_bucket([](histogram::bucket) { FAIL(); });
}

TEST(Histogram, BucketsCoverTheWholeRangeWithoutGapOrOverlap) {
    EXPECT_EQ(histogram::bucket_lowest(0), 0U);
    for (std::size_t i = 0; i < histogram::bucket_count; ++i) {
        std::uint64_t const lowest = histogram::bucket_lowest(i);
        std::uint64_t const highest = histogram::bucket_highest(i);
        ASSERT_LE(lowest, highest);
        ASSERT_EQ(histogram::bucket_index(lowest), i);
        ASSERT_EQ(histogram::bucket_index(highest), i);
        if (i + 1 < histogram::bucket_count) {
            ASSERT_EQ(histogram::bucket_lowest(i + 1), highest + 1);
        } else {
            ASSERT_EQ(highest, highest_value);
        }
    }
}

// Three samples, so that the one asked for is neither min nor max, which are known exactly. Both
// ends of each bucket are the samples furthest from what it reports.
TEST(Histogram, ErrorIsBoundedInEveryBucket) {
    for (std::size_t i = 0; i < histogram::bucket_count; ++i) {
        for (std::uint64_t sample : {histogram::bucket_lowest(i), histogram::bucket_highest(i)}) {
            histogram h;
            h.record(0);
            h.record(sample);
            h.record(highest_value);
            ASSERT_TRUE(within_error(h.quantile(0.5), sample)) << sample;
        }
    }
}

TEST(Histogram, SmallValuesAreExact) {
    histogram h;
    for (std::uint64_t v = 0; v < 128; ++v) {
        h.record(v);
    }
    for (std::uint64_t v = 0; v < 128; ++v) {
        EXPECT_EQ(h.quantile(static_cast<double>(v + 1) / 128), v);
    }
}

TEST(Histogram, OneSampleIsReportedExactly) {
    for (std::uint64_t sample : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{123'456'789},
                                 highest_value - 1, highest_value}) {
        histogram h;
        h.record(sample);
        for (double q : {0.0, 0.5, 0.999, 1.0}) {
            EXPECT_EQ(h.quantile(q), sample);
        }
        EXPECT_EQ(h.min(), sample);
        EXPECT_EQ(h.max(), sample);
        EXPECT_EQ(h.sum(), sample);
    }
}

TEST(Histogram, RanksAreNotOffByTheRoundingOfTheProduct) {
    histogram h;
    for (std::uint64_t v = 1; v <= 100; ++v) {
        h.record(v);
    }
    for (std::uint64_t percent = 1; percent <= 100; ++percent) {
        EXPECT_EQ(h.quantile(static_cast<double>(percent) / 100), percent);
        EXPECT_EQ(h.quantile(static_cast<double>(percent) * 0.01), percent);
    }
    EXPECT_EQ(h.quantile(0.011), 2U);  // rounds up to the next rank
}

TEST(Histogram, TheLastRankIsTheMaximumHoweverManySamples) {
    for (std::uint64_t const others : {std::uint64_t{1} << 52U, std::uint64_t{1} << 63U}) {
        histogram h;
        h.record_n(1, others);
        h.record(1'000'000);
        EXPECT_EQ(h.quantile(1.0), 1'000'000U);
        EXPECT_EQ(h.quantile(0.0), 1U);
    }
}

// Of the values 1, 2 and 3, all samples at the rank itself are twos.
TEST(Histogram, RanksOfThreeDecimalsAreExactUpToTwoToThe40Samples) {
    constexpr std::uint64_t samples = std::uint64_t{1} << 40U;
    for (std::uint64_t const count : {samples, samples - 1, samples - 7}) {
        for (std::uint64_t thousandths = 1; thousandths < 1000; ++thousandths) {
            std::uint64_t const rank = (thousandths * count + 999) / 1000;
            histogram h;
            h.record_n(1, rank - 1);
            h.record(2);
            h.record_n(3, count - rank);
            ASSERT_EQ(h.quantile(static_cast<double>(thousandths) / 1000), 2U) << thousandths;
        }
    }
}

TEST(Histogram, QuantilesOfRandomSamplesAreWithinTheError) {
    std::mt19937_64 random(seed_from_environment());
    for (int round = 0; round < 50; ++round) {
        histogram h;
        std::vector<std::uint64_t> samples(1 + random() % 3000);
        for (std::uint64_t& sample : samples) {
            sample = random_value(random);
            h.record(sample);
        }
        std::ranges::sort(samples);
        auto const n = static_cast<double>(samples.size());
        EXPECT_EQ(h.quantile(0), samples.front());
        EXPECT_EQ(h.quantile(1), samples.back());
        for (std::size_t rank = 1; rank <= samples.size(); ++rank) {
            // Half a rank below, where no rounding can decide.
            double const q = (static_cast<double>(rank) - 0.5) / n;
            ASSERT_TRUE(within_error(h.quantile(q), samples[rank - 1])) << q;
        }
    }
}

TEST(Histogram, MeanAndSumAreExactWhileTheyFit) {
    histogram h;
    h.record(1);
    h.record(2);
    h.record(1'000'000'007);
    EXPECT_EQ(h.sum(), 1'000'000'010U);
    EXPECT_DOUBLE_EQ(h.mean(), 1'000'000'010.0 / 3);
}

TEST(Histogram, SumSaturatesInsteadOfWrapping) {
    histogram one_by_one;
    one_by_one.record(highest_value);
    one_by_one.record(2);
    EXPECT_EQ(one_by_one.sum(), highest_value);

    histogram at_once;
    at_once.record_n(std::uint64_t{1} << 40, std::uint64_t{1} << 30);
    EXPECT_EQ(at_once.sum(), highest_value);
    EXPECT_EQ(at_once.count(), std::uint64_t{1} << 30);

    one_by_one.merge(at_once);
    EXPECT_EQ(one_by_one.sum(), highest_value);
}

void expect_same(histogram const& a, histogram const& b) {
    EXPECT_EQ(a.count(), b.count());
    EXPECT_EQ(a.sum(), b.sum());
    EXPECT_EQ(a.min(), b.min());
    EXPECT_EQ(a.max(), b.max());
    for (double q = 0; q <= 1.0; q += 1.0 / 64) {
        EXPECT_EQ(a.quantile(q), b.quantile(q)) << q;
    }
}

TEST(Histogram, RecordNIsRecordNTimes) {
    histogram at_once;
    histogram one_by_one;
    at_once.record_n(5000, 7);
    at_once.record_n(3, 2);
    at_once.record_n(0, 0);
    at_once.record_n(highest_value, 0);
    for (int i = 0; i < 7; ++i) {
        one_by_one.record(5000);
    }
    one_by_one.record(3);
    one_by_one.record(3);
    expect_same(at_once, one_by_one);
}

TEST(Histogram, MergeIsAsIfAllWereRecordedInOne) {
    std::mt19937_64 random(seed_from_environment());
    histogram parts[3];
    histogram whole;
    for (int i = 0; i < 5000; ++i) {
        std::uint64_t const value = random_value(random) >> 12;  // the sum does not saturate
        parts[i % 2].record(value);
        whole.record(value);
    }
    histogram merged;
    for (histogram const& part : parts) {  // the third is empty and must not drag min to zero
        merged.merge(part);
    }
    expect_same(merged, whole);
}

TEST(Histogram, ResetForgetsEverything) {
    histogram h;
    h.record(0);
    h.record(70'000);
    h.record(highest_value);
    h.reset();
    EXPECT_TRUE(h.empty());
    EXPECT_EQ(h.max(), 0U);
    h.record(1000);
    expect_same(h, [] {
        histogram fresh;
        fresh.record(1000);
        return fresh;
    }());
    int buckets = 0;
    h.for_each_bucket([&](histogram::bucket) { ++buckets; });
    EXPECT_EQ(buckets, 1);
}

TEST(Histogram, IterationVisitsTheNonEmptyBucketsFromLowToHigh) {
    histogram h;
    std::vector<std::uint64_t> const samples{0, 5, 5, 100'000, highest_value};
    for (std::uint64_t sample : samples) {
        h.record(sample);
    }
    std::vector<histogram::bucket> seen;
    h.for_each_bucket([&](histogram::bucket b) { seen.push_back(b); });
    ASSERT_EQ(seen.size(), 4U);
    EXPECT_EQ(seen[0].highest, 0U);
    EXPECT_EQ(seen[1].highest, 5U);
    EXPECT_EQ(seen[1].count, 2U);
    EXPECT_LE(seen[2].lowest, 100'000U);
    EXPECT_GE(seen[2].highest, 100'000U);
    EXPECT_EQ(seen[3].highest, highest_value);
}

TEST(Histogram, DurationsAreNanoseconds) {
    histogram h;
    h.record(-5ns);
    h.record(3us);
    h.record(2ms);
    EXPECT_EQ(h.min(), 0U);
    EXPECT_EQ(h.max(), 2'000'000U);
    EXPECT_EQ(h.quantile_duration(1), 2ms);
    EXPECT_NEAR(static_cast<double>(h.quantile_duration(0.5).count()), 3000.0, 3000.0 / 128);
    h.record(highest_value);
    EXPECT_EQ(h.quantile_duration(1), std::chrono::nanoseconds::max());
}

TEST(HistogramDeathTest, MisuseIsCaught) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    histogram h;
    h.record(1);
    EXPECT_DEATH(static_cast<void>(h.quantile(1.5)), "quantile");
    EXPECT_DEATH(static_cast<void>(h.quantile(std::nan(""))), "quantile");
    EXPECT_DEATH(h.record_n(1, highest_value), "samples");
}

}  // namespace
