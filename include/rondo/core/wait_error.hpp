// wait_error.hpp: why something that was waited for has no result.
//
// An operation that has reasons of its own beside these (closed, ...) lists all of them in one
// enumeration, with the same names: enum class acquire_error { closed, stopped, timed_out };
#pragma once

#include <cstdint>

namespace rondo {

enum class wait_error : std::uint8_t {
    stopped,    // a stop token asked
    timed_out,  // the deadline passed
};

// The same reason in the enumeration of an operation.
template <class Error>
constexpr Error reason(wait_error why) noexcept {
    return why == wait_error::stopped ? Error::stopped : Error::timed_out;
}

}  // namespace rondo
