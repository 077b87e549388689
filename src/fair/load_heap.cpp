#include "rondo/fair/detail/load_heap.hpp"

#include <cstdint>
#include <utility>

namespace rondo::fair::detail {

namespace {

__extension__ using wide = unsigned __int128;

}  // namespace

bool load_heap::before(tenant const& a, tenant const& b) noexcept {
    wide const of_a = wide{a.filed.load} * b.filed.weight;
    wide const of_b = wide{b.filed.load} * a.filed.weight;
    return of_a != of_b ? of_a > of_b : a.filed.active_since < b.filed.active_since;
}

tenant* load_heap::meld(tenant* a, tenant* b) noexcept {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    if (before(*b, *a)) std::swap(a, b);
    b->heap.above = a;
    b->heap.beside = a->heap.below;
    if (b->heap.beside != nullptr) b->heap.beside->heap.above = b;
    a->heap.below = b;
    return a;
}

// Siblings two by two from the left, then all of these from the right.
tenant* load_heap::meld_pairs(tenant* first) noexcept {
    tenant* pairs = nullptr;  // linked by beside, the last one first
    while (first != nullptr) {
        tenant* const a = first;
        tenant* const b = a->heap.beside;
        first = b == nullptr ? nullptr : b->heap.beside;
        a->heap.beside = a->heap.above = nullptr;
        if (b != nullptr) b->heap.beside = b->heap.above = nullptr;
        tenant* const pair = meld(a, b);
        pair->heap.beside = pairs;
        pairs = pair;
    }
    tenant* all = nullptr;
    while (pairs != nullptr) {
        tenant* const pair = pairs;
        pairs = pair->heap.beside;
        pair->heap.beside = nullptr;
        all = meld(all, pair);
    }
    return all;
}

// Takes a tenant that is not the root, with all below it, out of the list it is in.
void load_heap::cut(tenant& t) noexcept {
    tenant* const above = t.heap.above;  // its parent if it is the first child, else a sibling
    if (above->heap.below == &t) {
        above->heap.below = t.heap.beside;
    } else {
        above->heap.beside = t.heap.beside;
    }
    if (t.heap.beside != nullptr) t.heap.beside->heap.above = above;
    t.heap.above = t.heap.beside = nullptr;
}

void load_heap::raise(tenant& t) noexcept {
    filing const now{t.load(), t.weight(), t.active_since()};
    if (!t.heap.filed) {
        t.heap.filed = true;
        t.filed = now;
        root_ = meld(root_, &t);
        return;
    }
    if (now.weight != t.filed.weight) {
        remove(t);
        raise(t);
    } else if (now.load > t.filed.load) {
        t.filed = now;
        if (root_ == &t) return;
        cut(t);  // what is below it stays below it
        root_ = meld(root_, &t);
    }
}

void load_heap::remove(tenant& t) noexcept {
    if (!t.heap.filed) return;
    t.heap.filed = false;
    tenant* const below = meld_pairs(std::exchange(t.heap.below, nullptr));
    if (root_ == &t) {
        root_ = below;
        return;
    }
    cut(t);
    root_ = meld(root_, below);
}

tenant* load_heap::longest() noexcept {
    while (root_ != nullptr) {
        tenant& t = *root_;
        filing const now{t.load(), t.weight(), t.active_since()};
        if (t.filed == now) return &t;
        remove(t);
        if (now.load != 0) raise(t);
    }
    return nullptr;
}

}  // namespace rondo::fair::detail
