// histogram.hpp: distribution of 64-bit values (latencies, sizes) in fixed memory.
//
// Guarantee      a quantile is at most 1/128 (0.8 %) away from the sample that holds that rank,
//                over the whole range 0 .. 2^64-1: nothing saturates, nothing is dropped. Values
//                below 128 are exact, and so are min(), max() and count().
// Method         log-linear: 64 buckets to each power of two, as in HdrHistogram, but a quantile
//                reports the middle of its bucket, which halves the error for the same memory.
// Thread safety  none, on purpose: a shared counter costs more than what it measures. Each thread
//                records into its own instance, and the reader merge()s them at a moment when it
//                is synchronised with the writers.
// Cost           record() a few ns: no branch on the value, no division.
// Allocation     none. The object is 30 KiB flat (static_assert below): a member of something
//                long-lived, not a local of a coroutine.
// Units          the caller's. The chrono overloads count nanoseconds.
// Limits         fewer than 2^64 samples. sum() stops at 2^64-1 (584 years of nanoseconds); mean()
//                is then too low.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rondo {

class histogram {
  public:
    static constexpr unsigned sub_bucket_bits = 6;
    static constexpr std::size_t bucket_count = (64 - sub_bucket_bits + 1) << sub_bucket_bits;
    static constexpr double max_relative_error = 1.0 / (2U << sub_bucket_bits);

    struct bucket {
        std::uint64_t lowest;  // both ends belong to the bucket
        std::uint64_t highest;
        std::uint64_t count;
    };

    void record(std::uint64_t value) noexcept {
        ++counts_[bucket_index(value)];
        ++count_;
        sum_ = add_saturated(sum_, value);
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    // A negative duration (a clock read on another core) counts as zero.
    void record(std::chrono::nanoseconds duration) noexcept {
        record(duration.count() < 0 ? 0 : static_cast<std::uint64_t>(duration.count()));
    }

    void record_n(std::uint64_t value, std::uint64_t times) noexcept;

    void merge(histogram const& other) noexcept;
    void reset() noexcept;

    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }

    // All of these are zero for an empty histogram.
    [[nodiscard]] std::uint64_t min() const noexcept { return empty() ? 0 : min_; }
    [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
    [[nodiscard]] double mean() const noexcept;

    // The value at rank ceil(q * count()), counted from one, q in [0, 1]: quantile(0) is min() and
    // quantile(1) is max(), exactly. The rank is exact for a q of up to three decimals and up to
    // 2^40 samples; a finer q, or more samples, may miss it by one, or by 2^-51 of itself.
    [[nodiscard]] std::uint64_t quantile(double q) const noexcept;

    // The same for nanoseconds; values beyond nanoseconds::max() give nanoseconds::max().
    [[nodiscard]] std::chrono::nanoseconds quantile_duration(double q) const noexcept;

    // Calls visit(bucket) for each non-empty bucket, lowest values first.
    template <typename Visitor>
    void for_each_bucket(Visitor&& visit) const {
        if (empty()) {
            return;
        }
        for (std::size_t i = bucket_index(min_); i <= bucket_index(max_); ++i) {
            if (counts_[i] != 0) {
                visit(bucket{bucket_lowest(i), bucket_highest(i), counts_[i]});
            }
        }
    }

    // The layout, open to tests and exporters. Values below 2 * 64 have a bucket each. Above, the
    // leading one and the 6 bits after it choose the bucket, so a bucket that starts at v is at
    // most v / 64 wide.
    [[nodiscard]] static constexpr std::size_t bucket_index(std::uint64_t value) noexcept {
        unsigned const shift = shift_of(value);
        return (static_cast<std::size_t>(shift) << sub_bucket_bits) +
               static_cast<std::size_t>(value >> shift);
    }
    [[nodiscard]] static constexpr std::uint64_t bucket_lowest(std::size_t index) noexcept {
        if (index < (2U << sub_bucket_bits)) {
            return index;
        }
        std::size_t const shift = (index >> sub_bucket_bits) - 1;
        return (index - (shift << sub_bucket_bits)) << shift;
    }
    [[nodiscard]] static constexpr std::uint64_t bucket_highest(std::size_t index) noexcept {
        return index + 1 == bucket_count ? std::numeric_limits<std::uint64_t>::max()
                                         : bucket_lowest(index + 1) - 1;
    }

  private:
    // How many low bits of a value its bucket ignores. The bit set by `exact` makes the smallest
    // values, which ignore none, follow the same path as the others; for the others it lies at or
    // below the leading one and changes nothing.
    [[nodiscard]] static constexpr unsigned shift_of(std::uint64_t value) noexcept {
        constexpr std::uint64_t exact = std::uint64_t{1} << sub_bucket_bits;
        return static_cast<unsigned>(std::bit_width(value | exact)) - sub_bucket_bits - 1;
    }
    [[nodiscard]] static constexpr std::uint64_t add_saturated(std::uint64_t a,
                                                               std::uint64_t b) noexcept {
        std::uint64_t const wrapped = a + b;
        return wrapped < a ? std::numeric_limits<std::uint64_t>::max() : wrapped;
    }

    std::uint64_t count_ = 0;
    std::uint64_t sum_ = 0;
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
    std::array<std::uint64_t, bucket_count> counts_{};
};

static_assert(sizeof(histogram) == 30'240, "the documented footprint");

}  // namespace rondo
