// futex.hpp: waiting on the value of a word, as the kernel offers it, and a pause for spin loops.
//
// futex_wait         compares with the newest value in modification order and blocks if it is
//                    equal, both in one step. After it returns, for whatever reason, the thread can
//                    no longer read stores to this word that were overwritten at that moment. It
//                    orders nothing else: synchronise through the word itself.
// futex_wait_until   may also return false at any moment. The deadline is ignored: the model has no
//                    time, and a wait that can time out can do so now.
// futex_wake         uses only the address, and never reads what is there: waking a word that was
//                    destroyed in the meantime is allowed, as in the kernel. Which waiters are
//                    woken, if not all, is a branch of the search.
// spin_pause         the thread is not scheduled again until another thread has taken a step, if
//                    one can; and later loads do not read what had already been overwritten. A loop
//                    that waits for a store without it never ends in some execution: a livelock.

#pragma once

#include <chrono>
#include <cstdint>

#include "rondo/check/atomic.hpp"

namespace rondo::check {

inline void futex_wait(atomic<std::uint32_t> const& word, std::uint32_t expected,
                       std::source_location at = std::source_location::current()) noexcept {
    detail::futex_wait(word.word(), expected, false, at);
}

[[nodiscard("false means that the wait timed out")]] inline bool futex_wait_until(
    atomic<std::uint32_t> const& word, std::uint32_t expected,
    std::chrono::steady_clock::time_point /*deadline*/,
    std::source_location at = std::source_location::current()) noexcept {
    return detail::futex_wait(word.word(), expected, true, at);
}

inline void futex_wake(atomic<std::uint32_t> const* word, int count,
                       std::source_location at = std::source_location::current()) noexcept {
    detail::futex_wake(word, count, at);
}

inline void spin_pause(std::source_location at = std::source_location::current()) noexcept {
    detail::pause(at);
}

}  // namespace rondo::check
