// config.hpp: what a scheduler is made with, and what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/fair/terms.hpp"

namespace rondo::fair {

// What happens to a task for which there is no room.
enum class backpressure : std::uint8_t {
    reject,         // it is refused
    drop_oldest,    // the oldest of the tenant's own tasks of lowest priority goes instead
    drop_newest,    // the newest of them goes instead
    evict_longest,  // the newest task of lowest priority goes of the tenant with the largest
                    // queued cost / weight; at a tenant's own limit that is itself
    wait,           // enqueue() refuses it, enqueue_wait() waits up to config::patience
};

// What one tenant is entitled to.
struct entitlement {
    std::uint32_t weight = 1;                    // 1 .. max_weight
    std::optional<backpressure> when_full = {};  // else that of the scheduler
};

inline constexpr std::uint32_t max_weight = 1'000'000;
inline constexpr std::uint64_t max_quantum = 1'000'000'000'000;
inline constexpr std::size_t max_shards = 4096;
// So many tenants without tasks are remembered, those of late: one that comes back is quickly
// found.
inline constexpr std::size_t idle_tenants_kept = checked_build ? 1 : 1024;

// The part of a config that does not depend on the type of keys.
struct limits {
    // Into how many tables the tenants are split, so that one that grows moves few of them.
    std::size_t shards = 1;
    // How many tasks may be queued, in all and of one tenant.
    std::size_t max_global = 100'000;
    std::size_t max_per_tenant = 10'000;
    // The cost that a tenant of weight 1 may have served in a round. Smaller is smoother; costs
    // above it are no problem.
    std::uint64_t quantum = 8;
    backpressure when_full = backpressure::reject;
    // How long enqueue_wait() and blocking_enqueue() wait if nothing else is said.
    clock::duration patience = clock::duration::max();
    // Where the time comes from: that of an executor's timers(); null is the steady clock.
    timer_service const* time = nullptr;
};

template <class Key>
struct config : limits {
    // Tenants that are known beforehand, and what to do with the others; called outside all locks,
    // when a tenant comes that is not remembered. (A tenant whose weight changes: set_weight().)
    std::vector<std::pair<Key, entitlement>> tenants = {};
    std::function<entitlement(Key const&)> entitlement_of = {};
};

// A field and what it should be. Fields of a tenant are named so as well: "weight".
struct config_error {
    std::string_view field;
    std::string_view requirement;

    friend bool operator==(config_error const&, config_error const&) = default;
};

[[nodiscard]] std::optional<config_error> validate(limits const& l) noexcept;
[[nodiscard]] std::optional<config_error> validate(entitlement const& e) noexcept;
[[nodiscard]] std::optional<config_error> validate(terms const& t) noexcept;

namespace detail {

// Throws std::invalid_argument that names the field.
void require(std::optional<config_error> const& no_error);

}  // namespace detail

}  // namespace rondo::fair
