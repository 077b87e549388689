// memory_model.cpp: what a load may read.
//
// Algorithm      Each atomic keeps its stores in modification order, which is the order of
//                execution. A load may read the newest store, or an older one as long as no newer
//                one is already known to the thread: through its own reads and writes, or those of
//                a thread whose access happens before the load (all four coherence rules are this
//                one walk from the newest store backwards). Happens-before is a vector clock per
//                thread; an acquire load joins the clock that the store published.
//
//                seq_cst: the total order S is the order of execution. A seq_cst load does not read
//                behind the newest store that a seq_cst operation before it wrote or read; that is
//                [atomics.order] p3-4 for programs without fences, since S then only constrains
//                accesses to one object through its coherence order.
//
// Invariants     I1 the walk ends: the first store is seen by its creator, and every access is
//                   checked to happen after the construction.
//                I2 a store's published clock is what a release sequence headed by it or ended in
//                   it gives: a read-modify-write adds its own to that of the store it read.
//
// Not produced   executions in which a load reads a store that comes later (load buffering), and
//                those whose modification order contradicts the order of execution (the weak
//                outcome of 2+2W). The standard allows the first for relaxed operations, the second
//                for anything but seq_cst; to produce them, stores would have to be promised or
//                inserted into the past, and clocks could no longer be compared on the way.
//                Those whose S contradicts it: since C++20 happens-before need not agree with S
//                where it leads through operations that are not seq_cst (Z6.U).

#include "execution.hpp"

namespace rondo::check::detail {
namespace {

bool acquires(std::memory_order order) noexcept {
    return order == std::memory_order::acquire || order == std::memory_order::consume ||
           order == std::memory_order::acq_rel || order == std::memory_order::seq_cst;
}
bool releases(std::memory_order order) noexcept {
    return order == std::memory_order::release || order == std::memory_order::acq_rel ||
           order == std::memory_order::seq_cst;
}
bool total(std::memory_order order) noexcept { return order == std::memory_order::seq_cst; }

}  // namespace

std::uint64_t apply(rmw operation, std::uint64_t old, std::uint64_t operand) noexcept {
    switch (operation) {
        case rmw::exchange:
            return operand;
        case rmw::add:
            return old + operand;
        case rmw::sub:
            return old - operand;
        case rmw::bit_and:
            return old & operand;
        case rmw::bit_or:
            return old | operand;
        case rmw::bit_xor:
            return old ^ operand;
    }
    return old;
}

void execution::create_atomic(atomic_word& object, std::uint64_t value, where at) {
    create(object, object_kind::atomic, at);
    location& place = locations_.back();
    place.newest = no_store;
    place.sc_floor = 0;
    append_store(place, value, std::memory_order::relaxed, false);
}

location& execution::atomic_at(atomic_word const& object, char const* what) {
    location& place = find(object, object_kind::atomic, what);
    must_see_construction(place, what);
    place.touched.at[self_] = time();
    return place;
}

// Newest first.
execution::readable execution::readable_stores(location const& place, std::memory_order order) {
    readable result;
    clock const& now = me().now;
    std::uint32_t const floor = total(order) ? place.sc_floor : 0;
    std::uint32_t const visible_from = me().visible_from;
    for (std::uint32_t at = place.newest;;) {
        store_record const& candidate = stores_[at];
        if (result.count == result.stores.size()) {
            histories_cut_ = true;
            break;
        }
        result.stores[result.count++] = at;
        if (at <= floor || at < visible_from || now.reached_any(candidate.seen)) {
            break;  // I1
        }
        at = candidate.previous;
    }
    return result;
}

std::uint64_t execution::read_store(location& place, std::uint32_t from, std::memory_order order) {
    store_record& source = stores_[from];
    if (source.seen.at[self_] == never) {
        source.seen.at[self_] = time();
    }
    if (acquires(order)) {
        me().now.join(source.published);
    }
    if (total(order) && from > place.sc_floor) {
        place.sc_floor = from;
    }
    return source.value;
}

void execution::append_store(location& place, std::uint64_t value, std::memory_order order,
                             bool continues) {
    auto const id = static_cast<std::uint32_t>(stores_.size());
    store_record& added = stores_.push();
    added.value = value;
    added.previous = place.newest;
    added.seen.at.fill(never);
    added.seen.at[self_] = time();
    added.published = releases(order) ? me().now : clock{};
    if (continues) {
        added.published.join(stores_[place.newest].published);  // I2
    }
    place.newest = id;
    if (total(order)) {
        place.sc_floor = id;
    }
}

unsigned execution::newer_than(location const& place, std::uint32_t from) const {
    unsigned count = 0;
    for (std::uint32_t at = place.newest; at != from; at = stores_[at].previous) {
        ++count;
    }
    return count;
}

// The thread can no longer read anything older than what is newest now.
void execution::mark_seen(location const& place, unsigned thread) {
    clock& seen = stores_[place.newest].seen;
    if (seen.at[thread] == never) {
        seen.at[thread] = threads_[thread].now.at[thread];
    }
}

std::uint64_t execution::load(atomic_word const& object, std::memory_order order, where at) {
    point();
    location& place = atomic_at(object, "load");
    readable const from = readable_stores(place, order);
    std::uint32_t const chosen = from.stores[choose(branch::store, from.count)];
    std::uint64_t const value = read_store(place, chosen, order);
    if (traced_) [[unlikely]] {
        note(action::load, at, id_of(place), value, order, 0, newer_than(place, chosen));
    }
    tick();
    return value;
}

void execution::store(atomic_word& object, std::uint64_t value, std::memory_order order, where at) {
    point();
    location& place = atomic_at(object, "store");
    append_store(place, value, order, false);
    note(action::store, at, id_of(place), value, order);
    tick();
}

std::uint64_t execution::modify(atomic_word& object, rmw operation, std::uint64_t operand,
                                std::uint64_t width, std::memory_order order, where at) {
    point();
    location& place = atomic_at(object, "read-modify-write");
    std::uint64_t const old = read_store(place, place.newest, order);
    std::uint64_t const value = apply(operation, old, operand) & width;
    append_store(place, value, order, true);
    note(action::rmw, at, id_of(place), old, order, value);
    tick();
    return old;
}

// The outcomes: exchange if the newest value is the expected one; fail on the newest value
// otherwise, or on any older readable store with another value; and a weak one may fail on the
// newest value although it is the expected one, as often as the settings say.
bool execution::compare_exchange(atomic_word& object, std::uint64_t& expected,
                                 std::uint64_t desired, bool weak, std::memory_order success,
                                 std::memory_order failure_order, where at) {
    point();
    location& place = atomic_at(object, "compare-exchange");
    bool const can_exchange = stores_[place.newest].value == expected;

    readable from = readable_stores(place, failure_order);
    unsigned kept = 1;
    for (unsigned i = 1; i < from.count; ++i) {
        if (stores_[from.stores[i]].value != expected) {
            from.stores[kept++] = from.stores[i];
        }
    }
    bool const could_fail = weak && can_exchange && spurious_failures_left_ != 0;
    bool const may_fail = could_fail && kept < chooser::max_alternatives;
    if (could_fail && !may_fail) histories_cut_ = true;
    unsigned const taken = choose(branch::store, kept + (may_fail ? 1 : 0));

    if (can_exchange && taken == 0) {
        std::uint64_t const old = read_store(place, place.newest, success);
        append_store(place, desired, success, true);
        note(action::compare_exchanged, at, id_of(place), old, success, desired);
        tick();
        return true;
    }
    bool const spurious = taken == kept;
    if (spurious) {
        --spurious_failures_left_;
    }
    std::uint32_t const chosen = spurious ? place.newest : from.stores[taken];
    std::uint64_t const found = read_store(place, chosen, failure_order);
    if (traced_) [[unlikely]] {
        note(action::compare_failed, at, id_of(place), found, failure_order, expected,
             newer_than(place, chosen));
    }
    expected = found;
    tick();
    return false;
}

}  // namespace rondo::check::detail
