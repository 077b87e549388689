// store.hpp: the engine with payloads and keys.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/detail/engine.hpp"
#include "rondo/fair/detail/entitlements.hpp"
#include "rondo/fair/detail/tenant_map.hpp"

namespace rondo::fair::detail {

template <class T, class Key>
struct task_node final : entry, rondo::detail::recycled {
    task_node(Key&& k, T&& p, terms const& t)
        : entry(t), key(std::move(k)), payload(std::move(p)) {}

    delivery<T, Key> deliver() noexcept {
        return {std::move(key), std::move(payload), cost, rank, enqueued_at, expires};
    }

    Key key;
    T payload;
};

template <class T, class Key>
class store final : public engine {
  public:
    using node = task_node<T, Key>;
    using tenant_node = keyed_tenant<Key>;
    using observer = std::function<void(disposition, delivery<T, Key>)>;

    store(config<Key>&& c, observer&& undelivered)
        : engine(c), entitlements_(c), tenants_(c.shards), undelivered_(std::move(undelivered)) {}
    ~store() { close(closing::immediate); }

    static std::unique_ptr<node> make(Key&& key, T&& payload, terms const& t) {
        require(validate(t));
        return std::make_unique<node>(std::move(key), std::move(payload), t);
    }

    // Accepts the task, or says why not and leaves it. Throws, leaving it, when a tenant has to be
    // made and there is no memory, or the user's function throws.
    std::optional<enqueue_error> enqueue(std::unique_ptr<node>& task,
                                         std::optional<handle> name = {}) {
        node& e = *task;
        admission result = admission::closed;
        at(
            e.key,
            [&](aftermath& after) {
                if (!is_open()) return true;
                if (time() <= e.expires) return false;
                accept(e, name, result);
                admit_expired(e, after);
                return true;
            },
            [&](tenant_node& t, aftermath& after) {
                result = admit(t, e, after);
                if (result == admission::accepted) accept(e, name, result);
            });
        if (result == admission::accepted) {
            (void)task.release();  // NOLINT(bugprone-unused-return-value): it is the engine's now
            return std::nullopt;
        }
        return reason(result);
    }
    // The same for a task that has a place reserved, or was let in because it is closed.
    std::optional<enqueue_error> bring(std::unique_ptr<node>& task, tenant_node& t, bool reserved) {
        bool accepted = false;
        change(now(), [&](aftermath& after) {
            accepted = reserved && is_open();
            if (accepted) {
                admit_reserved(t, *task, after);
            } else if (reserved) {
                give_up_reserved(t, after);
            }
        });
        if (!accepted) return enqueue_error::closed;
        (void)task.release();  // NOLINT(bugprone-unused-return-value): it is the engine's now
        return std::nullopt;
    }
    void give_up(tenant_node& t) noexcept {
        change(now(), [&](aftermath& after) { give_up_reserved(t, after); });
    }

    // The tenant of this key, with a door, held.
    tenant_node& enter(Key const& key) {
        tenant_node* found = nullptr;
        at(
            key, [](aftermath&) { return false; },
            [&](tenant_node& t, aftermath&) {
                hold(t);
                found = &t;
            });
        std::unique_ptr<door> fresh;
        try {
            fresh = std::make_unique<door>(*this, *found);
        } catch (...) {
            leave(*found);
            throw;
        }
        std::lock_guard const guard{lock()};
        if (found->own_door == nullptr) {
            found->own_door = std::move(fresh);
            found->waiting_room = found->own_door.get();
        }
        return *found;
    }
    void leave(tenant_node& t) noexcept {
        change(now(), [&](aftermath&) { let_go(t); });
    }

    void set_weight(Key const& key, std::uint32_t weight) {
        entitlements_.set_weight(key, weight);
        weight_changed(key, weight);
    }
    void clear_weight(Key const& key) {
        entitlements_.clear_weight(key);
        weight_changed(key, entitlements_.of(key).weight);
    }

    void count_refusal(enqueue_error why) noexcept {
        change(time_point::min(), [&](aftermath&) { refused(why); });
    }

  private:
    // Runs f(tenant&, aftermath&) under the lock with the tenant of this key, which is made if need
    // be; but first early(aftermath&), and if that is true nothing more.
    template <class Early, class F>
    void at(Key const& key, Early early, F f) {
        std::size_t const hash = key_hash<Key>{}(key);
        std::unique_ptr<tenant_node> fresh;
        std::size_t weights = 0;  // as it was made with
        time_point const begin = now();
        bool done = false;
        while (!done) {
            change(begin, [&](aftermath& after) {
                done = early(after);
                if (done) return;
                tenant_node* t = tenants_.find(key, hash);
                bool const makes = t == nullptr;
                if (makes) {
                    if (fresh == nullptr || weights != weights_) {
                        weights = weights_;
                        return;
                    }
                    t = fresh.release();
                    tenants_.insert(*t);
                    adopt(*t);
                }
                done = true;
                f(*t, after);
                if (makes) let_go(*t);
            });
            if (!done) fresh = std::make_unique<tenant_node>(key, hash, entitlements_.of(key));
        }
    }
    void accept(node& e, std::optional<handle> name, admission& result) noexcept {
        if (name) handles().name(*name, e);
        result = admission::accepted;
    }
    static enqueue_error reason(admission why) noexcept {
        if (why == admission::global_full) return enqueue_error::rejected_global;
        if (why == admission::tenant_full) return enqueue_error::rejected_tenant;
        return enqueue_error::closed;
    }
    void weight_changed(Key const& key, std::uint32_t weight) noexcept {
        std::size_t const hash = key_hash<Key>{}(key);
        change(now(), [&](aftermath&) {
            ++weights_;
            if (tenant_node* const t = tenants_.find(key, hash)) reweigh(*t, weight);
        });
    }

    void erase(tenant& t) noexcept override { tenants_.erase(static_cast<tenant_node&>(t)); }
    void destroy(tenant& t) noexcept override { delete &static_cast<tenant_node&>(t); }
    void report(entry& e) noexcept override {
        std::unique_ptr<node> const n{&static_cast<node&>(e)};
        if (undelivered_) undelivered_(n->end, n->deliver());
    }

    entitlements<Key> entitlements_;
    tenant_map<Key> tenants_;
    std::size_t weights_ = 0;  // how often they changed; under the lock
    observer undelivered_;
};

}  // namespace rondo::fair::detail
