// seed.hpp: the seed of a randomized test: RONDO_SEED if it is set, else the given one, printed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace rondo::test {

inline std::uint64_t seed(std::uint64_t usual) {
    char const* const set = std::getenv("RONDO_SEED");
    std::uint64_t const chosen = set != nullptr ? std::strtoull(set, nullptr, 10) : usual;
    std::printf("[     seed ] RONDO_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
}

}  // namespace rondo::test
