// round_robin.hpp: whose turn it is, among a fixed number, whoever asks.
//
// Guarantee      turns go 0, 1, ... size - 1, 0, 1, ... over all threads together, for ever: a
//                turn is neither left out nor given twice where the counter starts over.
// Thread safety  next() may be called concurrently.
// Memory order   none: turns are counted, nothing is handed over.
// Cost           one atomic addition, which no contention makes fail; nothing at all for one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/core/assert.hpp"
#include "rondo/core/policy.hpp"

namespace rondo {

class round_robin {
  public:
    // As if `taken` turns had been taken before.
    explicit round_robin(std::size_t size, std::uint64_t taken = 0) noexcept
        : size_(size), round_off_(size == 0 ? 0 : end - end % size), taken_(taken) {
        RONDO_ASSERT(size > 0, "turns are taken among at least one");
        RONDO_ASSERT(taken <= round_off_, "so many turns are never counted");
    }

    // Where the counter starts over: after as many turns as make whole rounds. Left to wrap around
    // by itself it would begin a round in the middle of one, unless the size is a power of two.
    std::uint64_t starts_over_at() const noexcept { return round_off_; }

    std::size_t size() const noexcept { return size_; }

    std::size_t next() noexcept {
        if (size_ == 1) return 0;
        std::uint64_t const turn = taken_.fetch_add(1, std::memory_order_relaxed);
        // One caller meets this number, and takes it off. Those who come before it has done so
        // count on above it: whole rounds make no difference to them, and there is room for more
        // of them than there will be threads.
        if (turn == round_off_) taken_.fetch_sub(round_off_, std::memory_order_relaxed);
        return static_cast<std::size_t>(turn % size_);
    }

  private:
    static constexpr std::uint64_t end = std::uint64_t{1} << 63;

    std::size_t const size_;
    std::uint64_t const round_off_;
    atomic<std::uint64_t> taken_;
};

}  // namespace rondo
