// message.hpp: what an actor is told or asked: any type, with the type of its answer inside it.
//
//   struct deposit { int cents; };                          // no answer
//   struct balance { using reply = int; };                  // answered with an int
//
//   class account {
//     public:
//       using accepts = actor::messages<deposit, balance>;
//       void receive(deposit d) { cents_ += d.cents; }      // a plain function, or
//       task<int> receive(balance) { co_return cents_; }    // a coroutine, which may wait
//     private:
//       int cents_ = 0;
//   };
//
// Guarantee      an actor has a receive() for each message that it accepts, which takes the message
//                by value and returns its reply, or a task of the reply; checked at compile time.
// Requirements   messages and replies move without throwing, so none is lost on the way.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "rondo/core/task.hpp"

namespace rondo::actor {

template <class... Ms>
class address;

namespace detail {

template <class M>
struct reply_type {
    using type = void;
};
template <class M>
requires requires { typename M::reply; }
struct reply_type<M> {
    using type = M::reply;
};

template <class T>
concept movable_value =
    std::is_void_v<T> || (std::is_object_v<T> && std::is_nothrow_move_constructible_v<T> &&
                          std::is_nothrow_destructible_v<T>);

template <class M, class... Ms>
concept one_of = (std::same_as<M, Ms> || ...);

template <class M, class... Ms>
inline constexpr int times_in = (int{std::same_as<M, Ms>} + ...);

}  // namespace detail

// The type that a message is answered with; void if the message has no `reply`.
template <class M>
using reply_of = detail::reply_type<M>::type;

// The messages of an actor, each a type of its own.
template <class... Ms>
struct messages {
    using address = actor::address<Ms...>;

    static_assert(sizeof...(Ms) > 0, "an actor accepts something");
    static_assert(((detail::times_in<Ms, Ms...> == 1) && ...), "a message is listed once");
    static_assert((detail::movable_value<Ms> && ...), "a message moves without throwing");
    static_assert((detail::movable_value<reply_of<Ms>> && ...), "a reply moves without throwing");
};

// A has a receive() for M: a plain function or a coroutine.
template <class A, class M>
concept receives = requires(A& a, M m) {
    requires std::same_as<decltype(a.receive(std::move(m))), reply_of<M>> ||
                 std::same_as<decltype(a.receive(std::move(m))), task<reply_of<M>>>;
};

namespace detail {

template <class A, class Messages>
inline constexpr bool receives_all = false;
template <class A, class... Ms>
inline constexpr bool receives_all<A, messages<Ms...>> = (receives<A, Ms> && ...);

}  // namespace detail

template <class A>
concept behaviour =
    requires { typename A::accepts; } && detail::receives_all<A, typename A::accepts>;

}  // namespace rondo::actor
