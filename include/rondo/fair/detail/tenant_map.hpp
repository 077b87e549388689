// tenant_map.hpp: tenants by key, in several tables.
//
// Tenants are linked into the buckets themselves. A table that grows or shrinks moves its tenants
// at once: with more tables each of them has fewer. If there is no memory for that it stays as it
// is, and gets slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/detail/door.hpp"
#include "rondo/fair/detail/tenant.hpp"

namespace rondo::fair::detail {

template <class Key>
struct keyed_tenant final : tenant, rondo::detail::recycled {
    // `e` says what to do when it is full.
    keyed_tenant(Key k, std::size_t h, entitlement const& e)
        : tenant(e.weight), key(std::move(k)), hash(h) {
        when_full = *e.when_full;
    }

    Key const key;
    std::size_t const hash;
    keyed_tenant* beside = nullptr;  // in its bucket
    std::unique_ptr<door> own_door;
};

template <class Key>
class tenant_map {
  public:
    using node = keyed_tenant<Key>;

    explicit tenant_map(std::size_t shards) : shards_(shards) {}

    node* find(Key const& key, std::size_t hash) const noexcept {
        table const& t = shard(hash);
        node* n = t.buckets[t.bucket(hash)];
        while (n != nullptr && !(n->hash == hash && n->key == key)) n = n->beside;
        return n;
    }
    void insert(node& n) noexcept {
        table& t = shard(n.hash);
        t.link(n);
        ++t.size;
        if (t.size > t.buckets.size()) t.resize(t.buckets.size() * 2);
    }
    void erase(node& n) noexcept {
        table& t = shard(n.hash);
        node** at = &t.buckets[t.bucket(n.hash)];
        while (*at != &n) at = &(*at)->beside;
        *at = n.beside;
        --t.size;
        if (t.size < t.buckets.size() / 8 && t.buckets.size() > fewest) {
            t.resize(t.buckets.size() / 2);
        }
    }
    template <class Visit>
    void for_each(Visit visit) const {
        for (table const& t : shards_) {
            for (node* n : t.buckets) {
                for (; n != nullptr; n = n->beside) visit(*n);
            }
        }
    }

  private:
    static constexpr std::size_t fewest = 16;

    struct table {
        std::vector<node*> buckets = std::vector<node*>(fewest);  // 2^n of them
        std::size_t size = 0;

        std::size_t bucket(std::size_t hash) const noexcept { return hash & (buckets.size() - 1); }
        void link(node& n) noexcept {
            node*& first = buckets[bucket(n.hash)];
            n.beside = first;
            first = &n;
        }
        void resize(std::size_t count) noexcept {
            try {
                std::vector<node*> old(count);
                old.swap(buckets);
                for (node* n : old) {
                    while (n != nullptr) link(*std::exchange(n, n->beside));
                }
            } catch (std::bad_alloc const&) {
                return;
            }
        }
    };

    // The upper half of the hash, as a part of the whole: the lower one chooses the bucket.
    std::size_t index(std::size_t hash) const noexcept {
        return static_cast<std::size_t>(((std::uint64_t{hash} >> 32U) * shards_.size()) >> 32U);
    }
    table& shard(std::size_t hash) noexcept { return shards_[index(hash)]; }
    table const& shard(std::size_t hash) const noexcept { return shards_[index(hash)]; }

    std::vector<table> shards_;
};

}  // namespace rondo::fair::detail
