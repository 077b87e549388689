// elsewhere.hpp: an awaitable that is not ours, awaited in a task.
//
// It resumes the task where and when it pleases, past the flow. All that is added is that the flow
// is known to be suspended meanwhile, so that a trace of the task finds the way there; and that the
// executor is told before the task goes on in a thread that may not be its own.
#pragma once

#include <coroutine>
#include <utility>

#include "rondo/core/detail/promise.hpp"

namespace rondo::detail {

// What co_await makes of an awaitable.
template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& a) {
    if constexpr (requires { std::forward<Awaitable>(a).operator co_await(); }) {
        return std::forward<Awaitable>(a).operator co_await();
    } else if constexpr (requires { operator co_await(std::forward<Awaitable>(a)); }) {
        return operator co_await(std::forward<Awaitable>(a));
    } else {
        return std::forward<Awaitable>(a);
    }
}

template <class Awaitable>
class elsewhere final : suspension {
  public:
    elsewhere(Awaitable&& awaitable, promise_base& task)
        : awaiter_(awaiter_of(std::forward<Awaitable>(awaitable))), task_(task) {}

    bool await_ready() { return static_cast<bool>(awaiter_.await_ready()); }

    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> h) {
        turn().suspend_at(*this);
        try {
            return awaiter_.await_suspend(h);  // which may have resumed it already
        } catch (...) {
            turn().gone_on();
            throw;
        }
    }

    decltype(auto) await_resume() {
        executor& where = turn().where();
        if (executor::current() != &where) where.resumed_past_it(turn());
        turn().gone_on();
        return awaiter_.await_resume();
    }

  private:
    flow& turn() const noexcept { return *task_.env().flow; }
    task_trace describe() const override {
        return trace_from(task_, task_trace::activity::elsewhere);
    }

    decltype(awaiter_of(std::declval<Awaitable>())) awaiter_;
    promise_base& task_;
};

}  // namespace rondo::detail
