// promise.hpp: what every task's promise has: an environment, a continuation, a way to unwind.
#pragma once

#include <coroutine>
#include <cstddef>
#include <source_location>
#include <utility>

#include "rondo/core/environment.hpp"
#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/task_trace.hpp"

namespace rondo::detail {

class promise_base;
template <class Awaitable>
class elsewhere;

// What a continuation answers when the task below it was stopped.
class unwound {
  public:
    // Destroy this task's frame too and ask its continuation.
    static unwound further(promise_base& frame) noexcept { return {&frame, {}}; }
    // The unwinding ends here: run this.
    static unwound resume(std::coroutine_handle<> next) noexcept { return {nullptr, next}; }

    promise_base* frame() const noexcept { return frame_; }
    std::coroutine_handle<> next() const noexcept { return next_; }

  private:
    unwound(promise_base* frame, std::coroutine_handle<> next) noexcept
        : frame_(frame), next_(next) {}

    promise_base* frame_;
    std::coroutine_handle<> next_;
};

// Who gets a task's end. Lives in the awaiter, so in the frame of whoever awaits, or in a root.
class continuation {
  public:
    // The result is in place, the frame is at its final suspension: says what to run now.
    virtual std::coroutine_handle<> completed() noexcept = 0;
    // The frame was stopped and is already destroyed.
    virtual unwound stopped() noexcept = 0;
    // A wait that is all there is to the task has been decided: may it take its result? Else it
    // hands on what it was granted, and the task unwinds as if it had been stopped before.
    virtual bool may_complete() noexcept { return true; }
    // The task that awaits in the same flow, if there is one.
    virtual promise_base const* awaited_in() const noexcept { return nullptr; }

  protected:
    ~continuation() = default;
};

// Promises derived from this add no data: their address and alignment are this class's, which is
// what makes handle() right for all of them.
class promise_base {
  public:
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void operator delete(void* frame, std::size_t size) noexcept {
        deallocate_frame(frame, size);
    }

    std::suspend_always initial_suspend() const noexcept { return {}; }

    auto final_suspend() const noexcept {
        struct transfer {
            continuation* to;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept {
                return to->completed();
            }
            void await_resume() const noexcept {}
        };
        return transfer{continuation_};
    }

    // What knows tasks is told in which one it is awaited; everything else is awaited elsewhere.
    template <class Awaitable>
    auto await_transform(Awaitable&& awaitable,
                         std::source_location here = std::source_location::current()) {
        position_ = here;
        if constexpr (requires { std::forward<Awaitable>(awaitable).rondo_await(*this); }) {
            return std::forward<Awaitable>(awaitable).rondo_await(*this);
        } else {
            return elsewhere<Awaitable>{std::forward<Awaitable>(awaitable), *this};
        }
    }

    void attach(continuation& next, environment const& env) noexcept {
        continuation_ = &next;
        env_ = &env;
    }

    environment const& env() const noexcept { return *env_; }
    bool may_complete() noexcept { return continuation_->may_complete(); }

    // The co_await that the task has come to; before the first one, its definition.
    std::source_location position() const noexcept { return position_; }
    promise_base const* awaited_in() const noexcept {
        return continuation_ != nullptr ? continuation_->awaited_in() : nullptr;
    }

    std::coroutine_handle<> handle() noexcept {
        return std::coroutine_handle<promise_base>::from_promise(*this);
    }

    // Destroys this suspended frame and those above it, innermost first, until a continuation
    // takes over; returns what to run then. Iterative: chains of any length.
    std::coroutine_handle<> unwind() noexcept;

  protected:
    void defined_at(std::source_location definition) noexcept { position_ = definition; }

    continuation* continuation_ = nullptr;

  private:
    environment const* env_ = nullptr;
    std::source_location position_;
};

// The chain from a task that is awaited up to its flow's outermost one.
task_trace trace_from(promise_base const& innermost, task_trace::activity doing);
// Where a flow is that has begun with this task, if that still exists; else it has its origin.
task_trace trace_of(flow const& f, promise_base const* outermost, std::source_location origin);

}  // namespace rondo::detail
