// Algorithm
//
// Deficit round robin (Shreedhar and Varghese, 1995): in each round every tenant with tasks gets
// its quantum, quantum * weight, as credit, and its tasks are taken as long as its credit pays for
// the first of them; what it cannot spend it keeps for the next round. With these additions:
//
//   new first   A tenant that becomes active gets the quantum of this round at once, and one task
//               of it is taken before the others have theirs, if that pays for it (the list of new
//               flows of RFC 8290, but a task each and not a quantum; and a flow there may owe what
//               its packet costs more, which here those would leave behind who come once and are
//               forgotten). Then it has the rest of its turn at the end of this round.
//   once        A tenant that has nothing left loses what credit it has. If something was taken of
//               it in this round it has had its turn: if it comes back in the same round it waits
//               for the next one, as one that had stayed. So it is remembered until the round is
//               over. (And some are for longer, for nothing but speed: a tenant that comes back is
//               found, not made.) One of which nothing was taken (all was cancelled, expired or
//               dropped) has had no turn, comes back as new, and need not be remembered: else who
//               comes and goes while a round lasts is starved, and takes memory without end.
//   in place    A task that replaces another of its tenant is added before that is taken out. So
//               the tenant does not leave, and keeps its place and what it has saved.
//   wheel       A tenant that cannot pay for its first task knows the round in which it can, and is
//               put into a wheel under that number; the quanta until then are added when it comes
//               out. If nobody has a turn in the next round, the first one in the wheel is the
//               next.
//   the first   Credit above a quantum has been saved for a task that was first, and is still the
//   task        first of its priority. If that is taken back (cancelled, expired, dropped), first
//               of all or not by then, the tenant keeps no more than it can have saved for the
//               first tasks of each priority that are left. (Not for the first of all alone: one
//               that is urgent and cheap, and is taken back, would cost what was saved before.)
//   weights     change from the next quantum on.
//   held back   A task that a limit of its tenant's keeps from taking turns (max_in_flight_per_
//               tenant of a gate) is in line all the same. A tenant that has nothing else stands
//               aside: nobody waits for it, a round ends without it, and it has its quantum of
//               each. When one of its tasks is called up it goes on with its turn, first in the
//               ring, as the limit has taken it out of the middle of that. It carries kept_quanta
//               from round to round, above what I3 allows others: with none, all that it could not
//               spend before the others ended the round would be lost, and a limit of one would
//               give each tenant one task in a round, whatever its weight and what that costs. With
//               any number, one whose limit leaves it less than its share would save without end,
//               and have the place for itself when the limit does not matter any more.
//   debt        A task that was taken may turn out to cost more (charge()): the tenant's credit,
//               and if that is not enough its next quanta, pay for it before any task does. A
//               tenant that has no tasks pays as well, round by round, so it cannot leave to get
//               rid of it; it is forgotten with the tenant, and when nobody is in line. One that
//               cost less is paid back (refund()), as far as the first task allows.
//
//      place   -> place        when
//      nowhere, -> front       becomes active, nothing of it was taken in this round, it can pay
//      idle     -> ring, wheel becomes active otherwise; the ring if it pays in the next round
//      front    -> ring        one task was taken: the rest of its turn is in this round
//      front,   -> ring, wheel cannot pay (again)
//      ring
//      wheel    -> ring        the round has come
//      any      -> aside       nothing is left but what is held back
//      aside    -> ring, wheel something is called up; it is the first in the ring if it pays
//      any but  -> ring        something is put back: the first in the ring of this round
//      front
//      any      -> idle        nothing is left
//
// Invariants
//   I1  a tenant is in the list of its place, or in the wheel, and in no other; the active ones are
//       those with tasks that take turns, those aside have only tasks that are held back.
//   I2  a tenant with tasks, held back or not, gets exactly one quantum for each round from the one
//       in which it came on (none for that one if it has had its turn in it, or if front_turns were
//       given). In a round in which it leaves and returns it has its quantum once: what is
//       left of it is kept until the round is over, so that it does not pay a debt twice. Who was
//       forgotten meanwhile has it anew; its debt is forgotten too, and nothing was taken of it.
//   I3  credit that is carried from round to round is less than the cost of a task that is the
//       first of its priority: at most max_cost - 1, of the tasks that are queued then. One that is
//       aside may carry kept_quanta more; what it would have above that is lost, and nobody has
//       more than that and the quantum of the round. Who owes something has no credit. (What a
//       task has cost that is put back comes on top of that: in what follows it counts as taken
//       when its tenant paid for it first.)
//   I4  turn_ holds those who are due in round_, next_ those in round_ + 1; in the wheel everyone
//       is due in round_ or after it, and nobody is passed over: begin_round() is for when nobody
//       is left in round_.
//
// The share. Take any stretch of the order, from somewhere in round a to somewhere in round b, in
// which tenant i has tasks throughout. What is taken of it is paid by what it carried into round a
// and the quanta of at most the rounds a .. b, so by I2 and I3
//       S_i <= (b - a + 1) * quantum * w_i + max_cost
// and it has had all of its turns in the rounds between, of whose quanta it has kept less than
// max_cost, so
//       S_i >= (b - a - 1) * quantum * w_i - max_cost.
// With the upper one for i and the lower one for j, each divided by its weight,
//       S_i/w_i - S_j/w_j <= max_cost/w_i + max_cost/w_j + 2 * quantum.
// It matters to nobody in which order the turns of one round are had: that is why the new ones may
// be first, and why those out of the wheel need not be put back between their neighbours. For two
// tenants that pay in every round that order is the same in each, and then one quantum is enough.
//
// Held back. Let i be in line throughout, aside or not, and let j take turns throughout. Then only
// what i carried into round a is more, by kept_quanta of its own, so
//       S_i/w_i - S_j/w_j <= max_cost/w_i + max_cost/w_j + (2 + kept_quanta) * quantum:
// nobody who waits for its turn loses more to one that has a limit. If j is aside now and then the
// same holds with kept_quanta once more, for what it has not spent yet, as long as nothing of it
// was lost. One that loses something has kept_quanta that it was given and could not spend, as its
// limit left it no more.
//
// Debt. Let the cost of a task be corrected after it was taken, from what was paid to what is known
// then; let F_i bound how many tasks of i are taken and not corrected yet. What i pays in the
// stretch, tasks and corrections, is bounded as S_i was: debt is credit below zero, and quanta are
// all that comes in, but for what is paid back, which I3 bounds like any credit. What it pays
// differs from the corrected cost of what was taken in the stretch by the corrections that are of
// tasks taken before it, and by those that come after it: at most F_i of each, one of the two kinds
// in each direction. So for corrected costs, of which the largest is max_cost,
//       S_i/w_i - S_j/w_j <= (1 + F_i) max_cost/w_i + (1 + F_j) max_cost/w_j + 2 * quantum,
// and kept_quanta more as above.
// A cost that is never below what was paid is the worst case for the others; one that is paid back
// only in part leaves its own tenant with less.
//
// Nobody starves: a round has a turn for each tenant that was in it, at most front_turns new ones,
// and each turn ends when its credit does, however often it is interrupted (who is aside in a round
// has one quantum for it, and what it carried, as all have); the round after the last is that of
// the first who pays. front_turns_ counts those who are in front, and those of whom a task was
// taken there: each of them once, as they have had their turn then.
#include "rondo/fair/detail/turns.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/assert.hpp"

namespace rondo::fair::detail {

namespace {

constexpr std::uint64_t last_round = std::uint64_t{1} << 62;
constexpr std::uint64_t max_debt = std::uint64_t{1} << 56;

}  // namespace

turns::turns(std::uint64_t quantum, std::size_t keep) noexcept
    : quantum_(quantum), keep_(keep), wheel_(std::chrono::nanoseconds{1}, time_point{}) {}

// The wheel counts rounds where others count nanoseconds.
time_point turns::key(std::uint64_t round) noexcept {
    return time_point{clock::duration{static_cast<clock::rep>(round)}};
}

void turns::add(tenant& t, entry& e) noexcept {
    bool const was_idle = t.tasks_.empty();
    e.owner = &t;
    t.tasks_.push(e);
    if (was_idle) {
        activate(t);
    } else if (t.tasks_.head() == &e) {
        reschedule(t);  // what it has saved may do for this one
    }
}

// Into line, with the quantum of this round unless it waits for the next one.
void turns::come(tenant& t, bool waits) noexcept {
    std::uint64_t const quantum = quantum_of(t);
    bool const has_quantum = t.round_ == round_;  // it has been active in this round
    std::uint64_t const credit = has_quantum ? std::min(t.credit_, quantum) : quantum;  // I2
    settle_idle(t);
    take_out(t);
    t.active_since_ = ++activations_;
    t.round_ = round_;
    t.credit_ = 0;
    if (!waits) gain(t, credit);
}

void turns::activate(tenant& t) noexcept {
    bool const waits = had_its_turn(t) || front_turns_ == front_turns;
    come(t, waits);
    ++active_;
    if (waits || !pays(t)) {
        schedule(t);
        return;
    }
    ++front_turns_;
    move(t, front_, place::front);
}

void turns::nothing_in_turn(tenant& t) noexcept {
    if (t.place_ == place::front) --front_turns_;
    --active_;
    if (!t.holds_back_) {
        rest(t);
        return;
    }
    take_out(t);
    t.place_ = place::aside;
    ++aside_;
}

// It has nothing in line.
void turns::rest(tenant& t) noexcept {
    move(t, had_its_turn(t) ? resting_ : forgotten_, place::idle);
    if (in_line() != 0) return;
    ++period_;                // nobody is left to whom anything could be owed,
    enter_round(round_ + 1);  // nor who could be overtaken
}

// Adds the quanta of the rounds up to this one. Each of them was too little to pay for the first
// task, or is the one that does: so the product is below max_cost, the debt and a quantum.
void turns::settle(tenant& t, std::uint64_t round) noexcept {
    if (t.round_ >= round) return;
    gain(t, (round - t.round_) * quantum_of(t));
    t.round_ = round;
}

// The same up to now, in the middle of a round: those who have a turn in it get its quantum then.
void turns::settle_now(tenant& t) noexcept {
    if (idle(t)) {
        settle_idle(t);
    } else if (t.place_ == place::aside) {
        settle_aside(t);
    } else {
        settle(t, in_this_round(t) ? round_ - 1 : round_);
    }
}

// Of one that is aside any number of rounds may have passed: those that count are enough for its
// debt and for all that it may keep. If none has, what it may keep may be less all the same: the
// task for which it had saved is gone.
void turns::settle_aside(tenant& t) noexcept {
    std::uint64_t const quantum = quantum_of(t);
    std::uint64_t const most = most_credit(t);
    gain(t, std::min(round_ - t.round_, (t.debt_ + most) / quantum + 1) * quantum);
    t.credit_ = std::min(t.credit_, most);  // I3
    t.round_ = round_;
}

// Of one without tasks the quanta pay nothing but its debt.
void turns::settle_idle(tenant& t) noexcept {
    if (std::exchange(t.period_, period_) != period_) t.debt_ = 0;
    if (t.round_ + 1 >= round_) return;
    std::uint64_t const rounds = round_ - 1 - t.round_;
    std::uint64_t const quantum = quantum_of(t);
    if (t.debt_ != 0) t.debt_ = t.debt_ / quantum < rounds ? 0 : t.debt_ - rounds * quantum;
    t.round_ = round_ - 1;
}

void turns::gain(tenant& t, std::uint64_t amount) noexcept {
    std::uint64_t const paid = std::min(t.debt_, amount);
    t.debt_ -= paid;
    t.credit_ += amount - paid;
}

// Puts a tenant that has its quantum of this round to where it can pay.
void turns::schedule(tenant& t) noexcept {
    std::uint64_t const quantum = quantum_of(t);
    std::uint64_t const cost = t.tasks_.head()->cost;
    std::uint64_t const missing = cost > t.credit_ ? cost - t.credit_ + t.debt_ : 0;
    if (missing <= quantum) {
        t.due_ = round_ + 1;
        move(t, next_, place::ring);
        return;
    }
    t.due_ = round_ + missing / quantum + (missing % quantum != 0 ? 1 : 0);
    take_out(t);
    t.place_ = place::wheel;
    wheel_.insert(t, key(t.due_));
}

// The same, when what it has to pay or its means have changed while it waits in the wheel. One that
// is due in this round is left: it comes out, and is looked at then, as those in the ring are.
void turns::reschedule(tenant& t) noexcept {
    if (t.place_ != place::wheel || in_this_round(t)) return;
    settle(t, round_);
    schedule(t);
}

void turns::move(tenant& t, linked_list<tenant>& to, place p) noexcept {
    take_out(t);
    to.push_back(t);
    t.place_ = p;
    if (p == place::idle) ++idle_;
}

void turns::take_out(tenant& t) noexcept {
    if (current_ == &t) current_ = nullptr;
    if (linked_list<tenant>::is_linked(t)) linked_list<tenant>::remove(t);
    if (t.place_ == place::wheel) wheel_.cancel(t);
    if (t.place_ == place::idle) --idle_;
    if (t.place_ == place::aside) --aside_;
    t.place_ = place::nowhere;
}

entry* turns::next() noexcept {
    while (active_ != 0) {
        ++steps_;
        if (tenant* const fresh = front_.front()) {
            if (pays(*fresh)) {
                fresh->due_ = round_;
                move(*fresh, turn_, place::ring);  // for the rest of its turn
                return pay(*fresh);
            }
            --front_turns_;
            schedule(*fresh);  // a task of higher priority has come that costs more
        } else if (tenant* const t = in_turn()) {
            settle(*t, round_);
            if (pays(*t)) return pay(*t);
            schedule(*t);
        } else if (!begin_round()) {
            break;
        }
    }
    return nullptr;
}

entry* turns::pay(tenant& t) noexcept {
    entry& e = *t.tasks_.head();
    t.credit_ -= e.cost;
    t.served_ = round_;
    t.tasks_.remove(e);
    if (t.tasks_.empty()) nothing_in_turn(t);
    look_ahead();
    return &e;
}

// Of many tenants few are in a cache. So the task that is probably the next one is asked for, and
// the tenant after that; the one whose task it is was asked for the last time.
void turns::look_ahead() const noexcept {
    tenant const* const next = current_ != nullptr ? current_ : turn_.front();
    if (next == nullptr) return;
    next->tasks_.head()->fetch();
    if (tenant const* const after = turn_.after(*next)) after->fetch();
}

// Who has begun its turn ends it. Those who waited in the wheel for this round come before those
// who pay in every round.
tenant* turns::in_turn() noexcept {
    if (current_ != nullptr) return current_;
    timer_node* const due = wheel_.empty() ? nullptr : wheel_.pop_expired(key(round_));
    current_ = due != nullptr ? &out_of_wheel(*due) : turn_.front();
    return current_;
}

tenant& turns::out_of_wheel(timer_node& node) noexcept {
    return first_in_ring(static_cast<tenant&>(node));
}

tenant& turns::first_in_ring(tenant& t) noexcept {
    t.place_ = place::ring;
    turn_.push_front(t);
    return t;
}

bool turns::begin_round() noexcept {
    if (!next_.empty()) {
        enter_round(round_ + 1);
        turn_.append(next_);
        return true;
    }
    if (wheel_.empty()) return false;
    // The earliest of them, whichever round that is.
    current_ = &out_of_wheel(*wheel_.pop_expired(key(last_round)));
    enter_round(current_->due_);
    return true;
}

void turns::enter_round(std::uint64_t round) noexcept {
    RONDO_ASSERT(round < last_round - max_cost - max_debt, "a scheduler has 2^62 rounds");
    round_ = round;
    front_turns_ = 0;
    forgotten_.append(resting_);
}

void turns::remove(entry& e) noexcept {
    tenant& t = *e.owner;
    bool const was_first = t.tasks_.is_first(e);
    t.tasks_.remove(e);
    one_is_gone(t, was_first);
}

void turns::one_is_gone(tenant& t, bool was_first) noexcept {
    if (t.tasks_.empty()) {
        nothing_in_turn(t);
    } else if (was_first) {
        first_is_gone(t);
    }
}

void turns::add_held_back(tenant& t, entry& e) noexcept {
    bool const was_idle = idle(t);
    e.owner = &t;
    t.held_back_.push(e);
    t.holds_back_ = true;
    if (!was_idle) return;
    come(t, had_its_turn(t));
    t.place_ = place::aside;
    ++aside_;
}

void turns::hold_back(entry& e) noexcept {
    tenant& t = *e.owner;
    bool const was_first = t.tasks_.is_first(e);
    t.tasks_.remove(e);
    t.held_back_.put_back(e);
    t.holds_back_ = true;
    one_is_gone(t, was_first);
}

entry& turns::call_up(tenant& t) noexcept {
    entry& e = *t.held_back_.head();
    call_up(e);
    return e;
}

// One that was aside goes on with its turn, before those who have begun theirs meanwhile.
void turns::call_up(entry& e) noexcept {
    tenant& t = *e.owner;
    bool const was_aside = t.place_ == place::aside;
    if (was_aside) settle_aside(t);
    t.held_back_.remove(e);
    t.holds_back_ = !t.held_back_.empty();
    if (!was_aside) {
        add(t, e);
        return;
    }
    t.tasks_.push(e);
    ++active_;
    take_out(t);
    if (pays(t)) {
        t.due_ = round_;
        current_ = &first_in_ring(t);
    } else {
        schedule(t);
    }
}

void turns::remove_held_back(entry& e) noexcept {
    tenant& t = *e.owner;
    t.held_back_.remove(e);
    t.holds_back_ = !t.held_back_.empty();
    if (idle(t)) rest(t);
}

// I3: what it saved for that task it may keep only as far as it would have it without.
void turns::first_is_gone(tenant& t) noexcept {
    settle_now(t);
    t.credit_ = std::min(t.credit_, most_credit(t));
    reschedule(t);
}

// I3; in its turn it has the quantum of that as well.
std::uint64_t turns::most_credit(tenant const& t) const noexcept {
    if (t.place_ == place::aside) {
        return t.held_back_.head()->cost - 1 + (kept_quanta + 1) * quantum_of(t);
    }
    std::uint64_t const of_this_turn = in_this_round(t) && t.round_ == round_ ? quantum_of(t) : 0;
    return t.tasks_.dearest_first() - 1 + of_this_turn;
}

// As if it had not been taken: it has its turn at once, has paid for it, and has been active for as
// long as before.
void turns::put_back(entry& e) noexcept {
    tenant& t = *e.owner;
    std::uint64_t const since = t.active_since_;
    if (t.tasks_.empty()) ++active_;
    if (!idle(t)) {
        settle_now(t);
    } else if (!had_its_turn(t)) {
        come(t, false);
    }
    t.active_since_ = since;
    t.tasks_.put_back(e);
    gain(t, e.cost);
    if (t.place_ == place::front) return;
    take_out(t);
    t.due_ = round_;
    current_ = &first_in_ring(t);
}

void turns::charge(tenant& t, std::uint64_t more) noexcept {
    if (in_line() == 0) return;
    settle_now(t);
    std::uint64_t const at_once = idle(t) ? 0 : std::min(t.credit_, more);
    t.credit_ -= at_once;
    t.debt_ = std::min(t.debt_ + (more - at_once), max_debt);
    reschedule(t);
}

void turns::refund(tenant& t, std::uint64_t less) noexcept {
    if (in_line() == 0) return;
    settle_now(t);
    if (idle(t)) {
        t.debt_ -= std::min(t.debt_, less);
        return;
    }
    std::uint64_t const had = t.credit_;
    gain(t, less);
    t.credit_ = std::min(t.credit_, std::max(had, most_credit(t)));
    reschedule(t);
}

void turns::reweigh(tenant& t, std::uint32_t weight) noexcept {
    settle_now(t);
    t.weight_ = weight;
    reschedule(t);
}

tenant* turns::forget() noexcept {
    while (can_forget()) {
        tenant* const t = unused_.empty() ? forgotten_.front() : unused_.front();
        take_out(*t);
        if (t->holds_ == 0) return t;
    }
    return nullptr;
}

// Out of its place among those to be forgotten: let_go() puts it behind them all.
void turns::remember(tenant& t) noexcept {
    if (t.active_since_ == 0) t.active_since_ = ++activations_;
    if (t.place_ == place::idle && !had_its_turn(t)) take_out(t);
}

void turns::let_go(tenant& t) noexcept {
    --t.holds_;
    if (t.holds_ != 0 || t.place_ != place::nowhere) return;
    move(t, t.active_since_ == 0 ? unused_ : forgotten_, place::idle);
}

}  // namespace rondo::fair::detail
