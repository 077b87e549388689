// load_heap.hpp: which tenant has the most queued, for its weight.
//
// A pairing heap (Fredman, Sedgewick, Sleator, Tarjan, 1986) through the tenants themselves. What
// a tenant is filed under may be more than it has, never less: a task that leaves is not noted. So
// adding a task costs constant time, removing one nothing, and longest() files again those at the
// top that have less by now, in O(log tenants) amortized. No structure that compares loads can do
// it all in constant time: evicting task by task puts the tenants in order.
#pragma once

#include "rondo/fair/detail/tenant.hpp"

namespace rondo::fair::detail {

class load_heap {
  public:
    // It has got a task, or another weight.
    void raise(tenant& t) noexcept;
    void remove(tenant& t) noexcept;
    // The tenant with the largest queued cost / weight, of those the one that is active for the
    // longest time; null when nobody has tasks.
    tenant* longest() noexcept;

  private:
    static bool before(tenant const& a, tenant const& b) noexcept;
    static tenant* meld(tenant* a, tenant* b) noexcept;
    static tenant* meld_pairs(tenant* first) noexcept;
    static void cut(tenant& t) noexcept;

    tenant* root_ = nullptr;
};

}  // namespace rondo::fair::detail
