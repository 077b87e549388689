// fairness.hpp: keeps a spinning thread from being scheduled for ever while the one it waits for
// is not.
//
// Algorithm      After Musuvathi, Qadeer: Fair Stateless Model Checking, PLDI 2008: when a thread
//                pauses for the second time, it falls behind every thread that could have run and
//                did not since its first pause; it is scheduled again when those have run or block.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check::detail {

// A set of threads.
using thread_mask = std::uint8_t;

inline thread_mask bit(unsigned thread) noexcept { return static_cast<thread_mask>(1U << thread); }
inline thread_mask without(thread_mask some, thread_mask others) noexcept {
    return static_cast<thread_mask>(some & ~others);
}

class fairness {
  public:
    // This thread takes a step while these are enabled.
    void step(unsigned thread, thread_mask enabled) noexcept {
        if (ever_paused_ == 0) return;
        for (thread_mask& ran : served_) ran |= bit(thread);
        for (thread_mask& could : starving_) could &= enabled;
        for (thread_mask& first : behind_) first = without(first, bit(thread));
        behind_[thread] = 0;
    }

    void pause(unsigned thread, thread_mask enabled) noexcept {
        if ((ever_paused_ & bit(thread)) != 0) {
            behind_[thread] |= without(starving_[thread], served_[thread]);
        }
        ever_paused_ |= bit(thread);
        starving_[thread] = without(enabled, bit(thread));
        served_[thread] = 0;
    }

    // Those of the first so many who are to let one go first that is enabled.
    thread_mask held_back(unsigned threads, thread_mask enabled) const noexcept {
        thread_mask held = 0;
        if (std::bit_cast<std::uint64_t>(behind_) == 0) return held;  // most often
        for (unsigned i = 0; i < threads; ++i) {
            if ((behind_[i] & enabled) != 0) held |= bit(i);
        }
        return held;
    }

  private:
    using per_thread = std::array<thread_mask, max_threads>;

    thread_mask ever_paused_ = 0;
    per_thread behind_{};    // who goes first
    per_thread starving_{};  // who has been enabled since its last pause
    per_thread served_{};    // who has run since
};

}  // namespace rondo::check::detail
