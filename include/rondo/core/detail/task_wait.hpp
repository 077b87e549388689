// task_wait.hpp: a wait inside a rondo task.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/promise.hpp"
#include "rondo/core/detail/wait_bounds.hpp"

namespace rondo::detail {

// What a task in such a wait is doing; an operation may say it better.
template <class Op>
constexpr task_trace::activity activity_of() noexcept {
    if constexpr (requires { Op::activity; }) {
        return Op::activity;
    } else {
        return task_trace::activity::waiting;
    }
}

// Who waits in an operation goes on next when it is woken, unless the operation says that it is
// patient: that what woke it is likely to be followed by more of what it will wait for.
template <class Op>
waker waker_of(flow& f) noexcept {
    if constexpr (requires { requires Op::patient; }) {
        return f.as_patient_waker();
    } else {
        return f.as_waker();
    }
}

// Whether a wait is all there is to its task, and so asks before it completes.
enum class alone : bool { no, yes };

// Held is the operation, or a reference to one that lives elsewhere. (In the awaiter it has a place
// in the frame that the coroutine knows: what is granted at once is then used without reading where
// it is.)
template <class Held, class Bounds, alone Alone = alone::no>
class task_wait final : resumption {
    using Op = std::remove_reference_t<Held>;

  public:
    task_wait(Held&& op, promise_base& task, Bounds const& bounds) noexcept
        : op_(std::forward<Held>(op)), task_(task), bounds_(bounds) {}
    ~task_wait() {
        if (phase_ == phase::entered) abandon();
    }
    task_wait(task_wait const&) = delete;
    task_wait& operator=(task_wait const&) = delete;

    bool await_ready() noexcept {
        flow& now = turn();
        if (now.exhausted() || !ready()) return false;
        now.spend();
        return may_take();
    }

    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        if (phase_ == phase::refused) return task_.unwind();
        if (!turn().exhausted()) return begin();
        phase_ = phase::giving_way;
        turn().suspend_at(*this);
        turn().give_way();
        return std::noop_coroutine();
    }

    auto await_resume() {
        // So the compiler knows, too, that there is nothing to abandon.
        RONDO_ASSERT(phase_ != phase::entered, "a wait is decided before its task goes on");
        return result_of<Bounds>(op_);
    }

  private:
    enum class phase : std::uint8_t { fresh, giving_way, entered, decided, refused };

    flow& turn() const noexcept { return *task_.env().flow; }

    std::coroutine_handle<> on_turn() noexcept override {
        if (phase_ == phase::entered) return decided();
        // It has only given way: nothing is complete that could beat a stop.
        if (stop_of_environment().stop_requested()) return task_.unwind();
        if (!ready()) return begin();
        turn().spend();
        return may_take() ? task_.handle() : task_.unwind();
    }

    bool ready() noexcept {
        if constexpr (Alone == alone::yes) {
            return ready_revocably(op_);
        } else {
            return op_.ready();
        }
    }

    std::coroutine_handle<> begin() noexcept {
        phase_ = phase::entered;
        turn().suspend_at(*this);
        op_.wake_with(waker_of<Op>(turn()));
        std::construct_at(&ends_, op_, bounds_);
        ends_.stop.arm(stop_of_environment());
        ends_.hooks.arm([this]() -> timer_service& { return task_.env().timers(); });
        if (!op_.enter()) return std::noop_coroutine();  // the frame is the queue's now
        turn().gone_on();
        return decided();
    }

    task_trace describe() const override { return trace_from(task_, activity_of<Op>()); }

    std::coroutine_handle<> decided() noexcept {
        disarm();
        phase_ = phase::decided;
        if (op_.state() == wait_state::stopped) return task_.unwind();
        if (has_result() && !may_take()) return task_.unwind();
        turn().spend();
        return task_.handle();
    }

    // Whether it was decided for what the operation waits for.
    bool has_result() const noexcept {
        wait_state const how = op_.state();
        if constexpr (requires { requires Op::deadline_is_success; }) {
            if (how == wait_state::timed_out) return true;
        }
        return how == wait_state::granted;
    }

    // False: somebody else was faster, and what this one has goes on to the next.
    bool may_take() noexcept {
        if (Alone == alone::no || task_.may_complete()) return true;
        op_.hand_on();
        phase_ = phase::refused;
        return false;
    }

    // The frame is destroyed from outside while it waits.
    void abandon() noexcept {
        disarm();
        if (!op_.leave() && op_.state() == wait_state::granted) op_.hand_on();
    }

    // The token at which the environment may stop this wait.
    stop_token stop_of_environment() const noexcept {
        return token_beside(bounds_, task_.env().stop);
    }

    void disarm() noexcept {
        ends_.stop.disarm();
        ends_.hooks.disarm();
        std::destroy_at(&ends_);
    }

    // What can end the wait.
    struct ends {
        ends(Op& op, Bounds const& bounds) noexcept
            : stop(op, wait_state::stopped), hooks(op, bounds) {}
        stop_withdrawal<waiter> stop;
        [[no_unique_address]] hooks_of<Bounds> hooks;
    };

    Held op_;
    promise_base& task_;
    [[no_unique_address]] Bounds bounds_;
    phase phase_ = phase::fresh;
    // Only while phase_ is `entered`: most waits are ready, and the two atomic operations of a lock
    // that is free would wait for all that was written before them.
    union {
        ends ends_;
    };
};

}  // namespace rondo::detail
