// served_most.hpp: the tenants at the head of a ranking, held, and their keys.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "rondo/fair/detail/ranking.hpp"
#include "rondo/fair/detail/tenant_map.hpp"
#include "rondo/fair/detail/turns.hpp"
#include "rondo/fair/stats.hpp"

namespace rondo::fair::detail {

// In no order.
struct served_most {
    std::size_t size = 0;
    std::array<tenant*, ranked_tenants> tenants{};
    std::array<double, ranked_tenants> cost{};
    double in_all = 0;
};

// Reads the table and holds who is in it; under the lock of both.
inline served_most hold_served_most(ranking& of, time_point now) noexcept {
    of.pass(now);
    served_most all{.size = of.size(), .in_all = of.in_all()};
    for (std::size_t i = 0; i < all.size; ++i) {
        all.tenants[i] = &of[i];
        all.cost[i] = of.of(of[i]);
        turns::hold(of[i]);
    }
    return all;
}

// Copies their keys: without a lock, while they are held.
template <class Key>
top_tenants<Key> top_of(served_most const& all, std::size_t how_many) {
    std::array<std::size_t, ranked_tenants> order{};
    auto const end = order.begin() + static_cast<std::ptrdiff_t>(all.size);
    std::iota(order.begin(), end, std::size_t{0});
    std::sort(order.begin(), end,
              [&](std::size_t a, std::size_t b) { return all.cost[a] > all.cost[b]; });
    top_tenants<Key> result{.first = {}, .other = all.in_all};
    for (std::size_t n = 0; n < std::min(how_many, all.size); ++n) {
        std::size_t const i = order[n];
        result.first.push_back(
            {static_cast<keyed_tenant<Key> const*>(all.tenants[i])->key, all.cost[i]});
        result.other -= all.cost[i];
    }
    result.other = std::max(result.other, 0.0);  // it may be off by what was rounded
    return result;
}

}  // namespace rondo::fair::detail
