// mpsc_sender.hpp: what the senders of bounded and unbounded mpsc channels have in common.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/mpsc_channel.hpp"

namespace rondo::mpsc {

template <class Sender>
class basic_weak_sender;
template <class T>
class sender;

}  // namespace rondo::mpsc

namespace rondo::detail {

class mpsc_closed_op : public waiter {
  public:
    explicit mpsc_closed_op(mpsc_base& c) noexcept : waiter(c.end()), channel_(&c) {}

    bool ready() const noexcept { return channel_->closed(); }
    void take() const noexcept {}
    void hand_on() noexcept {}

  private:
    mpsc_base* channel_;
};

// Counted as a sender. A copy is another one.
template <class Sender, class T, class Room>
class mpsc_sender {
    using closed_op = mpsc_closed_op;

  public:
    using shared = mpsc_channel<T, Room>;

    explicit mpsc_sender(shared& counted) noexcept : channel_(&counted) {}
    mpsc_sender(mpsc_sender const& other) noexcept : channel_(&other.channel()) {
        channel_->add_sender();
    }
    mpsc_sender(mpsc_sender&& other) noexcept : channel_(std::exchange(other.channel_, nullptr)) {}
    mpsc_sender& operator=(mpsc_sender other) noexcept {
        std::swap(channel_, other.channel_);
        return *this;
    }
    ~mpsc_sender() {
        if (channel_ != nullptr) channel_->drop_sender();
    }

    // Whether the receiver has closed or is gone.
    bool is_closed() const noexcept { return channel().closed(); }

    // Waits until that is so.
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
    mpsc::basic_weak_sender<Sender> downgrade() const noexcept {
        return mpsc::basic_weak_sender<Sender>{channel()};
    }

    bool same_channel(mpsc_sender const& other) const noexcept {
        return channel_ == other.channel_;
    }
    std::size_t strong_count() const noexcept { return channel().sender_count(); }
    std::size_t weak_count() const noexcept { return channel().weak_sender_count(); }

  protected:
    shared& channel() const noexcept {
        RONDO_ASSERT(channel_ != nullptr, "a sender that was moved has no channel");
        return *channel_;
    }

  private:
    shared* channel_;
};

}  // namespace rondo::detail

namespace rondo::mpsc {

// Becomes a sender again as long as there is one.
template <class Sender>
class basic_weak_sender {
    using shared = Sender::shared;

  public:
    explicit basic_weak_sender(shared& c) noexcept : channel_(&c) { channel_->add_weak_sender(); }
    basic_weak_sender(basic_weak_sender const& other) noexcept
        : basic_weak_sender(other.channel()) {}
    basic_weak_sender(basic_weak_sender&& other) noexcept
        : channel_(std::exchange(other.channel_, nullptr)) {}
    basic_weak_sender& operator=(basic_weak_sender other) noexcept {
        std::swap(channel_, other.channel_);
        return *this;
    }
    ~basic_weak_sender() {
        if (channel_ != nullptr) channel_->drop_weak_sender();
    }

    // Nothing when the last sender is gone: the channel is closed for good.
    std::optional<Sender> upgrade() const noexcept {
        if (!channel().add_sender_if_any()) return std::nullopt;
        return Sender{channel()};
    }

    std::size_t strong_count() const noexcept { return channel().sender_count(); }
    std::size_t weak_count() const noexcept { return channel().weak_sender_count(); }

  private:
    shared& channel() const noexcept {
        RONDO_ASSERT(channel_ != nullptr, "a weak sender that was moved has no channel");
        return *channel_;
    }

    shared* channel_;
};

}  // namespace rondo::mpsc
