// this_task.hpp: what a task can say about and to itself.
//
//   environment const& env = co_await this_environment();
//   co_await yield();                 // let others have a turn
//   co_await sleep_for(10ms);         // by the environment's clock: virtual in the simulator
//   co_await sleep_until(deadline);
//   auto r = co_await sleep_for(10ms, token);   // expected<void, wait_error>
//
// Stop           yield and the sleeps are waits: a requested stop unwinds the task there. With an
//                explicit token the sleep ends early with wait_error::stopped.
// Thread safety  each says something to the task that awaits it, on whichever thread that runs.
// Elsewhere      the sleeps may also be awaited by a foreign coroutine (see timer_queue.hpp for
//                whose timers it uses); the others mean something in a task only.
#pragma once

#include <coroutine>
#include <expected>

#include "rondo/core/detail/foreign_wait.hpp"
#include "rondo/core/detail/task_wait.hpp"

namespace rondo {

namespace detail {

class [[nodiscard("it is awaited")]] environment_query {
  public:
    class awaiter {
      public:
        explicit awaiter(environment const& env) noexcept : env_(env) {}
        bool await_ready() const noexcept { return true; }
        void await_suspend(std::coroutine_handle<>) const noexcept {}
        environment const& await_resume() const noexcept { return env_; }

      private:
        environment const& env_;
    };
    awaiter rondo_await(promise_base& task) const noexcept { return awaiter{task.env()}; }
};

class [[nodiscard("a task gives way when it awaits this")]] yielding {
  public:
    class awaiter final : resumption {
      public:
        explicit awaiter(promise_base& task) noexcept : task_(task) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<>) noexcept {
            flow& turn = *task_.env().flow;
            turn.suspend_at(*this);
            turn.give_way();
        }
        void await_resume() const noexcept {}

      private:
        std::coroutine_handle<> on_turn() noexcept override {
            return task_.env().stop.stop_requested() ? task_.unwind() : task_.handle();
        }
        task_trace describe() const override {
            return trace_from(task_, task_trace::activity::yielding);
        }
        promise_base& task_;
    };
    awaiter rondo_await(promise_base& task) const noexcept { return awaiter{task}; }
};

// Nobody is ever granted anything here: only the deadline or a stop ends the wait.
class empty_queue : public wait_queue {
    bool grant(waiter&) noexcept override { return false; }
};

class sleep_op : public waiter {
  public:
    static constexpr auto activity = task_trace::activity::sleeping;
    static constexpr bool deadline_is_success = true;

    sleep_op() noexcept : waiter(queue_) {}  // keeps the address, no more

    bool ready() noexcept { return false; }
    void take() noexcept {}
    void hand_on() noexcept {}

  private:
    empty_queue queue_;
};

// Wait is task_wait or foreign_wait. For a sleep the deadline is success.
template <template <class, class> class Wait>
class sleep_awaiter {
  public:
    template <class... Task>
    sleep_awaiter(time_limit end, stop_token token, Task&... task) noexcept
        : wait_(op_, task..., wait_bounds{end, token}) {}

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> h) noexcept {
        return wait_.await_suspend(h);
    }
    std::expected<void, wait_error> await_resume() noexcept {
        std::expected<void, wait_error> r = wait_.await_resume();
        if (!r && r.error() == wait_error::timed_out) return {};
        return r;
    }

  private:
    sleep_op op_;
    Wait<sleep_op&, wait_bounds> wait_;
};

// A sleep that only the environment can cut short: it has no result.
template <template <class, class> class Wait>
class plain_sleep_awaiter : public sleep_awaiter<Wait> {
  public:
    using sleep_awaiter<Wait>::sleep_awaiter;
    void await_resume() noexcept { (void)sleep_awaiter<Wait>::await_resume(); }
};

template <template <template <class, class> class> class Awaiter>
class [[nodiscard("a sleep does nothing until it is awaited")]] sleep {
  public:
    sleep(time_limit end, stop_token token) noexcept : end_(end), token_(token) {}

    Awaiter<task_wait> rondo_await(promise_base& task) const noexcept {
        return Awaiter<task_wait>{end_, token_, task};
    }
    Awaiter<foreign_wait> operator co_await() const noexcept {
        return Awaiter<foreign_wait>{end_, token_};
    }

  private:
    time_limit end_;
    stop_token token_;
};

using plain_sleep = sleep<plain_sleep_awaiter>;
using stoppable_sleep = sleep<sleep_awaiter>;

}  // namespace detail

inline detail::environment_query this_environment() noexcept { return {}; }
inline detail::yielding yield() noexcept { return {}; }

inline detail::plain_sleep sleep_until(time_point when) noexcept { return {time_limit{when}, {}}; }
inline detail::plain_sleep sleep_for(clock::duration delay) noexcept {
    return {time_limit{delay}, {}};
}
inline detail::stoppable_sleep sleep_until(time_point when, stop_token token) noexcept {
    return {time_limit{when}, token};
}
inline detail::stoppable_sleep sleep_for(clock::duration delay, stop_token token) noexcept {
    return {time_limit{delay}, token};
}

}  // namespace rondo
