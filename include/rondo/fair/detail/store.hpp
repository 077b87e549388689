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
#include "rondo/fair/detail/roster.hpp"

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
        : engine(c),
          tenants_(c.shards, std::make_shared<entitlements<Key>>(
                                 c.tenants, std::move(c.entitlement_of), c.when_full)),
          undelivered_(std::move(undelivered)) {}
    ~store() { close(closing::immediate); }

    static std::unique_ptr<node> make(Key&& key, T&& payload, terms const& t) {
        if (t.cost == 0 || t.cost > max_cost || t.priority > priority::low) [[unlikely]]
            require(validate(t));
        return std::make_unique<node>(std::move(key), std::move(payload), t);
    }

    // Accepts the task, or says why not and leaves it. Throws, leaving it, when a tenant has to be
    // made and there is no memory, or the user's function throws.
    std::optional<enqueue_error> enqueue(std::unique_ptr<node>& task,
                                         std::optional<handle> name = {}) {
        node& e = *task;
        std::size_t const hash = key_hash<Key>{}(e.key);
        time_point at = now();
        if (!name && try_leave(e, hash, at)) return settled(task, admission::accepted);
        newcomer fresh;
        admission result = admission::undecided;
        for (;;) {
            change(at, [&](aftermath& after) {
                if (name) handles().name(*name, e);
                result = greet(e, after);
                if (result != admission::undecided) return;
                tenant_node* const t = find_or_add(e.key, hash, fresh);
                if (t == nullptr) return;
                result = admit(*t, e, after);
                if (fresh.added()) let_go(*t);
            });
            if (result != admission::undecided) return settled(task, result);
            tenants_.make(e.key, hash, fresh);
            at = now();  // I3: the user's function may have taken long
        }
    }
    // The same, with something to cancel it by.
    std::expected<handle, enqueue_error> enqueue_with_handle(std::unique_ptr<node>& task) {
        reserved_handle name{*this};
        if (auto const why = enqueue(task, name.get())) return std::unexpected{*why};
        return name.keep();
    }
    // The same for who holds the tenant; lets go of it when it is decided.
    std::optional<enqueue_error> enqueue_held(std::unique_ptr<node>& task,
                                              tenant_node*& t) noexcept {
        admission result = admission::undecided;
        change(now(), [&](aftermath& after) {
            result = greet(*task, after);
            if (result == admission::undecided) result = admit(*t, *task, after);
            if (result == admission::accepted || result == admission::closed) {
                let_go(*std::exchange(t, nullptr));
            }
        });
        return settled(task, result);
    }
    // Decides about it, and does no more than to reserve a place if it needs one: bring() follows,
    // or give_up().
    bool decide_held(node& e, tenant_node& t, bool& reserved) noexcept {
        bool decided = true;
        change(now(), [&](aftermath& after) {
            if (!is_open() || is_late(e)) return;
            reserved = occupy(t, e, after) == admission::accepted;
            decided = reserved;
        });
        return decided;
    }
    // The same for a task that has a place reserved, or needs none: it is late, or this is closed.
    std::optional<enqueue_error> bring(std::unique_ptr<node>& task, tenant_node& t, bool reserved) {
        bool accepted = false;
        change(now(), [&](aftermath& after) {
            accepted = is_open();
            if (accepted && reserved) {
                admit_reserved(t, *task, after);
            } else if (accepted) {
                admit_expired(*task, after);
            } else if (reserved) {
                give_up_reserved(t, *task, after);
            }
        });
        if (!accepted) return enqueue_error::closed;
        (void)task.release();  // NOLINT(bugprone-unused-return-value): it is the engine's now
        return std::nullopt;
    }
    void give_up(node& e, tenant_node& t) noexcept {
        change(now(), [&](aftermath& after) { give_up_reserved(t, e, after); });
    }

    // The tenant of this key, with a door, held until let_go_held().
    tenant_node& hold_with_door(Key const& key) {
        std::size_t const hash = key_hash<Key>{}(key);
        newcomer fresh;
        tenant_node* t = nullptr;
        bool has_door = false;
        for (;;) {
            change(time_point::min(), [&](aftermath&) {
                t = find_or_add(key, hash, fresh);
                if (t == nullptr) return;
                if (!fresh.added()) hold(*t);
                has_door = t->own_door != nullptr;
            });
            if (t != nullptr) break;
            tenants_.make(key, hash, fresh);
        }
        if (!has_door) add_door(*t);
        return *t;
    }
    void let_go_held(tenant_node& t) noexcept {
        change(now(), [&](aftermath&) { let_go(t); });
    }

    void set_weight(Key const& key, std::uint32_t weight) {
        tenants_.entitled()->set_weight(key, weight);
        weight_changed(key, std::nullopt);
    }
    void clear_weight(Key const& key) {
        std::uint32_t const usual = tenants_.entitled()->configured(key).weight;
        tenants_.entitled()->clear_weight(key);
        weight_changed(key, usual);
    }

    // Keys are copied without the lock, while their tenants are held.
    top_tenants<Key> top(std::size_t how_many) {
        served_most const all = hold_served_most();
        auto const release = [this](served_most const* held) { let_go(*held); };
        std::unique_ptr<served_most const, decltype(release)> const guard{&all, release};
        return top_of<Key>(all, how_many);
    }

    void count_refusal(enqueue_error why) noexcept {
        change(time_point::min(), [&](aftermath&) { refused(why); });
    }

  private:
    using newcomer = roster<Key>::newcomer;

    // Is used again unless it is kept.
    class reserved_handle {
      public:
        explicit reserved_handle(store& s) : of_(s), name_(s.reserve_handle()) {}
        reserved_handle(reserved_handle const&) = delete;
        reserved_handle& operator=(reserved_handle const&) = delete;
        ~reserved_handle() {
            if (!kept_) of_.release_handle(name_);
        }
        handle get() const noexcept { return name_; }
        handle keep() noexcept {
            kept_ = true;
            return name_;
        }

      private:
        store& of_;
        handle name_;
        bool kept_ = false;
    };

    // Without the lock, of a tenant that is known.
    bool try_leave(node& e, std::size_t hash, time_point at) noexcept {
        if (!may_be_left(e, at)) return false;
        return tenants_.visit(e.key, hash, [&](tenant_node& t) {
            e.owner = &t;
            e.enqueued_at = at;
            if (!engine::try_leave(e)) return false;
            t.left = t.left + 1;  // I8
            return true;
        });
    }

    // Under the lock. Null: one has to be made first. One that was added is held.
    tenant_node* find_or_add(Key const& key, std::size_t hash, newcomer& fresh) noexcept {
        tenant_node* const t = tenants_.find_or_add(key, hash, fresh);
        if (t != nullptr && fresh.added()) adopt(*t);
        return t;
    }
    // It is held.
    void add_door(tenant_node& t) {
        std::unique_ptr<door> fresh;
        try {
            fresh = std::make_unique<door>(*this, t);
        } catch (...) {
            let_go_held(t);
            throw;
        }
        std::lock_guard const guard{lock()};
        if (t.own_door != nullptr) return;
        t.own_door = std::move(fresh);
        t.waiting_room = t.own_door.get();
    }
    // What does not depend on room: the scheduler is closed, or the task is late.
    admission greet(node& e, aftermath& after) noexcept {
        if (!is_open()) return admission::closed;
        if (!is_late(e)) return admission::undecided;
        admit_expired(e, after);
        return admission::accepted;
    }
    bool is_late(node const& e) const noexcept { return time() > e.expires; }
    static std::optional<enqueue_error> settled(std::unique_ptr<node>& task,
                                                admission result) noexcept {
        if (result != admission::accepted) return reason(result);
        (void)task.release();  // NOLINT(bugprone-unused-return-value): it is the engine's now
        return std::nullopt;
    }
    static enqueue_error reason(admission why) noexcept {
        if (why == admission::global_full) return enqueue_error::rejected_global;
        if (why == admission::tenant_full) return enqueue_error::rejected_tenant;
        return enqueue_error::closed;
    }
    // What is set by now counts, whoever has set it: the last one here agrees with the table. One
    // whose weight was cleared meanwhile leaves it to who has cleared it.
    void weight_changed(Key const& key, std::optional<std::uint32_t> otherwise) noexcept {
        change(now(), [&](aftermath&) {
            tenants_.changed();
            tenant_node* const t = tenants_.find(key);
            if (t == nullptr) return;
            auto const set = tenants_.entitled()->weight_set(key);
            if (set || otherwise) reweigh(*t, set ? *set : *otherwise);
        });
    }

    bool erase(tenant& t) noexcept override { return tenants_.erase(static_cast<tenant_node&>(t)); }
    void destroy(tenant& t) noexcept override { delete &static_cast<tenant_node&>(t); }
    void report(entry& e) noexcept override {
        std::unique_ptr<node> const n{&static_cast<node&>(e)};
        if (undelivered_) undelivered_(n->end, n->deliver());
    }

    roster<Key> tenants_;
    observer undelivered_;
};

}  // namespace rondo::fair::detail
