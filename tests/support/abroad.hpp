// abroad.hpp: an awaitable that knows nothing of tasks: who awaits it goes on in the thread that
// resumes it, which need not be of its executor.
#pragma once

#include <atomic>
#include <coroutine>

namespace rondo::test {

class abroad {
  public:
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept {
        traveller_.store(h.address(), std::memory_order_release);
        traveller_.notify_one();
    }
    void await_resume() const noexcept {}

    // Waits until somebody is there to go on.
    void arrival() const { traveller_.wait(nullptr, std::memory_order_acquire); }
    void resume() {
        arrival();
        std::coroutine_handle<>::from_address(traveller_.load(std::memory_order_acquire)).resume();
    }

  private:
    std::atomic<void*> traveller_{nullptr};
};

}  // namespace rondo::test
