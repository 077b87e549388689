// engine.hpp: a scheduler but for what depends on the types of payloads and keys.
//
// Everything is under one lock, that of the queue in which consumers wait, but for the intake where
// producers leave tasks while nobody waits; what has to happen after it (reports, destructors,
// waking producers) is put into an aftermath. The page of invariants and races is the head of
// src/fair/engine.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "rondo/core/waiter.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/detail/deadline_watch.hpp"
#include "rondo/fair/detail/door.hpp"
#include "rondo/fair/detail/handles.hpp"
#include "rondo/fair/detail/intake.hpp"
#include "rondo/fair/detail/load_heap.hpp"
#include "rondo/fair/detail/ranking.hpp"
#include "rondo/fair/detail/served_most.hpp"
#include "rondo/fair/detail/turns.hpp"
#include "rondo/fair/results.hpp"
#include "rondo/fair/stats.hpp"

namespace rondo::fair::detail {

class engine : public wait_queue {
  public:
    // What one operation leaves to do when the lock is free.
    struct aftermath {
        linked_chain<entry> undelivered;
        linked_chain<tenant> forgotten;
        bool more_forgotten = false;
        bool doors = false;
        bool earlier_deadline = false;

        bool nothing() const noexcept {
            return undelivered.empty() && forgotten.empty() && !more_forgotten && !doors &&
                   !earlier_deadline;
        }
    };

    // A consumer that may wait. What it has in hand stays in the limits until it has taken it.
    class taker : public waiter {
      public:
        explicit taker(engine& e) noexcept : waiter(e), engine_(&e) {}

        bool ready() noexcept;
        // The same as being granted: the task is in hand, and not taken yet.
        bool ready_revocably() noexcept;
        void hand_on() noexcept;

      protected:
        // The task, or null: closed.
        entry* taken() noexcept;

        engine* engine_;

      private:
        friend class engine;
        entry* task_ = nullptr;
        time_point handed_at_{};
        bool in_hand_ = false;
    };

    enum class admission : std::uint8_t { undecided, accepted, global_full, tenant_full, closed };
    enum class closing : std::uint8_t { open, drain, immediate };

    explicit engine(limits const& l);

    time_point now() const noexcept {
        return limits_.time != nullptr ? limits_.time->now() : clock::now();
    }

    // Runs f(aftermath&) under the lock, then hands out what is there, then deals with the rest.
    template <class Change>
    void change(time_point at, Change f) noexcept {
        aftermath after;
        serve([&] {
            if (at > now_) now_ = at;
            if (intake_.has_tasks()) collect(room_for_intake());
            if (!deadlines_.empty() && now_ >= due()) expire(after);  // I3
            f(after);
            if (turns_.can_forget()) forget(after, few);
            if (intake_.given() == 0 && occupied_ + intake::fewest_places <= least_limit_) {
                open_intake();
            }
            after.earlier_deadline = std::exchange(tell_watch_, false);
        });
        if (!after.nothing()) finish(after);
    }

    // --- under the lock, in change() ---
    admission admit(tenant& t, entry& e, aftermath& after) noexcept;
    // The same up to the place; admit_reserved() or give_up_reserved() follows.
    admission occupy(tenant& t, entry& e, aftermath& after) noexcept;
    void admit_expired(entry& e, aftermath& after) noexcept;
    void admit_reserved(tenant& t, entry& e, aftermath& after) noexcept;
    void give_up_reserved(tenant& t, entry& e, aftermath& after) noexcept;
    // It has come into the map; held until let_go().
    void adopt(tenant& t) noexcept;
    void reweigh(tenant& t, std::uint32_t weight) noexcept;
    bool is_open() const noexcept { return closing_ == closing::open; }
    void refused(enqueue_error why) noexcept;
    time_point time() const noexcept { return now_; }
    handle_table& handles() noexcept { return handles_; }
    static void hold(tenant& t) noexcept { turns::hold(t); }
    void let_go(tenant& t) noexcept { turns_.let_go(t); }

    // --- without it ---
    // A task that can only be accepted, and that nobody need be told of; and none has expired.
    bool may_be_left(entry const& e, time_point at) const noexcept {
        return e.expires == time_point::max() && intake_.has_places() && at < due();
    }
    // Of a task that has its owner and time.
    bool try_leave(entry& e) noexcept { return intake_.try_leave(e); }
    handle reserve_handle();
    void release_handle(handle h) noexcept;
    entry* take(bool& closed) noexcept;  // null: nothing there, or closed
    cancel_result cancel(handle h) noexcept;
    void close(closing how) noexcept;
    std::size_t advance(time_point now) noexcept;
    std::optional<time_point> next_deadline() noexcept;
    deadline_watch& watch() noexcept { return watch_; }
    // For the watch: whether a deadline is earlier, or there is none to wait for any more. If not,
    // the watch is told of the first that is.
    bool comes_before(time_point than) noexcept;
    bool is_finished() noexcept;
    void read(stats& to) noexcept;
    // Those who were served the most of late, held.
    served_most hold_served_most() noexcept;
    void let_go(served_most const& all) noexcept;
    using wait_queue::lock;

    // For doors: takes a place, or notes why there is none.
    reservation reserve(door& d) noexcept;
    void nobody_waits_at(door& d) noexcept;

  protected:
    ~engine();

    // The tenant is idle: out of the map with it, unless something was left for it. Under the lock.
    virtual bool erase(tenant& t) noexcept = 0;
    // Without it.
    virtual void destroy(tenant& t) noexcept = 0;
    virtual void report(entry& e) noexcept = 0;

    limits const limits_;

  private:
    std::size_t const least_limit_;  // of the two on tasks
    atomic<clock::rep> due_{clock::duration::max().count()};

    static constexpr int few = 4;

    bool grant(waiter& first) noexcept override;
    bool nothing_left() const noexcept { return closing_ != closing::open && occupied_ == 0; }
    // What consumers are told: nothing comes any more.
    bool finished() const noexcept { return closing_ == closing::immediate || nothing_left(); }

    // Nothing expires before this. Written under the lock; who reads it without leaves what it does
    // not see yet to the next operation.
    time_point due() const noexcept {
        return time_point{clock::duration{due_.load(std::memory_order_relaxed)}};  // a hint
    }
    void set_due(time_point at) noexcept {
        due_.store(at.time_since_epoch().count(), std::memory_order_relaxed);  // a hint
    }

    // For one who comes now: I5.
    bool has_spare_room() const noexcept { return occupied_ + owed_ < limits_.max_global; }

    bool has_room_beside(door const& d) const noexcept;
    std::size_t room_for_intake() const noexcept;
    void open_intake() noexcept;
    void close_intake() noexcept;
    void collect(std::size_t places) noexcept;
    void end_offer(door& d) noexcept;
    void call(door& d) noexcept;
    void expire(aftermath& after) noexcept;
    void forget(aftermath& after, int how_many) noexcept;
    admission find_room(tenant& t, entry*& instead_of) noexcept;
    static entry* first_to_go(tenant const& t, backpressure how) noexcept;
    void displace(entry& e, backpressure how, aftermath& after) noexcept;
    void take_place(tenant& t) noexcept;
    void enter(tenant& t, entry& e, time_point at) noexcept;
    void entered(tenant& t, entry& e, time_point at) noexcept;
    void set_timer(entry& e) noexcept;
    void out_of_turn(entry& e, disposition how, aftermath& after) noexcept;
    void end(entry& e, disposition how, aftermath& after) noexcept;
    void release(tenant& t, aftermath& after) noexcept;
    void delivered(entry& e, time_point at, aftermath& after) noexcept;
    void account(tenant& t, std::uint64_t cost) noexcept;
    void put_back(entry& e) noexcept;
    void return_all() noexcept;
    void fill_in(stats& to) const noexcept;

    void finish(aftermath& after) noexcept;
    void settle(aftermath& after) noexcept;
    door* next_door(door* opened) noexcept;

    intake intake_;
    // What each task changes stands together: with several consumers it costs as much as the cache
    // lines that go from one to the next.
    time_point now_;
    cell<std::size_t> occupied_;  // what max_global counts; see tenant::occupied
    std::size_t live_ = 0;
    std::size_t owed_ = 0;     // doors in hungry_, and those that are being opened
    std::size_t offered_ = 0;  // places of the latter that they have yet to take
    closing closing_ = closing::open;
    bool tell_watch_ = false;
    std::array<std::uint64_t, dispositions> ended_{};
    counters counters_;  // but for what has ended
    turns turns_;
    ranking served_;
    histogram queue_time_;
    timer_wheel deadlines_;
    deadline_watch watch_{*this};
    time_point watched_ = time_point::min();  // it is told of deadlines before this
    load_heap loads_;
    handle_table handles_;
    linked_list<door> hungry_;  // producers wait there for room in all, in turn,
    linked_list<door> full_;    // or for room for their tenant
    std::size_t known_ = 0;
};

}  // namespace rondo::fair::detail
