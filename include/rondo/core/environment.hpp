// environment.hpp: what a task knows about the world: where it runs, when to stop, what time it is.
//
// A task inherits the environment of whoever awaits it: a pointer, so awaiting costs nothing. A
// root (spawn, block_on), a combinator (when_all, when_any, with_timeout) and shield make a new
// one for what runs below them. A task reads its own with `co_await this_environment()`.
#pragma once

#include <coroutine>

#include "rondo/core/executor.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/waker.hpp"

namespace rondo {

struct task_trace;

namespace detail {
class flow;
}

struct environment {
    executor* where;
    stop_token stop;
    detail::flow* flow;  // the line of execution this belongs to

    // The clock and timers of that place.
    timer_service& timers() const noexcept { return where->timers(); }
};

namespace detail {

// Something a flow can be suspended at.
class suspension {
  public:
    // Where the flow is, and what it awaits there; only while it is suspended here.
    virtual task_trace describe() const = 0;

  protected:
    ~suspension() = default;
};

// Something a flow goes on from when it is posted.
class resumption : public suspension {
  public:
    // The flow has its turn again, on its executor: says what to run now.
    virtual std::coroutine_handle<> on_turn() noexcept = 0;

  protected:
    ~resumption() = default;
};

// One line of execution: a chain of tasks awaiting each other, of which the last one runs or is
// suspended. It is what an executor schedules: one job, however long the chain. Children of
// when_all and when_any are flows of their own.
//
// The budget is per turn. Each completed wait spends from it; when it is used up, the next wait
// gives way to others first, so that a task whose waits are always ready cannot keep a worker.
class flow : job {
  public:
    static constexpr int turn_budget = 128;

    explicit flow(executor& where) noexcept : job(&run_turn), where_(&where) {}
    // A branch of the task that the other one belongs to.
    explicit flow(flow& parent) noexcept
        : job(&run_turn), where_(parent.where_), outermost_(parent.outermost_) {}

    executor& where() const noexcept { return *where_; }
    bool is(job const* other) const noexcept { return this == other; }

    // To be called before anything can wake the flow. One that will be posted is suspended at a
    // resumption; others are gone on with past the flow, and say so.
    void suspend_at(suspension& s) noexcept { at_ = &s; }
    void gone_on() noexcept { at_ = nullptr; }
    // Null while the flow runs. For who may read it: see task_trace.hpp.
    suspension const* suspended_at() const noexcept { return at_; }

    // The task that it belongs to is abroad: something foreign went on with it, or with a branch of
    // it, in a thread that is not the executor's. It may run there, or have come to a wait; nobody
    // knows until it has a turn again. Changed by who goes on with it.
    bool abroad() const noexcept { return outermost_->abroad_; }
    void go_abroad() noexcept { outermost_->abroad_ = true; }

    // Takes its first turn, later; the next one, having what it waited for; another one, after
    // others. The flow may be gone when these return. A waker calls wake(), a patient one
    // give_way().
    void post() noexcept { where_->post(*this); }
    void wake() noexcept { where_->wake(*this); }
    void give_way() noexcept { where_->give_way(*this); }

    waker as_waker() noexcept {
        return {[](void* self) noexcept { static_cast<flow*>(self)->wake(); }, this};
    }
    waker as_patient_waker() noexcept {
        return {[](void* self) noexcept { static_cast<flow*>(self)->give_way(); }, this};
    }

    bool exhausted() const noexcept { return budget_ <= 0; }
    void spend() noexcept { --budget_; }
    // Runs on in the turn of another flow, with what that one has left of it.
    void share_turn_of(flow const& other) noexcept { budget_ = other.budget_; }

  private:
    static void run_turn(job& j) noexcept {
        flow& self = static_cast<flow&>(j);
        self.budget_ = turn_budget;
        self.abroad_ = false;  // of the outermost one: no branch is left when it has a turn
        auto& at = static_cast<resumption&>(*self.at_.read());
        self.gone_on();
        // From here on the flow belongs to what runs: it may end and be freed.
        at.on_turn().resume();
    }

    executor* where_;
    cell<suspension*> at_{nullptr};
    int budget_ = turn_budget;
    cell<bool> abroad_{false};  // of the outermost one
    flow* outermost_ = this;
};

}  // namespace detail

}  // namespace rondo
