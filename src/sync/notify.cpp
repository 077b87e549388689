// Algorithm
//   One word says what can be said without a lock:
//       stored    a notification is kept for the next that comes
//       awaited   somebody is in line
//       the rest  how often notify_waiters() was called, in units of one_call
//   With nobody in line every call is a compare-exchange on the word. As soon as somebody is, the
//   word changes only under the lock, and notifications go from hand to hand: notify_one() offers
//   one, and grant() gives it to the waiter whom the queue asks about.
//   A waiter remembers the count of calls from when it was made. If the count has changed it was
//   notified, wherever it is by then. What was counted before, it has acquired with the count.
//
// Invariants (while the lock is free)
//   I1  `awaited` is set if and only if somebody is in line.
//   I2  `stored` and `awaited` are not both set.
//   I3  while `awaited` is set the word changes only under the lock.
//   I4  nothing is offered: it was granted, or it is stored.
//
// Memory order
//   An acquire that reads the word sees what came before every release operation on it so far: it
//   changes by read-modify-write operations, which continue a release sequence, or under the lock
//   by a release store of who has acquired it (I3).
//
// Races considered
//   - who enters and who notifies: grant() finds `stored` or sets `awaited` in one exchange, so a
//     notification is taken by it or goes through the lock and finds it in line.
//   - notify_one() between two batches of notify_waiters(): those who are owed the broadcast do
//     not use it up; if the line ends with them, it is stored.
//   - `awaited` is cleared by whoever takes the last one out of the line: grant(), give_back().
#include "rondo/sync/notify.hpp"

namespace rondo {

using detail::notified_by;

// --- those who notify ---

void notify::notify_single(notified_by how) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while ((word & awaited) == 0) {
        // It writes also if one is stored already: who takes that one sees what came before this.
        // release: pairs with the acquire in take()
        if (word_.compare_exchange_weak(word, word | stored, std::memory_order_release,
                                        std::memory_order_relaxed)) {
            return;
        }
    }
    notify_in_line(how);
}

void notify::notify_in_line(notified_by how) noexcept {
    auto const offer = [&]() noexcept {
        if (has_waiters()) {
            offered_ = how;
        } else {
            // release: pairs with the acquire in take()
            word_.fetch_or(stored, std::memory_order_release);
        }
    };
    if (how == notified_by::last) {
        serve_last(offer);
    } else {
        serve(offer);
    }
}

void notify::notify_waiters() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while ((word & awaited) == 0) {
        // release: pairs with the acquire in take()
        if (word_.compare_exchange_weak(word, word + one_call, std::memory_order_release,
                                        std::memory_order_relaxed)) {
            return;
        }
    }
    // release: as above, for those who are not in line
    serve_in_batches([this] { word_.fetch_add(one_call, std::memory_order_release); });
}

// --- those who wait ---

// What there is for one who remembers `calls` and is not in line. If there is nothing, the bits
// `or_else` are set with the same operation.
notified_by notify::take(std::uint64_t calls, std::uint64_t or_else) noexcept {
    // acquire: pairs with the release operations of those who notify; also where the exchange
    // fails, as what it has read may say that this one was notified
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
        if (calls_in(word) != calls) return notified_by::all;
        bool const found = (word & stored) != 0;
        if (!found && or_else == 0) return notified_by::nobody;
        std::uint64_t const next = found ? word & ~stored : word | or_else;
        if (word_.compare_exchange_weak(word, next, std::memory_order_acquire,
                                        std::memory_order_acquire)) {
            return found ? notified_by::one : notified_by::nobody;
        }
    }
}

bool notify::try_notified() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while ((word & stored) != 0) {
        // acquire: pairs with the release in notify_single() and where else it is stored
        if (word_.compare_exchange_weak(word, word & ~stored, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

bool notify::owed(waiter& w) noexcept {
    // relaxed: whoever set `awaited` has acquired every call before it; later ones hold the lock
    return calls_in(word_.load(std::memory_order_relaxed)) != static_cast<op&>(w).calls_;
}

bool notify::grant(waiter& w) noexcept {
    op& waits = static_cast<op&>(w);
    if (has_waiters()) return grant_in_line(waits);
    waits.by_ = take(waits.calls_, awaited);  // I1: it is in line as soon as we return
    return waits.by_ != notified_by::nobody;
}

bool notify::grant_in_line(op& waits) noexcept {
    waits.by_ = owed(waits) ? notified_by::all : std::exchange(offered_, notified_by::nobody);
    if (waits.by_ == notified_by::nobody) return false;
    if (is_only(waits)) {  // I1, I4
        bool const left_over = std::exchange(offered_, notified_by::nobody) != notified_by::nobody;
        // relaxed: what was released so far is known here, as in owed(); release: that, and what is
        // left over, pairs with the acquire in take()
        std::uint64_t const word = word_.load(std::memory_order_relaxed);  // I3
        word_.store(word ^ (left_over ? awaited | stored : awaited), std::memory_order_release);
    }
    return true;
}

void notify::give_back(waiter&) noexcept {
    // relaxed: it tells nothing but that nobody is in line
    if (!has_waiters()) word_.fetch_and(~awaited, std::memory_order_relaxed);  // I1
}

namespace detail {

bool notified_op::ready() noexcept {
    if (done_) return true;
    // If it was notified since it was enabled, whoever waits finds out when it lines up. Who asks
    // again may find that it has ended otherwise.
    if (enabled_) return settled_ || (std::exchange(asked_, true) && enlist());
    if (state() != wait_state::idle) return true;  // its time is over, once and for all
    by_ = notify_.take(calls_, 0);
    return by_ != notified_by::nobody;
}

void notified_op::hand_on() noexcept {
    done_ = true;
    if (by_ == notified_by::one || by_ == notified_by::last) notify_.notify_single(by_);
}

}  // namespace detail

}  // namespace rondo
