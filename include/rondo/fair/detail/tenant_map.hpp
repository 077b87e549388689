// tenant_map.hpp: tenants by key, in several tables.
//
// Tenants are linked into the buckets themselves. A table that grows or shrinks moves its tenants
// at once: with more tables each of them has fewer. If there is no memory for that it stays as it
// is, and gets slower.
//
// Thread safety  insert() and erase() take the lock of whoever owns the map, and that of the table
//                inside; so either of the two is enough to find somebody: visit() takes the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/short_lock.hpp"
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
    // Tasks that were left in the intake, under the lock of its table. It is erased only when they
    // were all collected.
    cell<std::uint32_t> left;
    std::unique_ptr<door> own_door;
};

template <class Key>
class tenant_map {
  public:
    using node = keyed_tenant<Key>;

    explicit tenant_map(std::size_t shards) : shards_(shards) {}

    node* find(Key const& key, std::size_t hash) const noexcept {
        return shard(hash).find(key, hash);
    }
    // Without the owner's lock. Whether there is such a tenant, and what visit(tenant) says: it is
    // not erased meanwhile.
    template <class Visit>
    bool visit(Key const& key, std::size_t hash, Visit visit) noexcept {
        table& t = shard(hash);
        std::lock_guard const guard{t.lock};
        node* const n = t.find(key, hash);
        return n != nullptr && visit(*n);
    }
    void insert(node& n) noexcept {
        table& t = shard(n.hash);
        std::lock_guard const guard{t.lock};
        t.link(n);
        ++t.size;
        if (t.size > t.buckets.size()) t.resize(t.buckets.size() * 2);
    }
    // False: something was left for it since, and it stays.
    bool erase(node& n) noexcept {
        table& t = shard(n.hash);
        std::lock_guard const guard{t.lock};
        if (n.left != n.collected) return false;
        node** at = &t.buckets[t.bucket(n.hash)];
        while (*at != &n) at = &(*at)->beside;
        *at = n.beside;
        --t.size;
        if (t.size < t.buckets.size() / 8 && t.buckets.size() > fewest) {
            t.resize(t.buckets.size() / 2);
        }
        return true;
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

    struct alignas(64) table {
        short_lock lock;
        std::vector<node*> buckets = std::vector<node*>(fewest);  // 2^n of them
        std::size_t size = 0;

        node* find(Key const& key, std::size_t hash) const noexcept {
            node* n = buckets[bucket(hash)];
            while (n != nullptr && !(n->hash == hash && n->key == key)) n = n->beside;
            return n;
        }
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
