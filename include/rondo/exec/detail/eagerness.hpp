// eagerness.hpp: how long a worker looks around for jobs before it lies down.
//
// Some microseconds, as a sleeper costs whoever wakes it more than that. But looking around is in
// vain when those who could bring jobs have no processor: it may be this very one. So a worker that
// found nothing a few times looks only once, and properly again from time to time, as things may
// have changed.
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
        return briefly ? 1 : most_looks;
    }
    void found() noexcept { in_vain_ = 0; }

    // After a look; pauses double up to a longest one.
    static void pause_after(int look) noexcept {
        for (int i = 0; i < std::min(1 << look, longest_pause); ++i) spin_pause();
    }

  private:
    static constexpr int most_looks = checked_build ? 1 : 12;
    static constexpr int longest_pause = 32;
    static constexpr std::uint32_t searches_in_vain = 4;
    static constexpr std::uint32_t then_properly_each = 16;

    std::uint32_t in_vain_ = 0;  // searches since the last one that found something
};

}  // namespace rondo::detail
