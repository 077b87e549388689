// visitors.hpp: tasks that are ending in threads that are not their executor's.
//
// Whoever destroys the executor waits for them first. That is rare, and as short as what the user
// has done when an exception is not observed: nobody is put to sleep for it.
//
// Thread safety  every member from any thread.
// Memory order   what a visitor did is visible to who has waited for it.
#pragma once

#include <cstdint>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class visitors {
  public:
    void begin() noexcept {
        // relaxed: that the task has ended, which who waits here knows, brings it along
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    void end() noexcept {
        // release: pairs with the acquire in await(). The executor may be gone from here on.
        count_.fetch_sub(1, std::memory_order_release);
    }
    void await() const noexcept {
        // acquire: pairs with the release in end()
        while (count_.load(std::memory_order_acquire) != 0) yield_processor();
    }

  private:
    atomic<std::uint32_t> count_{0};
};

}  // namespace rondo::detail
