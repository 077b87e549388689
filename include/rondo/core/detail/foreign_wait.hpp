// foreign_wait.hpp: a wait inside a coroutine that is not a rondo task.
#pragma once

#include <coroutine>
#include <utility>

#include "rondo/core/detail/foreign.hpp"
#include "rondo/core/detail/wait_bounds.hpp"

namespace rondo::detail {

// Held as in task_wait.
template <class Held, class Bounds>
class foreign_wait final : job {
  public:
    foreign_wait(Held&& op, Bounds const& bounds) noexcept
        : job(&resume), op_(std::forward<Held>(op)), bounds_(bounds), hooks_(op_, bounds_) {}
    ~foreign_wait() {
        if (entered_) abandon();
    }

    bool await_ready() noexcept { return op_.ready(); }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        coroutine_ = coroutine;
        place_ = &resumption_place(coroutine);
        entered_ = true;
        op_.wake_with({&wake, this});
        hooks_.arm([this]() -> timer_service& { return place_->timers(); });
        return !op_.enter();  // if it waits, the frame is the queue's now
    }

    auto await_resume() {
        hooks_.disarm();
        entered_ = false;
        return result_of<Bounds>(op_);
    }

  private:
    static void wake(void* self) noexcept {
        auto& w = *static_cast<foreign_wait*>(self);
        w.place_->post(w);
    }
    static void resume(job& j) noexcept { static_cast<foreign_wait&>(j).coroutine_.resume(); }

    // The coroutine is destroyed while it waits.
    void abandon() noexcept {
        hooks_.disarm();
        if (!op_.leave() && op_.state() == wait_state::granted) op_.hand_on();
    }

    Held op_;
    [[no_unique_address]] Bounds bounds_;
    std::coroutine_handle<> coroutine_;
    executor* place_ = nullptr;
    bool entered_ = false;
    [[no_unique_address]] hooks_of<Bounds> hooks_;
};

}  // namespace rondo::detail
