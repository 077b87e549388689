// once_init.hpp: waits for a cell's value, or makes it. The way of get_or_init() and its relatives.
//
// A Cell has state(), get(), known(), and fill(claim, value), which stores and publishes the value.
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sync/detail/once_state.hpp"

namespace rondo::detail {

template <class A>
concept awaitable_in_task =
    requires(A&& a, promise_base& p) { awaiter_in_task(std::forward<A>(a), p).await_resume(); };

// What the initialiser gives in the end.
template <class Given>
struct made_by {
    using type = Given;
};
template <awaitable_in_task Given>
struct made_by<Given> {
    using type = std::remove_cvref_t<await_result_t<Given>>;
};
template <class F>
using made_t = made_by<std::invoke_result_t<F&>>::type;

// Result is what the caller gets: a pointer to the value, or an expected of it that may hold the
// error of an initialiser.
template <class Result, class Cell, class Made>
Result settle(Cell& cell, once_claim claim, Made made) {
    if constexpr (std::is_pointer_v<Result>) {
        cell.fill(std::move(claim), std::move(made));
    } else {
        if (!made) return std::unexpected{std::move(made).error()};
        cell.fill(std::move(claim), *std::move(made));
    }
    return cell.get();
}

template <class Result, class Cell, class F>
task<Result> init_in_turn(Cell* cell, F make) {
    environment const& env = co_await this_environment();
    wait<once_op> turn{once_op{cell->state(), env.flow}};
    once_claim claim = co_await std::move(turn);
    if (!claim) co_return cell->get();
    if constexpr (awaitable_in_task<std::invoke_result_t<F&>>) {
        made_t<F> made = co_await std::invoke(make);
        co_return settle<Result>(*cell, std::move(claim), std::move(made));
    } else {
        co_return settle<Result>(*cell, std::move(claim), std::invoke(make));
    }
}

template <class Result, class Cell, class F>
Result blocking_init(Cell& cell, once_claim claim, F& make) {
    static_assert(!awaitable_in_task<std::invoke_result_t<F&>>,
                  "a blocking form takes an initialiser that gives its value at once");
    if (!claim) return cell.get();
    return settle<Result>(cell, std::move(claim), std::invoke(make));
}

// In a task, a value that is there costs no frame.
template <class Result, class Cell, class F>
class [[nodiscard("it does nothing until it is awaited")]] once_init {
  public:
    once_init(Cell& cell, F make) noexcept(std::is_nothrow_move_constructible_v<F>)
        : cell_(cell), make_(std::move(make)) {}

    class awaiter {
      public:
        awaiter(once_init& init, promise_base& parent) noexcept : init_(init), parent_(parent) {}

        bool await_ready() const noexcept {
            flow& turn = *parent_.env().flow;
            if (turn.exhausted() || !init_.cell_.initialized()) return false;
            turn.spend();
            return true;
        }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) {
            child_.emplace(init_.task_for_it(), parent_);
            return child_->await_suspend(h);
        }
        Result await_resume() {
            return child_ ? child_->await_resume() : Result{&init_.cell_.known()};
        }

      private:
        once_init& init_;
        promise_base& parent_;
        std::optional<task_awaiter<Result>> child_;
    };

    awaiter rondo_await(promise_base& parent) && noexcept { return awaiter{*this, parent}; }
    auto operator co_await() && { return task_for_it().operator co_await(); }

  private:
    task<Result> task_for_it() { return init_in_turn<Result>(&cell_, std::move(make_)); }

    Cell& cell_;
    F make_;
};

// A task that has a deadline, bounded by a token as well.
template <class R>
task<std::expected<R, wait_error>> stopped_by(task<std::expected<R, wait_error>> timed,
                                              stop_token token) {
    auto bounded = with_stop(std::move(timed), token);
    std::expected<std::expected<R, wait_error>, wait_error> result = co_await std::move(bounded);
    if (!result) co_return std::unexpected{result.error()};
    co_return std::move(*result);
}

}  // namespace rondo::detail
