// crew.hpp: the workers of a pool and their queues, without the threads.
//
// A crew knows where a job goes, who runs it and who is woken; whoever owns it brings a thread for
// each worker and calls run() in it. So the very code that a pool runs can be explored by the model
// checker, whose threads are not the system's.
//
// Thread safety  every member from any thread; worker::run() once for each worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/round_robin.hpp"
#include "rondo/exec/detail/eagerness.hpp"
#include "rondo/exec/detail/intake.hpp"
#include "rondo/exec/detail/pace.hpp"
#include "rondo/exec/detail/pool_job.hpp"
#include "rondo/exec/detail/steal_queue.hpp"
#include "rondo/exec/detail/tally.hpp"
#include "rondo/exec/dispatch.hpp"

namespace rondo::detail {

class crew;

class alignas(64) worker {
  public:
    worker(crew& c, intake& from, std::size_t index) noexcept
        : crew_(c), intake_(from), index_(index) {}

    // Runs jobs until the crew is closed and none is left.
    void run() noexcept;

    // The calling thread's, or null.
    static worker* current() noexcept;

    std::size_t index() const noexcept { return index_; }
    std::size_t depth() const noexcept;

    tally jobs_run;
    tally jobs_stolen;
    tally jobs_failed;

  private:
    friend crew;
    friend class failures;

    job* next() noexcept;
    job* take_in_between() noexcept;
    job* search() noexcept;
    void run_job(job& j) noexcept;
    void search_ended() noexcept;
    bool push_here(job& j) noexcept;

    crew& crew_;
    intake& intake_;
    std::size_t const index_;
    std::uint32_t turn_ = 0;
    eagerness eagerness_;
    pace pace_;
    thread_seat seat_;
    // Stealing only. Every worker has its 8 KB: behind a pointer, a turn of a task that gives way
    // took 7 % longer.
    steal_queue own_;
};

// What left jobs as an exception: counted, and told.
class failures final : public failure_sink {
  public:
    explicit failures(std::function<void(std::exception_ptr)> tell) : tell_(std::move(tell)) {}

    void failed(std::exception_ptr exception) noexcept override;
    // Those that came to light in a thread that is not a worker's.
    std::uint64_t elsewhere() const noexcept { return elsewhere_.load(std::memory_order_relaxed); }

  private:
    std::function<void(std::exception_ptr)> const tell_;
    atomic<std::uint64_t> elsewhere_{0};
};

class crew final {
  public:
    struct setup {
        dispatch how;
        std::size_t workers;
        std::size_t capacity;       // of all queues together that are filled from outside
        std::size_t searchers;      // how many workers may search at a time
        std::uint64_t turns_taken;  // per_worker: as if so many had been
        executor* place;            // current while a posted job runs
        std::function<void(std::exception_ptr)> on_failure;
    };

    explicit crew(setup s);
    ~crew();
    crew(crew const&) = delete;
    crew& operator=(crew const&) = delete;

    intake::outcome try_push(job& j) noexcept;
    // Where a push that waits for room has to wait.
    intake& next_intake() noexcept;
    void post(job& j) noexcept;

    // The calling thread's worker, if it is one of these.
    worker* here() const noexcept;

    // Workers end when nothing is left and no job runs; with per_worker each for itself.
    void close() noexcept;
    // The same for those that have come, if others never will. Nothing was pushed.
    void dismiss() noexcept;
    // Refuses from now on, and drops the closures that have not started; close() comes after it.
    void drop_waiting() noexcept;
    std::size_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    // Refuses from now on, and begins nothing more: workers stay where they are, and jobs too.
    void abandon() noexcept;

    void failed(std::exception_ptr exception) noexcept { failures_->failed(std::move(exception)); }
    std::uint64_t failed_elsewhere() const noexcept { return failures_->elsewhere(); }

    std::vector<std::unique_ptr<worker>> const& workers() const noexcept { return workers_; }
    std::size_t depth() const noexcept;

  private:
    friend failures;
    friend worker;

    bool stealing() const noexcept { return how_ == dispatch::stealing; }
    bool dropping() const noexcept { return dropping_.load(std::memory_order_relaxed); }
    bool abandoned() const noexcept { return abandoned_.load(std::memory_order_relaxed); }
    void drop(pool_job& j) noexcept;
    bool can_be_stolen() const noexcept;
    void sort_out(job& j, job_queue& posted) noexcept;

    dispatch const how_;
    std::size_t const own_limit_;
    executor* const place_;
    shared_sink<failures> const failures_;
    round_robin turns_;
    std::vector<std::unique_ptr<intake>> intakes_;
    std::vector<std::unique_ptr<worker>> workers_;
    atomic<bool> dropping_{false};
    atomic<bool> abandoned_{false};
    atomic<std::size_t> dropped_{0};
};

}  // namespace rondo::detail
