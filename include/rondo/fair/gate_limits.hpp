// gate_limits.hpp: what a gate is made with, and what can be changed while it is in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "rondo/core/timer_queue.hpp"
#include "rondo/fair/config.hpp"

namespace rondo::fair {

struct gate_limits {
    // How many permits are out at a time: 1 .. 2^30.
    std::size_t max_in_flight = 1024;
    // Of one tenant. Below max_in_flight every permit takes the lock, as it has to be counted.
    std::size_t max_in_flight_per_tenant = std::numeric_limits<std::size_t>::max();
    // How many callers may wait, in all and of one tenant.
    std::size_t max_queued = 10'000;
    std::size_t max_queued_per_tenant = 1'000;
    // Who goes when max_queued wait. evict_longest: the newest of the tenant with the largest
    // queued cost / weight; that is the caller itself if it is of that tenant. drop_oldest,
    // drop_newest: one of the caller's own tenant, at either limit. reject: the caller.
    backpressure when_full = backpressure::evict_longest;
    // How long acquire() and blocking_acquire() wait if nothing else is said.
    clock::duration max_wait = clock::duration::max();
};

// What reconfigure() changes.
template <class Key>
struct gate_terms : gate_limits {
    // Tenants that are known beforehand, and what to do with the others; called outside all locks,
    // when a tenant comes that is not remembered.
    std::vector<std::pair<Key, entitlement>> tenants = {};
    std::function<entitlement(Key const&)> entitlement_of = {};
};

template <class Key>
struct gate_config : gate_terms<Key> {
    // The cost that a tenant of weight 1 may have let in in a round.
    std::uint64_t quantum = 8;
    // Into how many tables the tenants are split.
    std::size_t shards = 1;
    // Where the time comes from: that of an executor's timers(); null is the steady clock.
    timer_service const* time = nullptr;
};

[[nodiscard]] std::optional<config_error> validate(gate_limits const& l) noexcept;

}  // namespace rondo::fair
