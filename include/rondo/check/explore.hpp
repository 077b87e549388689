// explore.hpp: runs a scenario in every way in which its threads may interleave.
//
// A scenario is a function that builds its objects, starts check::threads, joins them and states
// what must hold with RONDO_CHECK_EXPECT. explore() runs it again and again: depth first over all
// schedules with at most `preemptions` preemptions and all values that loads may return, or at
// random (PCT). It stops at the first failure, with a schedule that replay() repeats.
//
// Determinism    the same scenario and options give the same executions in the same order. A
//                scenario that depends on the clock, on random numbers or on state kept from the
//                previous execution is reported as failure::nondeterminism when that shows.
// Memory         inside an execution operator new allocates from an arena: what is not deleted when
//                the scenario returns is a leak; what is deleted stays quarantined until then. What
//                must outlive the execution (a set of outcomes, a gtest failure) has to be
//                allocated under an untracked_memory guard.
// Thread safety  explore() and replay() may be called from any OS thread; one runs at a time.
// Environment    RONDO_SCHEDULE=<schedule> makes explore() replay that schedule, with a trace on
//                standard error.
// Example        examples/check/check_your_own_lock.cpp

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check {

enum class search : std::uint8_t {
    dfs,  // exhaustive within the preemption bound
    pct,  // random priorities with pct_depth - 1 change points (Burckhardt et al., ASPLOS 2010)
};

struct options {
    int preemptions = 2;  // negative: unbounded; only dfs uses it
    search mode = search::dfs;
    std::uint64_t seed = 1;  // pct
    int pct_depth = 3;       // pct: how many ordering constraints a bug may need
    std::uint64_t max_executions = 1'000'000;
    unsigned max_steps = 10'000;     // in one execution; more is a livelock
    bool spurious_wakeups = true;    // one futex_wait() in an execution may return without a wake
    unsigned spurious_failures = 1;  // weak compare-exchanges that may fail in an execution
};

enum class failure : std::uint8_t {
    none,
    assertion,          // RONDO_CHECK_EXPECT, expect() or fail()
    race,               // accesses, or construction or destruction, with no happens-before
    deadlock,           // every thread waits: a cycle of locks, or a lost wake-up
    leak,               // memory or objects are left when the scenario returns
    use_after_destroy,  // an operation on an object that has been destroyed
    double_free,
    livelock,        // max_steps exceeded
    exception,       // left a thread's callable, the scenario, or a noexcept function
    misuse,          // of this library: unlock by another thread, a thread not joined, ...
    nondeterminism,  // the same schedule led elsewhere
    limit,           // too many threads, too much memory
    bad_schedule,    // the string given to replay() is not a schedule
};

char const* to_string(failure kind) noexcept;

struct report {
    bool ok = false;
    failure kind = failure::none;
    std::string error;     // kind, message and trace of the failing execution; empty if ok
    std::string trace;     // every operation of the failing or replayed execution
    std::string schedule;  // of the failing or replayed execution
    std::uint64_t executions = 0;
    bool complete = false;  // every execution within the bounds was run
    double executions_per_second = 0;

    explicit operator bool() const noexcept { return ok; }
};

report explore(options const& how, std::function<void()> const& scenario);
report replay(std::string const& schedule, std::function<void()> const& scenario);

// Whether the caller runs inside an execution.
using detail::running;

// Ends the execution with failure::assertion; outside an execution, aborts the program.
[[noreturn]] void fail(std::string const& message) noexcept;
void expect(bool condition, char const* what,
            std::source_location at = std::source_location::current()) noexcept;

// While it lives, this model thread allocates as if outside the execution.
class [[nodiscard("it acts until the end of its scope")]] untracked_memory {
  public:
    untracked_memory() noexcept;
    ~untracked_memory();
    untracked_memory(untracked_memory const&) = delete;
    untracked_memory& operator=(untracked_memory const&) = delete;

  private:
    void* arena_;
};

}  // namespace rondo::check

#define RONDO_CHECK_EXPECT(expression) \
    ::rondo::check::expect(static_cast<bool>(expression), #expression)
