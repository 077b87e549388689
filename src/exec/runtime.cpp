// The threads of a runtime. What they run is the team (team.cpp), which a checked build explores
// without this file.
#include "rondo/exec/runtime.hpp"

#ifndef RONDO_CHECKED

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "rondo/asio/context_owner.hpp"
#include "rondo/core/assert.hpp"
#include "rondo/core/round_robin.hpp"
#include "rondo/exec/detail/io_driver.hpp"
#include "rondo/exec/detail/team.hpp"
#include "rondo/exec/detail/thread_name.hpp"
#include "rondo/exec/detail/watchdog.hpp"

namespace rondo {

namespace {

std::vector<std::unique_ptr<detail::io_driver>> make_drivers(std::size_t count) {
    std::vector<std::unique_ptr<detail::io_driver>> drivers(count);
    for (auto& d : drivers) d = std::make_unique<detail::io_driver>();
    return drivers;
}

detail::team::setup setup_of(runtime::options const& o,
                             std::vector<std::unique_ptr<detail::io_driver>> const& drivers) {
    detail::team::setup s;
    for (auto const& d : drivers) s.drivers.push_back(d.get());
    // More searchers than that would only take the processors from those who work.
    s.searchers = std::max<std::size_t>(std::min(drivers.size(), processors()) / 2, 1);
    s.on_unobserved = o.on_unobserved;
    return s;
}

void print(runtime::overdue const& o) {
    std::fprintf(stderr, "rondo: worker %zu is held for %lld ms so far by %s\n", o.worker,
                 static_cast<long long>(o.held.count()),
                 o.task.empty() ? "something unknown" : o.task.c_str());
}

// Rings when it is time.
class alarm final : timer {
  public:
    alarm(timer_service& timers, time_point at) noexcept : timer(&ring), timers_(timers) {
        timers_.add(*this, at);
    }
    ~alarm() { timers_.cancel(*this); }
    alarm(alarm const&) = delete;
    alarm& operator=(alarm const&) = delete;

    bool rang() const noexcept { return rang_; }

  private:
    static void ring(timer& t) noexcept { static_cast<alarm&>(t).rang_ = true; }

    timer_service& timers_;
    bool rang_ = false;
};

// The workers take no turn while it lives.
class pause {
  public:
    pause(detail::team& t, time_point until) noexcept : team_(t), complete_(t.pause(until)) {}
    ~pause() { team_.resume(); }
    pause(pause const&) = delete;
    pause& operator=(pause const&) = delete;

    bool complete() const noexcept { return complete_; }

  private:
    detail::team& team_;
    bool complete_;
};

// Years are as good as for ever, and do not overflow.
clock::duration at_most(std::chrono::milliseconds limit) noexcept {
    return std::min(limit,
                    std::chrono::duration_cast<std::chrono::milliseconds>(clock::duration::max()));
}

}  // namespace

struct runtime::state {
    explicit state(options const& o)
        : chosen(o),
          drivers(make_drivers(std::max<std::size_t>(o.workers, 1))),
          team(setup_of(o, drivers)),
          turns(drivers.size()) {
        for (auto const& d : drivers) d->report_to(team);
    }

    void start() {
        threads.reserve(chosen.workers);
        for (std::size_t i = 0; i < chosen.workers; ++i) {
            threads.emplace_back([this, i] {
                detail::name_this_thread(chosen.name, i);
                asio::context_owner const mine{drivers[i]->context()};
                team.runners()[i]->run();
            });
        }
        if (chosen.watchdog.count() > 0) {
            watchdog.emplace(team, awaited, at_most(chosen.watchdog),
                             [tell = chosen.on_overdue ? chosen.on_overdue : print](
                                 std::size_t worker, std::chrono::milliseconds held,
                                 std::string const& task) { tell({worker, held, task}); });
        }
    }

    bool lends() const noexcept { return chosen.workers == 0; }

    // Without workers: the calling thread is one, until there is nothing more to do.
    template <class Done>
    void lend_until(Done done) noexcept {
        asio::context_owner const mine{drivers.front()->context()};
        team.runners().front()->run_until(done);
    }

    // Waits until it is done, or it is time. Without workers the calling thread runs the tasks, but
    // for as long as another one does so in a block_on(): that one is let through, as what is
    // waited for here may wait for it.
    template <class Done>
    void wait_until(time_point until, Done done) noexcept {
        if (!lends()) return (void)team.await(until, done);
        while (!done()) {
            std::unique_lock lent{lending, std::defer_lock};
            bool const goes_on = team.await(
                until, [&] { return done() || (!blocked_on.load() && lent.try_lock()); });
            if (!goes_on) return;
            if (!lent.owns_lock()) continue;
            alarm const time_is_up{team.timers(), until};
            lend_until([&] { return done() || time_is_up.rang() || blocked_on.load(); });
            if (time_is_up.rang()) return;
        }
    }

    // Asks all tasks to stop, and waits until they have ended or it is time.
    void stop_tasks(time_point until) noexcept {
        team.stop_tasks();
        wait_until(until, [this] { return team.no_tasks(); });
    }

    // Those that have begun may wait for tasks: without workers, this thread runs them meanwhile.
    void stop_blocking() noexcept {
        if (blocking == nullptr) return;
        if (lends()) {
            blocking->begin_stop({&tell_ender, this});
            wait_until(time_point::max(), [this] { return blocking->has_ended(); });
        }
        blocking->stop_now();
    }
    // The thread that ends the runtime waits in one of the two.
    static void tell_ender(void* self) noexcept {
        auto& s = *static_cast<state*>(self);
        s.team.look_again();
        s.drivers.front()->unpark();
    }

    // Blocking functions may spawn tasks: those are stopped too, before the workers are let go.
    void end() noexcept {
        stop_tasks(time_point::max());
        stop_blocking();
        stop_tasks(time_point::max());
        watchdog.reset();
        team.close();
        if (lends()) team.runners().front()->run();
        for (std::thread& t : threads) t.join();
        for (auto const& d : drivers)
            d->close();  // while what their handlers hold can use the team
    }

    options const chosen;
    std::vector<std::unique_ptr<detail::io_driver>> drivers;
    detail::team team;
    round_robin turns;  // whose turn it is to get a pinned task from outside
    std::vector<std::thread> threads;
    std::optional<detail::watchdog> watchdog;

    live_tasks awaited;                   // by block_on()
    std::mutex lending;                   // without workers: held by the thread that runs the tasks
    std::atomic<bool> blocked_on{false};  // without workers
    std::atomic<bool> abandoned{false};
    std::mutex starting;
    std::unique_ptr<thread_pool> blocking;
    std::mutex pausing;
    std::timed_mutex ending;
};

runtime::runtime(options const& o) : state_(std::make_unique<state>(o)) {
    try {
        state_->start();
    } catch (...) {
        state_->end();
        throw;
    }
}

runtime::~runtime() {
    if (state_->abandoned) {
        leave_behind(std::move(state_));
        return;
    }
    RONDO_ASSERT(state_->team.here() == nullptr, "a runtime is not ended by one of its own tasks");
    state_->end();
}

executor& runtime::anywhere() noexcept { return state_->team; }
executor& runtime::worker(std::size_t index) noexcept {
    RONDO_ASSERT(index < workers(), "there is such a worker");
    return *state_->team.runners()[index];
}
std::size_t runtime::workers() const noexcept { return state_->drivers.size(); }

std::size_t runtime::here_or_next() noexcept {
    detail::runner const* const r = state_->team.here();
    return r != nullptr ? r->index() : state_->turns.next();
}

thread_pool& runtime::blocking() {
    std::lock_guard const guard{state_->starting};
    auto& pool = state_->blocking;
    if (pool == nullptr) {
        options const& o = state_->chosen;
        thread_pool::options chosen{.workers = o.blocking_threads,
                                    .how = dispatch::shared,
                                    .capacity = o.blocking_capacity,
                                    .name = o.name + "-blk"};
        chosen.on_failure = o.on_unobserved;  // itself: a result may outlive the team
        pool = std::make_unique<thread_pool>(chosen);
        if (state_->abandoned) pool->abandon();
    }
    return *pool;
}

detail::driver* runtime::lent_driver() noexcept {
    return state_->lends() ? state_->drivers.front().get() : nullptr;
}

void runtime::await(live_task& root, detail::finish_line& end) noexcept {
    RONDO_ASSERT(executor::current() == nullptr, "block_on is for plain threads");
    state_->awaited.add(root);
    if (state_->lends()) {
        bool const second = state_->blocked_on.exchange(true);
        RONDO_ASSERT(!second, "one thread at a time lends itself to a runtime");
        state_->drivers.front()->unpark();  // a shutdown() lets this one through,
        {
            std::lock_guard const lent{state_->lending};
            state_->lend_until([&end] { return end.crossed(); });
        }
        state_->blocked_on = false;
        state_->team.look_again();  // and goes on with the others
    } else {
        end.wait();
    }
    live_tasks::remove(root);
}

boost::asio::io_context& runtime::context(std::size_t worker) noexcept {
    RONDO_ASSERT(worker < workers(), "there is such a worker");
    return state_->drivers[worker]->context();
}

boost::asio::io_context& runtime::context() noexcept {
    detail::runner const* const r = state_->team.here();
    RONDO_ASSERT(r != nullptr, "context() is for a task of the runtime; others say whose");
    return context(r->index());
}

runtime::still_alive runtime::shutdown(std::chrono::milliseconds limit) {
    detail::team& team = state_->team;
    RONDO_ASSERT(team.here() == nullptr, "a runtime is not ended by one of its own tasks");
    time_point const until = later(clock::now(), at_most(limit));
    // Behind another one, which has asked them to stop, it waits no longer than its own limit.
    std::unique_lock const guard{state_->ending, until};
    if (guard.owns_lock()) state_->stop_tasks(until);
    still_alive left{0, {}};
    team.for_each_task([&left](live_task const& t) {
        ++left.tasks;
        left.origins.emplace_back(t.origin().function_name());
    });
    return left;
}

void runtime::abandon() noexcept {
    state_->abandoned = true;
    state_->team.pause_for_good();
    std::lock_guard const guard{state_->starting};
    if (state_->blocking != nullptr) state_->blocking->abandon();
}

// Others may still wake what is in there. It is kept where a search for leaks finds it.
void runtime::leave_behind(std::unique_ptr<state> left) {
    left->watchdog.reset();  // its hook may refer to what goes with the runtime
    for (std::thread& t : left->threads) t.detach();
    left->threads.clear();
    static std::mutex lock;
    static auto& all = *new std::vector<std::unique_ptr<state>>;
    std::lock_guard const guard{lock};
    all.push_back(std::move(left));
}

runtime::metrics runtime::measure() const {
    detail::team const& team = state_->team;
    metrics m{team.tasks(), team.waiting_outside(), {}};
    for (auto const& r : team.runners()) {
        m.workers.push_back({r->turns.get(), r->steals.get(), r->parks.get(), r->depth()});
    }
    return m;
}

runtime::snapshot runtime::dump() {
    detail::team& team = state_->team;
    RONDO_ASSERT(team.here() == nullptr, "a task cannot wait for its own worker to pause");
    std::lock_guard const guard{state_->pausing};
    pause const all_workers{team, later(clock::now(), std::chrono::milliseconds{100})};
    snapshot s{all_workers.complete(), {}};
    auto const note = [&s](live_task const& t) {
        using enum task_trace::activity;
        if (s.complete && !t.abroad()) {
            s.tasks.push_back(t.trace());
        } else {
            s.tasks.push_back(
                {s.complete ? elsewhere : running, {task_trace::frame{t.origin()}}, {}});
        }
    };
    state_->awaited.for_each(note);
    team.for_each_task(note);
    return s;
}

}  // namespace rondo

#endif
