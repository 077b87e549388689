// trace.hpp: what happened in an execution, recorded only when it is repeated to be shown.

#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <string>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check::detail {

class execution;

enum class action : std::uint8_t {
    created,
    destroyed,
    load,
    store,
    rmw,
    compare_exchanged,
    compare_failed,
    cell_read,
    cell_write,
    lock,
    lock_blocked,
    try_lock_failed,
    unlock,
    futex_block,
    futex_differs,
    futex_spurious,
    futex_woken,
    futex_timeout,
    futex_wake,
    pause,
    spawn,
    join,
    thread_end,
};

struct event {
    action what;
    std::uint8_t thread;
    std::memory_order order;
    std::uint32_t object;  // location id; or a thread's id
    std::uint64_t value;   // read, or expected; for a store what was written
    std::uint64_t written;
    std::uint32_t newer;  // stores of the object newer than the one that was read
    std::source_location at;
};

std::string write_trace(execution const& run);

// Without its directories: paths of the machine it was built on tell nobody anything.
char const* file_name(std::source_location const& at) noexcept;

}  // namespace rondo::check::detail
