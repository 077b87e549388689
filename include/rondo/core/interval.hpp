// interval.hpp: a moment that comes again and again.
//
//   interval every{10s};
//   for (;;) {
//       co_await every.tick();        // the first one comes at once
//       co_await report();
//   }
//
// Guarantee      ticks are due at start, start + period, start + 2 * period, ...: what passes
//                between a tick and the next tick() does not add up. tick() gives the moment at
//                which the tick was due. Without a start the first one is due when it is awaited.
// Missed ticks   if tick() is awaited when one or more are due already (report() took long), then
//                  burst   all of them come, at once after each other
//                  skip    one comes; the next comes at the next moment of the old rhythm
//                  delay   one comes; the next comes a period later, and the others from there:
//                          no two are closer than a period, but for the 5 ms by which a timer may
//                          be late without a new rhythm
// Clock          the timers of whoever awaits tick(), virtual in the simulator.
// Cancellation   a tick() that is stopped has consumed nothing: the next tick() waits for the same
//                moment. With an explicit token it ends early with wait_error::stopped.
// Thread safety  none; an interval belongs to one task.
// Allocation     a frame for each tick(), recycled.
// Example        examples/sim/heartbeat.cpp
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>

#include "rondo/core/assert.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"

namespace rondo {

enum class missed_ticks : std::uint8_t { burst, delay, skip };

class interval {
  public:
    explicit interval(clock::duration period, missed_ticks missed = missed_ticks::burst) noexcept
        : interval(period, time_limit{clock::duration::zero()}, missed) {}
    interval(clock::duration period, time_point start,
             missed_ticks missed = missed_ticks::burst) noexcept
        : interval(period, time_limit{start}, missed) {}

    clock::duration period() const noexcept { return period_; }

    task<time_point> tick() {
        time_point const due = next_due(co_await this_environment());
        co_await sleep_until(due);
        co_return came(due);
    }
    task<std::expected<time_point, wait_error>> tick(stop_token token) {
        time_point const due = next_due(co_await this_environment());
        std::expected<void, wait_error> const slept = co_await sleep_until(due, token);
        if (!slept) co_return std::unexpected{slept.error()};
        co_return came(due);
    }

    // The next tick is due a period from now, at once, at a moment, after a while; the later ones
    // follow it. Before the first tick(), which is where it learns what time it is, "from now"
    // counts from that.
    void reset() noexcept { reset_after(period_); }
    void reset_immediately() noexcept { reset_after(clock::duration::zero()); }
    void reset_at(time_point moment) noexcept { next_ = time_limit{moment}; }
    void reset_after(clock::duration delay) noexcept {
        next_ = timers_ != nullptr ? time_limit{later(timers_->now(), delay)} : time_limit{delay};
    }

  private:
    interval(clock::duration period, time_limit start, missed_ticks missed) noexcept
        : period_(period), next_(start), missed_(missed) {
        RONDO_ASSERT(period > clock::duration::zero(), "an interval has a period");
    }

    time_point next_due(environment const& env) noexcept {
        timers_ = &env.timers();
        time_point const due = next_.seen_from(timers_->now());
        next_ = time_limit{due};
        return due;
    }

    // The tick of that moment has come: when is the next one due?
    time_point came(time_point due) noexcept {
        time_point const now = timers_->now();
        clock::duration const late = now - due;
        time_point rhythm = due;
        if (missed_ == missed_ticks::skip) rhythm += late / period_ * period_;
        if (missed_ == missed_ticks::delay && late >= std::min(period_, lateness_of_a_timer)) {
            rhythm = now;
        }
        next_ = time_limit{later(rhythm, period_)};
        return due;
    }

    static constexpr clock::duration lateness_of_a_timer = std::chrono::milliseconds{5};

    clock::duration period_;
    time_limit next_;
    missed_ticks missed_;
    timer_service* timers_ = nullptr;
};

}  // namespace rondo
