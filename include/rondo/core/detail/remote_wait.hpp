// remote_wait.hpp: a task's wait for an operation that belongs to another place: it is started,
// cancelled and ended there, in the order of that place, while hooks fire where they please.
//
// A waiter that is withdrawn has ended. An operation of another place has not: something there
// still holds the memory it reads into. So a stop only sends a request there, and the task goes on,
// or unwinds, after the operation's real end.
//
// Who may touch the frame while the task waits is counted in shares. Whoever gives the last one
// back wakes the flow; on its turn the hooks are removed, which waits for one that is being called,
// and the frame is the task's again.
//
//       share                     taken by                     given back
//   R1  of the start              suspend()                    started(), when the place is done
//                                                              with starting it
//   R2  of the operation          suspend()                    ended(), the result being in place
//   R3  of a request to cancel    withdraw(), if there is      cancelled(), at the place
//                                 another one left to join
//
// Invariants
//   I1  the flow is woken once: shares never rise from zero.
//   I2  at most one request to cancel is sent: the first who withdraws sets the reason.
//   I3  a request may reach the place before the start does, or after the end; there both are
//       ordered, and it is the place that knows.
//   I4  after a share was given back nothing of the frame is touched by whoever had it.
//   I5  what a stop of the environment overtakes is not started: nobody would hear of its result. A
//       deadline or an explicit token does not keep it from starting, as what completes at once
//       beats them; the request to cancel follows.
#pragma once

#include <coroutine>
#include <cstdint>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/promise.hpp"
#include "rondo/core/detail/wait_bounds.hpp"

namespace rondo::detail {

template <class Bounds>
class remote_wait : resumption {
  public:
    remote_wait(remote_wait const&) = delete;
    remote_wait& operator=(remote_wait const&) = delete;

    // For the hooks. False: it had been withdrawn, or was ending.
    bool withdraw(wait_state why) noexcept {
        wait_state nothing = wait_state::idle;
        // relaxed: the task reads it when the hooks are gone, which orders it; the place has to
        // see it only if it was set before
        if (!why_.compare_exchange_strong(nothing, why, std::memory_order_relaxed,
                                          std::memory_order_relaxed)) {
            return false;  // I2
        }
        if (!join()) return false;
        send_cancel();
        return true;
    }

  protected:
    remote_wait(promise_base& task, Bounds const& bounds) noexcept
        : task_(task), stop_(*this, wait_state::stopped), hooks_(*this, bounds) {}
    ~remote_wait() {
        // relaxed: only the task itself may be here
        RONDO_ASSERT(shares_.load(std::memory_order_relaxed) == 0,
                     "a task is not destroyed while an operation of it is under way");
    }

    // Both go to the place by themselves, post and return.
    virtual void send_start() noexcept = 0;
    virtual void send_cancel() noexcept = 0;
    // Whether the operation ended because it was cancelled.
    virtual bool aborted() const noexcept = 0;

    // What await_suspend() returns. A stop that was asked for before takes effect here: nothing
    // is complete that could beat it.
    std::coroutine_handle<> suspend() noexcept {
        if (own_stop().stop_requested()) return task_.unwind();
        shares_.store(2, std::memory_order_relaxed);  // R1, R2; arming publishes it
        turn().suspend_at(*this);
        stop_.arm(own_stop());
        hooks_.arm([this]() -> timer_service& { return task_.env().timers(); });
        send_start();
        return std::noop_coroutine();  // the frame belongs to those who have shares
    }

    bool can_be_withdrawn() const noexcept {
        return !std::is_same_v<Bounds, no_bounds> || own_stop().stop_possible();
    }

    // At the place, before it starts anything. False: a stop was asked for, nothing is to be
    // started, and the frame may be gone.
    [[nodiscard("the frame may be gone")]] bool may_start() noexcept {
        if (why() != wait_state::stopped) return true;  // I5
        never_started();
        return false;
    }
    // At the place.
    void started() noexcept { give_back(1); }
    void ended() noexcept { give_back(1); }
    void cancelled() noexcept { give_back(1); }
    // It is not started, as a stop came first or the place is gone.
    void never_started() noexcept { give_back(2); }

    // Why the operation is to be cancelled; it stays so when the task goes on.
    wait_state why() const noexcept { return why_.load(std::memory_order_relaxed); }
    flow& turn() const noexcept { return *task_.env().flow; }

  private:
    stop_token own_stop() const noexcept { return hooks_.except(task_.env().stop); }

    bool join() noexcept {
        // relaxed: the hook that calls this keeps the frame, and its share is given back
        // with release
        std::uint32_t shares = shares_.load(std::memory_order_relaxed);
        while (shares != 0) {  // I1
            if (shares_.compare_exchange_weak(shares, shares + 1, std::memory_order_relaxed,
                                              std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }

    void give_back(std::uint32_t n) noexcept {
        // acq_rel: who wakes the flow has seen what the others did, and so will the task
        if (shares_.fetch_sub(n, std::memory_order_acq_rel) == n) turn().wake();
    }

    std::coroutine_handle<> on_turn() noexcept override {
        stop_.disarm();
        hooks_.disarm();
        return why() == wait_state::stopped && aborted() ? task_.unwind() : task_.handle();
    }

    task_trace describe() const override { return trace_from(task_, task_trace::activity::in_io); }

    promise_base& task_;
    atomic<std::uint32_t> shares_{0};
    atomic<wait_state> why_{wait_state::idle};
    stop_withdrawal<remote_wait> stop_;
    [[no_unique_address]] hooks_of<Bounds, remote_wait> hooks_;
};

}  // namespace rondo::detail
