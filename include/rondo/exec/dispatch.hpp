// dispatch.hpp: how a thread pool hands its jobs to its workers.
#pragma once

#include <cstdint>

namespace rondo {

enum class dispatch : std::uint8_t {
    per_worker,  // private queues, filled in turn. No worker disturbs another; a long job delays
                 // those behind it. For many jobs of about the same length.
    shared,      // one queue for all. Jobs start in the order they came.
    stealing,    // one queue, from which workers take some at a time into queues of their own, and
                 // from one another. What a job submits stays on its worker while that one is not
                 // behind. No job waits while a worker sleeps.
};

}  // namespace rondo
