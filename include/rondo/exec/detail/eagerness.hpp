// eagerness.hpp: how long a worker looks around for jobs before it lies down.
//
// Some microseconds, as a sleeper costs whoever wakes it more than that. But looking around is in
// vain when those who could bring jobs have no processor: it may be this very one. So towards the
// end a worker offers it to others between two looks, and one that found nothing a few times does
// so at once, and properly again from time to time, as things may have changed.
//
// The offer costs little when nobody takes it. When it is taken by one who brings small jobs faster
// than a worker can be woken, the worker finds many of them when it is back, instead of sleeping
// and being woken again for each few: with eight workers on two processors an empty job takes 70 ns
// so, and 470 without. The price: who took the offer may keep the processor for a slice of the
// system's, and a job that it brings waits so long, unless it brings more of them (see patience
// in intake.cpp) or another processor is free.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class eagerness {
  public:
    // A search begins: how often to look.
    int looks() noexcept {
        bool const briefly = in_vain_ >= searches_in_vain && in_vain_ % then_properly_each != 0;
        ++in_vain_;
        spins_ = briefly ? 0 : most_spins;
        return spins_ + offers;
    }
    void found() noexcept { in_vain_ = 0; }

    // After a look; pauses double up to a longest one.
    void pause_after(int look) const noexcept {
        if (look >= spins_) return yield_processor();
        for (int i = 0; i < std::min(1 << look, longest_pause); ++i) spin_pause();
    }

  private:
    static constexpr int most_spins = checked_build ? 0 : 9;
    static constexpr int offers = checked_build ? 1 : 3;
    static constexpr int longest_pause = 32;
    static constexpr std::uint32_t searches_in_vain = 4;
    static constexpr std::uint32_t then_properly_each = 16;

    int spins_ = 0;
    std::uint32_t in_vain_ = 0;  // searches since the last one that found something
};

}  // namespace rondo::detail
