// Values in turn. Threads that meet where the counter starts over are explored in tests/model.
#include "rondo/sync/ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/seed.hpp"

namespace rondo {
namespace {

using weights = std::vector<std::uint32_t>;

// --- ring ------------------------------------------------------------------------------------

TEST(Ring, HandsOutItsValuesInTurn) {
    ring<std::string> r{{"a", "b", "c"}};
    std::string said;
    for (int i = 0; i < 7; ++i) said += r.next_ref();
    EXPECT_EQ(said, "abcabca");
    EXPECT_EQ(r.next_index(), 1U);
}

TEST(Ring, OfOneAlwaysHandsOutThatOne) {
    ring<int> r{{7}};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(r.next_index(), 0U);
        EXPECT_EQ(r.next_ref(), 7);
    }
}

TEST(Ring, GivesAReferenceToTheValueItself) {
    ring<std::string> r{{"a", "b"}};
    EXPECT_EQ(&r.next_ref(), &r[0]);
    EXPECT_EQ(&r.next_ref(), &r.values()[1]);
    EXPECT_EQ(r.size(), 2U);
}

TEST(Ring, CopiesWhatCanBeCopied) {
    ring<std::string> r{{"a", "b"}};
    std::string copy = r.next_copy();
    copy += "!";
    EXPECT_EQ(copy, "a!");
    EXPECT_EQ(r[0], "a");
}

class sealed {
  public:
    explicit sealed(int value) : value_(value) {}
    sealed(sealed&&) = default;
    sealed clone() const { return sealed{value_ + 100}; }
    int value() const { return value_; }

  private:
    int value_;
};

TEST(Ring, ClonesWhatCannotBeCopied) {
    std::vector<sealed> values;
    values.emplace_back(1);
    values.emplace_back(2);
    ring<sealed> r{std::move(values)};
    EXPECT_EQ(r.next_copy().value(), 101);
    EXPECT_EQ(r.next_ref().value(), 2);
}

template <class R>
concept can_be_copied = requires(R& r) { r.next_copy(); };

TEST(Ring, TakesValuesThatOnlyMove) {
    std::vector<std::unique_ptr<int>> values;
    values.push_back(std::make_unique<int>(1));
    values.push_back(std::make_unique<int>(2));
    ring<std::unique_ptr<int>> r{std::move(values)};
    EXPECT_EQ(*r.next_ref(), 1);
    EXPECT_EQ(*r.next_ref(), 2);
    static_assert(!can_be_copied<ring<std::unique_ptr<int>>>);
}

TEST(Ring, IsEvenWhereItsCounterStartsOver) {
    for (std::size_t size = 1; size <= 5; ++size) {
        std::vector<int> values(size);
        std::uint64_t const end = ring<int>{values}.starts_over_at();
        ring<int> r{values, end - 2 * size};
        std::vector<int> turns(size);
        for (std::size_t i = 0; i < 4 * size; ++i) {
            std::size_t const next = r.next_index();
            ASSERT_EQ(next, i % size);
            ++turns[next];
        }
        EXPECT_EQ(turns, std::vector<int>(size, 4));
    }
}

TEST(Ring, ManyThreadsTakeEvenTurnsWhereTheCounterStartsOver) {
    constexpr int each = 3000;
    std::vector<std::size_t> const three{0, 1, 2};
    ring<std::size_t> r{three, ring<std::size_t>{three}.starts_over_at() - 3 * each};
    std::array<std::atomic<int>, 3> turns{};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < each; ++i) ++turns.at(r.next_copy());
        });
    }
    for (std::thread& t : threads) t.join();
    for (auto const& t : turns) EXPECT_EQ(t, 4 * each / 3);
}

TEST(RingDeathTest, RefusesToBeEmpty) {
    EXPECT_DEATH({ ring<int> r{std::vector<int>{}}; }, "at least one value");
}

// --- weighted ring ---------------------------------------------------------------------------

weights cycle_of(weights const& w, std::uint32_t longest = weighted_ring<int>::longest_cycle) {
    return detail::interleave(w, longest);
}

std::string letters(weights const& cycle) {
    std::string s;
    for (std::uint32_t i : cycle) s += static_cast<char>('a' + i);
    return s;
}

weights turns_in(weights const& cycle, std::size_t values) {
    weights turns(values);
    for (std::uint32_t i : cycle) ++turns.at(i);
    return turns;
}

// Whether at every point of the cycle each value is less than one turn away from its share.
testing::AssertionResult is_even(weights const& cycle, weights const& w) {
    std::uint64_t sum = 0;
    for (std::uint32_t x : w) sum += x;
    std::vector<std::int64_t> had(w.size());
    for (std::size_t t = 1; t <= cycle.size(); ++t) {
        ++had.at(cycle[t - 1]);
        for (std::size_t i = 0; i < w.size(); ++i) {
            auto const share = static_cast<std::int64_t>(t * w[i]);  // times the sum
            auto const off = had[i] * static_cast<std::int64_t>(sum) - share;
            if (std::abs(off) >= static_cast<std::int64_t>(sum)) {
                return testing::AssertionFailure() << "value " << i << " after turn " << t;
            }
        }
    }
    return testing::AssertionSuccess();
}

TEST(WeightedRing, InterleavesEvenly) {
    EXPECT_EQ(letters(cycle_of({5, 1, 1})), "aabaaca");
    EXPECT_EQ(letters(cycle_of({3, 3})), "ab");
    EXPECT_EQ(letters(cycle_of({2, 1})), "aba");
    EXPECT_EQ(letters(cycle_of({1, 2, 3})), "cbcabc");
}

TEST(WeightedRing, GivesEachValueItsWeightAndNeverAWholeTurnMoreOrLessThanItsShare) {
    std::mt19937_64 random{test::seed(20261)};
    for (int run = 0; run < 300; ++run) {
        weights w(1 + random() % 12);
        for (auto& x : w) x = static_cast<std::uint32_t>(1 + random() % 40);
        w[0] = 41;  // a prime that divides none of the others: nothing is cancelled
        if (w.size() == 1) continue;
        weights const cycle = cycle_of(w);
        ASSERT_EQ(turns_in(cycle, w.size()), w);
        ASSERT_TRUE(is_even(cycle, w)) << testing::PrintToString(w);
    }
}

TEST(WeightedRing, ManyValuesOfFewTurnsAreEvenToo) {
    weights w(500, 1);
    w[7] = 250;
    w[9] = 3;
    weights const cycle = cycle_of(w);
    EXPECT_EQ(turns_in(cycle, w.size()), w);
    EXPECT_TRUE(is_even(cycle, w));
}

TEST(WeightedRing, DividesByTheGreatestCommonDivisor) {
    EXPECT_EQ(cycle_of({4'000'000'000, 2'000'000'000}), cycle_of({2, 1}));
    EXPECT_EQ(cycle_of({700}).size(), 1U);
}

TEST(WeightedRing, CutsALongCycleDownInProportion) {
    weights const w{4'294'967'295, 1'000'000'007, 12};
    std::uint32_t const longest = weighted_ring<int>::longest_cycle;
    weights const cycle = cycle_of(w);
    EXPECT_LE(cycle.size(), longest + w.size());
    weights const turns = turns_in(cycle, w.size());
    double const sum = 4'294'967'295.0 + 1'000'000'007.0 + 12.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        double const share = turns[i] / static_cast<double>(cycle.size());
        EXPECT_NEAR(share, w[i] / sum, 3.0 / longest);
        EXPECT_GE(turns[i], 1U) << "a weight above 0 keeps at least one turn";
    }
    EXPECT_TRUE(is_even(cycle, turns));
}

TEST(WeightedRing, HoldsItsBoundsForAsManyValuesAsItTakes) {
    weights w(1000);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::uint32_t>(1 + i * 7919);
    weights const cycle = cycle_of(w, 1000);
    EXPECT_LE(cycle.size(), 2000U);
    weights const turns = turns_in(cycle, w.size());
    for (std::uint32_t t : turns) EXPECT_GE(t, 1U);
    EXPECT_TRUE(is_even(cycle, turns));
}

TEST(WeightedRing, AValueOfWeightZeroHasNoTurnButStays) {
    weighted_ring<std::string> r{{{"drained", 0}, {"a", 1}, {"b", 1}}};
    std::string said;
    for (int i = 0; i < 4; ++i) said += r.next_ref();
    EXPECT_EQ(said, "abab");
    EXPECT_EQ(r.size(), 3U);
    EXPECT_EQ(r[0], "drained");
    EXPECT_EQ(r.values().size(), 3U);
}

TEST(WeightedRing, HandsOutIndicesReferencesAndCopies) {
    weighted_ring<std::string> r{{{"a", 2}, {"b", 1}}};
    EXPECT_EQ(r.next_index(), 0U);
    EXPECT_EQ(&r.next_ref(), &r[1]);
    EXPECT_EQ(r.next_copy(), "a");
    EXPECT_EQ(weights(r.cycle().begin(), r.cycle().end()), (weights{0, 1, 0}));
}

TEST(WeightedRingDeathTest, RefusesToBeEmptyAndToHaveNoWeight) {
    using values = std::vector<std::pair<int, std::uint32_t>>;
    EXPECT_DEATH({ weighted_ring<int> r{values{}}; }, "weight above 0");
    EXPECT_DEATH({ weighted_ring<int> r(values{{1, 0}, {2, 0}}); }, "weight above 0");
}

TEST(WeightedRingDeathTest, RefusesMoreValuesThanTurns) {
    EXPECT_DEATH(cycle_of({1, 1, 1}, 2), "no more values than turns");
}

}  // namespace
}  // namespace rondo
