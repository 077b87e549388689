// team.hpp: the workers of a runtime and what they share, without the threads.
//
// As with a crew (crew.hpp), whoever owns a team brings a thread for each worker, so that the very
// code that a runtime runs can be explored by the model checker.
//
// Two kinds of places   the team is the executor of tasks that any worker may run; each runner is
//                       the executor of those that are pinned to it.
// Order                 a job that is woken by the one that runs goes next on the same worker (it
//                       has what it needs in its cache), three in a row at most; all others wait
//                       their turn in the worker's queue, or in the intake when they come from
//                       outside. So does one that was joining a handle: it may have more to join.
//                       A worker looks at the intake, at I/O and at the clock once in 64 turns,
//                       however full its own queue is.
// Waking                a job that is posted wakes a worker if one sleeps and none searches. A job
//                       that is woken, and one that gives way and finds the queue empty, run right
//                       after the turn that runs and wake nobody; those that wait behind them do.
//                       If a pinned job or one from outside comes in between, a job that was woken
//                       waits in the queue, where others find it.
// Time                  all timers are in one queue. One of the workers that sleep keeps the time:
//                       it sleeps until the next deadline at most. When it has other things to do
//                       it wakes another one for that.
// A team of one         has nobody to share with: its jobs are in a plain list.
// Thread safety         every member from any thread, unless it says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "rondo/core/detail/thread_state.hpp"
#include "rondo/core/environment.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/timer_queue.hpp"
#include "rondo/exec/detail/driver.hpp"
#include "rondo/exec/detail/eagerness.hpp"
#include "rondo/exec/detail/intake.hpp"
#include "rondo/exec/detail/local_queue.hpp"
#include "rondo/exec/detail/steal_queue.hpp"
#include "rondo/exec/detail/tally.hpp"
#include "rondo/exec/detail/visitors.hpp"

namespace rondo::detail {

class team;

// One worker, and the place of the tasks that are pinned to it.
class alignas(64) runner final : public executor, seat {
  public:
    runner(team& t, driver& sleeps_in, std::size_t index) noexcept;

    // In the worker's thread. Runs jobs until the team is closed and none is left,
    void run() noexcept;
    // or until done(), which is asked whenever something of this worker's has run, and before it
    // sleeps. What makes it true in another thread un-parks the driver.
    template <class Done>
    void run_until(Done done) noexcept {
        on_duty const duty{*this};
        while (!ended_ && !done()) {
            if (turn()) continue;
            listen();
            if (!has_work() && !done()) rest();
        }
        end_duty();
    }

    // The calling thread's, or null.
    static runner* current() noexcept;

    team& of() const noexcept { return team_; }
    std::size_t index() const noexcept { return index_; }
    // What waits for a turn here, but for the one that goes next.
    std::size_t depth() const noexcept;
    // The job that it runs now, or null: for comparison only, it may be gone already.
    job const* running() const noexcept { return running_.load(std::memory_order_relaxed); }

    void post(job& j) noexcept override;
    timer_service& timers() noexcept override;
    void unobserved(std::exception_ptr exception) noexcept override;
    void began(live_task& t) noexcept override;
    void ended(live_task& t) noexcept override;
    bool begin_visit() noexcept override;
    void end_visit() noexcept override;
    void resumed_past_it(flow& f) noexcept override;

    tally turns;
    tally steals;
    tally parks;

  private:
    friend team;

    // The thread's state that run() changes and gives back.
    class [[nodiscard]] on_duty {
      public:
        explicit on_duty(runner& r) noexcept;
        ~on_duty();
        on_duty(on_duty const&) = delete;
        on_duty& operator=(on_duty const&) = delete;

      private:
        runner* outer_;
        executor* outer_place_;
    };

    executor& home() noexcept;
    void unpark() noexcept override;

    void push(job& j) noexcept;
    void push_next(job& j) noexcept;
    bool keeps_enough() const noexcept;
    void push_last(job& j) noexcept;

    bool turn() noexcept;
    void end_duty() noexcept;
    void run_job(job& j, executor& as) noexcept;
    job* next_shared() noexcept;
    bool has_work() const noexcept;
    void look_around() noexcept;
    job* take_outside() noexcept;
    void hear() noexcept;
    void pause() noexcept;
    void empty_inbox() noexcept;
    void listen() noexcept;
    void rest() noexcept;
    job* find() noexcept;
    job* search() noexcept;
    void stop_searching() noexcept;
    void lie_down() noexcept;
    void sleep() noexcept;

    team& team_;
    driver& driver_;
    std::size_t const index_;
    thread_state* thread_ = nullptr;  // while it runs
    std::uint32_t turn_ = 0;          // since it looked around
    eagerness eagerness_;
    bool searching_ = false;
    bool ended_ = false;
    int nexts_in_a_row_ = 0;
    job* next_ = nullptr;  // woken since the last turn began
    local_queue local_;    // only this worker may run these
    atomic<job const*> running_{nullptr};
    atomic<bool> on_duty_{false};
    live_tasks tasks_;                    // that began here
    atomic<std::uint32_t> delivered_{0};  // calls of unpark() that are over

    steal_queue own_;  // any worker may run these

    alignas(64) short_lock inbox_lock_;
    job_queue inbox_;                   // pinned ones from other threads
    atomic<std::uint32_t> letters_{0};  // how many; changed under the lock
};

class team final : public executor, timer_service {
  public:
    struct setup {
        std::vector<driver*> drivers;  // one for each worker
        std::size_t searchers = 1;     // how many workers may search at a time
        std::function<void(std::exception_ptr)> on_unobserved;
    };

    explicit team(setup s);
    ~team();
    team(team const&) = delete;
    team& operator=(team const&) = delete;

    // As the executor of what any worker may run.
    void post(job& j) noexcept override;
    void wake(job& j) noexcept override;
    void give_way(job& j) noexcept override;
    timer_service& timers() noexcept override { return *this; }
    void unobserved(std::exception_ptr exception) noexcept override;
    void began(live_task& t) noexcept override;
    void ended(live_task& t) noexcept override;
    bool begin_visit() noexcept override;
    void end_visit() noexcept override;
    void resumed_past_it(flow& f) noexcept override;

    // The calling thread's worker, if it is one of these.
    runner* here() const noexcept;
    std::vector<std::unique_ptr<runner>> const& runners() const noexcept { return runners_; }

    // A moment of each list; while tasks begin and end, none of all.
    std::size_t tasks() const noexcept;
    // True: there was a moment in which none was alive.
    bool no_tasks() const noexcept;
    std::size_t waiting_outside() const noexcept { return intake_.size(); }

    void stop_tasks() noexcept;
    // Waits until there is no task, in a thread that is not a worker's, one at a time; false when
    // there are some and time is up.
    bool await_tasks(time_point until) noexcept {
        return await(until, [this] { return no_tasks(); });
    }
    // The same for something else, which is asked again when the last task has ended and after
    // look_again().
    template <class Done>
    bool await(time_point until, Done done) noexcept {
        awaited_.store(true, std::memory_order_relaxed);  // relaxed: see ended()
        bool is_done = done();
        for (bool in_time = true; !is_done && in_time; is_done = done()) {
            in_time = all_ended_.park_until(until);
        }
        awaited_.store(false, std::memory_order_relaxed);
        return is_done;
    }
    void look_again() noexcept { all_ended_.unpark(); }
    // Workers end when nothing is left. There are no tasks any more; it waits for those that end in
    // a foreign thread until they have left.
    void close() noexcept;

    template <class F>
    void for_each_task(F f) const {
        outside_.for_each(f);
        for (auto const& r : runners_) r->tasks_.for_each(f);
    }

    // Keeps all workers from taking another turn, as far as they come to the end of the one they
    // run before `until`; says whether all have. What is foreign does not resume a task meanwhile;
    // one that it has resumed before, and that may run, is abroad. If all have paused, where the
    // others are can be read. resume() follows, in the same thread. By one thread at a time.
    bool pause(time_point until) noexcept;
    void resume() noexcept;
    // Keeps them from it for ever, and does not wait.
    void pause_for_good() noexcept;

  private:
    friend runner;

    time_point now() const noexcept override { return clock::now(); }
    void add(timer& t, time_point deadline) noexcept override;
    bool cancel(timer& t) noexcept override { return timers_.cancel(t); }

    bool alone() const noexcept { return runners_.size() == 1; }
    bool can_be_stolen() const noexcept;
    bool time_is_not_kept() noexcept;
    void search_ended() noexcept;
    void fire_timers() noexcept;
    void hold() noexcept;
    bool pause_workers(time_point until) noexcept;

    std::function<void(std::exception_ptr)> const on_unobserved_;
    intake intake_;
    std::vector<std::unique_ptr<runner>> runners_;
    live_tasks outside_;  // tasks that other threads spawned

    timer_queue timers_;
    atomic<runner*> keeper_{nullptr};  // who sleeps until the next deadline
    atomic<bool> firing_{false};

    visitors visitors_;

    atomic<bool> awaited_{false};  // await_tasks() waits
    parker all_ended_;

    // Odd while the workers are to pause; or with this bit, for ever.
    static constexpr std::uint32_t for_good = std::uint32_t{1} << 31;
    static bool pausing(std::uint32_t pauses) noexcept {
        return pauses % 2 != 0 || pauses >= for_good;
    }
    atomic<std::uint32_t> pauses_{0};
    // How many do; above that, how many have left, so that it changes for who waits for either.
    static constexpr std::uint32_t one_left = std::uint32_t{1} << 16;
    static std::uint32_t holding(std::uint32_t paused) noexcept { return paused % one_left; }
    atomic<std::uint32_t> paused_{0};
    short_lock resumed_abroad_;  // held in a pause: nothing foreign resumes a task
};

}  // namespace rondo::detail
