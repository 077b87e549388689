// awaited_root.hpp: a task on an executor, for whose end a plain thread waits.
#pragma once

#include <coroutine>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/result_slot.hpp"
#include "rondo/core/detail/root.hpp"
#include "rondo/core/environment.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/core/task.hpp"
#include "rondo/exec/detail/driver.hpp"

namespace rondo::detail {

// The end of a task: to be waited for by another thread, or to be looked at by the one that runs
// the task. It may be gone as soon as it was crossed.
class finish_line {
  public:
    // Wakes the driver of the thread that is lent to the task, if there is one, else who waits.
    explicit finish_line(driver* lent) noexcept : lent_(lent) {}

    void cross() noexcept {
        driver* const lent = lent_;
        crossed_.store(true, std::memory_order_release);  // release: pairs with crossed()
        if (lent != nullptr) {
            lent->unpark();
        } else {
            parker_.unpark();
        }
    }
    void wait() noexcept { parker_.park(); }
    bool crossed() const noexcept { return crossed_.load(std::memory_order_acquire); }

  private:
    driver* lent_;
    atomic<bool> crossed_{false};
    parker parker_;
};

// A live task so that it can be listed; nobody stops it, nobody keeps it.
template <class T>
class awaited_root final : kept_result<T>, resumption, public live_task {
  public:
    awaited_root(executor& where, driver* lent, task<T>&& child) noexcept
        : live_task(child.origin()),
          flow_(where),
          env_{&where, stop_token{}, &flow_},
          child_(std::move(child)),
          end_(lent) {}

    finish_line& begin() noexcept {
        flow_.suspend_at(*this);
        flow_.post();
        return end_;
    }
    // Once it has ended.
    using kept_result<T>::take;

  private:
    void request_stop() noexcept override {}
    void hold() noexcept override {}
    void let_go() noexcept override {}
    bool is(job const* running) const noexcept override { return flow_.is(running); }
    bool abroad() const noexcept override { return flow_.abroad(); }
    task_trace trace() const override { return trace_of(flow_, child_.promise(), origin()); }

    task_trace describe() const override {
        return trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> on_turn() noexcept override { return child_.start(*this, env_); }
    std::coroutine_handle<> completed() noexcept override {
        {
            task<T> const done{std::move(child_)};
        }  // parameters are destroyed by the worker, before anyone knows
        visit const until_it_is_told{flow_.where()};
        end_.cross();
        return std::noop_coroutine();
    }
    unwound stopped() noexcept override {
        RONDO_ASSERT(false, "a task without a stop token cannot be stopped");
        return unwound::resume(std::noop_coroutine());
    }

    flow flow_;
    environment env_;
    task<T> child_;
    finish_line end_;
};

}  // namespace rondo::detail
