// oneshot.hpp: one value from one sender to one receiver: an answer, a result, a signal.
//
//   auto [tx, rx] = oneshot::channel<int>();
//   tx.send(42);                             // never waits
//   auto answer = co_await rx.recv();        // expected<int, recv_error>
//
// Guarantee      the value arrives once, or the sender learns that it cannot: send() gives the
//                value back when the receiver has closed or is gone. A sender that goes without
//                sending answers the receiver with `closed`.
// Close          close() lets nothing in any more; a value sent before it can still be received.
//                Destroying the receiver closes too, and destroys a value that was not received.
// Value          moved in and out without a lock; its move must not throw (asserted at compile
//                time).
// Thread safety  each end belongs to one thread at a time, the two ends to different ones. While
//                recv() waits another thread may call close(): recv() then ends with `closed`.
// Memory order   what happens before send() is visible after the recv() that got the value; what
//                happens before close() is visible after is_closed() or closed() said so.
// Cancellation   a recv() that is stopped leaves a value where it is, for the next recv() or
//                try_recv(); it never takes one that it does not return. closed() has nothing to
//                lose.
// Resumption     on the waiter's executor, never inside send(), close() or a destructor.
// Allocation     one recycled block per channel; waiting takes none.
// Lifetime       an end that waits outlives its wait; it may be moved meanwhile.
// Example        examples/sync/ask_and_answer.cpp
#pragma once

#include <cstdint>
#include <expected>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/oneshot_state.hpp"

namespace rondo::oneshot {

enum class recv_error : std::uint8_t {
    closed,  // no value will come: the sender went, or close() was faster, or it was received
    stopped,
    timed_out,
};

enum class try_recv_error : std::uint8_t {
    empty,   // not yet
    closed,  // as above
};

}  // namespace rondo::oneshot

namespace rondo::detail {

template <class T>
class oneshot_recv_op : public waiter {
  public:
    explicit oneshot_recv_op(oneshot_state<T>& s) noexcept : waiter(s.receiving()), state_(&s) {}

    bool ready() const noexcept { return state_->has(oneshot_base::answered); }
    std::expected<T, oneshot::recv_error> take() noexcept {
        if (!state_->has_value()) return std::unexpected{oneshot::recv_error::closed};
        return state_->take();
    }
    void hand_on() noexcept {}  // the value is still in its place
    oneshot::recv_error refuse(wait_error why) const noexcept {
        return reason<oneshot::recv_error>(why);
    }

  private:
    oneshot_state<T>* state_;
};

class oneshot_closed_op : public waiter {
  public:
    explicit oneshot_closed_op(oneshot_base& s) noexcept : waiter(s.closing()), state_(&s) {}

    bool ready() const noexcept { return state_->has(oneshot_base::closed); }
    void take() const noexcept {}
    void hand_on() noexcept {}

  private:
    oneshot_base* state_;
};

}  // namespace rondo::detail

namespace rondo::oneshot {

template <class T>
class sender;
template <class T>
class receiver;

template <class T>
struct ends {
    oneshot::sender<T> sender;
    oneshot::receiver<T> receiver;
};

// Throws std::bad_alloc if there is no memory.
template <class T>
[[nodiscard("a channel is its two ends")]] ends<T> channel();

template <class T>
class [[nodiscard("dropping the sender closes the channel")]] sender {
    using closed_op = detail::oneshot_closed_op;

  public:
    sender(sender&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    sender& operator=(sender&& other) noexcept {
        sender{std::move(other)}.swap(*this);
        return *this;
    }
    ~sender() {
        if (state_ != nullptr) state_->drop_sender();
    }
    void swap(sender& other) noexcept { std::swap(state_, other.state_); }

    // Sends, once: the sender is spent. The value comes back if nobody can receive it.
    std::expected<void, T> send(T value) noexcept {
        RONDO_ASSERT(state_ != nullptr, "a sender sends once");
        return std::exchange(state_, nullptr)->send(std::move(value));
    }
    bool spent() const noexcept { return state_ == nullptr; }

    // Whether the receiver has closed or is gone.
    bool is_closed() const noexcept { return state().has(detail::oneshot_base::closed); }

    // Waits until that is so.
    wait<closed_op> closed() noexcept { return closing(); }
    bounded_wait<closed_op> closed(stop_token t) noexcept { return {closing(), t}; }
    bounded_wait<closed_op> closed_until(time_point d, stop_token t = {}) noexcept {
        return {closing(), {d, t}};
    }
    bounded_wait<closed_op> closed_for(clock::duration d, stop_token t = {}) noexcept {
        return {closing(), {d, t}};
    }
    void blocking_closed() { blocking_wait(closing()); }
    std::expected<void, wait_error> blocking_closed(stop_token t) {
        return blocking_wait(closing(), t);
    }
    std::expected<void, wait_error> blocking_closed_until(time_point d, stop_token t = {}) {
        return blocking_wait(closing(), {d, t});
    }
    std::expected<void, wait_error> blocking_closed_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(closing(), {d, t});
    }

  private:
    friend ends<T> channel<T>();
    explicit sender(detail::oneshot_state<T>& s) noexcept : state_(&s) {}

    detail::oneshot_state<T>& state() const noexcept {
        RONDO_ASSERT(state_ != nullptr, "a sender that has sent or was moved has no channel");
        return *state_;
    }
    closed_op closing() noexcept { return closed_op{state()}; }

    detail::oneshot_state<T>* state_;
};

template <class T>
class [[nodiscard("dropping the receiver closes the channel")]] receiver {
    using recv_op = detail::oneshot_recv_op<T>;

  public:
    receiver(receiver&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    receiver& operator=(receiver&& other) noexcept {
        receiver{std::move(other)}.swap(*this);
        return *this;
    }
    ~receiver() {
        if (state_ != nullptr) state_->drop_receiver();
    }
    void swap(receiver& other) noexcept { std::swap(state_, other.state_); }

    // Waits for the value. After it was received, every further recv() says `closed`.
    wait<recv_op> recv() noexcept { return receiving(); }
    bounded_wait<recv_op> recv(stop_token t) noexcept { return {receiving(), t}; }
    bounded_wait<recv_op> recv_until(time_point d, stop_token t = {}) noexcept {
        return {receiving(), {d, t}};
    }
    bounded_wait<recv_op> recv_for(clock::duration d, stop_token t = {}) noexcept {
        return {receiving(), {d, t}};
    }
    std::expected<T, recv_error> blocking_recv() { return blocking_wait(receiving()); }
    std::expected<T, recv_error> blocking_recv(stop_token t) {
        return blocking_wait(receiving(), t);
    }
    std::expected<T, recv_error> blocking_recv_until(time_point d, stop_token t = {}) {
        return blocking_wait(receiving(), {d, t});
    }
    std::expected<T, recv_error> blocking_recv_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(receiving(), {d, t});
    }

    std::expected<T, try_recv_error> try_recv() noexcept {
        if (state().has_value()) return state().take();
        return std::unexpected{is_terminated() ? try_recv_error::closed : try_recv_error::empty};
    }

    void close() noexcept { state().close(); }

    // Whether there is no value to receive now.
    bool is_empty() const noexcept { return !state().has_value(); }
    // Whether there is none and none will come.
    bool is_terminated() const noexcept {
        return state().has(detail::oneshot_base::answered) && is_empty();
    }

  private:
    friend ends<T> channel<T>();
    explicit receiver(detail::oneshot_state<T>& s) noexcept : state_(&s) {}

    detail::oneshot_state<T>& state() const noexcept {
        RONDO_ASSERT(state_ != nullptr, "a receiver that was moved has no channel");
        return *state_;
    }
    recv_op receiving() noexcept { return recv_op{state()}; }

    detail::oneshot_state<T>* state_;
};

template <class T>
ends<T> channel() {
    static_assert(detail::is_message<T>, "a message is an object that moves without throwing");
    auto& state = *new detail::oneshot_state<T>;
    return {sender<T>{state}, receiver<T>{state}};
}

}  // namespace rondo::oneshot
