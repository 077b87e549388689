// Invariants
//   I1  whoever makes the queue non-empty un-parks the loop, unless it is a job of the loop itself;
//       the loop looks at the queue before and after each park. So a job never waits in the queue
//       of a sleeping loop.
//   I2  the loop is un-parked under the lock. The job may be the one that ends the loop's life:
//       once the lock is released nothing of the loop is touched.
#include "rondo/core/run_loop.hpp"

#include <mutex>
#include <utility>

namespace rondo {

run_loop::run_loop() : timers_(std::chrono::milliseconds{1}, clock::now()) {}

run_loop::~run_loop() {
    tasks_.stop_all();
    while (!tasks_.empty() || !idle()) {
        run_batch();
        fire_timers();
        if (idle() && !tasks_.empty()) rest();
    }
}

void run_loop::post(job& j) noexcept {
    std::lock_guard const guard{lock_};
    bool const was_empty = posted_.empty();
    posted_.push(j);
    if (was_empty && executor::current() != this) parker_.unpark();  // I1, I2
}

time_point run_loop::now() const noexcept { return clock::now(); }

void run_loop::add(timer& t, time_point deadline) noexcept {
    if (timers_.add(t, deadline) && executor::current() != this) parker_.unpark();
}

bool run_loop::cancel(timer& t) noexcept { return timers_.cancel(t); }

// Runs what is in the queue now. Jobs posted meanwhile come in the next batch, after the timers.
std::size_t run_loop::run_batch() noexcept {
    job_queue batch;
    {
        std::lock_guard const guard{lock_};
        batch = std::exchange(posted_, {});
    }
    executor::scope const here{this};
    std::size_t ran = 0;
    for (; job* const j = batch.pop(); ++ran) j->run(*j);
    return ran;
}

// Reading the clock costs more than a turn: it is left alone while there is no timer.
std::size_t run_loop::fire_timers() noexcept {
    return timers_.empty() ? 0 : timers_.fire_due(now());
}

std::size_t run_loop::run_ready() noexcept {
    std::size_t ran = 0;
    for (;;) {
        std::size_t const now_ran = run_batch() + fire_timers();
        if (now_ran == 0) return ran;
        ran += now_ran;
    }
}

bool run_loop::idle() noexcept {
    std::lock_guard const guard{lock_};
    return posted_.empty();
}

// Until a job is posted or a timer is due.
void run_loop::rest() noexcept {
    (void)parker_.park_until(timers_.next().value_or(time_point::max()));
}

void run_loop::run() noexcept {
    for (bool last = false;;) {
        run_batch();
        fire_timers();
        if (last) return;
        {
            std::lock_guard const guard{lock_};
            // What was posted before finish() is in the queue now: one more batch, and no more, as
            // a task that is always ready would keep the queue from ever being empty.
            last = std::exchange(finishing_, false);
            if (last || !posted_.empty()) continue;
        }
        rest();
    }
}

void run_loop::finish() noexcept {
    std::lock_guard const guard{lock_};
    finishing_ = true;
    parker_.unpark();  // I2
}

}  // namespace rondo
