// Algorithm
//   A node knows its children. cancel() closes a node, which takes its children out of it, calls
//   its hooks, wakes those who wait at it, and goes on with the children: a list that is threaded
//   through them, so depth costs neither stack nor memory. It holds each of them meanwhile: a hook
//   may drop the last token of any.
//
//   Rejected: core's stop_link from parent to child. Its walk relies on the target's owner to wait
//   for it, and an owner that goes inside a hook of that very walk cannot.
//
// Invariants
//   I1  a child is listed in its parent from the beginning, unless the parent was closed then,
//       until the parent is closed or the child goes. Who closes a node has all its children, and
//       nobody adds one after that.
//   I2  a child holds its parent. So the parent is there whenever a child takes itself out of it.
//   I3  a node that nobody holds may still be listed, until its end has got the parent's lock.
//       Who finds it there must not hold it again.
//   I4  a node is taken out of its parent once, so it is in one list of those to be cancelled. It
//       may be cancelled by others meanwhile: what calls its hooks once is its stop_source.
#include "rondo/sync/cancellation.hpp"

#include <mutex>

namespace rondo::detail {

cancellation_node::cancellation_node(cancellation_node* parent) noexcept : parent_(parent) {
    if (parent == nullptr) return;
    parent->hold();  // I2
    if (!parent->adopt(*this)) cancel();
}

// False: it came too late.
bool cancellation_node::adopt(cancellation_node& child) noexcept {
    std::lock_guard const guard{family_};
    if (closed_) return false;  // I1
    children_.push_front(child);
    return true;
}

void cancellation_node::forget(cancellation_node& child) noexcept {
    std::lock_guard const guard{family_};
    if (child.linked()) children_.remove(child);
}

bool cancellation_node::hold_if_held() noexcept {
    std::size_t holders = holders_.load(std::memory_order_relaxed);
    // relaxed: what is done with it is ordered by the lock under which it is listed
    while (holders != 0 &&
           !holders_.compare_exchange_weak(holders, holders + 1, std::memory_order_relaxed,
                                           std::memory_order_relaxed)) {
    }
    return holders != 0;
}

void cancellation_node::let_go() noexcept {
    cancellation_node* node = this;
    // acq_rel: the last holder destroys what the others have used
    while (node != nullptr && node->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        cancellation_node* const parent = node->parent_;
        if (parent != nullptr) parent->forget(*node);
        delete node;
        node = parent;  // I2: its share of the parent is left
    }
}

// Takes the children out of it, each of them held, and puts them before those who come later.
void cancellation_node::close(cancellation_node*& later) noexcept {
    std::lock_guard const guard{family_};
    closed_ = true;
    while (cancellation_node* const child = children_.pop_front()) {
        if (!child->hold_if_held()) continue;  // I3
        child->then_ = later;                  // I4
        later = child;
    }
}

void cancellation_node::cancel() noexcept {
    hold();
    cancellation_node* node = this;
    cancellation_node* later = nullptr;
    for (;;) {
        node->close(later);
        if (node->stop_.request_stop()) node->serve_in_batches([] {});
        node->let_go();
        if (later == nullptr) return;
        node = std::exchange(later, later->then_);
    }
}

}  // namespace rondo::detail
