// use_task.hpp: a completion token: any asynchronous operation of Asio, awaited by a rondo task.
//
//   std::expected<std::size_t, error_code> n = co_await socket.async_read_some(buffer, use_task);
//   auto n = co_await socket.async_read_some(buffer, use_task(2s));      // error::timed_out
//   auto n = co_await socket.async_read_some(buffer, use_task(token));   // operation_aborted
//
// Result         by the operation's completion signature:
//                  void(error_code, Ts...)      expected<R, error_code>; what else came with an
//                                               error is dropped
//                  void(exception_ptr, Ts...)   R; the exception is thrown
//                  void(Ts...)                  R
//                where R is void, T, or tuple<Ts...>.
// Place          the operation is started and cancelled on the executor of its I/O object, and
//                completes there: if the task runs elsewhere it goes there and comes back, as if by
//                post. That executor runs one thing at a time: an io_context with one thread, or a
//                strand. An operation that names no executor is started where the task runs and
//                cannot be cancelled: a stop waits for it. See also context_owner.hpp.
// Adapters       as_tuple(use_task) and append(use_task, ...) start and cancel there too. Bound to
//                an executor it is refused: the task says where it goes on.
// Resumption     on the task's executor, in a later turn, never inside the handler.
// Stop           the environment's stop sends a request to cancel there, from any thread. The task
//                unwinds when the operation has ended: until then its buffers are in use. One that
//                ends otherwise than with operation_aborted has completed, and gives its result.
//                An operation that was not started when stop was asked for is not started.
// Bounds         use_task(token), use_task(deadline[, token]), use_task(duration[, token]): they
//                too cancel, and the result is an error: operation_aborted or timed_out. What
//                completes nevertheless gives its result. For operations that complete with an
//                error_code. with_timeout() works as for any awaitable, for any operation.
// Lifetime       the I/O object, and what the arguments refer to, until the operation has ended.
//                I/O objects go before their context, as always in Asio; so tasks that hold some
//                are stopped, and have ended, before it is destroyed. An operation that is pending
//                when its context is destroyed nevertheless ends with operation_aborted, and its
//                task goes on if its executor is elsewhere. (A signature without an error: a
//                system_error is thrown.)
// Budget         a completed operation spends from the turn.
// Allocation     none in steady state: the operation's memory is in the task's frame (256 bytes; a
//                second simultaneous or larger block is recycled with frames), cancellation slots
//                are recycled, and a task that nobody can stop has none. (One that Asio composes,
//                async_read say, adds a slot of its own, which Asio recycles within a call of
//                run().) A request to cancel is a post, with a recycled block. The way to a context
//                that Asio does not let us look into (a type-erased executor, but for the usual
//                ones) costs what dispatch() costs.
// Example        examples/asio/echo.cpp
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <concepts>
#include <type_traits>
#include <utility>

#include "rondo/asio/detail/io_wait.hpp"
#include "rondo/core/detail/promise.hpp"

namespace rondo::asio {

// The operation, not started yet; it is when a task awaits it.
template <class Call, class Bounds, class... Args>
class [[nodiscard("an operation does nothing until it is awaited")]] io_operation {
  public:
    io_operation(Call call, Bounds const& bounds) : call_(std::move(call)), bounds_(bounds) {}

    detail::io_wait<Call, Bounds, Args...> rondo_await(
        rondo::detail::promise_base& task) && noexcept {
        return {call_, task, bounds_};
    }

  private:
    Call call_;
    [[no_unique_address]] Bounds bounds_;
};

namespace detail {

struct some_use_task {};

}  // namespace detail

template <class Bounds>
class use_task_within : public detail::some_use_task {
  public:
    explicit constexpr use_task_within(Bounds const& bounds) noexcept : bounds_(bounds) {}
    Bounds const& bounds() const noexcept { return bounds_; }

  private:
    [[no_unique_address]] Bounds bounds_;
};

class use_task_t : public use_task_within<rondo::detail::no_bounds> {
  public:
    constexpr use_task_t() noexcept : use_task_within(rondo::detail::no_bounds{}) {}

    use_task_within<wait_bounds> operator()(stop_token token) const noexcept {
        return use_task_within<wait_bounds>{{token}};
    }
    use_task_within<wait_bounds> operator()(time_point deadline, stop_token t = {}) const noexcept {
        return use_task_within<wait_bounds>{{deadline, t}};
    }
    use_task_within<wait_bounds> operator()(clock::duration patience,
                                            stop_token t = {}) const noexcept {
        return use_task_within<wait_bounds>{{patience, t}};
    }
};

inline constexpr use_task_t use_task;

namespace detail {

// (A function, which the compiler asserts once.)
template <class Token>
void refuse_an_executor() noexcept {
    static_assert(sizeof(Token) == 0, "use_task is not bound to an executor");
}

template <class Bounds, class... Args>
class use_task_result {
    static_assert(std::is_same_v<Bounds, rondo::detail::no_bounds> ||
                      io_outcome<std::decay_t<Args>...>::has_error,
                  "an operation with bounds completes with an error_code, to tell of them");

  public:
    template <class Initiation, class... Given>
    static auto initiate(Initiation&& initiation, use_task_within<Bounds> const& token,
                         Given&&... given) {
        using call = io_call<std::decay_t<Initiation>, std::decay_t<Given>...>;
        return io_operation<call, Bounds, std::decay_t<Args>...>{
            call{std::forward<Initiation>(initiation), {std::forward<Given>(given)...}},
            token.bounds()};
    }
};

}  // namespace detail

}  // namespace rondo::asio

namespace boost::asio {

template <class... Args>
class async_result<rondo::asio::use_task_t, void(Args...)>
    : public rondo::asio::detail::use_task_result<rondo::detail::no_bounds, Args...> {};

template <class Bounds, class... Args>
class async_result<rondo::asio::use_task_within<Bounds>, void(Args...)>
    : public rondo::asio::detail::use_task_result<Bounds, Args...> {};

// It would complete there, while a request to cancel is at the I/O object.
template <class Token, class Executor, class... Args>
requires std::derived_from<Token, rondo::asio::detail::some_use_task>
class async_result<executor_binder<Token, Executor>, void(Args...)> {
  public:
    template <class Initiation, class Bound, class... Given>
    static auto initiate(Initiation&& initiation, Bound const& token, Given&&... given) {
        rondo::asio::detail::refuse_an_executor<Token>();
        return async_result<Token, void(Args...)>::initiate(
            std::forward<Initiation>(initiation), token.get(), std::forward<Given>(given)...);
    }
};

}  // namespace boost::asio
