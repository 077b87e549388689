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
    // a futex call would return.
    constexpr int spins = checked_build ? 1 : 100;
    for (int i = 0; i < spins; ++i) {
        spin_pause();
        if (word_.load(std::memory_order_relaxed) == open && try_lock()) return;
    }
    // acquire: pairs with the release in unlock()
    while (word_.exchange(contended, std::memory_order_acquire) != open) {  // I2
        futex_wait(word_, contended);                                       // I1
    }
}

}  // namespace rondo
