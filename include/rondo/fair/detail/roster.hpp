// roster.hpp: the tenants that are remembered, by key, and what they are entitled to.
//
// A tenant is made without the lock of whoever owns the roster, as that allocates and asks the
// user; then it is added under the lock, unless another was faster, or it is entitled to something
// else by then. (What has become of others is no matter: the user's function may set weights.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/fair/detail/entitlements.hpp"
#include "rondo/fair/detail/tenant_map.hpp"
#include "rondo/fair/key.hpp"

namespace rondo::fair::detail {

template <class Key>
class roster {
  public:
    using node = keyed_tenant<Key>;
    using known = std::shared_ptr<entitlements<Key>>;

    // A tenant for the case that there is none.
    class newcomer {
      public:
        bool added() const noexcept { return added_; }

      private:
        friend roster;
        std::unique_ptr<node> node_;
        known of_;                 // what it is to be made of
        known before_;             // what it was: that goes without the lock
        std::size_t changes_ = 0;  // as of then
        std::optional<std::uint32_t> weight_set_;
        bool added_ = false;
    };

    roster(std::size_t shards, known k) : tenants_(shards), entitled_(std::move(k)) {}

    // --- under the lock ---
    node* find(Key const& key) const noexcept { return tenants_.find(key, key_hash<Key>{}(key)); }
    // Null: one has to be made first.
    node* find_or_add(Key const& key, std::size_t hash, newcomer& fresh) noexcept {
        if (node* const there = tenants_.find(key, hash)) return there;
        if (fresh.node_ == nullptr || !still_holds(key, fresh)) {
            fresh.changes_ = changes_;
            fresh.before_ = std::exchange(fresh.of_, entitled_);
            return nullptr;
        }
        node* const t = fresh.node_.release();
        fresh.added_ = true;
        tenants_.insert(*t);
        return t;
    }
    bool erase(node& t) noexcept { return tenants_.erase(t); }
    // Weights are others from now on.
    void changed() noexcept { ++changes_; }
    // The same, of all tenants; gives back what was.
    known exchange(known k) noexcept {
        ++changes_;
        return std::exchange(entitled_, std::move(k));
    }
    known const& entitled() const noexcept { return entitled_; }
    template <class Visit>
    void for_each(Visit visit) const {
        tenants_.for_each(visit);
    }

    // --- without it ---
    template <class Visit>
    bool visit(Key const& key, std::size_t hash, Visit visit) noexcept {
        return tenants_.visit(key, hash, visit);
    }
    // Throws when there is no memory, and what the user's function throws.
    static void make(Key const& key, std::size_t hash, newcomer& fresh) {
        fresh.before_.reset();
        entitlement e = fresh.of_->usual(key);
        fresh.weight_set_ = fresh.changes_ != 0 ? fresh.of_->weight_set(key) : std::nullopt;
        e.weight = fresh.weight_set_.value_or(e.weight);
        fresh.node_ = std::make_unique<node>(key, hash, e);
    }

  private:
    bool still_holds(Key const& key, newcomer const& fresh) const noexcept {
        if (fresh.changes_ == changes_) return true;
        return fresh.of_ == entitled_ && entitled_->weight_set(key) == fresh.weight_set_;
    }

    tenant_map<Key> tenants_;
    known entitled_;
    std::size_t changes_ = 0;
};

}  // namespace rondo::fair::detail
