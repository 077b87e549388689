// run_loop.hpp: the smallest executor: one thread that runs what is posted, with real timers.
//
// Guarantee      jobs run in the order they were posted, in the thread that runs the loop.
// Thread safety  post(), add(), cancel(), finish() from any thread; run() and run_ready() from
//                one thread at a time.
// Tasks          that are alive when the loop is destroyed are stopped, and run until they have
//                ended: a shielded one is waited for.
// Destruction    by the thread that ran it, as soon as run() has returned; a thread whose post()
//                led to that may still be returning from it.
// Cost           a job that posts takes no lock, nor does a timer that fires.
// Idle           the thread sleeps until a job is posted or a timer is due; no polling.
// Resolution     timers are rounded up to 1 ms.
// Use            block_on(), examples, tests that step by hand (run_ready), a program that needs
//                one thread only. Many threads: the runtime in exec.
#pragma once

#include <cstddef>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/task_trace.hpp"
#include "rondo/core/timer_queue.hpp"

namespace rondo {

class run_loop final : public executor, timer_service {
  public:
    run_loop();
    ~run_loop();
    run_loop(run_loop const&) = delete;
    run_loop& operator=(run_loop const&) = delete;

    void post(job& j) noexcept override;
    void wake(job& j) noexcept override { post(j); }
    timer_service& timers() noexcept override { return *this; }

    // Runs jobs and timers until finish() is called. Can be called again after that.
    void run() noexcept;
    // Makes run() return once it has run what was posted before; what that posts stays for the
    // next run() or run_ready().
    void finish() noexcept;
    // Runs what is posted and due now, and what that posts, without waiting; returns how many.
    std::size_t run_ready() noexcept;

    // Where each task is that was spawned here or is blocked on. By the thread that runs the loop,
    // inside or between its runs.
    std::vector<task_trace> dump() const { return tasks_.traces(); }

  private:
    time_point now() const noexcept override;
    void add(timer& t, time_point deadline) noexcept override;
    bool cancel(timer& t) noexcept override;

    void knock() noexcept;
    void take_over() noexcept;
    std::size_t run_batch() noexcept;
    std::size_t fire_timers() noexcept;
    bool idle() noexcept;
    void rest() noexcept;
    bool deserted() noexcept;
    void began(live_task& t) noexcept override { tasks_.add(t); }
    void ended(live_task& t) noexcept override { live_tasks::remove(t); }
    bool begin_visit() noexcept override;
    void end_visit() noexcept override;

    job_queue own_;            // what runs next; the running thread's alone
    bool last_batch_ = false;  // as above: finish() was called

    short_lock lock_;
    job_queue posted_;             // by others; under the lock
    bool finishing_ = false;       // under the lock
    std::size_t visitors_ = 0;     // under the lock: tasks that are ending in other threads
    atomic<bool> outside_{false};  // whether something was left; changes under the lock

    parker parker_;
    timer_queue timers_;
    live_tasks tasks_;
};

}  // namespace rondo
