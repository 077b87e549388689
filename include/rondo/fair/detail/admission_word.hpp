// admission_word.hpp: who may pass a gate without waiting, decided in one word.
//
// Guarantee      while there are places and no line, a caller takes one with one atomic operation
//                and gives it back with one; but for one caller in 2^31, who has to form a line, so
//                that the count of those who passed does not run over. While there is a line,
//                neither is possible: nobody overtakes it, and who gives a place back finds out
//                that somebody waits for it.
// Thread safety  try_pass(), try_leave() and look() belong to everybody; form_line() and
//                dissolve() to the holder of the lock that guards the line.
// Memory order   what happens before a place is given back is visible to who takes it next.
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::fair::detail {

class admission_word {
  public:
    static constexpr std::uint32_t most_places = std::uint32_t{1} << 30U;
    static constexpr std::uint32_t most_passed = std::uint32_t{1} << 31U;

    struct view {
        std::uint32_t places;  // that are free; none while there is a line
        std::uint32_t passed;  // since it was dissolved last, at most most_passed
    };

    explicit admission_word(std::uint32_t places, std::uint32_t passed = 0) noexcept
        : word_(places * one + passed * one_passed) {}

    bool try_pass() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        do {
            if ((seen & places_mask) == 0) return false;  // I1: also when there is a line
            if (seen >= full) return false;               // I3
            // acquire: pairs with the release in try_leave() and dissolve()
        } while (!word_.compare_exchange_weak(
            seen, seen - one + one_passed, std::memory_order_acquire, std::memory_order_relaxed));
        return true;
    }
    bool try_leave() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        do {
            if ((seen & line_bit) != 0) return false;
            // release: pairs with the acquire in try_pass() and form_line()
        } while (!word_.compare_exchange_weak(seen, seen + one, std::memory_order_release,
                                              std::memory_order_relaxed));
        return true;
    }

    // From now on everything goes through the lock. Gives what was in the word.
    view form_line() noexcept {
        // acquire: pairs with the release in try_leave(); what it takes away is given out again
        return read(word_.exchange(line_bit, std::memory_order_acquire));
    }
    // There is no line any more, and so many places.
    void dissolve(std::uint32_t places) noexcept {
        // release: pairs with the acquire in try_pass(). I2: nobody else changes the word.
        word_.store(places * one, std::memory_order_release);
    }

    view look() const noexcept { return read(word_.load(std::memory_order_relaxed)); }

  private:
    // The word
    //   passed * 2^32 + places * 2   no line; so many have passed since the last one
    //   1                            a line
    // I1  with a line there are no places in the word.
    // I2  with a line the word changes under the lock only.
    // I3  passed is at most most_passed: who comes then forms a line, which takes the count away,
    //     and is the first to pass when that is dissolved.
    static constexpr std::uint64_t line_bit = 1;
    static constexpr std::uint64_t one = 2;
    static constexpr std::uint64_t one_passed = std::uint64_t{1} << 32U;
    static constexpr std::uint64_t places_mask = one_passed - one;
    static constexpr std::uint64_t full = most_passed * one_passed;

    static view read(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>((word & places_mask) / one),
                static_cast<std::uint32_t>(word / one_passed)};
    }

    atomic<std::uint64_t> word_;
};

}  // namespace rondo::fair::detail
