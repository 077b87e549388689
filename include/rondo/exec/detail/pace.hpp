// pace.hpp: how soon a worker comes back to an intake in which it found little.
//
// A worker that runs jobs faster than they are brought takes them one by one, and each time the
// intake's cache line goes over to it and back to whoever brings them: that costs the latter more
// than the rest of a push. So a worker that was back at once waits a moment before it comes again,
// and longer the next time, until it finds a handful: a microsecond or three. Jobs that take some
// time are never kept waiting so, nor is the first job after a while in which there was none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class pace {
  public:
    // The worker has run what it took, and is about to come again.
    void wait() noexcept {
        if (found_ >= handful || clock::now() - left_ >= quick * taken_) {
            pauses_ /= 2;
        } else {
            pauses_ = std::min(2 * pauses_ + 4, most_pauses);
        }
        for (std::uint32_t i = 0; i < pauses_; ++i) spin_pause();
    }
    // It leaves with some jobs, and leaves others behind.
    void found(std::size_t taken, std::size_t left_there) noexcept {
        found_ = taken + left_there;
        if (found_ >= handful) return;
        taken_ = static_cast<std::int64_t>(taken);
        left_ = clock::now();
    }
    void found_nothing() noexcept {
        found_ = handful;
        pauses_ = 0;
    }

  private:
    static constexpr std::size_t handful = checked_build ? 0 : 32;
    static constexpr std::uint32_t most_pauses = 64;
    static constexpr std::chrono::nanoseconds quick{500};  // a job that takes no time

    std::size_t found_ = handful;
    std::int64_t taken_ = 0;
    time_point left_{};
    std::uint32_t pauses_ = 0;
};

}  // namespace rondo::detail
