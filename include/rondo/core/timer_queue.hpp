// timer_queue.hpp: a timer_wheel that several threads may use and one thread drives.
//
// It keeps timer_service's promises about add() and cancel() (see executor.hpp); run_loop, the
// default timers, the runtime's workers and the simulator each own one and bring the clock.
//
// Thread safety  every member from any thread; fire_due() from one at a time.
// Resolution     the wheel's tick; a timer fires at the first fire_due() after its deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "rondo/core/detail/call_fence.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/timer_wheel.hpp"

namespace rondo {

class timer_queue {
  public:
    timer_queue(std::chrono::nanoseconds tick, time_point start) : wheel_(tick, start) {}

    // True when the driver has to look earlier than it meant to.
    bool add(timer& t, time_point deadline) noexcept;
    bool cancel(timer& t) noexcept;

    // Calls what is due, without the lock; returns how many.
    std::size_t fire_due(time_point now) noexcept;

    // Whether there is no timer; a hint while others add and cancel.
    bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

    // The same, but no hint: an add() that it does not see sees what happened before it.
    bool none() noexcept;

    // When fire_due() should be called next; nothing if there is no timer.
    std::optional<time_point> next() noexcept;

  private:
    short_lock lock_;
    timer_wheel wheel_;
    detail::call_fence fence_;
    atomic<std::size_t> size_{0};  // of the wheel, for empty()
    // What the driver was told last: an add() before it must wake the driver.
    time_point promised_ = time_point::max();
};

// For coroutines that wait with a deadline and have no environment: one thread, started by the
// first use and joined at exit: no wait with a deadline may outlive main(). Resolution 1 ms.
timer_service& default_timers();

}  // namespace rondo
