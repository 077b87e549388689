// timer_wheel.hpp: many deadlines, one owner, constant-time insert and cancel.
//
// Guarantee      never early: a node comes out only once `now` has reached its deadline rounded
//                up to a whole tick. Never late: the first pop_expired() at or after that moment
//                yields it. Nodes of different ticks come out in tick order, nodes of one tick in
//                the order they were inserted (whatever their deadlines within the tick).
//                A deadline in the past is due at once, at the wheel's current tick.
//                time_point::max() means "never": the node stays until it is cancelled. So does a
//                deadline that rounds up past time_point::max().
// Not guaranteed fairness to the caller: a callback that always re-inserts a due deadline keeps
//                pop_expired() busy for ever. Who loops over it decides when to stop.
// Thread safety  none. The owner synchronises, or owns it from one thread.
// Time           the caller brings it; the wheel reads no clock. `now` must not run backwards; an
//                earlier `now` than the last one counts as the last one.
// Cost           insert and cancel O(1). pop_expired() jumps from occupied slot to occupied slot:
//                empty time is free (years of virtual time cost nothing), and each node is moved
//                at most `levels` times in its life. One call may move all nodes of one slot.
// Allocation     none; nodes belong to the caller. The wheel itself is 11 KiB, whatever it holds.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "rondo/core/assert.hpp"
#include "rondo/core/linked_list.hpp"

namespace rondo {

class timer_wheel;

// One timer. Derive from it, and keep its address fixed while linked.
struct timer_node : private list_hook<timer_node, plain_link> {
    // As given to the last insert(). For the reader only: changing it does not move the timer.
    std::chrono::steady_clock::time_point deadline{};

    timer_node() = default;
    timer_node(timer_node const&) = delete;
    timer_node& operator=(timer_node const&) = delete;
    ~timer_node() { RONDO_ASSERT(!linked(), "timer_node destroyed while in a wheel"); }

    // True from insert() until the node is cancelled or popped, also while it is due.
    using list_hook::linked;

  private:
    friend class timer_wheel;
    friend class linked_list<timer_node, plain_link>;
    std::uint64_t tick_ = 0;
};

class timer_wheel {
  public:
    using clock = std::chrono::steady_clock;
    using time_point = clock::time_point;

    static constexpr unsigned levels = 11;  // of 64 slots each: 6 bits a level cover all 64

    // `tick` is the resolution, at least 1 ns: 1 ns is exact (virtual time), 1 ms lets a runtime
    // wake once for all that falls into the same millisecond. Ticks are counted from `start`.
    timer_wheel(std::chrono::nanoseconds tick, time_point start);

    // Unlinks whatever is left: those nodes never come out, and may outlive the wheel.
    ~timer_wheel();

    timer_wheel(timer_wheel const&) = delete;
    timer_wheel& operator=(timer_wheel const&) = delete;

    // The node must not be linked, here or in another wheel.
    void insert(timer_node& node, time_point deadline) noexcept;

    // False, and no effect, if the node is not linked. A linked node must be in this wheel.
    bool cancel(timer_node& node) noexcept;

    // The next node that is due at `now`, already unlinked, or nullptr when there is none left.
    // Call until nullptr; between calls anything may be inserted or cancelled, including the node
    // just returned and nodes due at this same moment.
    [[nodiscard("the node has left the wheel")]] timer_node* pop_expired(time_point now) noexcept;

    // The same node, left where it is: for an owner of several wheels, which asks whose is first.
    [[nodiscard]] timer_node const* peek_expired(time_point now) noexcept;

    // When to call pop_expired() next: nullopt if no node will ever be due. Never later than the
    // earliest node is due; exact when that is fewer than 64 ticks ahead and in the same group of
    // 64; otherwise the moment at which its slot is dealt out to finer levels. Each such wake
    // brings it at least one level down, so sleeping until next_expiry() and popping reaches any
    // timer in at most `levels` wakes. In the past when a node is already due.
    [[nodiscard]] std::optional<time_point> next_expiry() const noexcept;

    // Nodes linked, the "never" ones included.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  private:
    static constexpr unsigned slot_bits = 6;
    static constexpr unsigned slots = 1U << slot_bits;

    using slot_list = linked_list<timer_node, plain_link>;  // a checker cannot watch 700 of them

    struct slot_ref {
        unsigned level;
        unsigned slot;
    };

    [[nodiscard]] std::uint64_t tick_at_or_before(time_point now) const noexcept;
    [[nodiscard]] std::uint64_t tick_at_or_after(time_point deadline) const noexcept;
    [[nodiscard]] time_point time_of(std::uint64_t tick) const noexcept;
    [[nodiscard]] slot_ref slot_of(std::uint64_t tick) const noexcept;
    [[nodiscard]] slot_ref first_occupied() const noexcept;
    [[nodiscard]] std::uint64_t first_tick_of(slot_ref at) const noexcept;

    void place(timer_node& node) noexcept;
    void mark_empty(slot_ref at) noexcept;
    void deal_out(slot_ref at) noexcept;
    bool advance(std::uint64_t now_tick) noexcept;

    std::uint64_t const tick_ns_;
    time_point const start_;
    std::uint64_t const last_tick_;  // the last one that a time_point can express

    std::uint64_t elapsed_ = 0;  // ticks since start_ that have been dealt with
    std::size_t size_ = 0;
    std::uint32_t occupied_levels_ = 0;             // bit L: occupied_[L] != 0
    std::array<std::uint64_t, levels> occupied_{};  // bit S: lists_[L][S] is not empty
    slot_list due_;                                 // tick <= elapsed_
    slot_list never_;                               // tick beyond last_tick_
    std::array<std::array<slot_list, slots>, levels> lists_;
};

}  // namespace rondo
