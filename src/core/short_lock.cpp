// Algorithm   the three-state futex mutex of U. Drepper, "Futexes Are Tricky" (2011), mutex 3.
//
// Invariants
//   I1  a thread sleeps only on the value `contended`.
//   I2  whoever exchanges `contended` for `open` wakes one sleeper; the sleeper puts `contended`
//       back, so that sleepers behind it are not forgotten.
#include "rondo/core/short_lock.hpp"

namespace rondo {

void futex_lock::lock_slow() noexcept {
    // The critical sections are tens of instructions long: on another core they end sooner than
    // a futex call would return. But each look takes the word away from its owner, and a lock that
    // is got takes along all that it guards: so who comes in vain looks less and less often. A
    // thread that locks again and again then does so several times before all of it moves to
    // another core. In all it is some microseconds, about what sleeping would cost.
    constexpr int most_pauses = checked_build ? 1 : 128;
    for (int pauses = 1; pauses <= most_pauses; pauses *= 2) {
        for (int i = 0; i < pauses; ++i) spin_pause();
        if (word_.load(std::memory_order_relaxed) == open && try_lock()) return;
    }
    // acquire: pairs with the release in unlock()
    while (word_.exchange(contended, std::memory_order_acquire) != open) {  // I2
        futex_wait(word_, contended);                                       // I1
    }
}

}  // namespace rondo
