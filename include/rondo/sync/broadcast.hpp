// broadcast.hpp: every value to every receiver, the newest `capacity` of them kept for the slow
// ones.
//
//   auto [tx, rx] = broadcast::channel<quote>(64);
//   auto other = tx.subscribe();                   // gets what is sent from now on
//   tx.send(q);                                    // never waits; says how many will get it
//   auto got = co_await rx.recv();                 // expected<quote, recv_error>
//
// Guarantee      each receiver gets every value that is sent while it is there, in one order for
//                all, unless it is more than `capacity` values behind: then the oldest are pushed
//                out, and its next recv() says `lagged` and how many it missed, and goes on with
//                the oldest that is left.
// End            when the last sender is gone receivers get what is left and then `closed`. A send
//                to no receiver gives the value back; a channel without receivers opens again with
//                subscribe().
// Values         are copied out, by the last receiver moved. No lock is held meanwhile, nor while
//                one is destroyed: a destructor may use the channel, and so may a copy, but for
//                the receiver it is made for. If a copy throws, recv() throws, and the value is
//                still to be received. A value is destroyed when the last receiver has it, or it
//                is pushed out, or the last receiver that had not read it goes.
// Thread safety  a sender may be used by many threads at once; a receiver belongs to one at a time.
//                It is not moved while it waits.
// Memory order   what happens before send() is visible after the recv() of that value; what happens
//                before the last receiver goes, after closed().
// Cancellation   a recv() that is stopped, or loses, has received nothing: the value stays for the
//                next.
// Resumption     on the waiter's executor, never inside send() or a destructor.
// Lifetime       an end outlives its waits.
// Allocation     the ring, at the beginning; one recycled block for each value. Waiting takes none.
// Limits         1 048 575 receivers.
// Example        examples/sync/price_feed.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/broadcast_receiver.hpp"
#include "rondo/sync/detail/broadcast_state.hpp"

namespace rondo::broadcast {

template <class T>
class weak_sender;

}  // namespace rondo::broadcast

namespace rondo::detail {

class broadcast_closed_op : public waiter {
  public:
    explicit broadcast_closed_op(broadcast_state& c) noexcept
        : waiter(c.desertion()), channel_(&c) {}

    bool ready() const noexcept { return channel_->receiver_count() == 0; }
    void take() const noexcept {}
    void hand_on() noexcept {}

  private:
    broadcast_state* channel_;
};

}  // namespace rondo::detail

namespace rondo::broadcast {

// Counted; a copy is another sender of the same channel.
template <class T>
class [[nodiscard("dropping the last sender closes the channel")]] sender {
    static_assert(detail::is_message<T> && std::copy_constructible<T>,
                  "a broadcast value can be copied, and moves without throwing");
    using closed_op = detail::broadcast_closed_op;

  public:
    // Of a new channel that has no receivers yet. Throws std::bad_alloc.
    explicit sender(std::size_t capacity) : channel_(nullptr) {
        RONDO_ASSERT(capacity > 0, "a broadcast channel keeps one value at least");
        channel_ = new detail::broadcast_state{capacity};
    }
    sender(sender const& other) noexcept : channel_(&other.channel()) { channel_->add_sender(); }
    sender(sender&& other) noexcept : channel_(std::exchange(other.channel_, nullptr)) {}
    sender& operator=(sender other) noexcept {
        std::swap(channel_, other.channel_);
        return *this;
    }
    ~sender() {
        if (channel_ != nullptr) channel_->drop_sender();
    }

    // Says to how many receivers it goes. The value comes back if there is none. Throws
    // std::bad_alloc, and has sent nothing then.
    std::expected<std::size_t, T> send(T value) const {
        if (channel().receiver_count() == 0) return std::unexpected<T>{std::move(value)};
        auto fresh = std::make_unique<detail::broadcast_value<T>>(std::move(value));
        detail::broadcast_node* pushed_out = nullptr;
        std::size_t const receivers = channel().publish(fresh.get(), pushed_out);
        if (receivers == 0) return std::unexpected<T>{fresh->take()};
        (void)fresh.release();
        delete pushed_out;
        return receivers;
    }

    // A receiver of what is sent from now on.
    receiver<T> subscribe() const noexcept { return receiver<T>{channel()}; }

    // Waits until there is no receiver.
    wait<closed_op> closed() const noexcept { return closed_op{channel()}; }
    bounded_wait<closed_op> closed(stop_token t) const noexcept {
        return {closed_op{channel()}, t};
    }
    bounded_wait<closed_op> closed_until(time_point d, stop_token t = {}) const noexcept {
        return {closed_op{channel()}, {d, t}};
    }
    bounded_wait<closed_op> closed_for(clock::duration d, stop_token t = {}) const noexcept {
        return {closed_op{channel()}, {d, t}};
    }
    void blocking_closed() const { blocking_wait(closed_op{channel()}); }
    std::expected<void, wait_error> blocking_closed(stop_token t) const {
        return blocking_wait(closed_op{channel()}, t);
    }
    std::expected<void, wait_error> blocking_closed_until(time_point d, stop_token t = {}) const {
        return blocking_wait(closed_op{channel()}, {d, t});
    }
    std::expected<void, wait_error> blocking_closed_for(clock::duration d,
                                                        stop_token t = {}) const {
        return blocking_wait(closed_op{channel()}, {d, t});
    }

    // A handle that does not keep the channel open.
    weak_sender<T> downgrade() const noexcept { return weak_sender<T>{channel()}; }

    // Values that some receiver has not got yet.
    std::size_t len() const noexcept { return channel().length(); }
    bool is_empty() const noexcept { return len() == 0; }
    std::size_t receiver_count() const noexcept { return channel().receiver_count(); }
    std::size_t strong_count() const noexcept { return channel().sender_count(); }
    std::size_t weak_count() const noexcept { return channel().weak_sender_count(); }
    bool same_channel(sender const& other) const noexcept { return channel_ == other.channel_; }

  private:
    friend weak_sender<T>;
    explicit sender(detail::broadcast_state& counted) noexcept : channel_(&counted) {}

    detail::broadcast_state& channel() const noexcept {
        RONDO_ASSERT(channel_ != nullptr, "a sender that was moved has no channel");
        return *channel_;
    }

    detail::broadcast_state* channel_;
};

// Becomes a sender again as long as there is one.
template <class T>
class weak_sender {
  public:
    weak_sender(weak_sender const& other) noexcept : weak_sender(other.channel()) {}
    weak_sender(weak_sender&& other) noexcept : channel_(std::exchange(other.channel_, nullptr)) {}
    weak_sender& operator=(weak_sender other) noexcept {
        std::swap(channel_, other.channel_);
        return *this;
    }
    ~weak_sender() {
        if (channel_ != nullptr) channel_->drop_weak_sender();
    }

    // Nothing when the last sender is gone: the channel is closed for good.
    std::optional<sender<T>> upgrade() const noexcept {
        if (!channel().add_sender_if_any()) return std::nullopt;
        return sender<T>{channel()};
    }

    std::size_t strong_count() const noexcept { return channel().sender_count(); }
    std::size_t weak_count() const noexcept { return channel().weak_sender_count(); }

  private:
    friend sender<T>;
    explicit weak_sender(detail::broadcast_state& c) noexcept : channel_(&c) {
        channel_->add_weak_sender();
    }

    detail::broadcast_state& channel() const noexcept {
        RONDO_ASSERT(channel_ != nullptr, "a weak sender that was moved has no channel");
        return *channel_;
    }

    detail::broadcast_state* channel_;
};

template <class T>
struct ends {
    broadcast::sender<T> sender;
    broadcast::receiver<T> receiver;
};

// Keeps up to `capacity` values, at least one. Throws std::bad_alloc if there is no memory.
template <class T>
[[nodiscard("a channel is its two ends")]] ends<T> channel(std::size_t capacity) {
    sender<T> tx{capacity};
    receiver<T> rx = tx.subscribe();
    return {std::move(tx), std::move(rx)};
}

}  // namespace rondo::broadcast
