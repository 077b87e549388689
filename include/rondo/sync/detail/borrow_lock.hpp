// borrow_lock.hpp: many may look at a value, or one may change it; whoever has to wait, sleeps.
//
// For threads, and for moments: it is held while somebody looks at a value or a function changes
// it, and not across a wait. A thread may unlock what another one locked.
//
// Guarantee      a writer keeps new readers out, so readers that come and go cannot starve it.
//                Hence a thread that reads must not begin to read again before it has ended: a
//                writer in between would wait for it, and it for the writer.
// Memory order   unlock() and unlock_shared() happen before the lock() that follows them, unlock()
//                before the lock_shared().
// Cost           4 bytes; one atomic operation each when nobody else is there.
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class borrow_lock {
  public:
    borrow_lock() = default;
    borrow_lock(borrow_lock const&) = delete;
    borrow_lock& operator=(borrow_lock const&) = delete;

    void lock_shared() noexcept {
        std::uint32_t word = word_.load(std::memory_order_relaxed);
        // acquire: pairs with the release in unlock()
        if ((word & gate) != 0 ||
            !word_.compare_exchange_strong(word, word + 1, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
            lock_shared_slowly();
        }
    }

    void unlock_shared() noexcept {
        // release: pairs with the acquire in lock() and lock_slowly()
        std::uint32_t const word = word_.fetch_sub(1, std::memory_order_release) - 1;
        if (word == (gate | sleepers)) futex_wake(&word_, everyone);  // the writer is one of them
    }

    void lock() noexcept {
        std::uint32_t free = 0;
        // acquire: pairs with the release in unlock() and unlock_shared()
        if (!word_.compare_exchange_strong(free, gate, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
            lock_slowly();
        }
    }

    void unlock() noexcept {
        // release: pairs with the acquire in the locking functions
        if ((word_.exchange(0, std::memory_order_release) & sleepers) != 0) {
            futex_wake(&word_, everyone);
        }
    }

  private:
    // The word: how many read, and
    static constexpr std::uint32_t gate = 1U << 31;      // a writer is in, or waits for them to go
    static constexpr std::uint32_t sleepers = 1U << 30;  // somebody may sleep on the word

    static constexpr int everyone = INT32_MAX;

    void lock_shared_slowly() noexcept;
    void lock_slowly() noexcept;
    void rest(std::uint32_t seen, int& spun) noexcept;

    atomic<std::uint32_t> word_{0};
};

}  // namespace rondo::detail
