#include "rondo/core/histogram.hpp"

#include <cmath>

#include "rondo/core/assert.hpp"

namespace rondo {

namespace {

// Rank, from one, of quantile q. The product is nudged down by its rounding error before it is
// rounded up, or else 0.07 of 100 samples (7.000000000000001) would be the eighth.
std::uint64_t rank_of(double q, std::uint64_t count) noexcept {
    if (q >= 1.0) return count;  // from 2^52 samples on, nudging it down would miss it
    double const product = q * static_cast<double>(count);
    double const rank = std::ceil(product - product * std::numeric_limits<double>::epsilon());
    if (rank < 1.0) {
        return 1;
    }
    if (rank >= static_cast<double>(count)) {
        return count;
    }
    return static_cast<std::uint64_t>(rank);
}

}  // namespace

void histogram::record_n(std::uint64_t value, std::uint64_t times) noexcept {
    if (times == 0) {
        return;  // must not touch min_ and max_
    }
    RONDO_ASSERT(times <= std::numeric_limits<std::uint64_t>::max() - count_,
                 "histogram holds fewer than 2^64 samples");
    counts_[bucket_index(value)] += times;
    count_ += times;
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(value, times, &product)) {
        product = std::numeric_limits<std::uint64_t>::max();
    }
    sum_ = add_saturated(sum_, product);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
}

void histogram::merge(histogram const& other) noexcept {
    if (other.empty()) {
        return;
    }
    RONDO_ASSERT(other.count_ <= std::numeric_limits<std::uint64_t>::max() - count_,
                 "histogram holds fewer than 2^64 samples");
    std::size_t const last = bucket_index(other.max_);
    for (std::size_t i = bucket_index(other.min_); i <= last; ++i) {
        counts_[i] += other.counts_[i];
    }
    count_ += other.count_;
    sum_ = add_saturated(sum_, other.sum_);
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
}

// Only the buckets between min and max can be other than zero: a histogram that is read and reset
// every second pays for its range, not for 30 KiB.
void histogram::reset() noexcept {
    if (empty()) {
        return;
    }
    std::fill(counts_.begin() + static_cast<std::ptrdiff_t>(bucket_index(min_)),
              counts_.begin() + static_cast<std::ptrdiff_t>(bucket_index(max_)) + 1,
              std::uint64_t{0});
    count_ = 0;
    sum_ = 0;
    min_ = std::numeric_limits<std::uint64_t>::max();
    max_ = 0;
}

double histogram::mean() const noexcept {
    return empty() ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t histogram::quantile(double q) const noexcept {
    RONDO_ASSERT(q >= 0.0 && q <= 1.0, "quantile wants q in [0, 1]");
    if (empty()) {
        return 0;
    }
    std::uint64_t const rank = rank_of(q, count_);
    if (rank == 1) {
        return min_;  // known exactly, as is the other end
    }
    if (rank == count_) {
        return max_;
    }
    std::size_t i = bucket_index(min_);
    for (std::uint64_t seen = counts_[i]; seen < rank; seen += counts_[i]) {
        ++i;
    }
    std::uint64_t const lowest = bucket_lowest(i);
    std::uint64_t const middle = lowest + (bucket_highest(i) - lowest) / 2;
    // In the outermost buckets the samples end at min and max; going there only comes closer.
    return std::clamp(middle, min_, max_);
}

std::chrono::nanoseconds histogram::quantile_duration(double q) const noexcept {
    constexpr auto longest = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
    return std::chrono::nanoseconds(
        static_cast<std::chrono::nanoseconds::rep>(std::min(quantile(q), longest)));
}

}  // namespace rondo
