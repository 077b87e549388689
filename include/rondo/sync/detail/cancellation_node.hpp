// cancellation_node.hpp: one token of a cancellation tree. The algorithm:
// src/sync/cancellation.cpp.
#pragma once

#include <cstddef>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/linked_list.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/waiter.hpp"

namespace rondo::detail {

// Those who wait for the cancellation wait in it.
class cancellation_node final : public wait_queue, public recycled, list_hook<cancellation_node> {
  public:
    // Held once, by whoever makes it; a parent is held by its children.
    explicit cancellation_node(cancellation_node* parent) noexcept;

    void hold() noexcept {
        holders_.fetch_add(1, std::memory_order_relaxed);  // by a holder
    }
    void let_go() noexcept;

    bool cancelled() const noexcept { return stop_.stop_requested(); }
    stop_token token() noexcept { return stop_.token(); }
    void cancel() noexcept;

  private:
    friend linked_list<cancellation_node>;

    ~cancellation_node() = default;

    bool grant(waiter&) noexcept override { return cancelled(); }
    bool owed(waiter&) noexcept override { return cancelled(); }

    bool hold_if_held() noexcept;
    bool adopt(cancellation_node& child) noexcept;
    void forget(cancellation_node& child) noexcept;
    void close(cancellation_node*& later) noexcept;

    atomic<std::size_t> holders_{1};
    cancellation_node* const parent_;
    stop_source stop_;

    short_lock family_;    // for what follows, and for the hooks of the children
    bool closed_ = false;  // its cancellation has begun: it takes no children any more
    linked_list<cancellation_node> children_;

    cell<cancellation_node*> then_{nullptr};  // whom the parent's cancel() comes to after this one
};

}  // namespace rondo::detail
