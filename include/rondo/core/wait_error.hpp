// wait_error.hpp: why something that was waited for has no result.
#pragma once

#include <cstdint>

namespace rondo {

enum class wait_error : std::uint8_t {
    stopped,    // a stop token asked
    timed_out,  // the deadline passed
};

}  // namespace rondo
