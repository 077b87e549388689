// Algorithm
//
// A caller passes by the word, or it comes under the lock. There it is let in at once if nobody has
// a turn before it; or it lines up: it enters the order of turns, or, if its tenant has as many in
// flight and in turn as it may, it is held back until one of these has gone. Its tenant keeps its
// share meanwhile (head of turns.cpp). A place that is given back while there is a line goes to
// whoever's turn it is.
//
//   fresh  -> passed                      by the word; or
//          -> admitted, refused           under the lock, at once
//          -> in turn or held back        its tenant's own limit decides which
//   held back -> in turn                  call_up(): something of its tenant has gone
//   in turn   -> held back                hold_back(): its tenant's limit was lowered
//   in turn   -> admitted                 choose(): its turn, and a place is free
//   in line   -> evicted, closed          choose() lets outcasts go first
//   in line   -> withdrawn                give_back(), of the queue: stopped, late, destroyed
//
// Invariants, whenever the lock is free
//   I1  lined_ says what the word says. With a line spare_ counts the places that are free, and
//       in flight = max_in_flight - spare_; without one the word does.
//   I2  there is a line while somebody waits, while a limit per tenant has to be counted, while
//       more are in flight than may be (spare_ < 0), and once it is closed.
//   I3  if spare_ > 0 nobody is in turn: choose() has let in as many as could go.
//   I4  of a tenant, in flight + in turn <= max_in_flight_per_tenant, or nobody is in turn (more
//       are in flight than a lowered limit allows); somebody is held back only if they are not
//       less. In flight are permits of the lock; who passed by the word is counted for nobody.
//   I5  at most max_queued are in line, and max_queued_per_tenant of a tenant.
//   I6  outcasts_ is empty: the serve() or enter() that cast them out has let them go.
//   I7  a caller that came under the lock holds its tenant, and so does the permit that it becomes;
//       but one that tries in vain, for which none is made.
//
// Races considered
//   leave / line       a place is given back while a line forms: the exchange of one of the two is
//                      first. If it is the line's, try_leave() fails and comes under the lock; if
//                      the line is gone by then, it gives the place to the word there.
//   pass / line        who passes after the line was dissolved has overtaken nobody.
//   stop / turn        decided by the queue, under the lock: withdrawn, it has left the order of
//                      turns; admitted, it has the place, and hand_on() gives it back if nobody is
//                      left to take it.
//   close / pass       close() forms a line, which stays: who passed before has its place.
#include "rondo/fair/detail/turnstile.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::fair {

std::optional<config_error> validate(gate_limits const& l) noexcept {
    if (l.max_in_flight == 0 || l.max_in_flight > detail::admission_word::most_places) {
        return config_error{"max_in_flight", "is from 1 to 2^30"};
    }
    if (l.max_in_flight_per_tenant == 0) {
        return config_error{"max_in_flight_per_tenant", "is at least 1"};
    }
    if (l.max_queued_per_tenant == 0) {
        return config_error{"max_queued_per_tenant", "is at least 1"};
    }
    if (l.when_full == backpressure::wait) {
        return config_error{"when_full", "is not wait: who comes to a gate waits anyway"};
    }
    if (l.max_wait < clock::duration::zero()) return config_error{"max_wait", "is not negative"};
    return std::nullopt;
}

}  // namespace rondo::fair

namespace rondo::fair::detail {

namespace {

std::uint32_t checked_places(gate_limits const& l) {
    require(validate(l));
    return static_cast<std::uint32_t>(l.max_in_flight);
}

std::uint64_t checked_quantum(limits const& l) {
    require(validate(l));
    return l.quantum;
}

}  // namespace

turnstile::turnstile(gate_limits const& l, limits const& shared)
    : wait_queue(order::of_its_own),
      word_(checked_places(l)),
      max_wait_(l.max_wait.count()),
      time_(shared.time),
      limits_(l),
      turns_(checked_quantum(shared), idle_tenants_kept),
      served_(now()),
      now_(now()) {
    std::lock_guard const guard{lock()};
    form_line();
    settle_line();
}

turnstile::~turnstile() {
    RONDO_ASSERT(known_ == 0, "a gate outlives its permits and those who wait");
}

// --- the line --------------------------------------------------------------------------------

void turnstile::form_line() noexcept {
    if (lined_) return;
    admission_word::view const was = word_.form_line();
    lined_ = true;
    spare_ = was.places;
    passed_ += was.passed;
}

// I2
void turnstile::settle_line() noexcept {
    bool const needed = queued_ != 0 || spare_ < 0 || capped() || closing_ != closing::no;
    if (!lined_ || needed) return;
    lined_ = false;
    word_.dissolve(static_cast<std::uint32_t>(spare_));
}

void turnstile::put_place_back() noexcept {
    if (lined_) {
        spare_ = spare_ + 1;
        return;
    }
    bool const put_back = word_.try_leave();
    RONDO_ASSERT(put_back, "a line forms under the lock");  // I1
}

// --- callers come ----------------------------------------------------------------------------

void turnstile::arrive(caller& c, tenant& t) noexcept {
    turns::hold(t);  // I7
    c.owner = &t;
    form_line();
    c.fate_ = decide(c);
    settle_line();
}

// Its tenant would be made for nothing, and forgotten at once.
bool turnstile::tries_in_vain(caller& c) noexcept {
    if (!c.tries_) return false;
    form_line();
    bool const in_vain = closing_ != closing::no || !lets_in();
    if (closing_ != closing::no) c.fate_ = fate::closed;
    settle_line();
    return in_vain;
}

turnstile::fate turnstile::decide(caller& c) noexcept {
    if (closing_ != closing::no) {
        if (!c.tries_) ++counters_.rejected_closed;
        return fate::closed;
    }
    if (!lets_in() || c.owner->in_flight >= limits_.max_in_flight_per_tenant) return fate::open;
    ++passed_;
    admit(c);
    turns_.remember(*c.owner);
    return fate::admitted;
}

bool turnstile::grant(waiter& w) noexcept {
    auto& c = static_cast<caller&>(w);
    form_line();
    c.fate_ = decide(c);
    if (c.fate_ == fate::open) c.fate_ = line_up(c);
    if (c.fate_ == fate::open) return false;
    settle_line();
    return true;
}

turnstile::fate turnstile::line_up(caller& c) noexcept {
    tenant& t = *c.owner;
    caller* instead_of = nullptr;
    if (fate const why = find_room(t, instead_of); why != fate::open) return why;
    ++counters_.enqueued;
    c.lined_up_ = true;
    queued_ = queued_ + 1;
    ++t.occupied;
    c.held_back_ = !may_take_turns(t);
    if (c.held_back_) {
        turns_.add_held_back(t, c);
    } else {
        turns_.add(t, c);
    }
    loads_.raise(t);
    if (instead_of != nullptr) cast_out(*instead_of);  // after c has come: their tenant stays
    return fate::open;
}

// I5: a place in line that is free, or that of a caller who has to go.
turnstile::fate turnstile::find_room(tenant& t, caller*& instead_of) noexcept {
    bool const full = t.occupied >= limits_.max_queued_per_tenant;
    if (!full && queued_ < limits_.max_queued) return fate::open;
    instead_of = first_to_go(t);
    if (instead_of != nullptr) {
        ++counters_.displaced;
        return fate::open;
    }
    bool const evicts = !full && t.when_full == backpressure::evict_longest;
    tenant* const longest = evicts ? loads_.longest() : nullptr;
    if (full || longest == &t) {
        ++counters_.rejected_tenant;
        return fate::tenant_full;
    }
    if (longest == nullptr) {
        ++counters_.rejected_global;
        return fate::gate_full;
    }
    instead_of = newest_of(*longest);
    ++counters_.evicted;
    return fate::open;
}

// Which caller of the tenant goes in favour of another of it, if that is what it does when it is
// full.
turnstile::caller* turnstile::first_to_go(tenant const& t) noexcept {
    if (t.when_full == backpressure::drop_newest) return newest_of(t);
    if (t.when_full != backpressure::drop_oldest) return nullptr;
    entry* const in_turn = t.tasks().oldest_of_lowest();
    return static_cast<caller*>(in_turn != nullptr ? in_turn : t.held_back().oldest_of_lowest());
}

turnstile::caller* turnstile::newest_of(tenant const& t) noexcept {
    entry* const held = t.held_back().newest_of_lowest();
    return static_cast<caller*>(held != nullptr ? held : t.tasks().newest_of_lowest());
}

// --- callers go ------------------------------------------------------------------------------

waiter* turnstile::choose() noexcept {
    if (entry* const e = outcasts_.pop_front()) return static_cast<caller*>(e);
    if (closing_ == closing::immediate) {
        auto* const c = static_cast<caller*>(first_in_line());
        take_out(*c);
        c->fate_ = fate::closed;
        ++counters_.returned;
        return c;
    }
    entry* const e = spare_ > 0 ? turns_.next() : nullptr;
    if (e == nullptr) return nullptr;
    auto& c = static_cast<caller&>(*e);
    queued_ = queued_ - 1;
    --c.owner->occupied;
    ++counters_.dequeued;
    queue_time_.record(now_ - c.enqueued_at);
    admit(c);
    return &c;
}

void turnstile::admit(caller& c) noexcept {
    spare_ = spare_ - 1;
    ++c.owner->in_flight;
    c.admitted_at_ = now_;
    account(*c.owner, c.cost);
    c.fate_ = fate::admitted;
}

void turnstile::give_back(waiter& w) noexcept {
    auto& c = static_cast<caller&>(w);
    take_out(c);
    ++(c.state() == wait_state::timed_out ? counters_.expired : counters_.cancelled);
}

void turnstile::take_out(caller& c) noexcept {
    tenant& t = *c.owner;
    if (c.held_back_) {
        turns_.remove_held_back(c);
    } else {
        call_up(t, 1);  // before c goes: their tenant keeps its turn
        turns_.remove(c);
    }
    queued_ = queued_ - 1;
    --t.occupied;
}

void turnstile::cast_out(caller& c) noexcept {
    take_out(c);
    c.fate_ = fate::evicted;
    outcasts_.push_back(c);
}

// I4. The newest are held back, before those who are.
void turnstile::hold_back(tenant& t) noexcept {
    while (!t.tasks().empty() && !may_take_turns(t, 1)) {
        entry& e = *t.tasks().newest_of_lowest();
        turns_.hold_back(e);
        static_cast<caller&>(e).held_back_ = true;
    }
}

// I4
void turnstile::call_up(tenant& t, std::size_t leaving) noexcept {
    while (!t.held_back().empty() && may_take_turns(t, leaving)) {
        static_cast<caller&>(turns_.call_up(t)).held_back_ = false;
    }
}

void turnstile::leave_passed() noexcept {
    if (word_.try_leave()) return;
    change(now(), [this] {
        put_place_back();
        settle_line();
    });
}

void turnstile::leave_admitted(tenant& t, price const& said, std::uint64_t cost) noexcept {
    change(now(), [&] {
        --t.in_flight;
        if (cost > said.cost) {
            turns_.charge(t, cost - said.cost);
            account(t, cost - said.cost);
        } else if (cost < said.cost) {
            if (said.in_turn) turns_.refund(t, said.cost - cost);  // else it was not paid
            if (closing_ == closing::no) served_.unserved(t, said.cost - cost, said.at, now_);
        }
        put_place_back();
        call_up(t);
        turns_.let_go(t);
        settle_line();
    });
}

void turnstile::dismiss(caller& c) noexcept {
    change(time_point::min(), [&] {
        bool const came_late = c.state() == wait_state::timed_out && !c.lined_up_;
        if (c.fate_ == fate::open && came_late) ++counters_.rejected_timeout;
        turns_.let_go(*c.owner);
    });
}

// Who is in the ranking is held: it is not forgotten while it can be asked for.
void turnstile::account(tenant& t, std::uint64_t cost) noexcept {
    if (closing_ != closing::no) return;
    ranking::change const c = served_.served(t, cost, now_);
    if (c.listed) turns::hold(t);
    if (c.gone != nullptr) turns_.let_go(*c.gone);
}

// --- changes, and the end --------------------------------------------------------------------

void turnstile::limit(gate_limits const& l) noexcept {
    form_line();
    spare_ = spare_ + static_cast<std::int64_t>(l.max_in_flight) -
             static_cast<std::int64_t>(limits_.max_in_flight);
    limits_ = l;
    max_wait_.store(l.max_wait.count(), std::memory_order_relaxed);
    settle_line();
}

void turnstile::entitle(tenant& t, entitlement const& e) noexcept {
    turns_.reweigh(t, e.weight);
    t.when_full = e.when_full.value_or(limits_.when_full);
    if (t.load() != 0) loads_.raise(t);
}

void turnstile::close(closing how) noexcept {
    change(now(), [&] {
        if (closing_ == closing::immediate || closing_ == how) return;
        closing_ = how;
        form_line();
        while (tenant* const t = served_.pop()) turns_.let_go(*t);
        turns_.keep_none();  // nobody comes back
    });
    forget_all();
}

bool turnstile::is_closed() noexcept {
    std::lock_guard const guard{lock()};
    return closing_ != closing::no;
}

bool turnstile::is_finished() noexcept {
    std::lock_guard const guard{lock()};
    return closing_ != closing::no && queued_ == 0 &&
           spare_ == static_cast<std::int64_t>(limits_.max_in_flight);
}

void turnstile::forget(linked_chain<tenant>& forgotten, int how_many) noexcept {
    for (int i = 0; i < how_many; ++i) {
        tenant* const t = turns_.can_forget() ? turns_.forget() : nullptr;
        if (t == nullptr) return;
        loads_.remove(*t);
        erase(*t);
        --known_;
        forgotten.push_back(*t);
    }
}

void turnstile::forget_all() noexcept {
    bool more = true;
    while (more) {
        change(time_point::min(), [&] { more = turns_.can_forget(); });
    }
}

void turnstile::read(gate_stats& to) noexcept {
    std::lock_guard const guard{lock()};
    admission_word::view const word = word_.look();
    static_cast<counters&>(to) = counters_;
    to.queued = queued_;
    to.capacity = limits_.max_queued;
    to.tenants_active = turns_.in_line();
    to.tenants_known = known_;
    to.queue_time = queue_time_;
    to.passed = passed_ + (lined_ ? 0 : word.passed);
    std::int64_t const free = lined_ ? spare_.read() : std::int64_t{word.places};
    to.max_in_flight = limits_.max_in_flight;
    to.in_flight =
        static_cast<std::size_t>(static_cast<std::int64_t>(limits_.max_in_flight) - free);
}

served_most turnstile::hold_served_most() noexcept {
    served_most all;
    change(now(), [&] { all = detail::hold_served_most(served_, now_); });
    return all;
}

void turnstile::let_go(served_most const& all) noexcept {
    change(time_point::min(), [&] {
        for (std::size_t i = 0; i < all.size; ++i) turns_.let_go(*all.tenants[i]);
    });
}

}  // namespace rondo::fair::detail
