// turns.hpp: whose turn it is: deficit round robin over tenants with weights and costs.
//
// Guarantee      share: while tenants i and j have tasks queued, the cost that was taken of each,
//                divided by its weight, differs by no more than
//                    max_cost/w_i + max_cost/w_j + 2 * quantum
//                over any stretch of the order in which tasks are taken. (max_cost: of the tasks
//                that were queued. The proof is in src/fair/turns.cpp.)
//                If i has tasks held back meanwhile, and j takes turns throughout, i may be ahead
//                of j by kept_quanta * quantum more.
//                new first: a tenant that becomes active, and of which nothing was taken in this
//                round, has one task taken before those who were active, if its quantum pays for
//                it.
//                next() finds a task whenever one is queued.
//                debt: what a task costs more than was known when it was taken is paid by the
//                tenant's next quanta before any other task of it.
// Thread safety  none: whoever owns it synchronises.
// Cost           constant time for everything, amortized. In one round a quantum may pay for less
//                than one task: a tenant that cannot pay is put into a wheel under the number of
//                the round in which it can, and rounds in which nobody can are not walked.
// Allocation     none: tenants and entries belong to the caller. 11 KiB for the wheel.
// Limits         2^62 rounds in its life; the work done by then is at least that many quanta.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/core/timer_wheel.hpp"
#include "rondo/fair/detail/tenant.hpp"

namespace rondo::fair::detail {

class turns {
  public:
    // `keep`: so many tenants are not forgotten when they are idle, those of late.
    explicit turns(std::uint64_t quantum, std::size_t keep = 0) noexcept;

    // Nobody takes turns.
    bool empty() const noexcept { return active_ == 0; }
    std::size_t active() const noexcept { return active_; }
    // How many tenants take turns, or have something held back.
    std::size_t in_line() const noexcept { return active_ + aside_; }

    void add(tenant& t, entry& e) noexcept;
    // Takes the task whose turn it is; null when none is queued.
    entry* next() noexcept;
    // Takes a task out of turn: cancelled, expired, evicted.
    void remove(entry& e) noexcept;
    // What next() gave was not wanted: it is the first of its tenant again, and not paid for.
    void put_back(entry& e) noexcept;

    // A task that a limit of its tenant's keeps from taking turns is held back. Its tenant stays in
    // line, and has its quanta as if it took turns, but saves no more than kept_quanta of them.
    void add_held_back(tenant& t, entry& e) noexcept;
    // One that takes turns: it is the first of its priority of those held back.
    void hold_back(entry& e) noexcept;
    // The first of those held back takes turns; or this one.
    entry& call_up(tenant& t) noexcept;
    void call_up(entry& e) noexcept;
    void remove_held_back(entry& e) noexcept;

    // A task that was taken turns out to cost more than it was taken for, or less: the tenant owes
    // the difference, or has it as credit, but no more than keeps it from paying for its first
    // task. Nobody owes anything once nobody has tasks.
    void charge(tenant& t, std::uint64_t more) noexcept;
    void refund(tenant& t, std::uint64_t less) noexcept;

    void reweigh(tenant& t, std::uint32_t weight) noexcept;

    // A tenant that has nothing queued, and of which nothing need be remembered; null if none, or
    // if it is one of those to keep. While it is held it is not forgotten.
    tenant* forget() noexcept;
    bool can_forget() const noexcept {
        return !unused_.empty() || (idle_ > keep_ && !forgotten_.empty());
    }
    void keep_none() noexcept { keep_ = 0; }
    // One that is held was served though nothing of it was queued: it is kept as if something had
    // been, and is the last of those of late when it is let go.
    void remember(tenant& t) noexcept;
    static void hold(tenant& t) noexcept { ++t.holds_; }
    void let_go(tenant& t) noexcept;

    // How many tenants were looked at in all: what the cost of next() is made of.
    std::uint64_t steps() const noexcept { return steps_; }
    std::uint64_t round() const noexcept { return round_; }

    // How many tenants may be served as new in one round; those after them wait for the next one.
    // It bounds what an endless stream of new tenants can take from the others.
    static constexpr std::uint32_t front_turns = 1024;
    // How many quanta a tenant carries from round to round while all that it has is held back.
    // With 1, shares of small tasks beside large ones are a few percent off, with 2 less than one;
    // and each is a quantum more in the bound.
    static constexpr std::uint64_t kept_quanta = 2;

  private:
    using place = tenant::place;

    std::uint64_t quantum_of(tenant const& t) const noexcept { return quantum_ * t.weight_; }
    bool pays(tenant const& t) const noexcept { return t.tasks_.head()->cost <= t.credit_; }

    // Something of it was taken in this round: if it leaves and returns it waits for the next one.
    bool had_its_turn(tenant const& t) const noexcept { return t.served_ == round_; }

    static bool idle(tenant const& t) noexcept { return t.tasks_.empty() && !t.holds_back_; }

    void come(tenant& t, bool waits) noexcept;
    void activate(tenant& t) noexcept;
    void nothing_in_turn(tenant& t) noexcept;
    void rest(tenant& t) noexcept;
    void one_is_gone(tenant& t, bool was_first) noexcept;
    void settle(tenant& t, std::uint64_t round) noexcept;
    void settle_aside(tenant& t) noexcept;
    void settle_idle(tenant& t) noexcept;
    void settle_now(tenant& t) noexcept;
    static void gain(tenant& t, std::uint64_t amount) noexcept;
    std::uint64_t most_credit(tenant const& t) const noexcept;
    void schedule(tenant& t) noexcept;
    void reschedule(tenant& t) noexcept;
    void move(tenant& t, linked_list<tenant>& to, place p) noexcept;
    // Of one that has tasks.
    bool in_this_round(tenant const& t) const noexcept {
        return t.place_ == place::front || t.due_ == round_;
    }
    void take_out(tenant& t) noexcept;
    void first_is_gone(tenant& t) noexcept;
    entry* pay(tenant& t) noexcept;
    void look_ahead() const noexcept;
    tenant* in_turn() noexcept;
    tenant& out_of_wheel(timer_node& node) noexcept;
    tenant& first_in_ring(tenant& t) noexcept;
    bool begin_round() noexcept;
    void enter_round(std::uint64_t round) noexcept;
    static time_point key(std::uint64_t round) noexcept;

    std::uint64_t const quantum_;
    std::uint64_t round_ = 1;
    std::uint64_t period_ = 1;  // how often it has become empty
    std::uint64_t activations_ = 0;
    std::uint64_t steps_ = 0;
    std::size_t active_ = 0;
    std::size_t aside_ = 0;
    std::size_t idle_ = 0;
    std::size_t keep_;
    std::uint32_t front_turns_ = 0;

    tenant* current_ = nullptr;  // who has begun its turn, and is in turn_
    linked_list<tenant> front_;
    linked_list<tenant> turn_;       // the ring: those of this round,
    linked_list<tenant> next_;       // and those of the next
    linked_list<tenant> resting_;    // idle, and had their turn in this round
    linked_list<tenant> forgotten_;  // idle: to be forgotten, the first one first
    linked_list<tenant> unused_;     // the same, not kept: nothing of them was queued or served
    timer_wheel wheel_;
};

}  // namespace rondo::fair::detail
