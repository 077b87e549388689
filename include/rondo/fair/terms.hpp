// terms.hpp: on what terms a task is queued, and what can become of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::fair {

// Orders the tasks of one tenant among themselves; it gives the tenant no share of others.
enum class priority : std::uint8_t { high, normal, low };

struct terms {
    // How much of its tenant's share the task takes: 1 .. max_cost. A task of cost 0 is refused.
    std::uint64_t cost = 1;
    // The task is not delivered after this moment.
    time_point deadline = time_point::max();
    fair::priority priority = fair::priority::normal;
};

inline constexpr std::uint64_t max_cost = 0xFFFF'FFFF;

// Every task that was accepted ends in one of these, exactly once.
enum class disposition : std::uint8_t {
    delivered,  // to a consumer
    expired,    // its deadline passed before its turn
    evicted,    // its tenant had the most queued when room was needed
    dropped,    // a later task of its own tenant took its place
    cancelled,  // by its handle
    returned,   // the scheduler was closed before its turn
};

inline constexpr std::size_t dispositions = 6;

}  // namespace rondo::fair
