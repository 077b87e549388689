// Algorithm
//
// One lock guards everything: the order of turns, the wheel of deadlines, the limits. Consumers
// wait in the queue to which it belongs, so a task is handed to the one first in line under the
// same lock under which it was accepted. But while nobody waits and there is room, a producer whose
// tenant is known leaves its task in the intake, and is through; whoever has the lock next begins
// with taking in what was left. Producers wait at the door of their tenant for a place:
//
//   free -> reserved   a door grants a producer its place (lock of the door, then ours); or there
//                      is one at once for a producer that may not want it in the end
//        -> queued     the producer brings the task; or enqueue() finds room at once, or a place in
//                      the intake
//        -> in hand    a consumer is granted the task: one that waits, or that may not want it
//        -> free       it takes it; a consumer that does not wait does both at once
//   in hand -> queued  the consumer was destroyed before it could take it, or has lost a when_any
//   queued  -> free    expired, cancelled, evicted, dropped, returned
//
// Invariants
//   I1  occupied_ counts places that are reserved, queued or in hand; it is at most max_global, and
//       that of a tenant at most max_per_tenant, whenever the lock is free. (What comes back from
//       a consumer has kept its place.)
//   I2  a task is in the order of turns, or in hand of one consumer, or has ended: end() is called
//       once for each that was accepted.
//   I3  no task is handed out whose deadline lies before the time of the operation that hands it
//       out: expire() comes first in each, and nothing is left in the intake past a deadline. (A
//       consumer reads it in ready(), and not again when it comes to wait.)
//   I4  while the lock is free no consumer waits if a task is queued (I3 of core/waiter.cpp).
//   I5  somebody is opening doors if one of them is in hungry_, and there is room or it is closed:
//       whoever made the room, or closed it. owed_ counts these doors and those that are being
//       opened; as many places are theirs, and nobody who comes meanwhile takes them. Doors are
//       opened in turn, for one place each: also that of a tenant which has got room of its own
//       stands behind those that wait for room in all, or tenants at their limit would have all of
//       it among them. offered_ counts the places for which doors are being opened, and that they
//       have not taken yet: none is opened for one of these, or it would lose its turn.
//   I6  a tenant is destroyed after it was forgotten: idle, not held, and out of the map. Whoever
//       keeps a pointer to one without the lock holds it.
//   I7  the intake has places only while the scheduler is open and nobody waits, consumer or
//       producer; and occupied_ and all of them together are within max_global, and within
//       max_per_tenant, so that no tenant can exceed that. Whoever is about to wait, or to close,
//       or to refuse for want of room, closes it first, and so finds all that was left.
//   I8  a tenant for which something was left and not collected is not forgotten.
//
// Races considered
//   cancel / dequeue   both under the lock: whoever is first takes it out of the order of turns.
//   stop / hand-off    decided by core: a granted consumer has the task, whatever it is told later.
//   close / reserved   the place is given up when its producer comes and finds it closed; a drain
//                      waits for that, as it does for what is in hand.
//   leave / wait       decided in the word of the intake: either the task is there when the
//                      consumer closes it, or the producer finds no place, takes the lock, and
//                      finds the consumer.
//   leave / close      the same.
//   leave / forget     both have the lock of the tenant's table.
//   close / hand_on    what is put back after close_immediate() is returned.
#include "rondo/fair/detail/engine.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::fair::detail {

bool door::grant(waiter& first) noexcept {
    reservation const r = engine_.reserve(*this);
    static_cast<producer&>(first).reserved_ = r == reservation::made;
    return r != reservation::no_room;
}
void door::nobody_waits() noexcept { engine_.nobody_waits_at(*this); }

engine::engine(limits const& l)
    : limits_((require(validate(l)), l)),
      least_limit_(std::min(l.max_global, l.max_per_tenant)),
      now_(now()),
      turns_(l.quantum, idle_tenants_kept),
      served_(now_),
      deadlines_(std::chrono::nanoseconds{1}, now_) {}

engine::~engine() {
    RONDO_ASSERT(live_ == 0, "a scheduler is closed, and what was queued returned, before this");
}

// --- tasks come ------------------------------------------------------------------------------

engine::admission engine::admit(tenant& t, entry& e, aftermath& after) noexcept {
    entry* instead_of = nullptr;
    admission const room = find_room(t, instead_of);
    if (room != admission::accepted) return room;
    take_place(t);
    enter(t, e, now_);  // before the other goes: its tenant keeps its turn
    if (instead_of != nullptr) displace(*instead_of, t.when_full, after);
    return room;
}

// If the task that has to go is all that its tenant has, the one that may come is held back until
// it is known: so the tenant stays in line, and keeps what it has saved. (It is not queued yet.)
engine::admission engine::occupy(tenant& t, entry& e, aftermath& after) noexcept {
    entry* instead_of = nullptr;
    admission const room = find_room(t, instead_of);
    if (room != admission::accepted) return room;
    if (instead_of != nullptr && instead_of->owner == &t && t.tasks().length() == 1) {
        turns_.add_held_back(t, e);
        t.promised += e.cost;
    }
    if (instead_of != nullptr) displace(*instead_of, t.when_full, after);
    take_place(t);
    return room;
}

void engine::take_place(tenant& t) noexcept {
    occupied_ = occupied_ + 1;
    ++t.occupied;
}

void engine::admit_reserved(tenant& t, entry& e, aftermath& after) noexcept {
    if (now_ > e.expires) {
        give_up_reserved(t, e, after);
        admit_expired(e, after);
    } else if (linked_list<entry>::is_linked(e)) {
        t.promised -= e.cost;
        turns_.call_up(e);
        entered(t, e, now_);
    } else {
        enter(t, e, now_);
    }
}

void engine::give_up_reserved(tenant& t, entry& e, aftermath& after) noexcept {
    if (linked_list<entry>::is_linked(e)) {
        t.promised -= e.cost;
        turns_.remove_held_back(e);
    }
    release(t, after);
}

// I7. (Without asking for consumers that wait, grant() would close it again.)
std::size_t engine::room_for_intake() const noexcept {
    if (closing_ != closing::open || has_waiters() || owed_ != 0) return 0;
    std::size_t const promised = occupied_ + intake_.given();
    if (promised >= least_limit_) return 0;
    return std::min(least_limit_ - promised, intake::most_places);
}

void engine::open_intake() noexcept {
    if (std::size_t const places = room_for_intake(); places != 0) collect(places);
}

void engine::close_intake() noexcept {
    if (intake_.given() != 0) collect(0);
}

void engine::collect(std::size_t places) noexcept {
    linked_chain<entry> left = intake_.take(places);
    while (entry* const e = left.pop_front()) {
        tenant& t = *e->owner;
        take_place(t);
        ++t.collected;  // I8
        enter(t, *e, e->enqueued_at);
    }
}

void engine::enter(tenant& t, entry& e, time_point at) noexcept {
    turns_.add(t, e);
    entered(t, e, at);
}

void engine::entered(tenant& t, entry& e, time_point at) noexcept {
    ++counters_.enqueued;
    ++live_;
    e.enqueued_at = at;
    if (limits_.when_full == backpressure::evict_longest) loads_.raise(t);
    set_timer(e);
}

void engine::set_timer(entry& e) noexcept {
    if (e.expires == time_point::max()) return;
    time_point const end = later(e.expires, clock::duration{1});  // expired: after it, not at it
    deadlines_.insert(e, end);
    if (end < due()) set_due(end);
    tell_watch_ = tell_watch_ || e.expires < watched_;
}

// It needs no room: it was past its deadline when it came.
void engine::admit_expired(entry& e, aftermath& after) noexcept {
    ++counters_.enqueued;
    ++ended_[static_cast<std::size_t>(disposition::expired)];
    if (e.handle != 0) handles_.release(std::exchange(e.handle, 0));
    e.enqueued_at = now_;
    e.end = disposition::expired;
    after.undelivered.push_back(e);
}

// A place that is free, or that of a task that has to go.
engine::admission engine::find_room(tenant& t, entry*& instead_of) noexcept {
    if (intake_.given() != 0 && occupied_ + intake_.given() < least_limit_) {
        return admission::accepted;  // I7: nor is anybody overtaken
    }
    close_intake();  // I7: what is refused is refused for good reason
    bool const full = t.occupied >= limits_.max_per_tenant;
    door const* const d = t.waiting_room;
    bool const in_line = d != nullptr && d->is_awaited();  // nobody overtakes them
    if (!full && !in_line && has_spare_room()) return admission::accepted;
    bool const of_any = t.when_full == backpressure::evict_longest && !full;
    tenant* const longest = of_any && !in_line ? loads_.longest() : nullptr;
    tenant* const from = of_any ? longest : &t;
    if (from != nullptr) instead_of = first_to_go(*from, t.when_full);
    if (instead_of != nullptr) return admission::accepted;  // it takes no place but that one
    return full || has_spare_room() ? admission::tenant_full : admission::global_full;
}

// Which task of the tenant goes in favour of another, if any does.
entry* engine::first_to_go(tenant const& t, backpressure how) noexcept {
    if (how == backpressure::drop_oldest) return t.tasks().oldest_of_lowest();
    bool const newest = how == backpressure::drop_newest || how == backpressure::evict_longest;
    return newest ? t.tasks().newest_of_lowest() : nullptr;
}

void engine::displace(entry& e, backpressure how, aftermath& after) noexcept {
    bool const evicts = how == backpressure::evict_longest;
    out_of_turn(e, evicts ? disposition::evicted : disposition::dropped, after);
}

void engine::refused(enqueue_error why) noexcept {
    switch (why) {
        case enqueue_error::rejected_global:
            ++counters_.rejected_global;
            break;
        case enqueue_error::rejected_tenant:
            ++counters_.rejected_tenant;
            break;
        case enqueue_error::timed_out:
            ++counters_.rejected_timeout;
            break;
        case enqueue_error::closed:
            ++counters_.rejected_closed;
            break;
        case enqueue_error::stopped:
            break;  // its owner did not want it any more
    }
}

// --- tasks go --------------------------------------------------------------------------------

entry* engine::take(bool& closed) noexcept {
    entry* e = nullptr;
    change(now(), [&](aftermath& after) {
        if (!has_waiters() && closing_ != closing::immediate) e = turns_.next();
        closed = e == nullptr && finished();
        if (e != nullptr) delivered(*e, now_, after);
    });
    return e;
}

bool engine::grant(waiter& first) noexcept {
    auto& to = static_cast<taker&>(first);
    close_intake();  // I7: it may have to wait
    if (closing_ != closing::immediate) to.task_ = turns_.next();
    if (to.task_ == nullptr) return finished();
    to.in_hand_ = true;
    to.handed_at_ = now_;
    turns::hold(*to.task_->owner);  // I6
    if (to.task_->has_timer()) deadlines_.cancel(*to.task_);
    return true;
}

bool engine::taker::ready() noexcept {
    bool closed = false;
    task_ = engine_->take(closed);
    return task_ != nullptr || closed;
}

bool engine::taker::ready_revocably() noexcept {
    bool decided = false;
    engine_->change(engine_->now(), [&](aftermath&) {
        decided = engine_->grant(*this);  // I4: it overtakes nobody
    });
    return decided;
}

entry* engine::taker::taken() noexcept {
    if (!in_hand_) return task_;
    engine_->change(engine_->now(), [this](aftermath& after) {
        tenant& t = *task_->owner;
        engine_->delivered(*task_, handed_at_, after);
        engine_->turns_.let_go(t);
    });
    in_hand_ = false;
    return task_;
}

void engine::taker::hand_on() noexcept {
    if (!in_hand_) return;
    engine_->change(engine_->now(), [this](aftermath& after) {
        tenant& t = *task_->owner;
        if (engine_->closing_ == closing::immediate) {
            engine_->end(*task_, disposition::returned, after);
        } else if (engine_->now_ > task_->expires) {
            engine_->end(*task_, disposition::expired, after);  // I3
        } else {
            engine_->put_back(*task_);
        }
        engine_->turns_.let_go(t);
    });
    in_hand_ = false;
}

void engine::put_back(entry& e) noexcept {
    turns_.put_back(e);
    if (limits_.when_full == backpressure::evict_longest) loads_.raise(*e.owner);
    set_timer(e);
}

void engine::delivered(entry& e, time_point at, aftermath& after) noexcept {
    queue_time_.record(at - e.enqueued_at);
    account(*e.owner, e.cost);
    end(e, disposition::delivered, after);
}

// Who is in the ranking is held: it is not forgotten while it can be asked for.
void engine::account(tenant& t, std::uint64_t cost) noexcept {
    if (closing_ != closing::open) return;
    ranking::change const c = served_.served(t, cost, now_);
    if (c.listed) turns::hold(t);
    if (c.gone != nullptr) turns_.let_go(*c.gone);
}

void engine::out_of_turn(entry& e, disposition how, aftermath& after) noexcept {
    turns_.remove(e);
    end(e, how, after);
}

// I2
void engine::end(entry& e, disposition how, aftermath& after) noexcept {
    ++ended_[static_cast<std::size_t>(how)];
    e.end = how;
    if (e.has_timer()) deadlines_.cancel(e);
    if (e.handle != 0) handles_.release(std::exchange(e.handle, 0));
    --live_;
    release(*e.owner, after);
    if (how != disposition::delivered) after.undelivered.push_back(e);
}

// Gives a place back, and calls who waits for it.
void engine::release(tenant& t, aftermath& after) noexcept {
    occupied_ = occupied_ - 1;
    --t.occupied;
    if (door* const d = t.waiting_room; d != nullptr && d->tenant_full_) {
        linked_list<door>::remove(*d);
        call(*d);
    }
    if (owed_ != 0) after.doors = true;
    if (nothing_left()) tell_watch_ = true;
}

cancel_result engine::cancel(handle h) noexcept {
    cancel_result result = cancel_result::not_found;
    change(now(), [&](aftermath& after) {
        entry* const e = handles_.find(h);
        if (e == nullptr || !linked_list<entry>::is_linked(*e)) return;  // gone, or in hand
        out_of_turn(*e, disposition::cancelled, after);
        result = cancel_result::cancelled;
    });
    return result;
}

handle engine::reserve_handle() {
    std::lock_guard const guard{lock()};
    return handles_.reserve();
}

void engine::release_handle(handle h) noexcept {
    std::lock_guard const guard{lock()};
    handles_.release(h);
}

// --- time ------------------------------------------------------------------------------------

void engine::expire(aftermath& after) noexcept {
    while (timer_node* const expired = deadlines_.pop_expired(now_)) {
        out_of_turn(static_cast<entry&>(*expired), disposition::expired, after);
    }
    set_due(deadlines_.next_expiry().value_or(time_point::max()));
}

std::size_t engine::advance(time_point now) noexcept {
    std::uint64_t expired = 0;
    change(time_point::min(), [&](aftermath& after) {
        std::uint64_t& in_all = ended_[static_cast<std::size_t>(disposition::expired)];
        std::uint64_t const before = in_all;
        now_ = std::max(now_, now);
        expire(after);
        expired = in_all - before;
    });
    return static_cast<std::size_t>(expired);
}

std::optional<time_point> engine::next_deadline() noexcept {
    std::lock_guard const guard{lock()};
    return deadlines_.next_expiry();
}

bool deadline_watch::comes_before(time_point than) noexcept { return engine_.comes_before(than); }

bool engine::comes_before(time_point than) noexcept {
    std::lock_guard const guard{lock()};
    auto const next = deadlines_.next_expiry();
    bool const yes = nothing_left() || (next && *next < than);
    watched_ = yes ? time_point::min() : than;
    return yes;
}

// --- producers that wait ---------------------------------------------------------------------

reservation engine::reserve(door& d) noexcept {
    std::lock_guard const guard{lock()};
    close_intake();  // I7: it may come to wait
    if (closing_ != closing::open) return reservation::closed;
    tenant& t = d.of();
    bool const fits = t.occupied < limits_.max_per_tenant;
    if (fits && (d.offers_ != 0 || has_room_beside(d))) {
        if (d.offers_ != 0) end_offer(d);
        take_place(t);
        return reservation::made;
    }
    if (!d.linked()) {
        d.tenant_full_ = !fits;
        (fits ? hungry_ : full_).push_back(d);
        if (fits) ++owed_;
    }
    return reservation::no_room;
}

void engine::nobody_waits_at(door& d) noexcept {
    std::lock_guard const guard{lock()};
    if (!d.linked()) return;
    linked_list<door>::remove(d);
    if (!std::exchange(d.tenant_full_, false)) --owed_;
}

// For a door that has been offered none: what is left when all that others are owed is put aside.
bool engine::has_room_beside(door const& d) const noexcept {
    std::size_t const others = owed_ - d.openers_;
    return d.openers_ != 0 ? others == 0 && occupied_ < limits_.max_global : has_spare_room();
}

void engine::end_offer(door& d) noexcept {
    --d.offers_;
    --offered_;
}

// Its tenant has room.
void engine::call(door& d) noexcept {
    d.tenant_full_ = false;
    hungry_.push_back(d);
    ++owed_;
}

// The door to open next, held; after the one that was opened.
door* engine::next_door(door* opened) noexcept {
    std::lock_guard const guard{lock()};
    if (opened != nullptr) {
        --owed_;
        if (opened->offers_ == opened->openers_) end_offer(*opened);  // it was not wanted
        --opened->openers_;
        turns_.let_go(opened->of());
    }
    bool const may_open = occupied_ + offered_ < limits_.max_global || closing_ != closing::open;
    door* const d = may_open ? hungry_.pop_front() : nullptr;
    if (d == nullptr) return nullptr;
    ++d->openers_;
    ++d->offers_;
    ++offered_;
    turns::hold(d->of());
    return d;
}

// --- the end, and what comes after each operation --------------------------------------------

void engine::close(closing how) noexcept {
    change(now(), [&](aftermath& after) {
        if (closing_ == closing::immediate || closing_ == how) return;
        close_intake();  // I7: nothing is left after this
        closing_ = how;
        while (door* const d = full_.pop_front()) call(*d);
        after.doors = true;
        tell_watch_ = true;
        while (tenant* const t = served_.pop()) turns_.let_go(*t);
        turns_.keep_none();  // nobody comes back
    });
    if (how == closing::immediate) return_all();
}

// A few at a time, so that nobody waits for the lock for long.
void engine::return_all() noexcept {
    constexpr int batch = checked_build ? 2 : 64;
    bool more = true;
    while (more) {
        change(now(), [&](aftermath& after) {
            for (int i = 0; i < batch && more; ++i) {
                entry* const e = turns_.next();
                more = e != nullptr;
                if (more) end(*e, disposition::returned, after);
            }
        });
    }
}

void engine::adopt(tenant& t) noexcept {
    ++known_;
    turns::hold(t);
}

void engine::reweigh(tenant& t, std::uint32_t weight) noexcept {
    turns_.reweigh(t, weight);
    if (limits_.when_full == backpressure::evict_longest) loads_.raise(t);
}

void engine::forget(aftermath& after, int how_many) noexcept {
    for (int i = 0; i < how_many; ++i) {
        tenant* const t = turns_.forget();
        if (t == nullptr) return;
        if (!erase(*t)) continue;  // I8: it becomes active when that is collected
        loads_.remove(*t);
        --known_;
        after.forgotten.push_back(*t);
    }
    after.more_forgotten = turns_.can_forget();
}

void engine::finish(aftermath& after) noexcept {
    settle(after);
    while (after.more_forgotten) {
        constexpr int batch = checked_build ? 2 : 64;
        after.more_forgotten = false;
        {
            std::lock_guard const guard{lock()};
            forget(after, batch);
        }
        settle(after);
    }
}

// The observer is the last: it may wait for those who are told here.
void engine::settle(aftermath& after) noexcept {
    while (tenant* const t = after.forgotten.pop_front()) destroy(*t);
    if (std::exchange(after.earlier_deadline, false)) watch_.look();
    if (std::exchange(after.doors, false)) {
        for (door* d = next_door(nullptr); d != nullptr; d = next_door(d)) d->open();
    }
    while (entry* const e = after.undelivered.pop_front()) report(*e);
}

void engine::read(stats& to) noexcept {
    change(now(), [&](aftermath&) { fill_in(to); });
}

bool engine::is_finished() noexcept {
    bool yes = false;
    change(now(), [&](aftermath&) { yes = nothing_left(); });
    return yes;
}

void engine::fill_in(stats& to) const noexcept {
    auto const ended = [this](disposition how) { return ended_[static_cast<std::size_t>(how)]; };
    static_cast<counters&>(to) = counters_;
    to.dequeued = ended(disposition::delivered);
    to.expired = ended(disposition::expired);
    to.cancelled = ended(disposition::cancelled);
    to.evicted = ended(disposition::evicted);
    to.displaced = ended(disposition::dropped);
    to.returned = ended(disposition::returned);
    to.queued = live_;
    to.capacity = limits_.max_global;
    to.tenants_active = turns_.active();
    to.tenants_known = known_;
    to.queue_time = queue_time_;
}

served_most engine::hold_served_most() noexcept {
    served_most all;
    change(now(), [&](aftermath&) { all = detail::hold_served_most(served_, now_); });
    return all;
}

void engine::let_go(served_most const& all) noexcept {
    change(time_point::min(), [&](aftermath&) {
        for (std::size_t i = 0; i < all.size; ++i) turns_.let_go(*all.tenants[i]);
    });
}

}  // namespace rondo::fair::detail
