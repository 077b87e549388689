// scheduler.hpp: tasks of many tenants, handed to consumers in turn.
//
//   fair::scheduler<request, std::string> queue{{{.max_global = 10'000, .quantum = 4}}};
//   auto accepted = queue.enqueue("acme", request, {.cost = 3, .deadline = in_a_second});
//   auto next = co_await queue.dequeue();                 // expected<task, dequeue_error>
//
// Guarantee      share: over any stretch of the order in which tasks are delivered, the cost that
//                was delivered of two tenants that had tasks queued all the time, divided by their
//                weights, differs by at most max_cost/w_i + max_cost/w_j + 2 * quantum.
//                A tenant that becomes active has one task delivered before the backlog of others,
//                once in a round, if that costs no more than its quantum * weight; else it saves
//                for it in line. Priorities order a tenant's own tasks. Nobody starves, and a
//                dequeue finds a task whenever one is queued, whatever it costs.
//                Never more than max_global tasks are queued, nor max_per_tenant of a tenant.
//                A task is not delivered after its deadline, by the time that the operation read
//                when it began: delivered means handed to a consumer (one that waits has it from
//                then on, also if it takes a while to resume).
//                A task that was accepted has one disposition; what is not delivered is passed to
//                the observer.
// Consumers      are served in the order in which they asked. One task wakes one of them.
// Producers      that wait are let in in turn: tenant by tenant, those of one in order.
// Time           is read from config::time in each operation. Tasks whose deadline has passed are
//                found by any operation; on a scheduler where nothing happens, by advance().
// Thread safety  everything may be called concurrently, but for the destructor.
// Memory order   what happens before a task is enqueued is visible to who has it delivered.
// Cancellation   a dequeue that is stopped loses no task; a stopped enqueue gives it back.
// Resumption     on the waiter's executor.
// Exceptions     the constructor, enqueue forms and set_weight throw std::invalid_argument that
//                names the field when a value cannot be (config, cost, priority, weight): there is
//                no use in going on with it, and it usually comes from a file or a programmer.
//                validate() answers without throwing. std::bad_alloc; what entitlement_of throws.
//                The task is lost then with the exception. Payloads and keys must move without
//                throwing; the observer must not throw.
// Allocation     one block for a task, one for a tenant while it is remembered: as long as it has
//                tasks, or is one of the last 1024 that had, or in top(). A dequeue allocates
//                nothing.
// Lifetime       it outlives its waits. Its destructor closes it: what is queued is returned.
// Example        examples/fair/worker_pool.cpp, async_dispatcher.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "rondo/core/wait.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/detail/operations.hpp"
#include "rondo/fair/detail/store.hpp"
#include "rondo/fair/key.hpp"
#include "rondo/fair/results.hpp"
#include "rondo/fair/stats.hpp"
#include "rondo/fair/terms.hpp"

namespace rondo::fair {

template <class T, class Key = std::uint64_t>
class scheduler {
    static_assert(std::is_nothrow_move_constructible_v<T>, "payloads move without throwing");
    static_assert(tenant_key<Key>);

    using shared = detail::store<T, Key>;
    using node = detail::task_node<T, Key>;
    using enqueue_op = detail::enqueue_op<T, Key>;
    using dequeue_op = detail::dequeue_op<T, Key>;
    using earlier_op = detail::deadline_watch::earlier_op;

  public:
    using task = delivery<T, Key>;
    using dequeued = std::expected<task, dequeue_error>;
    // Called with what was accepted and is not delivered, outside all locks, by whoever finds out,
    // when everything else that follows from its operation is done. If it waits, that waits.
    using observer = std::function<void(disposition, task)>;

    explicit scheduler(config<Key> c = {}, observer undelivered = {})
        : patience_(c.patience), store_(std::move(c), std::move(undelivered)) {}

    // --- producers ---

    // At once: accepted, or refused with the reason and the payload.
    enqueue_result<T> enqueue(Key tenant, T payload, terms const& t = {}) {
        auto fresh = shared::make(std::move(tenant), std::move(payload), t);
        auto const why = store_.enqueue(fresh);
        if (!why) return {};
        return std::unexpected{refuse(*why, *fresh)};
    }
    // The same, with something to cancel it by.
    std::expected<handle, refused<T>> enqueue_with_handle(Key tenant, T payload,
                                                          terms const& t = {}) {
        auto fresh = shared::make(std::move(tenant), std::move(payload), t);
        auto const name = store_.enqueue_with_handle(fresh);
        if (name) return *name;
        return std::unexpected{refuse(name.error(), *fresh)};
    }
    cancel_result cancel(handle h) noexcept { return store_.cancel(h); }

    // Waits for room where enqueue() would refuse; for config::patience, or until a deadline.
    bounded_wait<enqueue_op> enqueue_wait(Key k, T p, terms const& t = {}, stop_token s = {}) {
        return {wait_for_room(k, p, t), {patience_, s}};
    }
    bounded_wait<enqueue_op> enqueue_wait_until(Key k, T p, time_point d, terms const& t = {},
                                                stop_token s = {}) {
        return {wait_for_room(k, p, t), {d, s}};
    }
    bounded_wait<enqueue_op> enqueue_wait_for(Key k, T p, clock::duration d, terms const& t = {},
                                              stop_token s = {}) {
        return {wait_for_room(k, p, t), {d, s}};
    }
    enqueue_result<T> blocking_enqueue(Key k, T p, terms const& t = {}, stop_token s = {}) {
        return blocking_enqueue(k, p, t, {patience_, s});
    }
    enqueue_result<T> blocking_enqueue_until(Key k, T p, time_point d, terms const& t = {},
                                             stop_token s = {}) {
        return blocking_enqueue(k, p, t, {d, s});
    }
    enqueue_result<T> blocking_enqueue_for(Key k, T p, clock::duration d, terms const& t = {},
                                           stop_token s = {}) {
        return blocking_enqueue(k, p, t, {d, s});
    }

    // --- consumers ---

    std::expected<task, try_dequeue_error> try_dequeue() noexcept {
        bool closed = false;
        std::unique_ptr<node> const next{static_cast<node*>(store_.take(closed))};
        if (next != nullptr) return next->deliver();
        return std::unexpected{closed ? try_dequeue_error::closed : try_dequeue_error::empty};
    }
    wait<dequeue_op> dequeue() noexcept { return dequeue_op{store_}; }
    bounded_wait<dequeue_op> dequeue(stop_token s) noexcept { return {dequeue_op{store_}, s}; }
    bounded_wait<dequeue_op> dequeue_until(time_point d, stop_token s = {}) noexcept {
        return {dequeue_op{store_}, {d, s}};
    }
    bounded_wait<dequeue_op> dequeue_for(clock::duration d, stop_token s = {}) noexcept {
        return {dequeue_op{store_}, {d, s}};
    }
    dequeued blocking_dequeue() { return blocking_wait(dequeue_op{store_}); }
    dequeued blocking_dequeue(stop_token s) { return blocking_wait(dequeue_op{store_}, s); }
    dequeued blocking_dequeue_until(time_point d, stop_token s = {}) {
        return blocking_wait(dequeue_op{store_}, {d, s});
    }
    dequeued blocking_dequeue_for(clock::duration d, stop_token s = {}) {
        return blocking_wait(dequeue_op{store_}, {d, s});
    }

    // --- tenants ---

    // Overrides the configured weight until it is cleared, from the tenant's next quantum on.
    void set_weight(Key const& tenant, std::uint32_t weight) { store_.set_weight(tenant, weight); }
    void clear_weight(Key const& tenant) { store_.clear_weight(tenant); }

    // --- time ---

    // By which deadlines are judged.
    time_point now() const noexcept { return store_.now(); }
    // When to call advance() if nothing else happens before: never later than the next deadline
    // passes. None if there is no deadline.
    std::optional<time_point> next_deadline() noexcept { return store_.next_deadline(); }
    // For who holds a timer: waits for a task with an earlier deadline than that of its timer, or
    // until nothing is left of a closed scheduler. One waits at a time.
    wait<earlier_op> earlier_deadline(time_point than) noexcept {
        return earlier_op{store_.watch(), than};
    }
    bounded_wait<earlier_op> earlier_deadline_until(time_point than, time_point until,
                                                    stop_token s = {}) noexcept {
        return {earlier_op{store_.watch(), than}, {until, s}};
    }
    // Ends what has expired by then; says how many.
    std::size_t advance(time_point now) noexcept { return store_.advance(now); }

    // --- the end ---

    // Refuses what comes; what was accepted is still delivered, then consumers get `closed`.
    void close_drain() noexcept { store_.close(shared::closing::drain); }
    // Refuses what comes and returns what is queued; consumers and waiting producers get `closed`.
    void close_immediate() noexcept { store_.close(shared::closing::immediate); }
    void close() noexcept { close_immediate(); }

    // Closed, and nothing is left.
    bool is_finished() noexcept { return store_.is_finished(); }

    fair::stats stats() noexcept {
        fair::stats s;
        store_.read(s);
        return s;
    }

    // Who was served the most of late, at most ranked_tenants of them, and what all others were in
    // sum. (A tenant takes the place of another when it has a quarter more.) Nobody once closed.
    top_tenants<Key> top(std::size_t how_many) { return store_.top(how_many); }

  private:
    enqueue_op wait_for_room(Key& tenant, T& payload, terms const& t) {
        return wait_for_room(shared::make(std::move(tenant), std::move(payload), t));
    }
    enqueue_op wait_for_room(std::unique_ptr<node> fresh) {
        auto& at = store_.hold_with_door(fresh->key);
        return enqueue_op{store_, at, std::move(fresh)};
    }
    enqueue_result<T> blocking_enqueue(Key& tenant, T& payload, terms const& t,
                                       wait_bounds const& bounds) {
        auto fresh = shared::make(std::move(tenant), std::move(payload), t);
        auto const why = store_.enqueue(fresh);
        if (!why) return {};
        if (*why == enqueue_error::closed) return std::unexpected{refuse(*why, *fresh)};
        return blocking_wait(wait_for_room(std::move(fresh)), bounds);
    }
    refused<T> refuse(enqueue_error why, node& kept) noexcept {
        store_.count_refusal(why);
        return {why, std::move(kept.payload)};
    }

    clock::duration patience_;
    shared store_;
};

}  // namespace rondo::fair
