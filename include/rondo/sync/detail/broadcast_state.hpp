// broadcast_state.hpp: what the ends of a broadcast channel share. The algorithm:
// src/sync/broadcast.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/waiter.hpp"
#include "rondo/sync/detail/slot.hpp"

namespace rondo::detail {

// Where a receiver is: the position of the next value it wants, as a lap and a place in the ring.
struct broadcast_cursor {
    std::uint64_t position;
    std::uint64_t lap;
    std::size_t place;
};

// A value on its way. Positions count from `capacity`: lap 0 is a slot that was never written.
struct broadcast_node : recycled {
    virtual ~broadcast_node() = default;
    // Destroys the value, if it is still there.
    virtual void drop() noexcept = 0;

    cell<std::uint64_t> position{std::uint64_t{0}};
    // Once it has left the ring: readers that are still at it, less those that have gone.
    atomic<std::int64_t> readers{0};
};

// Where the newest node of a place in the ring is, and who is at it.
class broadcast_slot {
  public:
    // Null: it holds another position. Else the caller reads, and says so with release(). `sole`
    // says that nobody else will read it.
    broadcast_node* pin(broadcast_cursor const& at, bool& sole) noexcept;
    // The end of that; `read`: the reader will not come again. Frees what nobody wants any more.
    void release(broadcast_cursor const& at, broadcast_node* node, bool read) noexcept;

    // For the sender, under the lock: the next lap. Returns what is to be deleted after it.
    broadcast_node* replace(broadcast_node* fresh, std::uint64_t lap,
                            std::size_t receivers) noexcept;
    // How many will still read it.
    std::size_t unread() const noexcept;
    // When everybody is gone.
    broadcast_node* node() const noexcept { return node_.load(std::memory_order_relaxed); }

    static constexpr std::size_t most_receivers = (std::size_t{1} << 20) - 1;

  private:
    // The word: lap << 40 | readers at it now << 20 | receivers that have not read it. Of the lap
    // it has as many bits as there is room for; a checked build has few, to see it start over.
    static constexpr std::uint64_t one_unread = 1;
    static constexpr std::uint64_t one_reader = std::uint64_t{1} << 20;
    static constexpr std::uint64_t one_lap = std::uint64_t{1} << 40;
    static constexpr std::uint64_t laps = std::uint64_t{1} << (checked_build ? 2 : 24);

    static std::uint64_t unread_in(std::uint64_t word) noexcept { return word % one_reader; }
    static std::uint64_t readers_in(std::uint64_t word) noexcept {
        return word % one_lap / one_reader;
    }
    static bool in_lap(std::uint64_t word, std::uint64_t lap) noexcept {
        return word / one_lap == lap % laps;
    }

    atomic<std::uint64_t> word_{0};
    atomic<broadcast_node*> node_{nullptr};
};

class broadcast_state;

// Where senders wait until there is no receiver.
class broadcast_desertion final : public wait_queue {
  public:
    explicit broadcast_desertion(broadcast_state& channel) noexcept : channel_(channel) {}
    void look_again() noexcept {
        serve([] {});
    }

  private:
    bool grant(waiter&) noexcept override;

    broadcast_state& channel_;
};

// A receiver that waits.
class broadcast_waiter : public waiter {
  public:
    explicit broadcast_waiter(broadcast_state& channel) noexcept;
    // Which position it waits for; said before it enters, as others read it then.
    void want(std::uint64_t position) noexcept { wanted_ = position; }
    std::uint64_t wanted() const noexcept { return wanted_; }

  private:
    std::uint64_t wanted_ = 0;
};

// The part that does not depend on the type of the values. The queue is the receivers'.
class broadcast_state final : public wait_queue, public recycled {
  public:
    std::size_t capacity() const noexcept { return capacity_; }
    std::uint64_t tail() const noexcept {
        // acquire: pairs with the release in publish()
        return tail_.load(std::memory_order_acquire);
    }
    bool closed() const noexcept {
        // acquire: pairs with the release in drop_sender()
        return closed_.load(std::memory_order_acquire);
    }
    std::size_t receiver_count() const noexcept {
        // acquire: pairs with the release in drop_receiver()
        return receivers_.load(std::memory_order_acquire);
    }
    broadcast_desertion& desertion() noexcept { return desertion_; }

    // Puts the node into the ring for all receivers: how many. Null and 0: there is none, and the
    // node is the caller's. Else the second is to be deleted.
    std::size_t publish(broadcast_node* fresh, broadcast_node*& doomed) noexcept;
    // Values that some receiver has not read.
    std::size_t length() noexcept;

    // A new receiver, which begins with what is sent next.
    broadcast_cursor add_receiver() noexcept;
    void drop_receiver(broadcast_cursor from) noexcept;

    broadcast_slot& at(broadcast_cursor const& c) noexcept { return ring_[c.place]; }
    // broadcast_slot::pin() of that place, if the cursor is not further behind that tail than the
    // ring is long.
    broadcast_node* pin(broadcast_cursor const& c, std::uint64_t tail, bool& sole) noexcept;
    void advance(broadcast_cursor& c) const noexcept;
    // The value at the cursor is gone: moves it to the oldest that is left, and says how many it
    // missed.
    std::uint64_t skip(broadcast_cursor& c) noexcept;

    void add_sender() noexcept {
        senders_.fetch_add(1, std::memory_order_relaxed);  // by a sender: it is not the first
    }
    // False: there is none any more, and there will be none.
    bool add_sender_if_any() noexcept;
    void drop_sender() noexcept;
    std::size_t sender_count() const noexcept { return senders_.load(std::memory_order_relaxed); }

    void add_weak_sender() noexcept {
        owners_.fetch_add(weak_sender, std::memory_order_relaxed);  // by an owner
    }
    void drop_weak_sender() noexcept { disown(weak_sender); }
    std::size_t weak_sender_count() const noexcept {
        return owners_.load(std::memory_order_relaxed) / weak_sender;
    }

    explicit broadcast_state(std::size_t capacity);
    ~broadcast_state();

  private:
    // owners_ is made of these: who keeps this memory.
    static constexpr std::size_t the_senders = 1;  // all of them together
    static constexpr std::size_t a_receiver = 1;
    static constexpr std::size_t weak_sender = std::size_t{1} << 32;

    bool grant(waiter& w) noexcept override;
    bool owed(waiter& w) noexcept override { return grant(w); }
    void disown(std::size_t part) noexcept;
    broadcast_cursor cursor_at(std::uint64_t position) const noexcept;

    std::size_t const capacity_;
    std::unique_ptr<broadcast_slot[]> const ring_;
    cell<broadcast_cursor> next_;       // under the lock: where the next value goes
    atomic<std::uint64_t> tail_;        // its position, for those without the lock
    atomic<std::size_t> receivers_{0};  // changes under the lock
    atomic<bool> closed_{false};        // changes under the lock
    atomic<std::size_t> senders_{1};
    atomic<std::size_t> owners_{the_senders};
    broadcast_desertion desertion_{*this};
};

inline broadcast_waiter::broadcast_waiter(broadcast_state& channel) noexcept : waiter(channel) {}

template <class T>
class broadcast_value final : public broadcast_node {
  public:
    explicit broadcast_value(T&& value) noexcept { value_.put(std::move(value)); }
    ~broadcast_value() override { drop(); }
    void drop() noexcept override {
        if (std::exchange(there_, false)) value_.drop();
    }

    T const& look() const noexcept { return value_.look(); }
    T take() noexcept {
        there_ = false;
        return value_.take();
    }

  private:
    slot<T> value_;
    bool there_ = true;
};

}  // namespace rondo::detail
