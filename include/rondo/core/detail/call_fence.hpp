// call_fence.hpp: lets whoever removes an intrusive callback wait for a running call to end.
//
// The owner of a set of callbacks calls them one at a time outside its lock, between begin() and
// end(). Whoever takes a callback out asks ended() in a loop: it waits while another thread
// calls that very callback. A callback that removes itself does not wait.
//
// All members are called with the owner's lock held, but for notify(). After a call the fence is
// touched, the callback never: it may have ended its own life.
#pragma once

#include <cstdint>
#include <utility>

#include "rondo/core/detail/thread_state.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::detail {

class call_fence {
  public:
    void begin(void const* callback) noexcept {
        running_ = callback;
        caller_ = &this_thread();
    }

    // True: notify() must follow, once the lock is released.
    [[nodiscard("somebody may wait for notify()")]] bool end() noexcept {
        running_ = nullptr;
        if (!std::exchange(awaited_, false)) return false;
        ended_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    // At most one thread waits: a callback has one owner.
    void notify() noexcept { futex_wake(&ended_, 1); }

    // True: the callback is not running, or the calling thread runs it. False: it was running;
    // the lock was released for the wait and taken again, look anew.
    template <class Lock>
    [[nodiscard]] bool ended(void const* callback, Lock& lock) noexcept {
        if (running_ != callback || caller_ == &this_thread()) return true;
        awaited_ = true;
        std::uint32_t const seen = ended_.load(std::memory_order_relaxed);
        lock.unlock();
        // relaxed: the lock, taken again, orders what the callback did before our return
        while (ended_.load(std::memory_order_relaxed) == seen) futex_wait(ended_, seen);
        lock.lock();
        return false;
    }

  private:
    void const* running_ = nullptr;
    thread_state* caller_ = nullptr;
    bool awaited_ = false;
    atomic<std::uint32_t> ended_{0};  // counts the ends that somebody waited for
};

}  // namespace rondo::detail
