// Algorithm
//   What the loop's own jobs and timers post goes to own_, which needs no lock: most of what a loop
//   runs was posted by what it ran before. What others leave, jobs or the wish to finish, is under
//   the lock, and outside_ says that there is something. The loop takes it over before each batch
//   and before each post of its own, so that everything runs in the order in which it was posted:
//   one of its own after those that others had posted before it, and before those that came later.
//
// Invariants
//   I1  whoever sets outside_ un-parks the loop; the loop looks at it before and after each park.
//       So a job never waits in the queue of a sleeping loop.
//   I2  the loop is un-parked under the lock. The job, or the timer, may be the one that ends the
//       loop's life: once the lock is released nothing of the loop is touched. The loop knows of
//       the job, or of the wish to finish, only by taking it over, under the lock, which it also
//       takes before it goes.
//   I3  while the lock is free: outside_ is set if something was left: a job, the wish to finish,
//       or the place of a visitor. Taking over clears it.
//   I4  a task that ends in another thread is a visitor before it leaves tasks_, and un-parks the
//       loop when it goes. So if there is neither a task nor, under the lock, a visitor, nobody is
//       left who could come: a visit needs a task, and a task that a visitor spawns is there
//       before the visitor is gone.
//
// Memory order
//   outside_ is relaxed: what was left before a post of the loop's own, or before the un-park that
//   ended a park, happens before the loop's look at it. The rest is the lock's.
#include "rondo/core/run_loop.hpp"

#include <mutex>
#include <utility>

namespace rondo {

run_loop::run_loop() : timers_(std::chrono::milliseconds{1}, clock::now()) {}

run_loop::~run_loop() {
    executor::scope const here{this};
    tasks_.stop_all();
    for (;;) {
        run_batch();
        fire_timers();
        if (!idle()) continue;
        if (deserted()) return;
        rest();  // not if something was left since
    }
}

void run_loop::post(job& j) noexcept {
    if (executor::current() == this) {
        take_over();
        own_.push(j);
        return;
    }
    std::lock_guard const guard{lock_};
    posted_.push(j);
    knock();
}

// Under the lock, when something was left for the loop.
void run_loop::knock() noexcept {
    if (outside_.load(std::memory_order_relaxed)) return;
    outside_.store(true, std::memory_order_relaxed);
    parker_.unpark();  // I1, I2
}

void run_loop::take_over() noexcept {
    if (!outside_.load(std::memory_order_relaxed)) return;
    std::lock_guard const guard{lock_};
    own_.append(std::exchange(posted_, {}));
    if (std::exchange(finishing_, false)) last_batch_ = true;
    outside_.store(false, std::memory_order_relaxed);  // I3
}

time_point run_loop::now() const noexcept { return clock::now(); }

void run_loop::add(timer& t, time_point deadline) noexcept {
    if (executor::current() == this) {
        (void)timers_.add(t, deadline);
        return;
    }
    std::lock_guard const guard{lock_};  // I2: the timer may be all that keeps the loop
    if (timers_.add(t, deadline)) parker_.unpark();
}

bool run_loop::cancel(timer& t) noexcept { return timers_.cancel(t); }

// Runs what is in the queue now. Jobs posted meanwhile come in the next batch, after the timers.
std::size_t run_loop::run_batch() noexcept {
    take_over();
    job_queue batch = std::exchange(own_, {});
    if (batch.empty()) return 0;
    std::size_t ran = 0;
    for (; job* const j = batch.pop(); ++ran) j->run(*j);
    return ran;
}

// Reading the clock costs more than a turn: it is left alone while there is no timer.
std::size_t run_loop::fire_timers() noexcept {
    return timers_.empty() ? 0 : timers_.fire_due(now());
}

std::size_t run_loop::run_ready() noexcept {
    executor::scope const here{this};
    std::size_t ran = 0;
    for (;;) {
        std::size_t const now_ran = run_batch() + fire_timers();
        if (now_ran == 0) return ran;
        ran += now_ran;
    }
}

bool run_loop::idle() noexcept {
    take_over();
    return own_.empty();
}

// Until a job is posted or a timer is due.
void run_loop::rest() noexcept {
    (void)parker_.park_until(timers_.next().value_or(time_point::max()));
}

void run_loop::run() noexcept {
    executor::scope const here{this};
    for (bool last = false;;) {
        run_batch();
        fire_timers();
        if (last) return;
        bool const nothing = idle();
        // What was posted before finish() is in the queue now: one more batch, and no more, as a
        // task that is always ready would keep the queue from ever being empty.
        last = std::exchange(last_batch_, false);
        if (nothing && !last) rest();
    }
}

void run_loop::finish() noexcept {
    std::lock_guard const guard{lock_};
    finishing_ = true;
    knock();
}

bool run_loop::begin_visit() noexcept {
    std::lock_guard const guard{lock_};
    ++visitors_;
    return true;
}

void run_loop::end_visit() noexcept {
    std::lock_guard const guard{lock_};
    --visitors_;
    knock();  // I4
}

// I4
bool run_loop::deserted() noexcept {
    std::lock_guard const guard{lock_};
    return visitors_ == 0 && posted_.empty() && tasks_.empty();
}

}  // namespace rondo
