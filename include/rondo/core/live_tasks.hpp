// live_tasks.hpp: the tasks that run on an executor, for whoever wants to count or stop them all.
//
// spawn() tells the executor of each task that begins and ends (executor::began, ended). Most
// executors need not know; one that reports what is alive, or stops it before it goes, keeps them
// in such a list.
//
// Guarantee      stop_all() asks every task in the list once, and from then on each one that is
//                added, so that what a stopped task starts in its last moments is stopped too.
// Thread safety  every member may be called concurrently. Tasks are asked with no lock held: the
//                hooks that this calls may spawn, or end tasks.
// Allocation     none; the links are in the task's root.
#pragma once

#include <cstddef>
#include <mutex>

#include "rondo/core/short_lock.hpp"

namespace rondo {

class live_task {
  public:
    live_task() = default;
    live_task(live_task const&) = delete;
    live_task& operator=(live_task const&) = delete;

    // Returns before the task has ended: it unwinds on its executor.
    virtual void request_stop() noexcept = 0;
    // Between the two the object stays, though the task may have ended.
    virtual void hold() noexcept = 0;
    virtual void let_go() noexcept = 0;

  protected:
    ~live_task() = default;

  private:
    friend class live_tasks;
    live_task* previous_ = nullptr;
    live_task* next_ = nullptr;
    bool asked_ = false;  // which of the two lists it is in
};

class live_tasks {
  public:
    live_tasks() = default;
    live_tasks(live_tasks const&) = delete;
    live_tasks& operator=(live_tasks const&) = delete;

    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }

    void add(live_task& t) noexcept;
    void remove(live_task& t) noexcept;
    void stop_all() noexcept;

  private:
    live_task*& list_of(live_task const& t) noexcept { return t.asked_ ? asked_ : unasked_; }
    void link(live_task& t) noexcept;
    void unlink(live_task& t) noexcept;
    live_task* next_to_ask() noexcept;

    mutable short_lock lock_;
    live_task* unasked_ = nullptr;
    live_task* asked_ = nullptr;
    std::size_t size_ = 0;
    bool stopping_ = false;
};

}  // namespace rondo
