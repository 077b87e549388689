// shield.hpp: a piece of a task that no stop interrupts.
//
//   co_await shield(commit(transaction));
//
// Guarantee      the shielded task sees no stop token and runs to its end. A stop that was asked
//                for meanwhile takes effect at the next wait after it.
// Use            for a clean-up that must not be cut in half; keep it short, and bound it with
//                with_timeout inside: a shutdown waits for it.
#pragma once

#include <utility>

#include "rondo/core/detail/as_task.hpp"

namespace rondo {

namespace detail {

template <class T>
class shield_awaiter final : result_slot<T> {
  public:
    shield_awaiter(promise_base& parent, task<T>&& child) noexcept
        : parent_(parent), env_(parent.env()), child_(std::move(child)) {
        env_.stop = stop_token{};
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return child_.start(*this, env_);
    }
    T await_resume() { return this->take(); }

  private:
    std::coroutine_handle<> completed() noexcept override { return parent_.handle(); }
    unwound stopped() noexcept override {
        RONDO_ASSERT(false, "a shielded task cannot be stopped");
        return unwound::resume(parent_.handle());
    }
    promise_base const* awaited_in() const noexcept override { return &parent_; }

    promise_base& parent_;
    environment env_;
    task<T> child_;
};

template <class T>
class shielding {
  public:
    explicit shielding(task<T>&& child) noexcept : child_(std::move(child)) {}
    shield_awaiter<T> rondo_await(promise_base& parent) && noexcept {
        return {parent, std::move(child_)};
    }

  private:
    task<T> child_;
};

template <class T>
task<T> shielded(task<T> child) {
    shielding<T> s{std::move(child)};
    co_return co_await std::move(s);
}

}  // namespace detail

template <class Awaitable>
auto shield(Awaitable awaitable) {
    return detail::shielded(detail::as_task(std::move(awaitable)));
}

}  // namespace rondo
