// short_lock.hpp: the lock around a few instructions inside a primitive.
//
// Guarantee      mutual exclusion; no fairness (turns between waiters are the business of
//                wait_queue, this lock is never held while anything waits or user code runs).
// Memory order   unlock() happens before the lock() that follows it.
// Cost           4 bytes; one atomic operation to lock and one to unlock when nobody else is
//                there; a brief spin, then the futex, when somebody is.
// Destruction    the lock may be destroyed by whoever locked and unlocked it last, even while
//                the previous owner still executes the end of its unlock().
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo {

class futex_lock {
  public:
    futex_lock() = default;
    futex_lock(futex_lock const&) = delete;
    futex_lock& operator=(futex_lock const&) = delete;

    void lock() noexcept {
        std::uint32_t expected = open;
        // acquire: pairs with the release in unlock()
        if (!word_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
            lock_slow();
        }
    }

    bool try_lock() noexcept {
        std::uint32_t expected = open;
        // acquire: pairs with the release in unlock()
        return word_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }

    void unlock() noexcept {
        // release: pairs with the acquire in lock() and lock_slow(). Past the exchange only the
        // word's address is used: the next owner may already have destroyed it.
        if (word_.exchange(open, std::memory_order_release) == contended) {
            futex_wake(&word_, 1);
        }
    }

  private:
    // The word's values. `contended` means that a thread may sleep on it: whoever unlocks wakes
    // one. A thread that slept takes the lock as `contended`, as it cannot know whether it was
    // the last sleeper.
    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t held = 1;
    static constexpr std::uint32_t contended = 2;

    void lock_slow() noexcept;

    atomic<std::uint32_t> word_{open};
};

// In a checked build the algorithms above take the checker's own mutex, one step instead of many;
// futex_lock has scenarios of its own.
#ifdef RONDO_CHECKED
using short_lock = check::mutex;
#else
using short_lock = futex_lock;
#endif

}  // namespace rondo
