// runtime.hpp: tasks on work-stealing workers that sleep in their own io_context.
//
//   rondo::runtime rt;                                  // a worker for each processor
//   auto sum = rt.spawn(add_up(numbers));               // may run on any worker
//   int const total = rt.block_on(report(std::move(sum)));
//
// Tasks          spawn() makes a task that any worker may run: it moves when its worker is busy and
//                another one is not. spawn_pinned() makes one that stays with a worker, with what
//                it shares with other tasks there; connections do. Both return a join_handle
//                (core/spawn.hpp). An exception that nobody joins goes to `on_unobserved`. With
//                one worker both run in the same place: executor::current() is anywhere().
// Turns          a task runs until it waits, and gives way when its turn's budget is used up
//                (core/wait.hpp); a worker looks at I/O, timers and what comes from outside once in
//                64 turns at least. What a task wakes runs on the same worker as soon as the turn
//                ends, three times in a row at most, then it queues; so it does if a pinned task or
//                one from outside comes first; who joins its handle queues at once, since it may
//                have others to join. A turn that does not end keeps what is pinned to that worker,
//                its I/O, the task it woke last, and one that was joining.
//                So does a handler of Asio that is not a task's. It runs in the sleep of its
//                worker: up to 16 tasks that come from outside meanwhile may wait for it, and all
//                timers of the runtime do if that worker was to wake up for the next one. It should
//                be brief, and leave what lasts to a task.
// I/O            each worker runs an io_context, which context() gives: objects made with it belong
//                to that worker. Their operations are awaited with rondo/asio/use_task.hpp.
// Timers         sleeps and deadlines: one queue for all workers, rounded up to 1 ms;
//                adding and cancelling one costs some 80 ns, whatever their number.
// No workers     with `workers = 0` nothing runs by itself: block_on() runs everything in the
//                thread that calls it, one thread at a time, and what has not ended by then goes
//                on in the next block_on(). shutdown() and the destructor run it too; they let a
//                block_on() through that comes meanwhile, such as one of a blocking function.
// Idle           workers look around for some microseconds, then sleep; an idle runtime uses no
//                CPU. A spawn wakes one worker at most, and none when one is looking around.
// Shutdown       shutdown() asks all tasks to stop and waits, up to a limit, for them to unwind.
//                The destructor does the same without a limit; functions of spawn_blocking() that
//                have not begun by then are dropped, the others waited for. abandon() waits for
//                nothing. The runtime outlives its tasks' join handles; blocking results may
//                outlive it.
// Thread safety  every member may be called concurrently, but for the destructor; block_on(),
//                shutdown() and abandon() by plain threads only.
// Memory         one block for a task's root beside its frame, both recycled; nothing for a wait,
//                a wake-up or a timer.
// Example        examples/exec/first_runtime.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task_trace.hpp"
#include "rondo/exec/detail/awaited_root.hpp"
#include "rondo/exec/processors.hpp"
#include "rondo/exec/thread_pool.hpp"

namespace boost::asio {
class io_context;
}

namespace rondo {

class runtime {
  public:
    // A task, or what runs as one, that has not given its worker back for long.
    struct overdue {
        std::size_t worker;
        std::chrono::milliseconds held;  // so far
        std::string task;                // the coroutine it began with; empty if it is not known
    };
    struct options {
        std::size_t workers = processors();  // 0: block_on() lends its thread
        std::string name = "rondo";          // threads are called rondo-0, rondo-1, ...
        std::size_t blocking_threads = 64;   // for spawn_blocking(), started by its first use
        std::size_t blocking_capacity = 65536;
        // Gets what tasks throw that nobody joins, in the thread where they end, several at a time
        // maybe; and what is left in the result of a blocking function, maybe after the runtime.
        // Must not end the runtime. By default it is printed to stderr.
        std::function<void(std::exception_ptr)> on_unobserved = {};
        // A turn longer than this is reported, once, by a thread of its own. Zero: nobody looks.
        // Handlers of Asio are not turns, and are not reported.
        std::chrono::milliseconds watchdog{0};
        // Called by that thread; must not end the runtime. By default it is printed to stderr.
        std::function<void(overdue const&)> on_overdue = {};
    };
    struct worker_metrics {
        std::uint64_t turns;   // times that a task ran until it waited
        std::uint64_t steals;  // times that it took tasks from another worker
        std::uint64_t parks;   // times that it went to sleep
        std::size_t depth;     // tasks that wait for a turn there now, but for one that goes next
    };
    struct metrics {
        std::size_t tasks;    // alive
        std::size_t outside;  // ready, and in no worker's queue yet
        std::vector<worker_metrics> workers;
    };
    struct still_alive {
        std::size_t tasks;
        std::vector<std::string> origins;  // the coroutines they began with
    };
    struct snapshot {
        bool complete;  // false: a turn would not end; only origins are known then
        std::vector<task_trace> tasks;
    };

    explicit runtime(options const& o);
    runtime() : runtime(options{}) {}
    ~runtime();
    runtime(runtime const&) = delete;
    runtime& operator=(runtime const&) = delete;

    // The place of tasks that may run on any worker, and of those pinned to one.
    executor& anywhere() noexcept;
    executor& worker(std::size_t index) noexcept;
    // With `workers = 0` there is one, without a thread of its own.
    std::size_t workers() const noexcept;

    template <class T>
    join_handle<T> spawn(task<T> t, stop_token parent = {}) {
        return rondo::spawn(anywhere(), std::move(t), parent);
    }
    // On the worker that calls it; from another thread, on one after the other.
    template <class T>
    join_handle<T> spawn_pinned(task<T> t, stop_token parent = {}) {
        return rondo::spawn(worker(here_or_next()), std::move(t), parent);
    }
    template <class T>
    join_handle<T> spawn_pinned_to(std::size_t index, task<T> t, stop_token parent = {}) {
        return rondo::spawn(worker(index), std::move(t), parent);
    }
    // A function that blocks, on a thread that may; co_await its get(). Refused, as the result
    // says, when `blocking_capacity` of them wait. The first one starts the threads for all, and
    // throws std::system_error if the system has none.
    template <class F>
    auto spawn_blocking(F&& f) {
        return blocking().submit(std::forward<F>(f));
    }

    // Runs a task from a plain thread and returns what it returns, or throws what it throws. It has
    // no stop token, and shutdown() leaves it alone: there would be nothing to return.
    template <class T>
    T block_on(task<T> t) {
        detail::awaited_root<T> root{anywhere(), lent_driver(), std::move(t)};
        await(root, root.begin());
        return root.take();
    }

    // The io_context of a worker; of the one that calls it.
    boost::asio::io_context& context(std::size_t worker) noexcept;
    boost::asio::io_context& context() noexcept;

    // Asks every task to stop, and each that is spawned from now on, and waits until all have
    // ended or the limit is over. What is still alive then goes on unwinding.
    still_alive shutdown(std::chrono::milliseconds limit);
    // For a process that is about to end: workers take no further turn, no blocking function
    // begins, and neither this nor the destructor waits for any. What has not ended never goes on;
    // its memory, and the runtime's, stay where they are. A turn or function that runs may outlast
    // the runtime object: it must not use it, and on_unobserved gets what it throws all the same.
    // on_overdue is not called any more then.
    void abandon() noexcept;

    metrics measure() const;
    // Where each task is. Workers pause between two turns until all are noted, the longer the more
    // there are; one whose turn does not end is waited for a tenth of a second at most. Something
    // foreign that resumes a task in a thread of its own waits. See task_trace.hpp.
    snapshot dump();

  private:
    struct state;

    thread_pool& blocking();
    detail::driver* lent_driver() noexcept;
    static void leave_behind(std::unique_ptr<state> left);
    std::size_t here_or_next() noexcept;
    void await(live_task& root, detail::finish_line& end) noexcept;

    std::unique_ptr<state> state_;
};

}  // namespace rondo
