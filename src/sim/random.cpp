#include "rondo/sim/random.hpp"

#include <bit>

#include "rondo/core/assert.hpp"

namespace rondo::sim {

// Draws as many bits as n - 1 has, until they are below n: less than two draws on average, and no
// bias. Taking the remainder would favour the small numbers.
std::uint64_t random_source::below(std::uint64_t n) noexcept {
    RONDO_ASSERT(n != 0, "there is no number below zero to choose");
    if (n == 1) return 0;
    int const unused_bits = std::countl_zero(n - 1);
    for (;;) {
        std::uint64_t const drawn = next() >> unused_bits;
        if (drawn < n) return drawn;
    }
}

bool random_source::chance(double p) noexcept {
    double const unit = static_cast<double>(next() >> 11) * 0x1p-53;  // exact, in [0, 1)
    return unit < p;
}

clock::duration random_source::between(clock::duration least, clock::duration most) noexcept {
    RONDO_ASSERT(least <= most, "a range of durations begins at the smaller one");
    // Unsigned: two durations may lie further apart than a duration can say.
    auto const from = static_cast<std::uint64_t>(least.count());
    std::uint64_t const span = static_cast<std::uint64_t>(most.count()) - from;
    std::uint64_t const drawn = span + 1 != 0 ? below(span + 1) : next();  // or of all there are
    return clock::duration{static_cast<clock::rep>(from + drawn)};
}

}  // namespace rondo::sim
