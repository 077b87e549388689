// Invariants
//   I1  only the parking thread stores `empty` and `asleep`; only unpark() stores `token`.
//   I2  the thread sleeps only after it changed `empty` to `asleep` in one step: an unpark()
//       before that step is seen by it, one after it sees `asleep` and wakes.
#include "rondo/core/parker.hpp"

namespace rondo {

bool parker::consume() noexcept {
    // acquire: pairs with the release in unpark()
    if (word_.load(std::memory_order_acquire) != token) return false;
    word_.store(empty, std::memory_order_relaxed);
    return true;
}

bool parker::park_until(time_point deadline) noexcept {
    // Waking a sleeping thread costs about 20 us here, a line passed between two cores 0.1 us:
    // a wake-up that is near is worth a short look.
    constexpr int spins = checked_build ? 0 : 200;
    for (int i = 0; i < spins; ++i) {
        if (consume()) return true;
        spin_pause();
    }
    std::uint32_t expected = empty;
    // acquire on failure: pairs with the release in unpark(), which came first
    if (!word_.compare_exchange_strong(expected, asleep, std::memory_order_relaxed,
                                       std::memory_order_acquire)) {  // I2
        word_.store(empty, std::memory_order_relaxed);
        return true;
    }
    for (;;) {
        bool in_time = true;
        if (deadline == time_point::max()) {
            futex_wait(word_, asleep);
        } else {
            in_time = futex_wait_until(word_, asleep, deadline);
        }
        if (consume()) return true;
        if (in_time) continue;
        expected = asleep;
        // acquire on failure: pairs with the release in unpark(), which beat the deadline
        if (word_.compare_exchange_strong(expected, empty, std::memory_order_relaxed,
                                          std::memory_order_acquire)) {
            return false;
        }
        word_.store(empty, std::memory_order_relaxed);
        return true;
    }
}

}  // namespace rondo
