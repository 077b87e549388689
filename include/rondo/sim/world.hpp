// world.hpp: an executor with a virtual clock and seeded scheduling; the same seed, the same run.
//
//   sim::world w{{.seed = 7}};
//   w.spawn(server()).detach();
//   std::expected<int, sim::outcome> r = w.block_on(client());
//
// What runs in it is code written for any executor: it takes its executor, clock and timers from
// the environment. Nothing sleeps: the clock jumps to the next timer when nobody is ready.
//
// Guarantee      one turn at a time. The order of turns is a function of the seed, the options and
//                the program; also in another process and on another machine. Time is exact to the
//                nanosecond: a timer fires at its deadline, and turns take no time unless turn_time
//                says otherwise.
// What is random (schedule::random) which of the ready jobs takes the next turn, each as likely as
//                the others; in which order timers of one instant fire; and whether a timer that is
//                due fires before or after the jobs that are ready. Timers of different instants
//                fire in the order of their deadlines.
// Yours to keep  what the seed cannot see: the real clock, other threads, addresses (the order of a
//                set of pointers), uninitialised memory, <random>'s distributions. Draw from
//                random() instead.
// Exceptions     a joined task's go to its joiner. Those that nobody joins are collected, see
//                take_unobserved(); run() does not throw, as it could only throw one of them and
//                would leave off in the middle of a run.
// Destruction    asks everything spawned on the world to stop and runs until nothing is left,
//                in virtual time; collected exceptions that nobody took are printed. A task that
//                does not end then (a shielded wait for something that never comes) is a
//                programmer's error: asserted, after a dump() to stderr. So are timers and jobs
//                without end. Join handles are gone before their world.
// Thread safety  none: the world belongs to the thread that made it. A post, a timer or a run from
//                another thread is asserted: it would end the sameness of runs.
// Allocation     post() and unobserved() grow a queue; out of memory ends the process.
// Example        examples/sim/charged_twice.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <expected>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/task_trace.hpp"
#include "rondo/sim/detail/place.hpp"
#include "rondo/sim/random.hpp"

namespace rondo::sim {

enum class schedule : std::uint8_t {
    random,
    fifo,  // due timers first, by deadline and age; then jobs in the order they were posted
};

struct options {
    std::uint64_t seed = 0;
    schedule order = schedule::random;
    time_point start{};
    // How long a turn takes by the virtual clock. With zero, a program that polls the clock in a
    // loop never sees it move.
    clock::duration turn_time{0};
    // One call of run(), run_until(), ... takes at most so many turns: a livelock, or timers
    // without end, then show as outcome::out_of_turns.
    std::uint64_t max_turns = 10'000'000;
    // Called after each turn, between turns, with the executor whose turn it was: the world or a
    // node. To look at what has to hold at every step; it changes nothing in the world and does not
    // throw. Not called any more when the world is being destroyed.
    std::function<void(executor const&)> after_turn{};
};

// How a run ended. "Tasks" are those spawned on the world; it cannot see foreign coroutines.
enum class [[nodiscard("the world may be stuck")]] outcome : std::uint8_t {
    finished,      // nothing is ready, no timer is pending, all tasks have ended
    paused,        // there is more to do, but at a later time than the call was to reach
    stuck,         // tasks are alive, but nothing is ready and no timer is pending: nobody in the
                   // world can wake them. A deadlock, or a wake-up that was lost
    out_of_turns,  // options::max_turns were taken and there is still more to do
};

char const* describe(outcome how) noexcept;

class node;

class world final : public executor, timer_service {
  public:
    explicit world(options chosen = {});
    ~world();
    world(world const&) = delete;
    world& operator=(world const&) = delete;

    // Starts a task in the world: see rondo::spawn. It can also be called inside the world.
    template <class T>
    join_handle<T> spawn(task<T> t) {
        return rondo::spawn(*this, std::move(t));
    }

    // Runs until there is nothing left to do; the clock jumps from timer to timer.
    outcome run();
    // Runs what happens up to and including this moment; the clock stands there afterwards (with
    // options::turn_time, up to a turn later), unless the turns ran out.
    outcome run_until(time_point moment);
    outcome run_for(clock::duration span) { return run_until(later(span)); }
    // Runs what is ready and due at this moment, and what that makes ready; the clock stands still
    // but for options::turn_time.
    outcome run_ready();

    // Runs until the task has ended, whatever else is left to do, and gives its result. If it
    // cannot end, says why: stuck or out_of_turns; the task was stopped then, and has unwound if a
    // stop can reach it. An exception of the task is rethrown. Not inside an executor.
    template <class T>
    std::expected<T, outcome> block_on(task<T> t);

    time_point now() const noexcept override { return now_; }
    // Time passes while nobody takes a turn, as if the machine had been suspended; the timers that
    // it passes fire in the next run. Inside a task: as if it had computed for so long.
    void advance(clock::duration span) noexcept;

    // For programs in the world, so that they too are the same for the same seed. Drawing from it
    // does not change the schedule's own draws.
    random_source& random() noexcept { return random_; }

    std::uint64_t seed() const noexcept { return options_.seed; }
    // Turns taken so far: jobs run and timers fired.
    std::uint64_t turns() const noexcept { return turns_; }
    // Spawned on the world or its nodes, by spawn() or by rondo::spawn(), and not ended.
    std::size_t live_tasks() const noexcept;
    // Where each of them is, the newest first: what a stuck world waits for. Inside the world too.
    std::vector<task_trace> dump() const;
    // The same, of the moment in which block_on() last failed, before it stopped its task.
    std::vector<task_trace> const& dump_at_failure() const noexcept { return at_failure_; }
    // A digest of every turn so far: what was chosen, among how many, at what time. Equal for equal
    // runs, in any process; different runs differ but for a chance of 2^-64.
    std::uint64_t trace_hash() const noexcept { return trace_; }

    // What left tasks that nobody joined, in that order, since the last call.
    std::vector<std::exception_ptr> take_unobserved() noexcept {
        return std::exchange(unobserved_, {});
    }

    void post(job& j) noexcept override;
    timer_service& timers() noexcept override { return *this; }
    void unobserved(std::exception_ptr exception) noexcept override;

  private:
    friend node;

    // A job that is ready, and the place whose turn it would be.
    struct ready_job {
        job* what;
        detail::place* where;
    };

    void began(live_task& t) noexcept override { home_.tasks.add(t); }
    void ended(live_task& t) noexcept override { rondo::live_tasks::remove(t); }

    // For nodes.
    void add_place(detail::place& p) { places_.push_back(&p); }
    void remove_place(detail::place& p) noexcept { std::erase(places_, &p); }
    void post_for(detail::place& p, job& j) noexcept;
    // Takes the ready jobs of a place away, in the order in which they were posted.
    std::vector<job*> withdraw_jobs(detail::place const& p);
    bool in_turn_of(detail::place const& p) const noexcept { return in_turn_ == &p; }

    // While it lives the world runs, and is the current executor.
    class running {
      public:
        explicit running(world& w) noexcept;
        ~running() { world_.running_ = false; }
        running(running const&) = delete;
        running& operator=(running const&) = delete;

        std::uint64_t last_turn() const noexcept { return last_turn_; }

      private:
        world& world_;
        executor::scope here_;
        std::uint64_t last_turn_;
    };

    // How far a run may go: turns at a later moment than `turns` are left, and the clock does not
    // jump beyond `jumps`.
    struct horizon {
        time_point turns;
        time_point jumps;
    };

    void add(timer& t, time_point deadline) noexcept override;
    bool cancel(timer& t) noexcept override;

    void assert_own_thread() const noexcept;
    time_point later(clock::duration span) const noexcept;
    outcome run_to(horizon limit);
    template <class T>
    std::optional<outcome> run_to_end_of(join_handle<T> const& task);
    // Takes one turn or moves the clock once; an outcome if there is nothing to do within limits.
    std::optional<outcome> proceed(horizon limit, std::uint64_t last_turn) noexcept;
    void take_turn(bool timers_may_be_due) noexcept;
    bool timers_go_first() noexcept;
    std::optional<time_point> next_expiry() const noexcept;
    detail::place* earliest_due() noexcept;
    executor const& fire_one_of(detail::place& p) noexcept;
    executor const& run_ready_job() noexcept;
    void end_turn() noexcept;
    void note(std::uint64_t chosen) noexcept;

    options options_;
    void const* const thread_;
    random_source schedule_;
    random_source random_;
    time_point now_;
    std::deque<ready_job> ready_;
    detail::place home_;
    std::vector<detail::place*> places_{&home_};  // and the nodes, in the order they were made
    detail::place* in_turn_ = nullptr;            // whose job or timer is running
    node* ending_ = nullptr;                      // what the turn that runs has crashed: its own
    std::uint64_t turns_ = 0;
    std::uint64_t trace_ = 0;
    bool running_ = false;
    std::vector<std::exception_ptr> unobserved_;
    std::vector<task_trace> at_failure_;
};

template <class T>
std::optional<outcome> world::run_to_end_of(join_handle<T> const& task) {
    running const here{*this};
    while (!task.ended()) {
        std::optional<outcome> const over =
            proceed({time_point::max(), time_point::max()}, here.last_turn());
        if (over) return over;
    }
    return std::nullopt;
}

template <class T>
std::expected<T, outcome> world::block_on(task<T> t) {
    RONDO_ASSERT(executor::current() == nullptr, "block_on is for plain threads");
    join_handle<T> handle = spawn(std::move(t));
    if (std::optional<outcome> const failed = run_to_end_of(handle)) {
        at_failure_ = dump();
        handle.request_stop();
        (void)run_to_end_of(handle);
        return std::unexpected{*failed};
    }
    std::expected<T, wait_error> result = handle.blocking_join();
    RONDO_ASSERT(result.has_value(), "only block_on itself stops the task it runs");
    if constexpr (std::is_void_v<T>) {
        return {};
    } else {
        return std::move(*result);
    }
}

}  // namespace rondo::sim
