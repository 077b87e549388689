// executor.hpp: where things run, and when: job, executor, timer_service.
//
// A job is an intrusive unit of work: whoever posts it keeps it alive until it has run. Posting
// allocates nothing and cannot fail, which is what lets a waker be noexcept everywhere.
//
// Contract of an executor (runtime workers, run_loop, the simulator, a user's own)
//   post()    runs the job exactly once, later, never inside post(); any thread may call it.
//   wake(),   the same, and say why: the job has what it waited for; it is the one that runs, and
//   give_way()  steps back, or was joining a handle. An executor may use that to choose the order;
//             most do not.
//   running   while it runs a job the executor is current: see executor::scope.
//   timers()  the clock and timers that belong to this place; always the same service.
//   An executor outlives what was posted to it and the waits of its tasks.
//
// Contract of a timer_service
//   add()     calls timer.fire(timer) once at or after the deadline, by timer_service::now().
//             The timer is free again (may be added or destroyed) once fire has returned.
//   cancel()  true: it will not fire. False: it has fired or was never added. In both cases fire
//             is not running in another thread when cancel() returns. Must not be called while
//             holding a lock that a fire function takes.
#pragma once

#include <exception>

#include "rondo/core/policy.hpp"
#include "rondo/core/timer_wheel.hpp"

namespace rondo {

namespace detail {
class flow;
struct thread_state;
}  // namespace detail

struct job {
    using function = void (*)(job&) noexcept;

    explicit job(function f) noexcept : run(f) {}
    job(job const&) = delete;
    job& operator=(job const&) = delete;

    function run;
    cell<job*> next{nullptr};  // belongs to the executor from post() until run
};

// Intrusive FIFO of jobs; its owner synchronises. (Not a linked_list: a job leaves at the front,
// and a second link would be a word more in every frame.)
class job_queue {
  public:
    bool empty() const noexcept { return head_ == nullptr; }

    void push(job& j) noexcept {
        j.next = nullptr;
        if (head_ == nullptr) {
            head_ = &j;
        } else {
            tail_->next = &j;
        }
        tail_ = &j;
    }

    // All of another queue, in its order.
    void append(job_queue const& others) noexcept {
        if (others.empty()) return;
        if (head_ == nullptr) {
            head_ = others.head_;
        } else {
            tail_->next = others.head_;
        }
        tail_ = others.tail_;
    }

    job* pop() noexcept {
        job* const first = head_;
        if (first != nullptr) head_ = first->next;
        return first;
    }

  private:
    job* head_ = nullptr;
    job* tail_ = nullptr;  // meaningless while the queue is empty
};

struct timer : timer_node {
    using function = void (*)(timer&) noexcept;

    explicit timer(function f) noexcept : fire(f) {}

    function fire;
};

// As far ahead as time goes.
inline time_point later(time_point now, clock::duration delay) noexcept {
    if (delay <= clock::duration::zero()) return now;
    return now < time_point::max() - delay ? now + delay : time_point::max();
}

class timer_service {
  public:
    virtual time_point now() const noexcept = 0;
    virtual void add(timer& t, time_point deadline) noexcept = 0;
    virtual bool cancel(timer& t) noexcept = 0;

  protected:
    ~timer_service() = default;
};

class live_task;

class executor {
  public:
    virtual void post(job& j) noexcept = 0;
    virtual void wake(job& j) noexcept { post(j); }
    virtual void give_way(job& j) noexcept { post(j); }
    virtual timer_service& timers() noexcept = 0;
    // An exception left a task that nobody will join. Prints it to stderr unless overridden.
    virtual void unobserved(std::exception_ptr exception) noexcept;
    // spawn() says which tasks run here: before the first turn, and after the last, when the frame
    // is gone and nobody has been told yet.
    virtual void began(live_task&) noexcept {}
    virtual void ended(live_task&) noexcept {}
    // A task may end in a thread that is not this executor's: something foreign that it awaited
    // resumed it there. It uses the executor between these two, ended() and unobserved() among it.
    // One that may go when its tasks have ended says true, and waits for the ends of the visits
    // too; another is not told of them: it may be gone.
    virtual bool begin_visit() noexcept { return false; }
    virtual void end_visit() noexcept {}
    // Something foreign is about to go on with a task, past its executor, in the calling thread. An
    // executor that reads where its tasks are, while its own threads rest, keeps it from that
    // meanwhile, and marks the task (detail/elsewhere.hpp).
    virtual void resumed_past_it(detail::flow&) noexcept {}

    // The executor whose job the calling thread is running, or null.
    static executor* current() noexcept;

    // Makes an executor current in this thread; nests.
    class [[nodiscard("it acts until the end of its scope")]] scope {
      public:
        explicit scope(executor* e) noexcept;
        ~scope();
        scope(scope const&) = delete;
        scope& operator=(scope const&) = delete;

      private:
        detail::thread_state& thread_;
        executor* outer_;
    };

  protected:
    ~executor() = default;
};

}  // namespace rondo
