// live_tasks.hpp: the tasks that run on an executor, for whoever wants to count or stop them all.
//
// spawn() tells the executor of each task that begins and ends (executor::began, ended). Most
// executors need not know; one that reports what is alive, or stops it before it goes, keeps them
// in such a list.
//
// Thread safety  none: the owner synchronises. request_stop_all() calls hooks, which post to
//                executors: hold no lock that post() takes.
// Allocation     none; the links are in the task's root.
#pragma once

#include <cstddef>

namespace rondo {

class live_task {
  public:
    live_task() = default;
    live_task(live_task const&) = delete;
    live_task& operator=(live_task const&) = delete;

    // Returns before the task has ended: it unwinds on its executor.
    virtual void request_stop() noexcept = 0;

  protected:
    ~live_task() = default;

  private:
    friend class live_tasks;
    live_task* previous_ = nullptr;
    live_task* next_ = nullptr;
};

class live_tasks {
  public:
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return first_ == nullptr; }

    void add(live_task& t) noexcept {
        t.next_ = first_;
        if (first_ != nullptr) first_->previous_ = &t;
        first_ = &t;
        ++size_;
    }
    void remove(live_task& t) noexcept {
        (t.previous_ != nullptr ? t.previous_->next_ : first_) = t.next_;
        if (t.next_ != nullptr) t.next_->previous_ = t.previous_;
        --size_;
    }
    void request_stop_all() noexcept {
        for (live_task* t = first_; t != nullptr; t = t->next_) t->request_stop();
    }

  private:
    live_task* first_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace rondo
