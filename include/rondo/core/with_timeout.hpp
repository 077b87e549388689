// with_timeout.hpp: a task that is stopped by a deadline or a token, and says so with a value.
//
//   std::expected<page, wait_error> p = co_await with_timeout(fetch(url), 2s);
//   and with_deadline(fetch(url), moment), with_stop(fetch(url), token); in a task only
//
// Guarantee      the result comes when the task has ended. If it completed, its value (or
//                exception), even when the deadline passed meanwhile. If it was stopped by the
//                deadline: timed_out; by the token: stopped. If the environment's stop asked, the
//                awaiting task unwinds too.
// Time           with_timeout counts from the moment it is awaited, by the environment's clock.
// For waits      op_until(deadline) and op(token) do the same for one wait without a task.
#pragma once

#include <algorithm>
#include <expected>
#include <utility>

#include "rondo/core/detail/as_task.hpp"
#include "rondo/core/detail/wait_bounds.hpp"

namespace rondo {

namespace detail {

// The stop source of a bounded task, and the three that may ask through it.
class bounded_scope : timer {
  public:
    explicit bounded_scope(promise_base& parent) noexcept
        : timer(&fired), parent_(parent), env_(parent.env()) {
        env_.stop = stop_.token();
    }
    ~bounded_scope() { close(); }
    bounded_scope(bounded_scope const&) = delete;
    bounded_scope& operator=(bounded_scope const&) = delete;

    environment const& env() const noexcept { return env_; }

    void open(time_point at, stop_token token) noexcept {
        from_environment_.attach(parent_.env().stop);
        from_token_.attach(token);
        timed_ = at != time_point::max();
        ticking_ = timed_;
        if (timed_) env_.timers().add(*this, at);
    }
    // The links let go by themselves when the scope is destroyed.
    void close() noexcept {
        if (std::exchange(ticking_, false)) env_.timers().cancel(*this);
    }
    // For a scope that was stopped: by whom?
    bool by_environment() const noexcept { return parent_.env().stop.stop_requested(); }
    wait_error error() const noexcept {
        return timed_ ? wait_error::timed_out : wait_error::stopped;
    }

  private:
    static void fired(timer& t) noexcept { static_cast<bounded_scope&>(t).stop_.request_stop(); }

    promise_base& parent_;
    stop_source stop_;
    stop_link from_environment_{stop_};
    stop_link from_token_{stop_};
    environment env_;
    bool timed_ = false;  // it has a deadline, and then no token
    bool ticking_ = false;
};

template <class T>
class bounded_task_awaiter final : result_slot<T> {
  public:
    bounded_task_awaiter(promise_base& parent, task<T>&& child, time_point deadline,
                         stop_token token) noexcept
        : parent_(parent),
          deadline_(deadline),
          token_(token),
          scope_(parent),
          child_(std::move(child)) {}

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        scope_.open(deadline_, token_);
        return child_.start(*this, scope_.env());
    }
    std::expected<T, wait_error> await_resume() {
        if (!this->has_result()) return std::unexpected{scope_.error()};
        return this->take_expected();
    }

  private:
    bool may_complete() noexcept override { return parent_.may_complete(); }
    std::coroutine_handle<> completed() noexcept override {
        scope_.close();
        return parent_.handle();
    }
    unwound stopped() noexcept override {
        child_.forget();
        scope_.close();
        return scope_.by_environment() ? unwound::further(parent_)
                                       : unwound::resume(parent_.handle());
    }
    promise_base const* awaited_in() const noexcept override { return &parent_; }

    promise_base& parent_;
    time_point deadline_;
    stop_token token_;
    bounded_scope scope_;
    task<T> child_;  // goes before the scope when it is abandoned
};

template <class T>
class bounded_task {
  public:
    bounded_task(task<T>&& child, stop_token token) noexcept
        : child_(std::move(child)), token_(token) {}
    bounded_task(task<T>&& child, time_point deadline) noexcept
        : child_(std::move(child)), deadline_(deadline) {}
    bounded_task(task<T>&& child, clock::duration timeout) noexcept
        : child_(std::move(child)), timeout_(timeout) {}

    bounded_task_awaiter<T> rondo_await(promise_base& parent) && noexcept {
        time_point const timed_out = later(parent.env().timers().now(), timeout_);
        return {parent, std::move(child_), std::min(deadline_, timed_out), token_};
    }

  private:
    task<T> child_;
    time_point deadline_ = time_point::max();
    clock::duration timeout_ = clock::duration::max();
    stop_token token_;
};

template <class T, class Bound>
task<std::expected<T, wait_error>> bounded(task<T> child, Bound bound) {
    static_assert(!std::is_reference_v<T>, "a bounded task returns a value or a pointer");
    bounded_task<T> b{std::move(child), bound};
    co_return co_await std::move(b);
}

}  // namespace detail

template <class Awaitable>
auto with_timeout(Awaitable awaitable, clock::duration timeout) {
    return detail::bounded(detail::as_task(std::move(awaitable)), timeout);
}

template <class Awaitable>
auto with_deadline(Awaitable awaitable, time_point deadline) {
    return detail::bounded(detail::as_task(std::move(awaitable)), deadline);
}

template <class Awaitable>
auto with_stop(Awaitable awaitable, stop_token token) {
    return detail::bounded(detail::as_task(std::move(awaitable)), token);
}

}  // namespace rondo
