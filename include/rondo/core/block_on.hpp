// block_on.hpp: run a task from plain code and return what it returns.
//
//   block_on(task)         makes a run_loop on this thread's stack for it; tasks that it left
//                          running there are stopped and have ended when block_on returns
//   block_on(loop, task)   runs the given loop until the task has ended
//
// Everything the task awaits runs in the calling thread. An exception of the task is rethrown.
// The task has no stop token: nobody is there to ask. Must not be called inside an executor.
#pragma once

#include <utility>

#include "rondo/core/detail/root.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/task.hpp"

namespace rondo {

namespace detail {

template <class T>
class blocking_root final : kept_result<T>, resumption, live_task {
  public:
    blocking_root(run_loop& loop, task<T>&& child) noexcept
        : live_task(child.origin()),
          loop_(loop),
          flow_(loop),
          env_{&loop, stop_token{}, &flow_},
          child_(std::move(child)) {}

    T run() {
        RONDO_ASSERT(executor::current() == nullptr, "block_on is for plain threads");
        where().began(*this);
        flow_.suspend_at(*this);
        flow_.post();
        // Somebody else may have called finish().
        while (!ended_.load(std::memory_order_acquire)) loop_.run();
        where().ended(*this);
        return this->take();
    }

  private:
    executor& where() noexcept { return loop_; }

    // A live task so that a trace of the loop has it too. Nobody stops it, nobody keeps it.
    void request_stop() noexcept override {}
    void hold() noexcept override {}
    void let_go() noexcept override {}
    task_trace trace() const override { return trace_of(flow_, child_.promise(), origin()); }

    task_trace describe() const override {
        return trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> on_turn() noexcept override { return child_.start(*this, env_); }
    std::coroutine_handle<> completed() noexcept override {
        run_loop& loop = loop_;
        visit const until_it_is_told{loop};
        // release: pairs with the acquire in run(), whose caller may be gone from here on
        ended_.store(true, std::memory_order_release);
        loop.finish();
        return std::noop_coroutine();
    }
    unwound stopped() noexcept override {
        RONDO_ASSERT(false, "a task without a stop token cannot be stopped");
        return unwound::resume(std::noop_coroutine());
    }

    run_loop& loop_;
    flow flow_;
    environment env_;
    task<T> child_;
    atomic<bool> ended_{false};
};

}  // namespace detail

template <class T>
T block_on(run_loop& loop, task<T> t) {
    return detail::blocking_root<T>{loop, std::move(t)}.run();
}

template <class T>
T block_on(task<T> t) {
    run_loop loop;
    return block_on(loop, std::move(t));
}

}  // namespace rondo
