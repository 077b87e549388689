// root.hpp: what is above the outermost frame of a task that runs on its own.
//
// A root has the task's flow, its environment with a stop token of its own, and its result. It is
// owned by the running task, by whoever waits for its end, and by whoever holds it as a live_task.
// Kind says whom the end is told: a join_handle (spawn.hpp), a join_set.
#pragma once

#include <coroutine>
#include <expected>
#include <source_location>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/task.hpp"

namespace rondo::detail {

// Keeps an executor from going while a task of it ends in a thread that may not be its own.
class [[nodiscard("it acts until the end of its scope")]] visit {
  public:
    explicit visit(executor& where) noexcept
        : where_(executor::current() != &where && where.begin_visit() ? &where : nullptr) {}
    ~visit() {
        if (where_ != nullptr) where_->end_visit();
    }
    visit(visit const&) = delete;
    visit& operator=(visit const&) = delete;

  private:
    executor* where_;
};

class root_base : public live_task {
  public:
    root_base(executor& where, std::source_location origin, stop_token parent) noexcept
        : live_task(origin), flow_(where), env_{&where, stop_.token(), &flow_} {
        link_.attach(parent);
    }

    void request_stop() noexcept override { stop_.request_stop(); }
    bool is(job const* running) const noexcept override { return flow_.is(running); }
    bool abroad() const noexcept override { return flow_.abroad(); }

    void hold() noexcept override {
        owners_.fetch_add(1, std::memory_order_relaxed);  // an owner makes another
    }

  protected:
    // The task has ended: nobody stops it any more, and its executor does not list it.
    void leave_executor() noexcept {
        link_.detach();
        flow_.where().ended(*this);
    }
    // True for the last owner.
    bool drop() noexcept {
        // acq_rel: the last owner sees what the others did
        return only_owner() || owners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    // Who is it stays so: whoever makes another one is an owner, or has found the task in a list,
    // and then the task itself is an owner.
    bool only_owner() const noexcept {
        // acquire: pairs with the release in drop()
        return owners_.load(std::memory_order_acquire) == 1;
    }

    // What each wait touches is side by side: the end of the source, the flow, the environment.
    stop_source stop_;
    flow flow_;
    environment env_;
    stop_link link_{stop_};

  private:
    atomic<int> owners_{2};
};

// Kind is derived from root_base and has end(), which calls leave_executor().
template <class T, class Kind>
class root_of final : public kept_result<T>, resumption, public Kind, public recycled {
  public:
    template <class... Args>
    root_of(executor& where, task<T>&& child, stop_token parent, Args&... args) noexcept
        : Kind(where, child.origin(), parent, args...), child_(std::move(child)) {}

    // Posts the task. Its owners have to know it before.
    void begin() noexcept {
        this->flow_.suspend_at(*this);  // before others can see the task
        this->flow_.where().began(*this);
        this->flow_.post();
    }

    // Once it has ended; an exception is thrown.
    std::expected<T, wait_error> outcome() {
        if (!this->has_result()) return std::unexpected{wait_error::stopped};
        RONDO_ASSERT(!taken_, "the result of a task is taken by one joiner");
        taken_ = true;
        return this->take_expected();
    }

    task_trace trace() const override {
        return trace_of(this->flow_, child_.promise(), this->origin());
    }

    void abandon() noexcept override {
        {
            task<T> const gone{std::move(child_)};
        }
        finish();
    }

    void let_go() noexcept override {
        if (!this->drop()) return;
        if (this->has_exception() && !taken_) {
            this->flow_.where().unobserved(this->exception());
        }
        delete this;
    }

  private:
    void finish() noexcept {
        visit const until_it_is_gone{this->flow_.where()};
        this->end();
        let_go();
    }

    task_trace describe() const override {
        return trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> on_turn() noexcept override { return child_.start(*this, this->env_); }
    std::coroutine_handle<> completed() noexcept override {
        {
            task<T> const done{std::move(child_)};
        }  // parameters are destroyed before anyone joins
        finish();
        return std::noop_coroutine();
    }
    unwound stopped() noexcept override {
        child_.forget();
        finish();
        return unwound::resume(std::noop_coroutine());
    }

    task<T> child_;
    bool taken_ = false;
};

}  // namespace rondo::detail
