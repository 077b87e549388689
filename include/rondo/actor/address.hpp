// address.hpp: where an actor is reached: tell it something, or ask it and wait for the answer.
//
//   actor::address<deposit, balance> account = ...;
//   auto told = co_await account.tell(deposit{100});        // waits while the mailbox is full
//   auto cents = co_await account.ask_for(balance{}, 1s);   // expected<int, ask_error>
//
// Guarantee      a message that was told is received once, and those of one teller in the order in
//                which it told them, unless the actor fails, is stopped or ends before that. An ask
//                ends with the answer, or with the reason why there is none.
// Full           tell() waits for room, first come, first served; try_tell() does not wait. Both
//                give the message back when it cannot be delivered.
// Ask            works for every message: one without a reply is answered when it was received.
//                `closed`: the message was not delivered. `unanswered`: it was delivered, and the
//                actor failed or was stopped before it had answered. After `timed_out` and
//                `stopped` it may still be received; the answer is then dropped.
// Deadlock       two actors that ask each other at the same time wait for each other, because an
//                actor receives one message at a time. Tell instead, or set a time limit.
// Thread safety  an address may be used by many threads at once, and copied.
// Lifetime       an address does not keep its actor alive, and the actor does not end when the last
//                address is gone: its handle decides. An ask holds what it needs of the address.
// Allocation     tell: only the mailbox's blocks, which are recycled. ask: a recycled channel and
//                frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "rondo/actor/detail/letter.hpp"
#include "rondo/actor/message.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/oneshot.hpp"

namespace rondo::actor {

using tell_error = mpsc::send_error;  // closed, full, stopped, timed_out

// A message that was not delivered, and why.
template <class M>
using untold = mpsc::unsent<M>;

enum class ask_error : std::uint8_t {
    closed,      // the actor has ended, or accepts nothing more
    unanswered,  // it failed, or was stopped, before it had answered
    stopped,
    timed_out,
};

namespace detail {

// Sends a letter, and gives the message back.
template <class M, class Letter>
class tell_op : public rondo::detail::mpsc_send_op<Letter> {
    using send_op = rondo::detail::mpsc_send_op<Letter>;

  public:
    tell_op(rondo::detail::bounded_channel<Letter>& to, M&& message) noexcept
        : send_op(to, Letter{letter<M>{std::move(message), std::nullopt}}) {}

    std::expected<void, untold<M>> take() {
        std::expected<void, mpsc::unsent<Letter>> sent = send_op::take();
        if (sent) return {};
        return std::unexpected{opened(std::move(sent.error()))};
    }
    untold<M> refuse(wait_error why) noexcept { return opened(send_op::refuse(why)); }
    untold<M> back(tell_error why) noexcept { return opened(send_op::back(why)); }

  private:
    static untold<M> opened(mpsc::unsent<Letter>&& it) noexcept {
        return {it.why, std::move(std::get_if<letter<M>>(&it.value)->message)};
    }
};

inline ask_error why_not_asked(mpsc::send_error why) noexcept {
    switch (why) {
        case mpsc::send_error::stopped:
            return ask_error::stopped;
        case mpsc::send_error::timed_out:
            return ask_error::timed_out;
        default:
            return ask_error::closed;
    }
}

inline ask_error why_not_answered(oneshot::recv_error why) noexcept {
    switch (why) {
        case oneshot::recv_error::stopped:
            return ask_error::stopped;
        case oneshot::recv_error::timed_out:
            return ask_error::timed_out;
        default:
            return ask_error::unanswered;
    }
}

}  // namespace detail

template <class... Ms>
class address : mpsc::sender<detail::any_letter<Ms...>> {
  public:
    using any_letter = detail::any_letter<Ms...>;

  private:
    using mailbox = mpsc::sender<any_letter>;
    template <class M>
    using tell_op = detail::tell_op<M, any_letter>;
    template <class M>
    using told = std::expected<void, untold<M>>;
    template <class M>
    using answer = std::expected<reply_of<M>, ask_error>;

  public:
    explicit address(mailbox to) noexcept : mailbox(std::move(to)) {}

    // Puts a message into the mailbox when there is room.
    template <detail::one_of<Ms...> M>
    wait<tell_op<M>> tell(M message) const noexcept {
        return telling(message);
    }
    template <detail::one_of<Ms...> M>
    bounded_wait<tell_op<M>> tell(M message, stop_token t) const noexcept {
        return {telling(message), t};
    }
    template <detail::one_of<Ms...> M>
    bounded_wait<tell_op<M>> tell_until(M message, time_point d, stop_token t = {}) const noexcept {
        return {telling(message), {d, t}};
    }
    template <detail::one_of<Ms...> M>
    bounded_wait<tell_op<M>> tell_for(M message, clock::duration d,
                                      stop_token t = {}) const noexcept {
        return {telling(message), {d, t}};
    }
    template <detail::one_of<Ms...> M>
    told<M> blocking_tell(M message) const {
        return blocking_wait(telling(message));
    }
    template <detail::one_of<Ms...> M>
    told<M> blocking_tell(M message, stop_token t) const {
        return blocking_wait(telling(message), t);
    }
    template <detail::one_of<Ms...> M>
    told<M> blocking_tell_until(M message, time_point d, stop_token t = {}) const {
        return blocking_wait(telling(message), {d, t});
    }
    template <detail::one_of<Ms...> M>
    told<M> blocking_tell_for(M message, clock::duration d, stop_token t = {}) const {
        return blocking_wait(telling(message), {d, t});
    }
    // Succeeds if there is room now, and nobody waits for it.
    template <detail::one_of<Ms...> M>
    told<M> try_tell(M message) const {
        tell_op<M> op = telling(message);
        if (op.ready()) return op.take();
        return std::unexpected{op.back(tell_error::full)};
    }

    // Puts a message into the mailbox and waits for the answer.
    template <detail::one_of<Ms...> M>
    task<answer<M>> ask(M message) const {
        return asking<M>(*this, std::move(message), {}, {});
    }
    template <detail::one_of<Ms...> M>
    task<answer<M>> ask(M message, stop_token t) const {
        return asking<M>(*this, std::move(message), {}, t);
    }
    template <detail::one_of<Ms...> M>
    task<answer<M>> ask_until(M message, time_point d, stop_token t = {}) const {
        return asking<M>(*this, std::move(message), d, t);
    }
    template <detail::one_of<Ms...> M>
    task<answer<M>> ask_for(M message, clock::duration d, stop_token t = {}) const {
        return asking<M>(*this, std::move(message), d, t);
    }
    template <detail::one_of<Ms...> M>
    answer<M> blocking_ask(M message) const {
        return blocking_ask_until(std::move(message), time_point::max());
    }
    template <detail::one_of<Ms...> M>
    answer<M> blocking_ask(M message, stop_token t) const {
        return blocking_ask_until(std::move(message), time_point::max(), t);
    }
    template <detail::one_of<Ms...> M>
    answer<M> blocking_ask_for(M message, clock::duration d, stop_token t = {}) const {
        return blocking_ask_until(std::move(message), later(clock::now(), d), t);
    }
    template <detail::one_of<Ms...> M>
    answer<M> blocking_ask_until(M message, time_point d, stop_token t = {}) const {
        auto [tx, rx] = oneshot::channel<detail::answer_of<M>>();
        auto const put = this->blocking_send_until(asked(message, tx), d, t);
        if (!put) return std::unexpected{detail::why_not_asked(put.error().why)};
        return unwrapped<M>(rx.blocking_recv_until(d, t));
    }

    // Whether the actor has ended or accepts nothing more, and how to wait for that.
    using mailbox::blocking_closed;
    using mailbox::blocking_closed_for;
    using mailbox::blocking_closed_until;
    using mailbox::closed;
    using mailbox::closed_for;
    using mailbox::closed_until;
    using mailbox::is_closed;

    // How many messages the mailbox has room for now, and how many when it is empty.
    using mailbox::capacity;
    using mailbox::max_capacity;

    // Whether both are addresses of the same actor.
    friend bool operator==(address const& a, address const& b) noexcept {
        return a.same_channel(b);
    }

  private:
    template <class M>
    tell_op<M> telling(M& message) const noexcept {
        return {this->channel(), std::move(message)};
    }

    template <class M>
    static any_letter asked(M& message, oneshot::sender<detail::answer_of<M>>& to) noexcept {
        return any_letter{detail::letter<M>{std::move(message), std::move(to)}};
    }

    template <class M>
    static answer<M> unwrapped(
        std::expected<detail::answer_of<M>, oneshot::recv_error>&& got) noexcept {
        if (!got) return std::unexpected{detail::why_not_answered(got.error())};
        if constexpr (std::is_void_v<reply_of<M>>) {
            return {};
        } else {
            return std::move(*got);
        }
    }

    template <class M>
    static task<answer<M>> asking(address to, M message, time_limit limit, stop_token t) {
        time_point deadline = time_point::max();
        if (!limit.unlimited()) {
            environment const& here = co_await this_environment();
            deadline = limit.seen_from(here.timers().now());
        }
        auto ends = oneshot::channel<detail::answer_of<M>>();
        any_letter it = asked(message, ends.sender);
        auto const put = co_await to.send_until(std::move(it), deadline, t);
        if (!put) co_return std::unexpected{detail::why_not_asked(put.error().why)};
        auto got = co_await ends.receiver.recv_until(deadline, t);
        co_return unwrapped<M>(std::move(got));
    }
};

// The address of an actor of this class. Inside the class itself: accepts::address.
template <class A>
using address_of = A::accepts::address;

}  // namespace rondo::actor
