#include "rondo/sim/seeds.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "rondo/core/assert.hpp"

namespace rondo::sim {

std::ranges::iota_view<std::uint64_t, std::uint64_t> seeds(std::uint64_t count) {
    char const* const asked = std::getenv("RONDO_SEED");
    if (asked == nullptr) return {std::uint64_t{1}, count + 1};
    std::uint64_t seed = 0;
    char const* const end = asked + std::strlen(asked);
    std::from_chars_result const parsed = std::from_chars(asked, end, seed);
    RONDO_ASSERT(parsed.ec == std::errc{} && parsed.ptr == end && seed + 1 != 0,
                 "RONDO_SEED is a number below 2^64 - 1");
    return {seed, seed + 1};
}

}  // namespace rondo::sim
