// parker.hpp: how a plain thread sleeps until one wake-up.
//
// Guarantee      park() returns after an unpark() that no earlier park() has consumed; an
//                unpark() that comes first is remembered. Several count as one.
// Thread safety  one thread parks; any thread unparks.
// Memory order   what happens before unpark() is visible after the park() that consumes it, be it
//                the first or the last of several.
// Destruction    the parked thread may destroy the parker as soon as park() has returned, even
//                while unpark() is still returning in its thread.
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo {

class parker {
  public:
    parker() = default;
    parker(parker const&) = delete;
    parker& operator=(parker const&) = delete;

    // Looks for the wake-up for some microseconds before it sleeps.
    void park() noexcept { (void)park_until(time_point::max()); }
    // Sleeps at once: for a thread that has looked around for long enough.
    void sleep() noexcept { (void)sleep_until(time_point::max()); }

    // False when the deadline passed first. A deadline that has passed still takes a wake-up
    // that is already there.
    bool park_until(time_point deadline) noexcept;
    bool sleep_until(time_point deadline) noexcept;

    void unpark() noexcept {
        // release: pairs with the acquire in take_token(). Past the exchange only the word's
        // address is used.
        if (word_.exchange(token, std::memory_order_release) == asleep) {
            futex_wake(&word_, 1);
        }
    }

  private:
    // The word's values: nothing has happened; a wake-up waits to be consumed; the thread sleeps
    // or is about to.
    static constexpr std::uint32_t empty = 0;
    static constexpr std::uint32_t token = 1;
    static constexpr std::uint32_t asleep = 2;

    void take_token() noexcept;
    bool consume() noexcept;

    atomic<std::uint32_t> word_{empty};
};

}  // namespace rondo
