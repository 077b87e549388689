// upstream.hpp: a server that can do so much and no more.
//
// It has `slots`; a request takes one for `mean`, exponentially distributed, from a fixed seed; the
// others wait first in, first out. When a slot is free the next one begins at the moment at which
// the last one ended, however late that was noticed: what it can do is slots / mean, whatever the
// machine does. A request for /again begins the random numbers anew; one for /never is not
// answered. A mean of 0: it answers at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/core/timer_queue.hpp"

namespace rondo::bench {

struct upstream_terms {
    std::size_t slots;
    clock::duration mean;
};

// Serves at the port until the process is ended.
[[noreturn]] void serve_upstream(std::uint16_t port, upstream_terms t);

}  // namespace rondo::bench
