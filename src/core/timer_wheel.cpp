// Algorithm
//
// The hierarchical timing wheel of Varghese & Lauck (SOSP 1987, scheme 7), in Tokio's form: a tick
// is read as 11 digits of 6 bits, and a node lies at the level of the highest digit in which its
// tick differs from `elapsed_`, in the slot that this digit names. Everything at level 0 is
// therefore due before anything at level 1, and so on, and within a level slots are due in the
// order of their numbers, with no wrap-around: the next thing to do is always the lowest bit of the
// lowest occupied level, and reaching it is one jump however far it lies.
//
// When time reaches the start of a slot, `elapsed_` is set to it and the slot is dealt out: its
// nodes now share one more digit with `elapsed_` and move to lower levels, or to the due list. From
// the due list they leave one by one, so that the owner may insert and cancel between any two.
//
// Invariants
//
// I1  elapsed_ only grows, and never passes the `now` it was advanced to.
// I2  a node with elapsed_ < tick <= last_tick_ lies at slot_of(tick), computed with today's
//     elapsed_. This is what lets cancel() find the occupancy bit without storing it in the node.
// I3  a bit of occupied_ is set if and only if its list is not empty; a bit of occupied_levels_ if
//     and only if that level has a bit set.
// I4  (from I2) the slots occupied at level L all have a higher number than digit L of elapsed_.
// I5  due_ holds exactly the nodes with tick <= elapsed_, and elapsed_ stands still while it holds
//     any. never_ holds exactly the nodes whose tick is `never`.
// I6  (from I2, I5) nodes of one tick are always in one list, in the order of their insertion:
//     lists grow at the tail and are dealt out from the head. The order costs nothing.
//
// Why elapsed_ may jump to any tick before the first occupied slot (end of advance()): up to there
// it changes no digit above that slot's level L and keeps digit L below the slot's, so no node's
// highest differing digit changes and I2 holds as it stands.

#include "rondo/core/timer_wheel.hpp"

#include <bit>
#include <limits>

namespace rondo {

namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// Signed nanoseconds may lie up to 2^64 - 1 apart; only unsigned arithmetic can say so.
std::uint64_t ns_between(timer_wheel::time_point from, timer_wheel::time_point to) noexcept {
    return static_cast<std::uint64_t>(to.time_since_epoch().count()) -
           static_cast<std::uint64_t>(from.time_since_epoch().count());
}

}  // namespace

static_assert(timer_wheel::clock::period::den == 1'000'000'000, "time_point counts nanoseconds");

timer_wheel::timer_wheel(std::chrono::nanoseconds tick, time_point start)
    : tick_ns_(static_cast<std::uint64_t>(tick.count())),
      start_(start),
      last_tick_(tick.count() > 0 ? ns_between(start, time_point::max()) / tick_ns_ : 0) {
    RONDO_ASSERT(tick.count() > 0, "a timer_wheel's tick must be at least 1 ns");
}

timer_wheel::~timer_wheel() {
    for (auto& level : lists_) {
        for (slot_list& nodes : level) due_.append(nodes);
    }
    due_.append(never_);
    while (due_.pop_front() != nullptr) {
    }
}

void timer_wheel::insert(timer_node& node, time_point deadline) noexcept {
    RONDO_ASSERT(!node.linked(), "timer_node inserted twice");
    node.deadline = deadline;
    node.tick_ = tick_at_or_after(deadline);
    place(node);
    ++size_;
}

bool timer_wheel::cancel(timer_node& node) noexcept {
    if (!node.linked()) {
        return false;
    }
    bool const was_alone = slot_list::is_alone(node);
    slot_list::remove(node);
    if (was_alone && node.tick_ > elapsed_ && node.tick_ != never) {
        mark_empty(slot_of(node.tick_));  // I2
    }
    --size_;
    return true;
}

timer_node* timer_wheel::pop_expired(time_point now) noexcept {
    if (due_.empty() && !advance(tick_at_or_before(now))) {
        return nullptr;
    }
    --size_;
    return due_.pop_front();
}

timer_node const* timer_wheel::peek_expired(time_point now) noexcept {
    if (due_.empty() && !advance(tick_at_or_before(now))) {
        return nullptr;
    }
    return due_.front();
}

std::optional<timer_wheel::time_point> timer_wheel::next_expiry() const noexcept {
    if (!due_.empty()) {
        return time_of(elapsed_);
    }
    if (occupied_levels_ == 0) {
        return std::nullopt;
    }
    return time_of(first_tick_of(first_occupied()));
}

// Moves elapsed_ from slot to slot until something is due, which it says, or until now_tick.
bool timer_wheel::advance(std::uint64_t now_tick) noexcept {
    while (occupied_levels_ != 0) {
        slot_ref const at = first_occupied();
        std::uint64_t const begins = first_tick_of(at);
        if (begins > now_tick) {
            break;
        }
        elapsed_ = begins;
        deal_out(at);
        if (!due_.empty()) {
            return true;  // I5: no further until these are gone
        }
    }
    if (now_tick > elapsed_) {  // I1
        elapsed_ = now_tick;
    }
    return false;
}

// Precondition: elapsed_ has just been set to the first tick of this slot.
void timer_wheel::deal_out(slot_ref at) noexcept {
    slot_list& nodes = lists_[at.level][at.slot];
    mark_empty(at);
    if (at.level == 0) {
        due_.append(nodes);  // one tick, and it is now: no need to touch the nodes
        return;
    }
    while (timer_node* const node = nodes.pop_front()) {
        place(*node);  // I6: head to tail keeps the order
    }
}

void timer_wheel::place(timer_node& node) noexcept {
    if (node.tick_ == never) {
        never_.push_back(node);
    } else if (node.tick_ <= elapsed_) {
        due_.push_back(node);  // I5
    } else {
        slot_ref const at = slot_of(node.tick_);  // I2
        lists_[at.level][at.slot].push_back(node);
        occupied_[at.level] |= std::uint64_t{1} << at.slot;  // I3
        occupied_levels_ |= std::uint32_t{1} << at.level;
    }
}

void timer_wheel::mark_empty(slot_ref at) noexcept {
    occupied_[at.level] &= ~(std::uint64_t{1} << at.slot);  // I3
    if (occupied_[at.level] == 0) {
        occupied_levels_ &= ~(std::uint32_t{1} << at.level);
    }
}

// Precondition: tick > elapsed_.
timer_wheel::slot_ref timer_wheel::slot_of(std::uint64_t tick) const noexcept {
    auto const highest_bit = static_cast<unsigned>(std::bit_width(tick ^ elapsed_)) - 1;
    unsigned const level = highest_bit / slot_bits;
    return {level, static_cast<unsigned>(tick >> (level * slot_bits)) % slots};
}

// Precondition: occupied_levels_ != 0.
timer_wheel::slot_ref timer_wheel::first_occupied() const noexcept {
    auto const level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
    return {level, static_cast<unsigned>(std::countr_zero(occupied_[level]))};  // I4
}

// The digits above at.level are those of elapsed_ (I2), the ones below are zero.
std::uint64_t timer_wheel::first_tick_of(slot_ref at) const noexcept {
    unsigned const shift = at.level * slot_bits;
    std::uint64_t const digits_above = ~std::uint64_t{slots - 1} & (elapsed_ >> shift);
    return (digits_above | at.slot) << shift;
}

std::uint64_t timer_wheel::tick_at_or_before(time_point now) const noexcept {
    if (now <= start_) {
        return 0;
    }
    return ns_between(start_, now) / tick_ns_;
}

std::uint64_t timer_wheel::tick_at_or_after(time_point deadline) const noexcept {
    if (deadline <= start_) {
        return 0;
    }
    if (deadline == time_point::max()) {
        return never;
    }
    std::uint64_t const ns = ns_between(start_, deadline);
    std::uint64_t const tick = ns / tick_ns_ + (ns % tick_ns_ != 0 ? 1 : 0);
    return tick > last_tick_ ? never : tick;
}

// Precondition: tick <= last_tick_, so that neither step overflows.
timer_wheel::time_point timer_wheel::time_of(std::uint64_t tick) const noexcept {
    std::uint64_t const since_epoch =
        static_cast<std::uint64_t>(start_.time_since_epoch().count()) + tick * tick_ns_;
    return time_point(clock::duration(static_cast<clock::rep>(since_epoch)));
}

}  // namespace rondo
