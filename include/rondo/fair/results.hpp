// results.hpp: what the operations of a scheduler give.
#pragma once

#include <cstdint>
#include <expected>

#include "rondo/core/policy.hpp"
#include "rondo/fair/terms.hpp"

namespace rondo::fair {

// Why a task was not accepted.
enum class enqueue_error : std::uint8_t {
    rejected_global,  // max_global tasks are queued
    rejected_tenant,  // max_per_tenant of this tenant are
    timed_out,        // there was no room before the deadline
    closed,
    stopped,
};

// A task that was not accepted, given back.
template <class T>
struct refused {
    enqueue_error why;
    T payload;
};

template <class T>
using enqueue_result = std::expected<void, refused<T>>;

enum class dequeue_error : std::uint8_t {
    closed,  // and nothing is left to deliver
    stopped,
    timed_out,
};

enum class try_dequeue_error : std::uint8_t { empty, closed };

enum class cancel_result : std::uint8_t {
    cancelled,
    not_found,  // it has ended otherwise, or has been handed to a consumer
};

// A task in the hands of a consumer; or, with its disposition, of whoever is told that there was
// none.
template <class T, class Key>
struct delivery {
    Key tenant;
    T payload;
    std::uint64_t cost;
    fair::priority priority;
    time_point enqueued_at;
    time_point deadline;
};

}  // namespace rondo::fair
