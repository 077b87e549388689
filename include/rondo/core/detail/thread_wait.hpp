// thread_wait.hpp: a wait of a plain thread, which sleeps.
#pragma once

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/wait_bounds.hpp"
#include "rondo/core/parker.hpp"

namespace rondo::detail {

template <class Op, class Bounds>
class thread_wait {
  public:
    thread_wait(Op& op, Bounds const& bounds) noexcept : op_(op), bounds_(bounds) {}

    auto get() {
        RONDO_ASSERT(executor::current() == nullptr,
                     "blocking operations are for plain threads, not for an executor's");
        if (!op_.ready()) sleep();
        return result_of<Bounds>(op_);
    }

  private:
    void sleep() noexcept {
        op_.wake_with({[](void* p) noexcept { static_cast<parker*>(p)->unpark(); }, &parker_});
        if constexpr (std::is_same_v<Bounds, no_bounds>) {
            if (!op_.enter()) parker_.park();
        } else {
            stop_withdrawal<waiter> stop{op_, wait_state::interrupted};
            stop.arm(bounds_.token);
            time_point const deadline = until();
            if (!op_.enter() && !parker_.park_until(deadline)) {
                // Whoever was faster than withdraw(), or withdraw() itself, un-parks us.
                op_.withdraw(wait_state::timed_out);
                parker_.park();
            }
            stop.disarm();
        }
    }

    time_point until() const noexcept {
        if (bounds_.limit.unlimited()) return time_point::max();
        return bounds_.limit.seen_from(clock::now());
    }

    Op& op_;
    Bounds bounds_;
    parker parker_;
};

}  // namespace rondo::detail
