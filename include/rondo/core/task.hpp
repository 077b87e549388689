// task.hpp: task<T>, a lazy coroutine that takes its environment from whoever awaits it.
//
// Guarantee      nothing runs before the task is awaited; it is awaited at most once. Awaiting
//                and returning transfer control without growing the stack, at any depth. An
//                exception travels to whoever awaits.
// Stop           when the environment's stop token asks and the task waits (or comes to a wait
//                that is not ready), the wait ends and the tasks above it unwind like a cancelled
//                future in Rust: destructors run, innermost frame first, no exception, on the
//                task's own executor, without recursion; up to whoever can answer for it:
//                when_any, with_timeout, a join_handle. A wait that is complete wins over the
//                request. A task that never waits is never stopped.
// Memory         one frame from the recycling allocator; the result is built in the awaiter.
// In a task      anything awaitable may be awaited. Rondo's own waits resume on the task's
//                executor; a foreign awaitable resumes where it pleases.
// Elsewhere      a foreign coroutine may co_await a task: it runs on the executor that
//                resumption_place() finds (detail/foreign.hpp), with no stop token.
// Compilers      g++ 12 miscompiles some forms of co_await; see docs/compilers.md.
#pragma once

#include <coroutine>
#include <optional>
#include <source_location>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/elsewhere.hpp"
#include "rondo/core/detail/foreign.hpp"
#include "rondo/core/detail/promise.hpp"
#include "rondo/core/detail/result_slot.hpp"

namespace rondo {

namespace detail {

template <class T>
class task_promise;
template <class T>
class task_awaiter;
template <class T>
class foreign_task_awaiter;

}  // namespace detail

template <class T = void>
class [[nodiscard("a task does nothing until it is awaited")]] task {
  public:
    using value_type = T;
    using promise_type = detail::task_promise<T>;

    task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        task{std::move(other)}.swap(*this);
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }

    void swap(task& other) noexcept { std::swap(frame_, other.frame_); }

    // For awaiters: gives the frame a continuation and an environment; resuming the handle then
    // runs it.
    std::coroutine_handle<> start(detail::result_slot<T>& slot, environment const& env) noexcept {
        RONDO_ASSERT(frame_, "a task is awaited once");
        frame_.promise().attach(slot, env);
        return frame_;
    }
    std::coroutine_handle<> handle() const noexcept { return frame_; }
    // Where the coroutine is defined, until it begins.
    std::source_location origin() const noexcept {
        RONDO_ASSERT(frame_, "a task is awaited once");
        return promise()->position();
    }
    // For traces: null when the frame is gone.
    detail::promise_base const* promise() const noexcept {
        return frame_ ? &frame_.promise() : nullptr;
    }
    // For awaiters: the frame was destroyed by the unwinding.
    void forget() noexcept { frame_ = nullptr; }

    detail::task_awaiter<T> rondo_await(detail::promise_base& parent) && noexcept;
    detail::foreign_task_awaiter<T> operator co_await() && noexcept;

  private:
    friend detail::task_promise<T>;
    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class T>
class task_promise : public promise_base {
  public:
    task<T> get_return_object(
        std::source_location here = std::source_location::current()) noexcept {
        defined_at(here);
        return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)};
    }
    template <class U = T>
    void return_value(U&& value) {
        slot().set_value(std::forward<U>(value));
    }
    void unhandled_exception() noexcept { slot().set_exception(std::current_exception()); }

  private:
    result_slot<T>& slot() noexcept { return static_cast<result_slot<T>&>(*continuation_); }
};

template <>
class task_promise<void> : public promise_base {
  public:
    task<void> get_return_object(
        std::source_location here = std::source_location::current()) noexcept {
        defined_at(here);
        return task<void>{std::coroutine_handle<task_promise>::from_promise(*this)};
    }
    void return_void() noexcept { slot().set_value(); }
    void unhandled_exception() noexcept { slot().set_exception(std::current_exception()); }

  private:
    result_slot<void>& slot() noexcept { return static_cast<result_slot<void>&>(*continuation_); }
};

// A task awaited by a task: same flow, same environment.
template <class T>
class task_awaiter final : result_slot<T> {
  public:
    task_awaiter(task<T>&& child, promise_base& parent) noexcept
        : child_(std::move(child)), parent_(parent) {}

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return child_.start(*this, parent_.env());
    }
    T await_resume() { return this->take(); }

  private:
    std::coroutine_handle<> completed() noexcept override { return parent_.handle(); }
    unwound stopped() noexcept override {
        child_.forget();
        return unwound::further(parent_);
    }
    promise_base const* awaited_in() const noexcept override { return &parent_; }

    task<T> child_;
    promise_base& parent_;
};

// A task awaited by a foreign coroutine: a flow of its own, nobody to stop it.
template <class T>
class foreign_task_awaiter final : result_slot<T>, resumption {
  public:
    explicit foreign_task_awaiter(task<T>&& child) noexcept : child_(std::move(child)) {}

    bool await_ready() const noexcept { return false; }

    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        parent_ = parent;
        executor& place = resumption_place(parent);
        flow_.emplace(place);
        env_.emplace(environment{&place, stop_token{}, &*flow_});
        std::coroutine_handle<> const child = child_.start(*this, *env_);
        if (runs_here(place)) return child;
        flow_->suspend_at(*this);
        flow_->post();
        return std::noop_coroutine();
    }
    T await_resume() { return this->take(); }

  private:
    std::coroutine_handle<> on_turn() noexcept override { return child_.handle(); }
    task_trace describe() const override {
        return trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> completed() noexcept override { return parent_; }
    unwound stopped() noexcept override {
        RONDO_ASSERT(false, "a task without a stop token cannot be stopped");
        return unwound::resume(std::noop_coroutine());
    }

    task<T> child_;
    std::coroutine_handle<> parent_;
    std::optional<flow> flow_;
    std::optional<environment> env_;
};

}  // namespace detail

template <class T>
detail::task_awaiter<T> task<T>::rondo_await(detail::promise_base& parent) && noexcept {
    return {std::move(*this), parent};
}

template <class T>
detail::foreign_task_awaiter<T> task<T>::operator co_await() && noexcept {
    return detail::foreign_task_awaiter<T>{std::move(*this)};
}

}  // namespace rondo
