// doorbell.hpp: park and unpark over something that can only be rung.
//
// A thread sleeps in some wait of its own that ends for many reasons, of which a ring is one: an
// io_context, whose thread a posted handler wakes. The doorbell adds what such a wait lacks: an
// unpark() that comes before the park() is not lost, and who need not be woken is not rung for.
//
// Guarantee      as in driver.hpp. ring() is called only when the thread sleeps or is about to,
//                and not again before rang(): one ring is under way at most.
// Thread safety  unpark() by any thread, everything else by the one that sleeps.
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class doorbell {
  public:
    void park(time_point until) noexcept {
        std::uint32_t expected = awake;
        // relaxed: `asleep` tells nothing but itself; a token is taken below
        if (state_.compare_exchange_strong(expected, asleep, std::memory_order_relaxed,
                                           std::memory_order_relaxed)) {
            sleep(until);
        }
        // An exchange, as in parker: a store could erase a token that nobody has seen.
        state_.exchange(awake, std::memory_order_acquire);  // acquire: pairs with unpark()
    }

    void unpark() noexcept {
        // release: pairs with the acquire in park()
        if (state_.exchange(token, std::memory_order_release) != asleep) return;
        // A ring that is still under way wakes the thread just as well. acq_rel: pairs with
        // rang(), so that two rings do not use the same memory at the same time.
        if (!ringing_.exchange(true, std::memory_order_acq_rel)) ring();
    }

  protected:
    ~doorbell() = default;

    // Waits for anything; a ring ends it.
    virtual void sleep(time_point until) noexcept = 0;
    // Ends a sleep that has begun, or the next one; leads to a call of rang() by the sleeper.
    virtual void ring() noexcept = 0;
    // In the thread that sleeps: the ring has arrived.
    void rang() noexcept {
        ringing_.store(false, std::memory_order_release);  // release: pairs with unpark()
    }

  private:
    static constexpr std::uint32_t awake = 0;
    static constexpr std::uint32_t asleep = 1;  // or about to be
    static constexpr std::uint32_t token = 2;   // an unpark() that no park() has seen

    atomic<std::uint32_t> state_{awake};
    atomic<bool> ringing_{false};
};

}  // namespace rondo::detail
