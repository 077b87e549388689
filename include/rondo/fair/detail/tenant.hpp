// tenant.hpp: one tenant as the scheduler sees it: its queued tasks, its account, its place.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "rondo/core/linked_list.hpp"
#include "rondo/core/timer_wheel.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/terms.hpp"

namespace rondo::fair::detail {

class door;
class tenant;

// A task without its payload. By its own hook it is in its tenant's queue, as a timer_node in the
// wheel of deadlines.
struct entry : list_hook<entry>, timer_node {
    explicit entry(terms const& t) noexcept : cost(t.cost), expires(t.deadline), rank(t.priority) {}

    bool has_timer() const noexcept { return timer_node::linked(); }
    // Asks for its memory, which another core may have written last, or which is long unused.
    void fetch() const noexcept {
        __builtin_prefetch(&owner);
        __builtin_prefetch(&enqueued_at);
    }

    tenant* owner = nullptr;
    cell<entry*> left_before;  // in the intake: the one below
    std::uint64_t cost;
    time_point expires;
    time_point enqueued_at{};
    std::uint32_t handle = 0;  // 0: it has none
    priority rank;
    disposition end = disposition::delivered;
};

// What a tenant has queued: first in, first out among tasks of one priority.
class backlog {
  public:
    bool empty() const noexcept { return length_ == 0; }
    std::size_t length() const noexcept { return length_; }
    std::uint64_t cost() const noexcept { return cost_; }

    entry* head() const noexcept {
        for (linked_list<entry> const& tasks : by_priority_) {
            if (!tasks.empty()) return tasks.front();
        }
        return nullptr;
    }
    entry* oldest_of_lowest() const noexcept {
        linked_list<entry> const* const tasks = lowest();
        return tasks == nullptr ? nullptr : tasks->front();
    }
    entry* newest_of_lowest() const noexcept {
        linked_list<entry> const* const tasks = lowest();
        return tasks == nullptr ? nullptr : tasks->back();
    }

    // Of its priority. What was saved was saved for one of these: nothing else has been the first
    // of all.
    bool is_first(entry const& e) const noexcept { return of(e.rank).front() == &e; }
    // The largest cost of those.
    std::uint64_t dearest_first() const noexcept {
        std::uint64_t most = 0;
        for (linked_list<entry> const& tasks : by_priority_) {
            if (!tasks.empty()) most = std::max(most, tasks.front()->cost);
        }
        return most;
    }

    void push(entry& e) noexcept { count(e).push_back(e); }
    void put_back(entry& e) noexcept { count(e).push_front(e); }
    void remove(entry& e) noexcept {
        linked_list<entry>::remove(e);
        --length_;
        cost_ -= e.cost;
    }

  private:
    linked_list<entry>& count(entry const& e) noexcept {
        ++length_;
        cost_ += e.cost;
        return of(e.rank);
    }
    linked_list<entry>& of(priority p) noexcept {
        return by_priority_[static_cast<std::size_t>(p)];
    }
    linked_list<entry> const& of(priority p) const noexcept {
        return by_priority_[static_cast<std::size_t>(p)];
    }
    linked_list<entry> const* lowest() const noexcept {
        for (std::size_t i = by_priority_.size(); i-- > 0;) {
            if (!by_priority_[i].empty()) return &by_priority_[i];
        }
        return nullptr;
    }

    std::array<linked_list<entry>, 3> by_priority_;
    std::size_t length_ = 0;
    std::uint64_t cost_ = 0;
};

// How much a tenant has, as load_heap knows it.
struct filing {
    std::uint64_t load = 0;
    std::uint32_t weight = 1;
    std::uint64_t active_since = 0;

    friend bool operator==(filing const&, filing const&) = default;
};

// By its own hook a tenant is in one of the lists of turns, as a timer_node in its wheel of rounds.
// What each task needs stands together, and what few need after it: with many tenants a task costs
// as much as the cache lines of its tenant that it touches.
class tenant : public timer_node, public list_hook<tenant> {
  public:
    explicit tenant(std::uint32_t weight) noexcept : weight_(weight) {}

    std::uint32_t weight() const noexcept { return weight_; }
    backlog const& tasks() const noexcept { return tasks_; }
    // Of a gate: callers that wait for a permit of their own tenant's, not for their turn.
    backlog const& held_back() const noexcept { return held_back_; }
    // When it last became active, as a number that grows; or was first served without that.
    std::uint64_t active_since() const noexcept { return active_since_; }
    // What it has queued in all.
    std::uint64_t load() const noexcept { return tasks_.cost() + held_back_.cost() - promised; }
    void fetch() const noexcept {
        __builtin_prefetch(&tasks_);
        __builtin_prefetch(&credit_);
        __builtin_prefetch(&occupied);
    }

  private:
    friend class turns;

    enum class place : std::uint8_t {
        nowhere,  // made, and not active yet; or idle and held
        idle,     // nothing queued; in the list of those who rest, or can be forgotten
        front,    // newly active
        ring,     // has its turn in this round or in the next one
        wheel,    // cannot pay before a later one
        aside,    // all that it has in line is held back
    };

    backlog tasks_;
    std::uint64_t credit_ = 0;
    std::uint64_t debt_ = 0;    // if there is any then there is no credit
    std::uint64_t period_ = 0;  // in which it has that debt
    std::uint64_t round_ = 0;   // the last one whose quantum is in credit_
    std::uint64_t served_ = 0;  // the last one in which a task of it was taken
    std::uint64_t due_ = 0;     // in the ring or the wheel: the one in which it has its next turn
    std::uint64_t active_since_ = 0;
    std::uint32_t weight_;
    std::uint32_t holds_ = 0;
    place place_ = place::nowhere;
    bool holds_back_ = false;  // held_back_ is not empty: known without touching its cache lines
    backlog held_back_;

  public:
    backpressure when_full = backpressure::reject;
    // What the limits count: queued, handed to a consumer that has not taken it yet, and promised
    // to producers that wait.
    std::size_t occupied = 0;
    std::uint32_t collected = 0;   // tasks out of the intake; see keyed_tenant::left
    door* waiting_room = nullptr;  // of producers, once one has waited
    struct {
        double sum = 0;  // of what was served
        std::uint32_t epoch = 0;
        bool listed = false;
    } rank;  // for ranking

    std::size_t in_flight = 0;   // of a gate: permits that it has
    std::uint64_t promised = 0;  // the cost of what is held back and not accepted yet;
                                 // see engine::occupy()
    filing filed;                // for load_heap
    struct {
        tenant* above = nullptr;
        tenant* beside = nullptr;
        tenant* below = nullptr;
        bool filed = false;
    } heap;
};

}  // namespace rondo::fair::detail
