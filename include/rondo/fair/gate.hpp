// gate.hpp: so many at a time, and tenants take turns: a semaphore that is fair between tenants.
//
//   fair::gate<std::string> gate{config};               // max_in_flight = 32, ...
//   auto permit = co_await gate.acquire("acme");        // expected<gate_permit, gate_error>
//   if (!permit) co_return refuse(permit.error());
//   ...
//   permit->release(measured_cost);                     // or simply destroyed
//
// Guarantee      at most max_in_flight permits are out. While one is free and nobody waits, a
//                caller has it with one atomic operation; nobody overtakes those who wait.
//                They are let in in the order of a scheduler (scheduler.hpp, docs/fair.md): each
//                tenant has its share of the cost let in, a tenant that becomes active comes before
//                the backlog of others if its quantum * weight pays for its caller, and nobody
//                starves.
//                At most max_in_flight_per_tenant permits of a tenant are out; those of it who wait
//                for that hold up nobody else, and it has its share as far as that limit leaves it
//                as much: what it could not spend meanwhile it keeps, up to two quanta and what its
//                next caller costs.
//                At most max_queued callers wait, and max_queued_per_tenant of a tenant. Whoever
//                does not get a permit is told why, once, and as soon as it is known.
// Cost           is what a permit takes of its tenant's share. release(cost) corrects it when it
//                is known: what it was more, the tenant owes, and has its next turn the later; what
//                it was less is paid back as far as that makes its next caller go sooner. A tenant
//                that leaves keeps its debt; nobody has any once nobody waits. A permit that was
//                taken while nobody waited was paid by nobody: nothing is paid back for it, and
//                what it cost more is owed only if there is a max_in_flight_per_tenant.
// Deadlines      end a wait when they pass, not when its turn comes.
// Thread safety  everything may be called concurrently, but for the destructor.
// Memory order   what happens before a permit is given back is visible to whom it goes.
// Cancellation   a caller that is stopped, or destroyed while it waits, leaves the line. A permit
//                that was granted in that instant is in the result, or goes to the next.
// Resumption     on the waiter's executor, never inside release().
// Exceptions     the constructor and reconfigure() throw std::invalid_argument that names the field
//                when a value cannot be; acquiring does so for a cost that cannot be, and throws
//                std::bad_alloc and what entitlement_of throws, as the result of the wait.
// Allocation     none but a block for a tenant that is not remembered, if it has to wait or there
//                is a max_in_flight_per_tenant. Those are remembered who have permits or wait, or
//                are among the last 1024 that did, or in top().
// Lifetime       it outlives its permits and those who wait. Its destructor closes it.
// Example        examples/fair/one_at_a_time.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rondo/core/wait.hpp"
#include "rondo/fair/detail/roster.hpp"
#include "rondo/fair/detail/turnstile.hpp"
#include "rondo/fair/gate_limits.hpp"
#include "rondo/fair/gate_permit.hpp"
#include "rondo/fair/key.hpp"
#include "rondo/fair/stats.hpp"
#include "rondo/fair/terms.hpp"

namespace rondo::fair {

template <class Key = std::uint64_t>
class gate {
    static_assert(tenant_key<Key>);

    class shared;

  public:
    using permit = gate_permit;
    using acquired = std::expected<permit, gate_error>;

    class acquire_op;

    explicit gate(gate_config<Key> c = {}) : shared_(std::move(c)) {}

    // Waits its turn, for max_wait or until a deadline.
    bounded_wait<acquire_op> acquire(Key k, std::uint64_t cost = 1, stop_token s = {}) {
        return {acquire_op{shared_, std::move(k), cost}, {shared_.max_wait(), s}};
    }
    bounded_wait<acquire_op> acquire_until(Key k, time_point d, std::uint64_t cost = 1,
                                           stop_token s = {}) {
        return {acquire_op{shared_, std::move(k), cost}, {d, s}};
    }
    bounded_wait<acquire_op> acquire_for(Key k, clock::duration d, std::uint64_t cost = 1,
                                         stop_token s = {}) {
        return {acquire_op{shared_, std::move(k), cost}, {d, s}};
    }
    acquired blocking_acquire(Key k, std::uint64_t cost = 1, stop_token s = {}) {
        return blocking_wait(acquire_op{shared_, std::move(k), cost}, {shared_.max_wait(), s});
    }
    acquired blocking_acquire_until(Key k, time_point d, std::uint64_t cost = 1,
                                    stop_token s = {}) {
        return blocking_wait(acquire_op{shared_, std::move(k), cost}, {d, s});
    }
    acquired blocking_acquire_for(Key k, clock::duration d, std::uint64_t cost = 1,
                                  stop_token s = {}) {
        return blocking_wait(acquire_op{shared_, std::move(k), cost}, {d, s});
    }
    // At once or not at all. Who does not get in so is not in the figures.
    std::expected<permit, try_gate_error> try_acquire(Key k, std::uint64_t cost = 1) {
        acquire_op op{shared_, std::move(k), cost};
        op.only_try();
        if (!op.ready()) return std::unexpected{try_gate_error::no_permit};
        acquired got = op.take();
        if (got) return std::move(*got);
        return std::unexpected{try_gate_error::closed};
    }

    // Other limits, weights and policies from now on. Nobody is dropped: more may be in flight, or
    // in line, than the new limits say, until enough have gone; until then nobody is let in, or
    // lines up but in place of another. Permits that passed by one atomic operation are no
    // tenant's: a limit per tenant that is set later does not count them. Credit and debts stay;
    // weights hold from the next quantum on. Throws as the constructor does, and then nothing has
    // changed; and what entitlement_of throws when it is asked about those who are remembered: all
    // of these keep what they were entitled to, and everything else is as the new terms say.
    void reconfigure(gate_terms<Key> t) { shared_.reconfigure(std::move(t)); }

    // Refuses who comes; those in line are let in as before.
    void close_drain() noexcept { shared_.close(shared::closing::drain); }
    // Refuses those in line as well. Permits that are out stay valid.
    void close_immediate() noexcept { shared_.close(shared::closing::immediate); }
    void close() noexcept { close_immediate(); }
    bool is_closed() noexcept { return shared_.is_closed(); }
    // Closed, nobody is in line and no permit is out.
    bool is_finished() noexcept { return shared_.is_finished(); }

    clock::duration max_wait() const noexcept { return shared_.max_wait(); }

    gate_stats stats() noexcept {
        gate_stats s;
        shared_.read(s);
        return s;
    }
    // Who was let in the most of late, as scheduler::top() says it. What passed by one atomic
    // operation is not in it.
    top_tenants<Key> top(std::size_t how_many) { return shared_.top(how_many); }

  private:
    shared shared_;
};

// The turnstile with keys.
template <class Key>
class gate<Key>::shared final : public detail::turnstile {
  public:
    using node = detail::keyed_tenant<Key>;

    explicit shared(gate_config<Key>&& c)
        : turnstile(c, {.shards = c.shards, .quantum = c.quantum, .time = c.time}),
          tenants_(c.shards, entitled(c)) {}
    ~shared() {
        close(closing::immediate);
        forget_all();
    }

    // Brings the caller under the lock; as turnstile::arrive().
    void come(caller& c, Key const& key) {
        std::size_t const hash = key_hash<Key>{}(key);
        c.enqueued_at = now();
        typename detail::roster<Key>::newcomer fresh;
        for (;;) {
            bool has_come = false;
            change(c.enqueued_at, [&] {
                node* const t = tenants_.find_or_add(key, hash, fresh);
                has_come = t != nullptr || tries_in_vain(c);
                if (t == nullptr) return;
                if (fresh.added()) adopt();
                arrive(c, *t);
            });
            if (has_come) return;
            tenants_.make(key, hash, fresh);
        }
    }

    void reconfigure(gate_terms<Key>&& t) {
        detail::require(validate(static_cast<gate_limits const&>(t)));
        auto const by = entitled(t);
        auto before = by;
        remembered all;
        std::size_t needed = 0;
        bool changed = false;
        while (!changed) {
            all.reserve(needed + needed / 8 + 1);  // before anything changes: it may throw
            change(now(), [&] {
                needed = known();
                changed = needed <= all.capacity();
                if (!changed) return;
                limit(t);
                tenants_.for_each([&](node& n) {  // before anybody comes: I4
                    hold_back(n);
                    call_up(n);
                    hold(n);
                    all.push_back({&n, {}});
                });
                before = tenants_.exchange(std::move(before));
            });
        }
        entitle_all(all, by);
    }

    top_tenants<Key> top(std::size_t how_many) {
        detail::served_most const all = hold_served_most();
        auto const release = [this](detail::served_most const* held) { let_go(*held); };
        std::unique_ptr<detail::served_most const, decltype(release)> const guard{&all, release};
        return detail::top_of<Key>(all, how_many);
    }

  private:
    using remembered = std::vector<std::pair<node*, entitlement>>;

    static detail::roster<Key>::known entitled(gate_terms<Key>& t) {
        return std::make_shared<detail::entitlements<Key>>(t.tenants, std::move(t.entitlement_of),
                                                           t.when_full);
    }

    // Tells the tenants that were remembered, and are held; those made since then were made of it.
    void entitle_all(remembered& all, typename detail::roster<Key>::known const& by) {
        std::exception_ptr failure;
        try {
            for (auto& [t, e] : all) e = by->of(t->key);
        } catch (...) {
            failure = std::current_exception();
        }
        change(now(), [&] {
            bool const latest = by == tenants_.entitled();  // else who has changed them tells all
            for (auto const& [t, e] : all) {
                if (!failure && latest) entitle(*t, e);
                let_go(*t);
            }
        });
        if (failure) std::rethrow_exception(failure);
    }

    using turnstile::let_go;

    void erase(detail::tenant& t) noexcept override {
        (void)tenants_.erase(static_cast<node&>(t));  // nobody leaves anything for it
    }
    void destroy(detail::tenant& t) noexcept override { delete &static_cast<node&>(t); }

    detail::roster<Key> tenants_;
};

// It holds its tenant from when it came under the lock until it is destroyed, or gives it on to the
// permit.
template <class Key>
class gate<Key>::acquire_op : public detail::turnstile::caller {
    using fate = detail::turnstile::fate;

  public:
    acquire_op(shared& at, Key key, std::uint64_t price)
        : caller(at, terms{.cost = price}), key_(std::move(key)) {
        if (price == 0 || price > max_cost) [[unlikely]]
            detail::require(validate(terms{.cost = price}));
    }
    acquire_op(acquire_op&& other) noexcept
        : caller(other.at(), terms{.cost = other.cost}), key_(std::move(other.key_)) {}
    ~acquire_op() {
        if (this->owner != nullptr) this->at().dismiss(*this);
    }

    void only_try() noexcept { this->tries_ = true; }
    bool ready() noexcept {
        if (this->at().try_pass()) {
            this->fate_ = fate::passed;
            return true;
        }
        try {
            static_cast<shared&>(this->at()).come(*this, key_);
            return this->fate_ != fate::open;
        } catch (...) {
            failure_ = std::current_exception();
            return true;
        }
    }
    acquired take() {
        if (failure_) std::rethrow_exception(failure_);
        if (!this->let_in()) return std::unexpected{reason()};
        return permit{this->at(), std::exchange(this->owner, nullptr), said(), waited()};
    }
    void hand_on() noexcept {
        if (!this->let_in()) return;
        permit unused{this->at(), std::exchange(this->owner, nullptr), said(), {}};
        unused.release(0);
    }
    gate_error refuse(wait_error why) const noexcept {
        return why == wait_error::timed_out ? gate_error::timed_out : gate_error::stopped;
    }

  private:
    detail::turnstile::price said() const noexcept {
        return {this->cost, this->admitted_at(), this->has_lined_up()};
    }
    clock::duration waited() const noexcept {
        if (!this->has_lined_up()) return {};
        return this->at().now() - this->enqueued_at;
    }
    gate_error reason() const noexcept {
        switch (this->fate_) {
            case fate::tenant_full:
                return gate_error::tenant_full;
            case fate::gate_full:
                return gate_error::gate_full;
            case fate::evicted:
                return gate_error::evicted;
            default:
                return gate_error::closed;
        }
    }

    Key key_;
    std::exception_ptr failure_;
};

}  // namespace rondo::fair
