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
// Cancellation   a tick() that is stopped, or loses a when_any, has consumed nothing: the next
//                one waits for the same moment. With an explicit token it ends early with
//                wait_error::stopped.
// Thread safety  none; an interval belongs to one task.
// Lifetime       reset(), reset_immediately() and reset_after() ask the executor on which tick()
//                was awaited last for the time: it is still there then.
// Elsewhere      a foreign coroutine may await it too.
// Allocation     none; a frame if a foreign coroutine awaits it.
// Example        examples/sim/heartbeat.cpp
#pragma once

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <expected>
#include <type_traits>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/as_task.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"

namespace rondo {

enum class missed_ticks : std::uint8_t { burst, delay, skip };

class interval;

namespace detail {

template <class Op, class Bounds>
using task_wait_alone = task_wait<Op, Bounds, alone::yes>;

// Result is a time_point, or an expected one if a token may end the wait.
template <class Result, template <class, class> class Wait>
class tick_awaiter {
  public:
    tick_awaiter(interval& every, stop_token token, promise_base& task) noexcept;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> h) noexcept {
        return sleep_.await_suspend(h);
    }
    Result await_resume() noexcept;

  private:
    interval& every_;
    time_point due_;
    sleep_awaiter<Wait> sleep_;
};

template <class Result>
class [[nodiscard("a tick is waited for when it is awaited")]] next_tick {
  public:
    next_tick(interval& every, stop_token token) noexcept : every_(every), token_(token) {}

    tick_awaiter<Result, task_wait> rondo_await(promise_base& task) const noexcept {
        return {every_, token_, task};
    }
    // In a task that does nothing else: the tick is consumed only if the combinator still wants it.
    tick_awaiter<Result, task_wait_alone> rondo_await_alone(promise_base& task) const noexcept {
        return {every_, token_, task};
    }
    foreign_task_awaiter<Result> operator co_await() const {
        return as_task(next_tick{*this}).operator co_await();
    }

  private:
    interval& every_;
    stop_token token_;
};

}  // namespace detail

class interval {
  public:
    explicit interval(clock::duration period, missed_ticks missed = missed_ticks::burst) noexcept
        : interval(period, time_limit{clock::duration::zero()}, missed) {}
    interval(clock::duration period, time_point start,
             missed_ticks missed = missed_ticks::burst) noexcept
        : interval(period, time_limit{start}, missed) {}

    clock::duration period() const noexcept { return period_; }

    detail::next_tick<time_point> tick() noexcept { return {*this, {}}; }
    detail::next_tick<std::expected<time_point, wait_error>> tick(stop_token token) noexcept {
        return {*this, token};
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
    template <class Result, template <class, class> class Wait>
    friend class detail::tick_awaiter;

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
        // Unsigned: two moments may lie further apart than a duration can say.
        std::uint64_t const late = in_ns(now.time_since_epoch()) - in_ns(due.time_since_epoch());
        time_point rhythm = due;
        if (missed_ == missed_ticks::skip) {
            rhythm = now - clock::duration(static_cast<clock::rep>(late % in_ns(period_)));
        }
        if (missed_ == missed_ticks::delay &&
            late >= in_ns(std::min(period_, lateness_of_a_timer))) {
            rhythm = now;
        }
        next_ = time_limit{later(rhythm, period_)};
        return due;
    }

    static std::uint64_t in_ns(clock::duration d) noexcept {
        return static_cast<std::uint64_t>(d.count());
    }

    static constexpr clock::duration lateness_of_a_timer = std::chrono::milliseconds{5};

    clock::duration period_;
    time_limit next_;
    missed_ticks missed_;
    timer_service* timers_ = nullptr;
};

namespace detail {

template <class Result, template <class, class> class Wait>
tick_awaiter<Result, Wait>::tick_awaiter(interval& every, stop_token token,
                                         promise_base& task) noexcept
    : every_(every), due_(every.next_due(task.env())), sleep_(time_limit{due_}, token, task) {}

template <class Result, template <class, class> class Wait>
Result tick_awaiter<Result, Wait>::await_resume() noexcept {
    std::expected<void, wait_error> const slept = sleep_.await_resume();
    if constexpr (!std::is_same_v<Result, time_point>) {
        if (!slept) return std::unexpected{slept.error()};
    }
    return every_.came(due_);
}

}  // namespace detail

}  // namespace rondo
