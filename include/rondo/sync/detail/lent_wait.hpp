// lent_wait.hpp: awaits an operation that lives elsewhere, and may be in its queue already.
//
// wait<> and bounded_wait<> own their operation, and move it until it is awaited. One that was
// enlisted has its place in line and cannot be moved: whoever owns it lends it to the wait.
#pragma once

#include "rondo/core/wait.hpp"

namespace rondo::detail {

template <class Op>
class [[nodiscard("a wait does nothing until it is awaited")]] lent_wait {
  public:
    explicit lent_wait(Op& op) noexcept : op_(op) { static_assert(wait_operation<Op>); }

    task_wait<Op&, no_bounds> rondo_await(promise_base& task) const noexcept {
        return {op_, task, no_bounds{}};
    }
    task_wait<Op&, no_bounds, alone::yes> rondo_await_alone(promise_base& task) const noexcept {
        return {op_, task, no_bounds{}};
    }
    foreign_wait<Op&, no_bounds> operator co_await() const noexcept { return {op_, no_bounds{}}; }

  private:
    Op& op_;
};

template <class Op>
class [[nodiscard("a wait does nothing until it is awaited")]] lent_bounded_wait {
  public:
    lent_bounded_wait(Op& op, wait_bounds bounds) noexcept : op_(op), bounds_(bounds) {
        static_assert(wait_operation<Op>);
    }

    task_wait<Op&, wait_bounds> rondo_await(promise_base& task) && noexcept {
        return {op_, task, bounds_};
    }
    task_wait<Op&, wait_bounds, alone::yes> rondo_await_alone(promise_base& task) && noexcept {
        return {op_, task, bounds_};
    }
    foreign_wait<Op&, wait_bounds> operator co_await() && noexcept { return {op_, bounds_}; }

  private:
    Op& op_;
    wait_bounds bounds_;
};

template <wait_operation Op>
auto blocking_lent_wait(Op& op) {
    return thread_wait<Op, no_bounds>{op, no_bounds{}}.get();
}
template <wait_operation Op>
auto blocking_lent_wait(Op& op, wait_bounds bounds) {
    return thread_wait<Op, wait_bounds>{op, bounds}.get();
}

}  // namespace rondo::detail
