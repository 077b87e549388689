// mpsc_receiver.hpp: the receiving end of an mpsc channel. The contract is in mpsc.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/mpsc_channel.hpp"

namespace rondo::mpsc {

enum class recv_error : std::uint8_t {
    closed,  // everything that was sent is received, and nothing will come
    stopped,
    timed_out,
};

enum class try_recv_error : std::uint8_t {
    empty,   // nothing now
    closed,  // as above
};

}  // namespace rondo::mpsc

namespace rondo::detail {

// What recv() and recv_many() wait for. A grant takes nothing.
template <class Channel>
class mpsc_wait : public waiter {
  public:
    explicit mpsc_wait(Channel& c) noexcept : waiter(c), channel_(&c) {}

    bool ready() const noexcept { return channel_->answerable(); }
    void hand_on() noexcept {}
    mpsc::recv_error refuse(wait_error why) const noexcept { return reason<mpsc::recv_error>(why); }

  protected:
    // False: the channel has ended.
    bool has_next() const noexcept {
        if (channel_->has_next()) return true;
        RONDO_ASSERT(channel_->ended(), "one receives at a time");
        return false;
    }

    Channel* channel_;
};

template <class T, class Channel>
class mpsc_recv_op : public mpsc_wait<Channel> {
  public:
    using mpsc_wait<Channel>::mpsc_wait;

    std::expected<T, mpsc::recv_error> take() noexcept {
        if (this->has_next()) return this->channel_->pop();
        return std::unexpected{mpsc::recv_error::closed};
    }
};

template <class T, class Channel>
class mpsc_recv_many_op : public mpsc_wait<Channel> {
  public:
    mpsc_recv_many_op(Channel& c, std::vector<T>& to, std::size_t limit) noexcept
        : mpsc_wait<Channel>(c), to_(&to), limit_(limit) {}

    bool ready() const noexcept { return limit_ == 0 || mpsc_wait<Channel>::ready(); }
    std::expected<std::size_t, mpsc::recv_error> take() {
        if (limit_ == 0) return 0;
        if (!this->has_next()) return std::unexpected{mpsc::recv_error::closed};
        return this->channel_->pop_many(*to_, limit_);
    }

  private:
    std::vector<T>* to_;
    std::size_t limit_;
};

}  // namespace rondo::detail

namespace rondo::mpsc {

template <class T, class Room>
class [[nodiscard("dropping the receiver closes the channel")]] basic_receiver {
    using shared = detail::mpsc_channel<T, Room>;
    using recv_op = detail::mpsc_recv_op<T, shared>;
    using recv_many_op = detail::mpsc_recv_many_op<T, shared>;
    using received = std::expected<T, recv_error>;
    using received_many = std::expected<std::size_t, recv_error>;

  public:
    explicit basic_receiver(shared& c) noexcept : channel_(&c) {}
    basic_receiver(basic_receiver&& other) noexcept
        : channel_(std::exchange(other.channel_, nullptr)) {}
    basic_receiver& operator=(basic_receiver&& other) noexcept {
        basic_receiver{std::move(other)}.swap(*this);
        return *this;
    }
    ~basic_receiver() {
        if (channel_ != nullptr) channel_->drop_receiver();
    }
    void swap(basic_receiver& other) noexcept { std::swap(channel_, other.channel_); }

    // The next value.
    wait<recv_op> recv() noexcept { return recv_op{channel()}; }
    bounded_wait<recv_op> recv(stop_token t) noexcept { return {recv_op{channel()}, t}; }
    bounded_wait<recv_op> recv_until(time_point d, stop_token t = {}) noexcept {
        return {recv_op{channel()}, {d, t}};
    }
    bounded_wait<recv_op> recv_for(clock::duration d, stop_token t = {}) noexcept {
        return {recv_op{channel()}, {d, t}};
    }
    received blocking_recv() { return blocking_wait(recv_op{channel()}); }
    received blocking_recv(stop_token t) { return blocking_wait(recv_op{channel()}, t); }
    received blocking_recv_until(time_point d, stop_token t = {}) {
        return blocking_wait(recv_op{channel()}, {d, t});
    }
    received blocking_recv_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(recv_op{channel()}, {d, t});
    }

    // Does not wait for a value; only for a send that is in the middle of a few instructions in
    // another thread, as values behind it may have been sent before this call.
    std::expected<T, try_recv_error> try_recv() noexcept {
        for (int spins = 0;; ++spins) {
            if (channel().has_next()) return channel().pop();
            if (channel().ended()) return std::unexpected{try_recv_error::closed};
            if (channel().length() == 0) return std::unexpected{try_recv_error::empty};
            channel().await_push(spins);
        }
    }

    // Waits for one value and appends it and those behind it that are there, up to `limit`: says
    // how many. With limit 0 it is ready at once and appends nothing. If the vector cannot grow,
    // its exception comes out; what was appended until then stays appended, the rest in the
    // channel.
    wait<recv_many_op> recv_many(std::vector<T>& to, std::size_t limit) noexcept {
        return recv_many_op{channel(), to, limit};
    }
    bounded_wait<recv_many_op> recv_many(std::vector<T>& to, std::size_t limit,
                                         stop_token t) noexcept {
        return {recv_many_op{channel(), to, limit}, t};
    }
    bounded_wait<recv_many_op> recv_many_until(std::vector<T>& to, std::size_t limit, time_point d,
                                               stop_token t = {}) noexcept {
        return {recv_many_op{channel(), to, limit}, {d, t}};
    }
    bounded_wait<recv_many_op> recv_many_for(std::vector<T>& to, std::size_t limit,
                                             clock::duration d, stop_token t = {}) noexcept {
        return {recv_many_op{channel(), to, limit}, {d, t}};
    }
    received_many blocking_recv_many(std::vector<T>& to, std::size_t limit) {
        return blocking_wait(recv_many_op{channel(), to, limit});
    }
    received_many blocking_recv_many(std::vector<T>& to, std::size_t limit, stop_token t) {
        return blocking_wait(recv_many_op{channel(), to, limit}, t);
    }
    received_many blocking_recv_many_until(std::vector<T>& to, std::size_t limit, time_point d,
                                           stop_token t = {}) {
        return blocking_wait(recv_many_op{channel(), to, limit}, {d, t});
    }
    received_many blocking_recv_many_for(std::vector<T>& to, std::size_t limit, clock::duration d,
                                         stop_token t = {}) {
        return blocking_wait(recv_many_op{channel(), to, limit}, {d, t});
    }

    // Lets no new sends in; what is sent can still be received.
    void close() noexcept { channel().close(); }

    // Whether it was closed, or the last sender is gone; there may be values to receive.
    bool is_closed() const noexcept { return channel().closed() || channel().deserted(); }
    // Values that were sent and not received, with those whose send is under way.
    std::size_t len() const noexcept { return channel().length(); }
    bool is_empty() const noexcept { return len() == 0; }
    std::size_t sender_strong_count() const noexcept { return channel().sender_count(); }
    std::size_t sender_weak_count() const noexcept { return channel().weak_sender_count(); }

    // How many values can be sent now without waiting, and on an empty channel.
    std::size_t capacity() const noexcept
    requires(Room::limited)
    {
        return channel().room().free();
    }
    std::size_t max_capacity() const noexcept
    requires(Room::limited)
    {
        return channel().room().size();
    }

  private:
    shared& channel() const noexcept {
        RONDO_ASSERT(channel_ != nullptr, "a receiver that was moved has no channel");
        return *channel_;
    }

    shared* channel_;
};

}  // namespace rondo::mpsc
