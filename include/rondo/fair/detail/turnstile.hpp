// turnstile.hpp: a gate but for what depends on the type of keys.
//
// Who does not pass by the word alone waits in the queue that this is; its lock guards everything
// but the word, and the order of turns is the order of the queue. The page of invariants and races
// is the head of src/fair/turnstile.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "rondo/core/waiter.hpp"
#include "rondo/fair/detail/admission_word.hpp"
#include "rondo/fair/detail/load_heap.hpp"
#include "rondo/fair/detail/ranking.hpp"
#include "rondo/fair/detail/served_most.hpp"
#include "rondo/fair/detail/turns.hpp"
#include "rondo/fair/gate_limits.hpp"
#include "rondo/fair/stats.hpp"

namespace rondo::fair::detail {

class turnstile : public wait_queue {
  public:
    enum class fate : std::uint8_t {
        open,      // undecided: fresh, or in line
        passed,    // by the word
        admitted,  // by the lock, or in turn; its tenant has it in flight
        tenant_full,
        gate_full,
        evicted,
        closed,
    };
    enum class closing : std::uint8_t { no, drain, immediate };

    // One who wants in. As an entry it is in its tenant's backlog while it is in line.
    class caller : public waiter, public entry {
      public:
        caller(turnstile& at, terms const& t) noexcept : waiter(at), entry(t) {}

      protected:
        turnstile& at() const noexcept { return static_cast<turnstile&>(queue()); }
        bool let_in() const noexcept { return fate_ == fate::passed || fate_ == fate::admitted; }

        bool has_lined_up() const noexcept { return lined_up_; }
        time_point admitted_at() const noexcept { return admitted_at_; }

        fate fate_ = fate::open;
        bool tries_ = false;  // it would not wait: if it does not get in nobody was refused

      private:
        friend class turnstile;
        time_point admitted_at_{};
        bool lined_up_ = false;   // it has been in line
        bool held_back_ = false;  // in line for its tenant's own limit
    };

    time_point now() const noexcept { return time_ != nullptr ? time_->now() : clock::now(); }

    bool try_pass() noexcept { return word_.try_pass(); }
    // A place that was passed to by the word.
    void leave_passed() noexcept;
    // What was said when a place of a tenant was taken.
    struct price {
        std::uint64_t cost = 0;
        time_point at{};       // when it was let in
        bool in_turn = false;  // its tenant has paid; else nobody was before it
    };
    // A place of a tenant; that was too little or too much.
    void leave_admitted(tenant& t, price const& said, std::uint64_t cost) noexcept;
    // The caller has had its decision, or does not want one any more: lets go of its tenant.
    void dismiss(caller& c) noexcept;

    void close(closing how) noexcept;
    bool is_closed() noexcept;
    bool is_finished() noexcept;
    void read(gate_stats& to) noexcept;
    clock::duration max_wait() const noexcept {
        return clock::duration{max_wait_.load(std::memory_order_relaxed)};
    }

  protected:
    // Of the limits of a scheduler it has what a gate has too: shards, quantum, time.
    turnstile(gate_limits const& l, limits const& shared);
    ~turnstile();

    // Runs f under the lock, lets in whoever can go then, and forgets some tenants after it.
    template <class Change>
    void change(time_point at, Change f) noexcept {
        linked_chain<tenant> forgotten;
        serve([&] {
            if (at > now_) now_ = at;
            f();
            forget(forgotten, few);
        });
        while (tenant* const t = forgotten.pop_front()) destroy(*t);
    }

    // --- under the lock, in change() ---
    // It has come into the map.
    void adopt() noexcept { ++known_; }
    // Holds the tenant for the caller, and decides about it if that takes no line.
    void arrive(caller& c, tenant& t) noexcept;
    // It only tries, and nobody is let in, of whichever tenant: decides that without one.
    bool tries_in_vain(caller& c) noexcept;
    void limit(gate_limits const& l) noexcept;
    void entitle(tenant& t, entitlement const& e) noexcept;
    // Those in turn who are too many for the tenant's limit wait for that again.
    void hold_back(tenant& t) noexcept;
    // Those held back go on to wait for their turn, as far as the tenant's limit allows; so many of
    // those in turn are about to leave.
    void call_up(tenant& t, std::size_t leaving = 0) noexcept;
    std::size_t known() const noexcept { return known_; }
    static void hold(tenant& t) noexcept { turns::hold(t); }
    void let_go(tenant& t) noexcept { turns_.let_go(t); }

    // --- without it ---
    served_most hold_served_most() noexcept;
    void let_go(served_most const& all) noexcept;
    void forget_all() noexcept;

    // The tenant is idle: out of the map with it. Under the lock.
    virtual void erase(tenant& t) noexcept = 0;
    // Without it.
    virtual void destroy(tenant& t) noexcept = 0;

  private:
    static constexpr int few = 4;

    bool grant(waiter& w) noexcept override;
    waiter* choose() noexcept override;
    void give_back(waiter& w) noexcept override;
    void nobody_waits() noexcept override { settle_line(); }

    bool capped() const noexcept {
        return limits_.max_in_flight_per_tenant < limits_.max_in_flight;
    }
    // With a line: nobody is overtaken by one that is let in (I3).
    bool lets_in() const noexcept { return turns_.empty() && spare_.read() > 0; }
    bool may_take_turns(tenant const& t, std::size_t leaving = 0) const noexcept {
        return t.in_flight + t.tasks().length() - leaving < limits_.max_in_flight_per_tenant;
    }
    void form_line() noexcept;
    void settle_line() noexcept;
    fate decide(caller& c) noexcept;
    fate line_up(caller& c) noexcept;
    fate find_room(tenant& t, caller*& instead_of) noexcept;
    static caller* first_to_go(tenant const& t) noexcept;
    static caller* newest_of(tenant const& t) noexcept;
    void take_out(caller& c) noexcept;
    void cast_out(caller& c) noexcept;
    void admit(caller& c) noexcept;
    void put_place_back() noexcept;
    void account(tenant& t, std::uint64_t cost) noexcept;
    void forget(linked_chain<tenant>& forgotten, int how_many) noexcept;

    admission_word word_;
    atomic<clock::rep> max_wait_;
    timer_service const* const time_;
    gate_limits limits_;
    bool lined_ = false;
    cell<std::int64_t> spare_;  // with a line: places that are free; below 0 if a limit was lowered
    turns turns_;
    load_heap loads_;
    ranking served_;
    linked_list<entry> outcasts_;  // in line, and refused: the next to be woken
    time_point now_;
    closing closing_ = closing::no;
    cell<std::size_t> queued_;  // in line, and not refused
    std::size_t known_ = 0;
    std::uint64_t passed_ = 0;  // but for those in the word
    counters counters_;
    histogram queue_time_;
};

}  // namespace rondo::fair::detail
