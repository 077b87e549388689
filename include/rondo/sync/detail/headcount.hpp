// headcount.hpp: how many there are, and a queue for whoever waits until nobody is left.
//
// Guarantee      who waits is let go when nobody is left. If there is only a moment with nobody it
//                may be let go, or not see that moment; and there may be somebody again when it
//                goes on.
// Memory order   what happens before a drop() is visible to who finds nobody left after it.
// Lifetime       it outlives a running drop(), whoever has found it empty meanwhile.
#pragma once

#include <cstddef>

#include "rondo/core/waiter.hpp"

namespace rondo::detail {

class headcount final : public wait_queue {
  public:
    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
    bool empty() const noexcept {
        // acquire: pairs with the release in drop(); all changes are read-modify-writes, so with
        // every drop() before
        return size_.load(std::memory_order_acquire) == 0;
    }

    void add() noexcept { size_.fetch_add(1, std::memory_order_relaxed); }  // tells nothing
    void drop() noexcept {
        // release: pairs with the acquire in empty(), which grant() calls too
        if (size_.fetch_sub(1, std::memory_order_release) == 1) serve_in_batches([] {});
    }

  private:
    bool grant(waiter&) noexcept override { return empty(); }
    bool owed(waiter&) noexcept override { return empty(); }

    atomic<std::size_t> size_{0};
};

// Waits until nobody is left.
class nobody_left_op : public waiter {
  public:
    explicit nobody_left_op(headcount& h) noexcept : waiter(h), headcount_(h) {}

    bool ready() const noexcept { return headcount_.empty(); }
    void take() const noexcept {}
    void hand_on() noexcept {}

  private:
    headcount& headcount_;
};

}  // namespace rondo::detail
