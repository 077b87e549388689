// explore.cpp: runs executions one after another until one fails or none is left.
//
// Algorithm      The scenario is thread 0. Every thread has a fiber that loops: run a body, hand
//                over, wait for the body of a later execution. A failure jumps to the host from
//                wherever it is; the stacks that were in the middle of something are dropped and
//                the arena is reset. The failing path is then run once more with a trace, so that
//                the search itself pays nothing for it.

#include "rondo/check/explore.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>

#include "execution.hpp"
#include "sanitizers.hpp"

namespace rondo::check {
namespace detail {
namespace {

constinit thread_local execution* current_execution = nullptr;

// An exception that meets a noexcept ends here; nothing has been unwound.
[[noreturn]] void on_terminate() {
    if (auto* const run = execution::current()) {
        run->fail_terminated();
    }
    std::abort();
}

}  // namespace

execution* execution::current() noexcept { return current_execution; }

void execution::begin_session() {
    require_new_delete();
    histories_cut_ = false;
    host_.adopt_current_stack();
}

void execution::end_session() noexcept {
#ifdef RONDO_CHECK_TSAN
    // It takes fibers for threads still running, and would wait a second for them at exit.
    for (fiber& each : fibers_) {
        each.stop();
    }
    idle_fibers_ = 0;
#endif
}

void execution::reset(chooser& decisions, schedule_settings const& settings, int preemptions,
                      bool traced) {
    self_ = 0;
    thread_count_ = 1;
    enabled_ = bit(0);
    timed_ = 0;
    paused_ = 0;
    turns_ = fairness{};
    steps_ = 0;
    preemptions_left_ = preemptions;
    bounded_ = preemptions >= 0;
    settings_ = settings;
    spurious_wakeup_left_ = settings.spurious_wakeups;
    spurious_failures_left_ = settings.spurious_failures;
    traced_ = traced;
    outcome_ = failure::none;
    message_[0] = '\0';
    decisions_ = &decisions;
    locations_.clear();
    stores_.clear();
    events_.clear();
    arena_.reset();

    model_thread& first = threads_[0];
    first.now = clock{};
    first.now.at[0] = 1;
    first.memory = &arena_;
    first.visible_from = 0;
    first.state = model_thread::doing::running;
    first.resumed = false;
    first.timed_out = false;
    first.joined = false;
    first.slots = 0;
}

void execution::run(chooser& decisions, schedule_settings const& settings, int preemptions,
                    bool traced, std::function<void()> const& scenario) {
    reset(decisions, settings, preemptions, traced);
    scenario_ = &scenario;
    decisions.begin_execution();
    if (!fibers_[0].started()) {
        fibers_[0].start(&execution::fiber_loop, this);
    }
    idle_fibers_ &= static_cast<mask>(~bit(0));
    current_execution = this;
    current_arena = &arena_;
    fiber::jump(host_, fibers_[0]);
    current_arena = nullptr;
    current_execution = nullptr;
    if (outcome_ != failure::none) {
        abandon_fibers();
    }
}

void execution::fiber_loop(void* self) {
    for (;;) {
        static_cast<execution*>(self)->thread_main();
    }
}

void execution::thread_main() {
    // fail() does not return: it is called when the handler has released the exception.
    std::array<char, 256> thrown{};
    try {
        if (self_ == 0) {
            (*scenario_)();
        } else {
            me().run(me().closure);
        }
    } catch (std::exception const& error) {
        std::snprintf(thrown.data(), thrown.size(), "uncaught exception: %s", error.what());
    } catch (...) {
        std::snprintf(thrown.data(), thrown.size(), "uncaught exception");
    }
    if (thrown[0] != '\0') {
        fail(failure::exception, "T%u: %s", self_, thrown.data());
    }
    if (self_ == 0) {
        finish_scenario();
    } else {
        finish_thread();
    }
}

void execution::fail_terminated() noexcept {
    // Nobody will ever free the exception: kept where a leak detector finds it.
    void* const place = std::malloc(sizeof(std::exception_ptr));
    lost_exceptions_.push(::new (place) std::exception_ptr(std::current_exception()));
    fail(failure::exception, "T%u: std::terminate was called: an exception met a noexcept?", self_);
}

void execution::finish_scenario() {
    destroy_storage();
    for (unsigned i = 1; i < thread_count_; ++i) {
        if (!threads_[i].joined) {
            fail(failure::misuse, "the scenario returned before T%u was joined", i);
        }
    }
    if (arena_.live() != 0) {
        arena::block const oldest = arena_.oldest();
        fail(failure::leak, "%zu blocks of memory left; the oldest is allocation %u, %zu bytes",
             arena_.live(), static_cast<unsigned>(oldest.number), oldest.bytes);
    }
    for (location const& each : locations_) {
        if (each.alive) {
            fail(failure::leak, "%s was never destroyed", name_of(each).text);
        }
    }
    if (!decisions_->consumed()) {
        fail(failure::nondeterminism,
             "the scenario does not repeat itself: it ended before all choices were met again");
    }
    idle_fibers_ |= bit(0);
    fiber::jump(fibers_[0], host_);
}

void execution::abandon_fibers() {
    for (unsigned i = 0; i < max_threads; ++i) {
        if (fibers_[i].started() && (idle_fibers_ & bit(i)) == 0) {
            fibers_[i].start(&execution::fiber_loop, this);
        }
    }
    idle_fibers_ = 0xff;
}

namespace {

// One execution at a time in a process: stacks, arena and records are kept and used again.
// The terminate handler is the process's too, and so it is changed in one's turn.
struct session {
    session() : exclusive(turn()), previous_handler(std::set_terminate(&on_terminate)) {
        engine().begin_session();
    }
    ~session() {
        engine().end_session();
        std::set_terminate(previous_handler);
    }
    session(session const&) = delete;
    session& operator=(session const&) = delete;

    static std::unique_lock<std::mutex> turn() {
        if (running()) {
            misuse("explore() inside a scenario");
        }
        static std::mutex only;
        return std::unique_lock(only);
    }
    static execution& engine() {
        // Never destroyed: objects of the program that die later may still hold arena memory.
        static execution* const only = new execution;
        return *only;
    }

    std::unique_lock<std::mutex> exclusive;  // to the end, when the handler is as it was
    std::terminate_handler previous_handler;
};

schedule_settings settings_of(options const& how) {
    return {how.spurious_wakeups, how.spurious_failures, how.max_steps};
}

std::string headline(failure kind, std::string const& message) {
    return std::string(to_string(kind)) + ": " + message;
}

// Runs the chooser's path once more with a trace, and completes the report.
void describe_failure(execution& engine, chooser& decisions, schedule_settings const& settings,
                      std::function<void()> const& scenario, report& result) {
    result.kind = engine.outcome();
    std::string message = engine.message();
    result.schedule = write_schedule(settings, decisions.path());
    decisions.repeat(decisions.path());
    engine.run(decisions, settings, -1, true, scenario);
    if (engine.outcome() != result.kind && result.kind != failure::nondeterminism) {
        message = "a failure (" + headline(result.kind, message) +
                  ") did not happen again when its schedule was repeated";
        result.kind = failure::nondeterminism;
    }
    result.trace = write_trace(engine);
    result.error = headline(result.kind, message) + "\n" + result.trace +
                   "  schedule: " + result.schedule + "\n";
}

}  // namespace
}  // namespace detail

char const* to_string(failure kind) noexcept {
    switch (kind) {
        case failure::none:
            return "none";
        case failure::assertion:
            return "assertion";
        case failure::race:
            return "race";
        case failure::deadlock:
            return "deadlock";
        case failure::leak:
            return "leak";
        case failure::use_after_destroy:
            return "use after destroy";
        case failure::double_free:
            return "double free";
        case failure::livelock:
            return "livelock";
        case failure::exception:
            return "exception";
        case failure::misuse:
            return "misuse";
        case failure::nondeterminism:
            return "nondeterminism";
        case failure::limit:
            return "limit";
        case failure::bad_schedule:
            return "bad schedule";
    }
    return "?";
}

report explore(options const& how, std::function<void()> const& scenario) {
    if (char const* const given = std::getenv("RONDO_SCHEDULE"); given != nullptr) {
        report result = replay(given, scenario);
        std::fprintf(stderr, "%s\n", result.ok ? result.trace.c_str() : result.error.c_str());
        return result;
    }
    detail::session const session;
    detail::execution& engine = detail::session::engine();
    detail::chooser decisions;
    decisions.search(how);
    detail::schedule_settings const settings = detail::settings_of(how);
    int const preemptions = how.mode == search::pct ? -1 : how.preemptions;

    report result;
    result.ok = true;
    bool exhausted = false;
    auto const begin = std::chrono::steady_clock::now();
    while (result.executions < how.max_executions && !exhausted) {
        engine.run(decisions, settings, preemptions, false, scenario);
        ++result.executions;
        if (engine.outcome() != failure::none) {
            result.ok = false;
            break;
        }
        exhausted = !decisions.advance();
    }
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - begin;
    result.executions_per_second = static_cast<double>(result.executions) / spent.count();
    result.complete = exhausted && !engine.histories_cut();
    if (!result.ok) {
        detail::describe_failure(engine, decisions, settings, scenario, result);
    }
    return result;
}

report replay(std::string const& schedule, std::function<void()> const& scenario) {
    detail::session const session;
    detail::execution& engine = detail::session::engine();
    detail::chooser decisions;
    detail::schedule_settings settings;
    detail::pool<detail::decision> path;
    std::uint32_t hash = 0;

    report result;
    result.schedule = schedule;
    std::string const wrong = detail::read_schedule(schedule, settings, path, hash);
    if (!wrong.empty()) {
        result.kind = failure::bad_schedule;
        result.error = detail::headline(result.kind, "\"" + schedule + "\": " + wrong);
        return result;
    }
    decisions.repeat(path);
    engine.run(decisions, settings, -1, true, scenario);
    result.executions = 1;
    result.kind = engine.outcome();
    std::string message = engine.message();
    bool const fits = decisions.consumed() && detail::hash_of(decisions.path()) == hash;
    if (!fits && result.kind != failure::nondeterminism) {
        result.kind = failure::nondeterminism;
        message =
            "the execution did not follow its schedule: another scenario, or one that does "
            "not repeat itself";
    }
    result.ok = result.kind == failure::none;
    result.trace = detail::write_trace(engine);
    if (!result.ok) {
        result.error = detail::headline(result.kind, message) + "\n" + result.trace;
    }
    return result;
}

}  // namespace rondo::check
