// broadcast_receiver.hpp: the receiving end of a broadcast channel. The contract is in
// broadcast.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/broadcast_state.hpp"

namespace rondo::broadcast {

enum class recv_failure : std::uint8_t {
    closed,  // every sender is gone, and everything is received
    lagged,  // too slow: some were pushed out. The next recv() gives what is left
    stopped,
    timed_out,
};

struct recv_error {
    recv_failure why;
    std::uint64_t missed = 0;  // lagged: how many values

    friend bool operator==(recv_error, recv_error) = default;
};

enum class try_recv_failure : std::uint8_t {
    empty,   // nothing new
    closed,  // as above
    lagged,  // as above
};

struct try_recv_error {
    try_recv_failure why;
    std::uint64_t missed = 0;

    friend bool operator==(try_recv_error, try_recv_error) = default;
};

template <class T>
class sender;

}  // namespace rondo::broadcast

namespace rondo::detail {

template <class T>
class broadcast_recv_op : public broadcast_waiter {
  public:
    broadcast_recv_op(broadcast_state& c, broadcast_cursor& at) noexcept
        : broadcast_waiter(c), channel_(&c), at_(&at) {}

    bool ready() noexcept {
        want(at_->position);  // now: the receiver may have been used since this was made
        return channel_->tail() != wanted() || channel_->closed();
    }
    std::expected<T, broadcast::recv_error> take() {
        // Closed first: what was sent before is then in the tail.
        (void)channel_->closed();
        std::uint64_t const tail = channel_->tail();
        if (tail == at_->position) {
            return std::unexpected{broadcast::recv_error{broadcast::recv_failure::closed}};
        }
        return read_next(tail);
    }
    void hand_on() noexcept {}
    broadcast::recv_error refuse(wait_error why) const noexcept {
        return {reason<broadcast::recv_failure>(why)};
    }

    // The value at the cursor, of which there must be one, with that tail.
    std::expected<T, broadcast::recv_error> read_next(std::uint64_t tail) {
        bool sole = false;
        broadcast_node* const node = channel_->pin(*at_, tail, sole);
        if (node == nullptr) {
            using enum broadcast::recv_failure;
            return std::unexpected{broadcast::recv_error{lagged, channel_->skip(*at_)}};
        }
        struct reading {
            broadcast_state& channel;
            broadcast_cursor& at;
            broadcast_node* node;
            broadcast_cursor const here = at;
            bool done = false;
            // Before the value is destroyed: its destructor may receive what is next.
            void finish() noexcept {
                channel.advance(at);
                done = true;
            }
            ~reading() { channel.at(here).release(here, node, done); }
        } r{*channel_, *at_, node};
        auto& value = static_cast<broadcast_value<T>&>(*node);
        using received = std::expected<T, broadcast::recv_error>;
        if (sole) {
            r.finish();
            return received{std::in_place, value.take()};
        }
        received got{std::in_place, value.look()};
        r.finish();
        return got;
    }

  private:
    broadcast_state* channel_;
    broadcast_cursor* at_;
};

}  // namespace rondo::detail

namespace rondo::broadcast {

template <class T>
class [[nodiscard("a receiver that is dropped receives nothing")]] receiver {
    using recv_op = detail::broadcast_recv_op<T>;
    using received = std::expected<T, recv_error>;

  public:
    receiver(receiver&& other) noexcept
        : channel_(std::exchange(other.channel_, nullptr)), at_(other.at_) {}
    receiver& operator=(receiver&& other) noexcept {
        receiver{std::move(other)}.swap(*this);
        return *this;
    }
    ~receiver() {
        if (channel_ != nullptr) channel_->drop_receiver(at_);
    }
    void swap(receiver& other) noexcept {
        std::swap(channel_, other.channel_);
        std::swap(at_, other.at_);
    }

    // The next value. Throws what its copy constructor throws.
    wait<recv_op> recv() noexcept { return receiving(); }
    bounded_wait<recv_op> recv(stop_token t) noexcept { return {receiving(), t}; }
    bounded_wait<recv_op> recv_until(time_point d, stop_token t = {}) noexcept {
        return {receiving(), {d, t}};
    }
    bounded_wait<recv_op> recv_for(clock::duration d, stop_token t = {}) noexcept {
        return {receiving(), {d, t}};
    }
    received blocking_recv() { return blocking_wait(receiving()); }
    received blocking_recv(stop_token t) { return blocking_wait(receiving(), t); }
    received blocking_recv_until(time_point d, stop_token t = {}) {
        return blocking_wait(receiving(), {d, t});
    }
    received blocking_recv_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(receiving(), {d, t});
    }
    std::expected<T, try_recv_error> try_recv() {
        bool const over = channel().closed();  // before the look at what is there
        std::uint64_t const tail = channel().tail();
        if (tail == at_.position) {
            using enum try_recv_failure;
            return std::unexpected{try_recv_error{over ? closed : empty}};
        }
        received got = receiving().read_next(tail);
        if (got) return std::move(*got);
        return std::unexpected{try_recv_error{try_recv_failure::lagged, got.error().missed}};
    }

    // Another receiver, of what is sent from now on.
    receiver resubscribe() const noexcept { return receiver{channel()}; }

    // Values that it has not got yet; more than the capacity means that it lags.
    std::size_t len() const noexcept {
        return static_cast<std::size_t>(channel().tail() - at_.position);
    }
    bool is_empty() const noexcept { return len() == 0; }
    // Whether every sender is gone; there may be values to receive.
    bool is_closed() const noexcept { return channel().closed(); }
    std::size_t sender_strong_count() const noexcept { return channel().sender_count(); }
    std::size_t sender_weak_count() const noexcept { return channel().weak_sender_count(); }
    bool same_channel(receiver const& other) const noexcept { return channel_ == other.channel_; }

  private:
    friend sender<T>;
    explicit receiver(detail::broadcast_state& c) noexcept : channel_(&c), at_(c.add_receiver()) {}

    detail::broadcast_state& channel() const noexcept {
        RONDO_ASSERT(channel_ != nullptr, "a receiver that was moved has no channel");
        return *channel_;
    }
    recv_op receiving() noexcept { return {channel(), at_}; }

    detail::broadcast_state* channel_;
    detail::broadcast_cursor at_;
};

}  // namespace rondo::broadcast
