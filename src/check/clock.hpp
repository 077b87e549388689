// clock.hpp: vector clocks of fixed size.
//
// Entry t counts the operations of thread t. A thread's own entry is incremented after each of its
// operations, so that what it does between two operations carries a time which the first of them
// cannot have published.

#pragma once

#include <array>
#include <cstdint>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check::detail {

struct clock {
    std::array<std::uint32_t, max_threads> at{};

    void join(clock const& other) noexcept {
        for (unsigned i = 0; i < max_threads; ++i) {
            at[i] = at[i] < other.at[i] ? other.at[i] : at[i];
        }
    }

    [[nodiscard]] bool covers(unsigned thread, std::uint32_t time) const noexcept {
        return time <= at[thread];
    }

    // Whether this clock has reached any of the times in `other`; "never" is the largest time.
    [[nodiscard]] bool reached_any(clock const& other) const noexcept {
        bool any = false;
        for (unsigned i = 0; i < max_threads; ++i) {
            any |= other.at[i] <= at[i];
        }
        return any;
    }
};

inline constexpr std::uint32_t never = 0xffff'ffff;

}  // namespace rondo::check::detail
