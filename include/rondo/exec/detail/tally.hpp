// tally.hpp: a count that one thread keeps and others read.
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class tally {
  public:
    void add_one() noexcept { count_.store(get() + 1, std::memory_order_relaxed); }
    std::uint64_t get() const noexcept { return count_.load(std::memory_order_relaxed); }

  private:
    atomic<std::uint64_t> count_{0};
};

}  // namespace rondo::detail
