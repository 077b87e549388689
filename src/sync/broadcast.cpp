// Algorithm
//
// A ring of as many slots as the channel has room for values. A value is in a node; a send puts the
// node into the next slot and takes out the one that was there, under the lock. Receivers read
// without it. Each slot has a word:
//
//   lap       which value of this place it is: positions count up, lap = position / capacity
//   readers   who reads the node at this moment
//   unread    receivers that were there when it was sent and have not read it
//
// A receiver adds itself to the readers if the lap is the one that it wants, copies the value, and
// takes itself off the readers and off the unread. The last of the unread does not copy but takes
// the value; one that finds itself to be the last when it has copied destroys the value, before it
// takes itself off. So a value lives until everybody has read it, or until it is pushed out.
//
// A send that pushes out a node while somebody reads it leaves it to the readers: it adds their
// number to the node's own counter, and each reader that finds another lap when it is done
// subtracts itself there. Whoever brings the counter back to zero deletes the node. Nobody ever
// waits for a reader, so copying a value may take its time, and may even send.
//
// Invariants
//   I1  the node of a slot is the one of the lap in its word, for whoever is among the readers of
//       that lap. A send changes the word and then the node, a reader reads the word, then the
//       node, and then changes the word: if it read the new node it cannot find the old word there.
//   I2  a node is deleted by the send that pushes it out if there were no readers; else by whoever
//       balances its counter.
//   I3  a value is destroyed once: by the last of its unread, while it is among the readers; or
//       with its node. `drop()` says which came first, and those two exclude each other by I2.
//   I4  a receiver at `next` finds the value of `next` in the ring, or learns that it was pushed
//       out, as soon as tail_ is past it: the slot was written before.
//   I5  user code (copies, destructors) runs with no lock held.
//
// Races considered
//   - a send pushes a value out between the look at tail_ and at the slot: the lap differs. tail_
//     may not say so yet; skip() looks under the lock.
//   - the lap has 24 bits: one that is 2^24 rounds old looks like the current one, and a receiver
//     that takes it for its own may load a node that is being pushed out (I1 says nothing of it).
//     So one that is further behind than the ring is long does not look at its slot: tail() tells
//     it that it lags. There remains one that stops between tail() and pin() for 2^24 rounds. The
//     node has the whole position, and pin() looks at that too; what it cannot see is a node that
//     is pushed out at that very moment.
//   - a receiver that goes takes itself off the unread of what it leaves behind. What is sent after
//     it left the count does not count it.
//   - the last sender goes while a receiver looks: closed_ is read before tail_.
#include "rondo/core/assert.hpp"
#include "rondo/sync/detail/broadcast_state.hpp"

namespace rondo::detail {

broadcast_node* broadcast_slot::pin(broadcast_cursor const& at, bool& sole) noexcept {
    // relaxed: that the slot was written happens before, by tail()
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    broadcast_node* node = nullptr;
    do {
        if (!in_lap(seen, at.lap)) return nullptr;
        node = node_.load(std::memory_order_acquire);  // I1; pairs with the release in replace()
        // acquire: for `sole`, pairs with the release in release()
    } while (!word_.compare_exchange_weak(seen, seen + one_reader, std::memory_order_acquire,
                                          std::memory_order_relaxed));
    if (node->position != at.position) {
        release(at, node, false);
        return nullptr;
    }
    sole = unread_in(seen) == 1;
    return node;
}

void broadcast_slot::release(broadcast_cursor const& at, broadcast_node* node, bool read) noexcept {
    // acquire: pairs with the release below, of those who read before
    std::uint64_t seen = word_.load(std::memory_order_acquire);
    while (in_lap(seen, at.lap)) {
        if (read && unread_in(seen) == 1) node->drop();  // I3
        std::uint64_t const rest = seen - one_reader - (read ? one_unread : 0);
        // release: pairs with the acquire above and in replace()
        if (word_.compare_exchange_weak(seen, rest, std::memory_order_release,
                                        std::memory_order_acquire)) {
            return;
        }
    }
    // acq_rel: pairs with itself and with replace(); the last one sees what the others did
    if (node->readers.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node;  // I2
}

broadcast_node* broadcast_slot::replace(broadcast_node* fresh, std::uint64_t lap,
                                        std::size_t receivers) noexcept {
    // acquire: pairs with the release in release() of those who are done with what is pushed out
    std::uint64_t const fresh_word = lap % laps * one_lap + receivers * one_unread;
    std::uint64_t const seen = word_.exchange(fresh_word, std::memory_order_acquire);
    broadcast_node* const old = node_.load(std::memory_order_relaxed);  // changes under the lock
    // release: pairs with the acquire in pin()
    node_.store(fresh, std::memory_order_release);  // I1
    auto const readers = static_cast<std::int64_t>(readers_in(seen));
    if (readers == 0) return old;
    // acq_rel: as in release()
    bool const all_gone = old->readers.fetch_add(readers, std::memory_order_acq_rel) == -readers;
    return all_gone ? old : nullptr;  // I2
}

std::size_t broadcast_slot::unread() const noexcept {
    return static_cast<std::size_t>(unread_in(word_.load(std::memory_order_relaxed)));
}

bool broadcast_desertion::grant(waiter&) noexcept { return channel_.receiver_count() == 0; }

broadcast_state::broadcast_state(std::size_t capacity)
    : capacity_(capacity),
      ring_(new broadcast_slot[capacity]),
      next_(cursor_at(capacity)),
      tail_(capacity) {}

broadcast_state::~broadcast_state() {
    for (std::size_t i = 0; i < capacity_; ++i) delete ring_[i].node();
}

broadcast_cursor broadcast_state::cursor_at(std::uint64_t position) const noexcept {
    return {position, position / capacity_, static_cast<std::size_t>(position % capacity_)};
}

broadcast_node* broadcast_state::pin(broadcast_cursor const& c, std::uint64_t tail,
                                     bool& sole) noexcept {
    if (tail - c.position > capacity_) return nullptr;  // its lap may have come again
    return at(c).pin(c, sole);
}

void broadcast_state::advance(broadcast_cursor& c) const noexcept {
    ++c.position;
    if (++c.place == capacity_) {
        c.place = 0;
        ++c.lap;
    }
}

bool broadcast_state::grant(waiter& w) noexcept {
    // under the lock: relaxed would do for both
    return static_cast<broadcast_waiter&>(w).wanted() != tail() || closed();
}

std::size_t broadcast_state::publish(broadcast_node* fresh, broadcast_node*& doomed) noexcept {
    std::size_t receivers = 0;
    serve_in_batches([&] {
        receivers = receivers_.load(std::memory_order_relaxed);  // changes under the lock
        if (receivers == 0) return;
        broadcast_cursor& here = next_.write();
        fresh->position = here.position;
        doomed = at(here).replace(fresh, here.lap, receivers);
        advance(here);
        // release: pairs with the acquire in tail()
        tail_.store(here.position, std::memory_order_release);  // I4
    });
    return receivers;
}

std::size_t broadcast_state::length() noexcept {
    std::lock_guard const guard{lock()};
    std::uint64_t const end = next_.read().position;
    // Receivers read in order, so what everybody has read comes first.
    std::uint64_t read = end - capacity_;
    std::uint64_t unread = end;
    while (read != unread) {
        std::uint64_t const middle = read + (unread - read) / 2;
        if (at(cursor_at(middle)).unread() == 0) {
            read = middle + 1;
        } else {
            unread = middle;
        }
    }
    return static_cast<std::size_t>(end - unread);
}

broadcast_cursor broadcast_state::add_receiver() noexcept {
    owners_.fetch_add(a_receiver, std::memory_order_relaxed);  // by an owner
    std::lock_guard const guard{lock()};
    std::size_t const others = receivers_.load(std::memory_order_relaxed);
    RONDO_ASSERT(others < broadcast_slot::most_receivers, "a channel has up to 2^20 - 1 receivers");
    receivers_.store(others + 1, std::memory_order_relaxed);
    return next_;
}

void broadcast_state::drop_receiver(broadcast_cursor from) noexcept {
    std::size_t others = 0;
    std::uint64_t end = 0;
    {
        std::lock_guard const guard{lock()};
        others = receivers_.load(std::memory_order_relaxed) - 1;
        // release: pairs with the acquire in receiver_count()
        receivers_.store(others, std::memory_order_release);
        end = next_.read().position;
    }
    if (end - from.position > capacity_) from = cursor_at(end - capacity_);
    for (; from.position != end; advance(from)) {
        bool sole = false;
        broadcast_node* const left = at(from).pin(from, sole);
        if (left != nullptr) at(from).release(from, left, true);
    }
    if (others == 0) desertion_.look_again();
    disown(a_receiver);
}

std::uint64_t broadcast_state::skip(broadcast_cursor& c) noexcept {
    std::uint64_t end = 0;
    {
        std::lock_guard const guard{lock()};
        end = next_.read().position;
    }
    std::uint64_t const missed = end - capacity_ - c.position;
    c = cursor_at(end - capacity_);
    return missed;
}

bool broadcast_state::add_sender_if_any() noexcept {
    std::size_t seen = senders_.load(std::memory_order_relaxed);
    do {
        if (seen == 0) return false;
        // relaxed: as in add_sender()
    } while (!senders_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed));
    return true;
}

void broadcast_state::drop_sender() noexcept {
    // acq_rel: what all the others sent comes before the last one closes
    if (senders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    // release: pairs with the acquire in closed()
    serve_in_batches([this] { closed_.store(true, std::memory_order_release); });
    disown(the_senders);
}

void broadcast_state::disown(std::size_t part) noexcept {
    // acq_rel: the last one sees what the others did, and frees it
    if (owners_.fetch_sub(part, std::memory_order_acq_rel) == part) delete this;
}

}  // namespace rondo::detail
