// wait.hpp: an operation of a primitive as something to await, in every world and every form.
//
// A primitive describes an operation once, as a type Op derived from waiter:
//
//   R    take()      the result; called once, after ready() or a grant, on the owner's thread
//   bool ready()     completes without waiting if it can (the fast path); in every world it is
//                    asked before the waiter enters its queue
//   void hand_on()   it was ready or granted, but nobody is left to take it: pass it on
//   bool ready_revocably()    optional: asked instead of ready() where hand_on() may follow, for
//                             an operation whose ready() does what cannot be taken back
//   E    refuse(wait_error)   optional: what a bounded wait that failed gives (default: the
//                             wait_error itself); a send gives its value back here
//
// and gives its members these forms, each of them one line (n: whatever the operation takes):
//
//   op(n)                         wait<Op>          { return Op{*this, n}; }
//   op(n, token)                  bounded_wait<Op>  { return {Op{*this, n}, token}; }
//   op_until(n, deadline, token)  bounded_wait<Op>  { return {Op{*this, n}, {deadline, token}}; }
//   op_for(n, duration, token)    bounded_wait<Op>  { return {Op{*this, n}, {duration, token}}; }
//   blocking_op(n)                R                 { return blocking_wait(Op{*this, n}); }
//   blocking_op(n, token)         expected<R, E>    { return blocking_wait(Op{*this, n}, token); }
//   blocking_op_until, _for       expected<R, E>    the same with {deadline, token}
//
//   wait<Op>          the result is R. In a task, the environment's stop unwinds it.
//   bounded_wait<Op>  the result is expected<R, E>; if R is an expected<V, E> already, it is R.
//                     An explicit token and a time limit end it with a value; in a task the
//                     environment's stop still unwinds it, unless it is the very token that was
//                     passed. A duration counts from when it begins to wait, by the clock of the
//                     place where it waits.
//   blocking_wait()   for plain threads, never inside an executor.
//
// Completion beats stop and deadline: an operation that is ready, or that was granted before it
// was withdrawn, gives its result.
// Other forms  an adapter to another library's asynchronous operations overloads
//              rondo_initiate(op, bounds, token) in this namespace; calling a wait with a token of
//              that library then starts it (rondo/asio/wait.hpp).
// Budget       a completed wait spends from the turn of the task; a task without budget gives way
//              before its next wait, ready or not; a stop that was asked for takes effect there.
// Allocation   none.
#pragma once

#include <concepts>
#include <expected>
#include <type_traits>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/foreign_wait.hpp"
#include "rondo/core/detail/task_wait.hpp"
#include "rondo/core/detail/thread_wait.hpp"
#include "rondo/core/detail/wait_bounds.hpp"

namespace rondo {

namespace detail {

// A token of a library whose adapter is included.
template <class Token, class Op, class Bounds>
concept token_for = requires(Op op, Bounds bounds, Token&& token) {
    rondo_initiate(std::move(op), bounds, std::forward<Token>(token));
};

}  // namespace detail

// What wait<> needs of an operation.
template <class Op>
concept wait_operation =
    std::derived_from<Op, waiter> && std::move_constructible<Op> && requires(Op& op) {
        { op.ready() } -> std::same_as<bool>;
        op.take();
        op.hand_on();
    };

// (A member of a primitive may name wait<Op> before Op is complete: so it is asserted, not
// required.)
template <class Op>
class [[nodiscard("a wait does nothing until it is awaited")]] wait {
  public:
    wait(Op op) noexcept : op_(std::move(op)) { static_assert(wait_operation<Op>); }
    // (In place: an operation that carries a value of somebody's moves it once less.)
    template <class... Args>
    explicit wait(std::in_place_t, Args&&... args) noexcept : op_(std::forward<Args>(args)...) {
        static_assert(wait_operation<Op>);
    }

    detail::task_wait<Op, detail::no_bounds> rondo_await(detail::promise_base& task) && noexcept {
        return {std::move(op_), task, detail::no_bounds{}};
    }
    // In a task that does nothing else (as_task.hpp).
    detail::task_wait<Op, detail::no_bounds, detail::alone::yes> rondo_await_alone(
        detail::promise_base& task) && noexcept {
        return {std::move(op_), task, detail::no_bounds{}};
    }
    detail::foreign_wait<Op, detail::no_bounds> operator co_await() && noexcept {
        return {std::move(op_), detail::no_bounds{}};
    }
    template <detail::token_for<Op, detail::no_bounds> Token>
    auto operator()(Token&& token) && {
        return rondo_initiate(std::move(op_), detail::no_bounds{}, std::forward<Token>(token));
    }

  private:
    Op op_;
};

template <class Op>
class [[nodiscard("a wait does nothing until it is awaited")]] bounded_wait {
  public:
    bounded_wait(Op op, wait_bounds bounds) noexcept : op_(std::move(op)), bounds_(bounds) {
        static_assert(wait_operation<Op>);
    }
    template <class... Args>
    bounded_wait(wait_bounds bounds, std::in_place_t, Args&&... args) noexcept
        : op_(std::forward<Args>(args)...), bounds_(bounds) {
        static_assert(wait_operation<Op>);
    }

    detail::task_wait<Op, wait_bounds> rondo_await(detail::promise_base& task) && noexcept {
        return {std::move(op_), task, bounds_};
    }
    detail::task_wait<Op, wait_bounds, detail::alone::yes> rondo_await_alone(
        detail::promise_base& task) && noexcept {
        return {std::move(op_), task, bounds_};
    }
    detail::foreign_wait<Op, wait_bounds> operator co_await() && noexcept {
        return {std::move(op_), bounds_};
    }
    template <detail::token_for<Op, wait_bounds> Token>
    auto operator()(Token&& token) && {
        return rondo_initiate(std::move(op_), bounds_, std::forward<Token>(token));
    }

  private:
    Op op_;
    wait_bounds bounds_;
};

template <wait_operation Op>
auto blocking_wait(Op op) {
    detail::thread_wait<Op, detail::no_bounds> w{op, detail::no_bounds{}};
    return w.get();
}

template <wait_operation Op>
auto blocking_wait(Op op, wait_bounds bounds) {
    detail::thread_wait<Op, wait_bounds> w{op, bounds};
    return w.get();
}

}  // namespace rondo
