// spawn.hpp: start a task that runs on its own, and a handle to wait for its end.
//
//   join_handle<T> h = spawn(executor, task);
//   auto r = co_await h.join();          // expected<T, wait_error>: error when it was stopped
//
// Guarantee      the task starts on the executor, never inside spawn(), and owns itself until it
//                ends: the handle may be destroyed at any time (detach). Its environment has a
//                stop token of its own; request_stop() and a parent token ask through it.
// Exceptions     travel to whoever joins; one that nobody takes goes to executor::unobserved(),
//                when the task has ended and its handle is gone.
// Join           in all forms of a wait; a join that is stopped leaves the task alone. One joiner
//                takes the result; a second one that asks for it is a programmer's error.
// Lifetime       a join may outlive its handle. The executor outlives the task, its handle and its
//                joins: an exception that they leave behind is reported to it.
// Memory         one block for the root beside the task's frame, both recycled.
#pragma once

#include <cstdint>
#include <expected>
#include <source_location>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/wait.hpp"

namespace rondo {

template <class T>
class join_handle;

namespace detail {

// The part of a root that does not depend on the result. It is owned by the running task, the
// handle, joins under way and whoever holds it as a live_task; joiners wait in its queue.
class root_base : public wait_queue, public live_task {
  public:
    root_base(executor& where, std::source_location origin, stop_token parent) noexcept
        : live_task(origin), flow_(where), env_{&where, stop_.token(), &flow_} {
        link_.attach(parent);
    }

    void request_stop() noexcept override { stop_.request_stop(); }
    bool is(job const* running) const noexcept override { return flow_.is(running); }

    void hold() noexcept override {
        owners_.fetch_add(1, std::memory_order_relaxed);  // an owner makes another
    }

    bool ended() const noexcept {
        // acquire: pairs with the release in end(); the result is there
        return phase_.load(std::memory_order_acquire) == phase::over;
    }

  protected:
    void end() noexcept {
        link_.detach();
        flow_.where().ended(*this);
        // acq_rel: what the task did is visible to whoever joins; pairs with grant()
        if (phase_.exchange(phase::over, std::memory_order_acq_rel) == phase::awaited) serve([] {});
    }
    // True for the last owner.
    bool drop() noexcept {
        // acq_rel: the last owner sees what the others did
        return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

    stop_source stop_;
    stop_link link_{stop_};
    flow flow_;
    environment env_;

  private:
    // While nobody has waited for the end, ending takes no lock.
    enum class phase : std::uint8_t { alive, awaited, over };

    // Who enters the line says so in the same step in which it sees that the task is alive.
    bool grant(waiter&) noexcept override {
        phase seen = phase::alive;
        // release, acquire: pairs with the exchange in end()
        phase_.compare_exchange_strong(seen, phase::awaited, std::memory_order_release,
                                       std::memory_order_acquire);
        return seen == phase::over;
    }

    atomic<phase> phase_{phase::alive};
    atomic<int> owners_{2};
};

template <class T>
class root final : public result_slot<T>, resumption, public root_base, public recycled {
  public:
    root(executor& where, task<T>&& child, stop_token parent) noexcept
        : root_base(where, child.origin(), parent), child_(std::move(child)) {
        flow_.suspend_at(*this);  // before others can see the task
        where.began(*this);
        flow_.post();
    }

    std::expected<T, wait_error> outcome() {
        if (!this->has_result()) return std::unexpected{wait_error::stopped};
        RONDO_ASSERT(!taken_, "the result of a task is taken by one joiner");
        taken_ = true;
        return this->take_expected();
    }

    task_trace trace() const override {
        task_trace t = trace_of(flow_, child_.promise());
        if (t.frames.empty()) t.frames.emplace_back(origin());
        return t;
    }

    void let_go() noexcept override {
        if (!drop()) return;
        if (this->has_exception() && !taken_) flow_.where().unobserved(this->exception());
        delete this;
    }

  private:
    void finish() noexcept {
        end();
        let_go();
    }

    task_trace describe() const override {
        return trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> on_turn() noexcept override { return child_.start(*this, env_); }
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

template <class T>
class join_op : public waiter {
  public:
    explicit join_op(root<T>& r) noexcept : waiter(r), root_(&r) { r.hold(); }
    join_op(join_op&& other) noexcept
        : waiter(static_cast<waiter&&>(other)), root_(std::exchange(other.root_, nullptr)) {}
    ~join_op() {
        if (root_ != nullptr) root_->let_go();
    }

    bool ready() noexcept { return root_->ended(); }
    std::expected<T, wait_error> take() { return root_->outcome(); }
    void hand_on() noexcept {}

  private:
    root<T>* root_;
};

}  // namespace detail

template <class T>
class [[nodiscard("destroying the handle detaches the task")]] join_handle {
  public:
    join_handle(join_handle&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
    join_handle& operator=(join_handle&& other) noexcept {
        join_handle{std::move(other)}.swap(*this);
        return *this;
    }
    ~join_handle() { detach(); }

    void swap(join_handle& other) noexcept { std::swap(root_, other.root_); }

    // Lets the task run on, unobserved.
    void detach() noexcept {
        if (root_ != nullptr) std::exchange(root_, nullptr)->let_go();
    }
    bool joinable() const noexcept { return root_ != nullptr; }

    void request_stop() noexcept { joined().request_stop(); }
    bool ended() const noexcept { return joined().ended(); }

    wait<detail::join_op<T>> join() noexcept { return wait{detail::join_op<T>{joined()}}; }
    bounded_wait<detail::join_op<T>> join(stop_token token) noexcept {
        return {detail::join_op<T>{joined()}, token};
    }
    bounded_wait<detail::join_op<T>> join_until(time_point deadline, stop_token t = {}) noexcept {
        return {detail::join_op<T>{joined()}, {deadline, t}};
    }
    std::expected<T, wait_error> blocking_join() {
        return blocking_wait(detail::join_op<T>{joined()});
    }

  private:
    template <class U>
    friend join_handle<U> spawn(executor& where, task<U> t, stop_token parent);
    explicit join_handle(detail::root<T>& r) noexcept : root_(&r) {}

    detail::root<T>& joined() const noexcept {
        RONDO_ASSERT(root_ != nullptr, "a join_handle that was detached or moved has no task");
        return *root_;
    }

    detail::root<T>* root_;
};

// The task runs on `where`. A parent token, if there is one, is followed until the task ends; its
// source must live that long.
template <class T>
join_handle<T> spawn(executor& where, task<T> t, stop_token parent = {}) {
    static_assert(!std::is_reference_v<T>, "a spawned task returns a value or a pointer");
    return join_handle<T>{*new detail::root<T>{where, std::move(t), parent}};
}

}  // namespace rondo
