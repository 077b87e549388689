// foreign.hpp: coroutine types that know nothing of rondo: they start at once and belong nowhere.
//
//   foreign         owns itself until it ends
//   owned_foreign   is destroyed by its owner, wherever it is then
//   fenced          an executor that takes jobs and never runs them
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "rondo/core/executor.hpp"
#include "rondo/core/timer_queue.hpp"

namespace rondo::test {

struct foreign {
    struct promise_type {
        foreign get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
};

class owned_foreign {
  public:
    struct promise_type {
        owned_foreign get_return_object() noexcept {
            return owned_foreign{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };

    owned_foreign(owned_foreign&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    owned_foreign& operator=(owned_foreign&&) = delete;
    ~owned_foreign() {
        if (frame_) frame_.destroy();
    }
    bool ended() const noexcept { return frame_.done(); }

  private:
    explicit owned_foreign(std::coroutine_handle<> frame) noexcept : frame_(frame) {}

    std::coroutine_handle<> frame_;
};

class fenced final : public executor {
  public:
    void post(job&) noexcept override {}
    timer_service& timers() noexcept override { return default_timers(); }
};

}  // namespace rondo::test
