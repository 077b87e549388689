// live_tasks.hpp: the tasks that run on an executor, for whoever wants to count or stop them all.
//
// spawn() tells the executor of each task that begins and ends (executor::began, ended). Most
// executors need not know; one that reports what is alive, or stops it before it goes, keeps them
// in such a list.
//
// Guarantee      stop_all() asks every task in the list once, and from then on each one that is
//                added, so that what a stopped task starts in its last moments is stopped too.
// Abandoning     is for an executor that stands for a machine which loses its power: no code of a
//                task runs any more but for the destructors of what its frames hold, the newest
//                task first. The executor is fenced before: it runs no job and fires no timer of
//                theirs, and takes those that were posted away.
// Traces         origin() may be read whenever the task is in the list; trace() only while the task
//                does not run, see task_trace.hpp; abroad() while nobody can resume it.
// Thread safety  every member may be called concurrently. Tasks are asked with no lock held: the
//                hooks that this calls may spawn, or end tasks.
// Allocation     none; the links are in the task's root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <vector>

#include "rondo/core/linked_list.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/task_trace.hpp"

namespace rondo {

class live_tasks;
struct job;

class live_task : list_hook<live_task> {
  public:
    explicit live_task(std::source_location origin) noexcept : origin_(origin) {}
    live_task(live_task const&) = delete;
    live_task& operator=(live_task const&) = delete;

    // Returns before the task has ended: it unwinds on its executor.
    virtual void request_stop() noexcept = 0;
    // Destroys the frames of a task where they are suspended, and ends it as if it were stopped;
    // see live_tasks::abandon_all(). Recursive: under 400 bytes of stack for each level of await.
    virtual void abandon() noexcept;
    // Between the two the object stays, though the task may have ended.
    virtual void hold() noexcept = 0;
    virtual void let_go() noexcept = 0;

    // Where the coroutine is defined that was spawned.
    std::source_location origin() const noexcept { return origin_; }
    // Whether the job is a turn of this task's own flow (not of a branch of it).
    virtual bool is(job const*) const noexcept { return false; }
    // Whether it went on in a thread of something foreign and has had no turn since.
    virtual bool abroad() const noexcept { return false; }
    // Where the task is now.
    virtual task_trace trace() const = 0;

  protected:
    ~live_task() = default;

  private:
    friend class live_tasks;
    friend linked_list<live_task>;

    std::source_location const origin_;
    live_tasks* list_ = nullptr;
};

class live_tasks {
  public:
    live_tasks() = default;
    live_tasks(live_tasks const&) = delete;
    live_tasks& operator=(live_tasks const&) = delete;

    std::size_t size() const noexcept;
    // How many were ever added, and how many of them removed. Of several lists whose tasks add
    // tasks to each other nobody is left if as many had been removed as were added later on.
    struct history {
        std::uint64_t added;
        std::uint64_t removed;
    };
    history so_far() const noexcept;
    bool empty() const noexcept { return size() == 0; }

    // A task is in one list at a time.
    void add(live_task& t) noexcept;
    // Takes the task out of the list that it is in, whichever that is.
    static void remove(live_task& t) noexcept;
    void stop_all() noexcept;
    // Ends them all; what their destructors add, too. By the thread that runs them, between turns.
    void abandon_all() noexcept;

    // Calls the function with each task, the newest first, under the lock: it must be brief, and
    // must not spawn, end or stop a task.
    template <class Function>
    void for_each(Function f) const {
        std::lock_guard const guard{lock_};
        for (task_list const* list : {&asked_, &unasked_}) {
            for (live_task const* t = list->front(); t != nullptr; t = list->after(*t)) f(*t);
        }
    }
    // Where each of them is, while none of them runs.
    std::vector<task_trace> traces() const;

  private:
    using task_list = linked_list<live_task>;  // the newest first

    live_task* next_to_ask() noexcept;
    live_task* newest() noexcept;

    mutable short_lock lock_;
    task_list unasked_;
    task_list asked_;
    std::size_t size_ = 0;
    std::uint64_t added_ = 0;
    bool stopping_ = false;
};

}  // namespace rondo
