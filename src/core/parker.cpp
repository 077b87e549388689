// Invariants
//   I1  only the parking thread stores `empty` and `asleep`; only unpark() stores `token`.
//   I2  the thread sleeps only after it changed `empty` to `asleep` in one step: an unpark()
//       before that step is seen by it, one after it sees `asleep` and wakes.
//   I3  a token is taken by an exchange. Storing `empty` over a token that was seen would also
//       erase one that came since, and with it the order of what happened before that unpark().
#include "rondo/core/parker.hpp"

namespace rondo {

void parker::take_token() noexcept {
    // acquire: pairs with the release in unpark(), the last one before this exchange
    word_.exchange(empty, std::memory_order_acquire);  // I3
}

bool parker::consume() noexcept {
    // relaxed: take_token() acquires
    if (word_.load(std::memory_order_relaxed) != token) return false;
    take_token();
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
    return sleep_until(deadline);
}

bool parker::sleep_until(time_point deadline) noexcept {
    std::uint32_t expected = empty;
    // relaxed: `asleep` tells nothing but itself; on failure take_token() acquires
    if (!word_.compare_exchange_strong(expected, asleep, std::memory_order_relaxed,
                                       std::memory_order_relaxed)) {  // I2
        take_token();
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
        // relaxed: as above; a failure is an unpark() that beat the deadline
        if (word_.compare_exchange_strong(expected, empty, std::memory_order_relaxed,
                                          std::memory_order_relaxed)) {
            return false;
        }
        take_token();
        return true;
    }
}

}  // namespace rondo
