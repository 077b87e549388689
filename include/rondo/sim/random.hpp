// random.hpp: random numbers that are the same everywhere.
//
// Guarantee      the numbers depend on the seed and on the calls made, on nothing else: not on the
//                compiler, the standard library or the machine.
// Why not <random>  its generators are specified to the bit, its distributions (and std::shuffle)
//                are not. There is no operator() here, so that this cannot be handed to them.
// Thread safety  none; give each place that draws a source of its own, see split().
// Algorithm      SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
//                OOPSLA 2014. Not for secrets.
#pragma once

#include <cstdint>
#include <ranges>

#include "rondo/core/policy.hpp"

namespace rondo::sim {

class random_source {
  public:
    explicit random_source(std::uint64_t seed) noexcept : state_(seed) {}

    // 64 random bits.
    std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        return scramble(state_);
    }

    // One of 0, 1, ... n - 1, each as likely as the others; n is not 0.
    std::uint64_t below(std::uint64_t n) noexcept;

    // True with probability p; never for p <= 0, always for p >= 1.
    bool chance(double p) noexcept;

    // A whole number of nanoseconds, both ends included.
    clock::duration between(clock::duration least, clock::duration most) noexcept;

    // An element of something that is not empty.
    template <std::ranges::random_access_range Range>
    std::ranges::range_reference_t<Range> pick(Range&& from) {
        std::uint64_t const i = below(static_cast<std::uint64_t>(std::ranges::size(from)));
        return std::ranges::begin(from)[static_cast<std::ranges::range_difference_t<Range>>(i)];
    }

    // A source of its own, for a part of the program: how often one part draws then does not
    // change what the others get.
    random_source split() noexcept { return random_source{next()}; }

    // Spreads every bit over the whole word; one to one.
    static constexpr std::uint64_t scramble(std::uint64_t word) noexcept {
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
        word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
        return word ^ (word >> 31);
    }

  private:
    std::uint64_t state_;
};

}  // namespace rondo::sim
