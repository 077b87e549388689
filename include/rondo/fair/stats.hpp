// stats.hpp: what a scheduler has done, counted exactly, at one moment.
//
// Names of metrics are these with the prefix rondo_fair_; counters end in _total, queue time is in
// seconds. They do not change once released.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rondo/core/histogram.hpp"

namespace rondo::fair {

struct counters {
    // enqueued = dequeued + expired + cancelled + evicted + displaced + returned + queued.
    std::uint64_t enqueued = 0;  // accepted
    std::uint64_t dequeued = 0;  // delivered
    std::uint64_t expired = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t evicted = 0;
    std::uint64_t displaced = 0;  // by a later task of their own tenant (drop_oldest, drop_newest)
    std::uint64_t returned = 0;   // by close_immediate()

    std::uint64_t rejected_global = 0;
    std::uint64_t rejected_tenant = 0;
    std::uint64_t rejected_timeout = 0;
    std::uint64_t rejected_closed = 0;

    std::uint64_t rejected() const noexcept {
        return rejected_global + rejected_tenant + rejected_timeout + rejected_closed;
    }
    // All that did not get through for want of room or time to wait for it, or came after the end.
    std::uint64_t dropped() const noexcept { return rejected() + evicted + displaced; }

    friend bool operator==(counters const&, counters const&) = default;
};

// Who was served the most of late: so many are known apart, the others are summed up.
inline constexpr std::size_t ranked_tenants = 64;
// After which what was served counts for half.
inline constexpr std::chrono::seconds served_half_life{60};

template <class Key>
struct served_tenant {
    Key tenant;
    double cost;  // of what was delivered to its tasks' consumers, with age counting for less
};

template <class Key>
struct top_tenants {
    std::vector<served_tenant<Key>> first;  // the most first
    double other = 0;                       // all the rest
};

struct stats : counters {
    std::size_t queued = 0;          // accepted and not ended
    std::size_t capacity = 0;        // max_global
    std::size_t tenants_active = 0;  // with tasks queued
    std::size_t tenants_known = 0;   // of which anything is remembered
    histogram queue_time;            // from enqueue to delivery, in nanoseconds
};

// What a gate has done. Who had to wait was enqueued: granted is delivered, timed out is expired,
// stopped is cancelled; capacity is max_queued.
struct gate_stats : stats {
    std::uint64_t passed = 0;       // had a permit without waiting
    std::size_t in_flight = 0;      // permits that are out
    std::size_t max_in_flight = 0;  // the limit; more are in flight for a while if it was lowered

    std::uint64_t admitted() const noexcept { return passed + dequeued; }
};

}  // namespace rondo::fair
