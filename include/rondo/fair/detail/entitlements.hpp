// entitlements.hpp: what each tenant is entitled to: as set, as configured, as a function says.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rondo/core/short_lock.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/key.hpp"

namespace rondo::fair::detail {

template <class Key>
class entitlements {
  public:
    using function = std::function<entitlement(Key const&)>;

    entitlements(std::vector<std::pair<Key, entitlement>> const& known, function of,
                 backpressure when_full)
        : otherwise_{1, when_full}, function_(std::move(of)) {
        for (auto const& [key, e] : known) {
            require(validate(e));
            known_.emplace(key, e);
        }
    }

    // Calls the user's function, if it comes to that; throws what it throws, and
    // std::invalid_argument when what it says cannot be.
    entitlement of(Key const& key) const {
        entitlement e = usual(key);
        e.weight = weight_set(key).value_or(e.weight);
        return e;
    }
    // The same without the weight that was set.
    entitlement usual(Key const& key) const {
        entitlement e = configured(key);
        if (!e.when_full) e.when_full = otherwise_.when_full;
        return e;
    }
    // As it was given: it may leave open what to do when full.
    entitlement configured(Key const& key) const {
        if (!known_.empty()) {
            auto const known = known_.find(key);
            if (known != known_.end()) return known->second;
        }
        if (!function_) return otherwise_;
        entitlement const e = function_(key);
        require(validate(e));
        return e;
    }
    std::optional<std::uint32_t> weight_set(Key const& key) const noexcept {
        std::lock_guard const guard{lock_};
        auto const set = weights_.find(key);
        return set == weights_.end() ? std::nullopt : std::optional{set->second};
    }
    void set_weight(Key const& key, std::uint32_t weight) {
        require(validate(entitlement{weight, {}}));
        std::lock_guard const guard{lock_};
        weights_.insert_or_assign(key, weight);
    }
    void clear_weight(Key const& key) {
        std::lock_guard const guard{lock_};
        weights_.erase(key);
    }

  private:
    entitlement otherwise_;
    function function_;
    std::unordered_map<Key, entitlement, key_hash<Key>> known_;
    mutable short_lock lock_;
    std::unordered_map<Key, std::uint32_t, key_hash<Key>> weights_;
};

}  // namespace rondo::fair::detail
