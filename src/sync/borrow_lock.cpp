// Algorithm
//   A writer closes the gate, then waits until those who read have gone. While the gate is closed
//   nobody else comes in. Opening it again empties the word and wakes all who sleep on it; they
//   look anew.
//
// Invariants
//   I1  the number of readers grows only while the gate is open.
//   I2  a thread sleeps only on a word with `gate` and `sleepers`; whoever opens the gate, and the
//       last reader before a closed gate, wakes all who do.
#include "rondo/sync/detail/borrow_lock.hpp"

namespace rondo::detail {

// Waits for the word to change from what it was seen to be, for a while or asleep. May return
// early.
void borrow_lock::rest(std::uint32_t seen, int& spun) noexcept {
    // What is done under the lock takes less time than a futex call, as a rule.
    constexpr int spins = checked_build ? 1 : 100;
    if (spun < spins) {
        ++spun;
        spin_pause();
        return;
    }
    if ((seen & sleepers) == 0 &&
        !word_.compare_exchange_strong(seen, seen | sleepers, std::memory_order_relaxed,
                                       std::memory_order_relaxed)) {
        return;
    }
    futex_wait(word_, seen | sleepers);  // I2
}

void borrow_lock::lock_shared_slowly() noexcept {
    int spun = 0;
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
        if ((word & gate) != 0) {
            rest(word, spun);
            word = word_.load(std::memory_order_relaxed);
        } else if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {  // I1
            return;  // acquire: pairs with the release in unlock()
        }
    }
}

void borrow_lock::lock_slowly() noexcept {
    int spun = 0;
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
        if ((word & gate) != 0) {
            rest(word, spun);
            word = word_.load(std::memory_order_relaxed);
        } else if (word_.compare_exchange_weak(word, word | gate, std::memory_order_relaxed,
                                               std::memory_order_relaxed)) {
            break;
        }
    }
    // acquire: pairs with the release in unlock() and unlock_shared(); all that came between them
    // and this were read-modify-writes
    while (((word = word_.load(std::memory_order_acquire)) & ~(gate | sleepers)) != 0) {
        rest(word, spun);
    }
}

}  // namespace rondo::detail
