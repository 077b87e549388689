// search_test.cpp: what is explored, how much of it, and that it repeats.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rondo/check/check.hpp"
#include "support/seed.hpp"

namespace {

namespace check = rondo::check;
using check::failure;
using order = std::memory_order;

// Two threads with n operations each, none of which can be told from another.
auto two_threads(int n) {
    return [=] {
        check::atomic<int> x{0};
        auto const body = [&] {
            for (int i = 0; i < n; ++i) {
                x.fetch_add(1);
            }
        };
        check::thread other(body);
        body();
        other.join();
    };
}

std::uint64_t executions(int preemptions, int operations) {
    auto const result = check::explore({.preemptions = preemptions}, two_threads(operations));
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(result.complete);
    return result.executions;
}

TEST(Search, CountsAreThoseComputedByHand) {
    // Unbounded: all orders of n and n operations, (2n over n).
    EXPECT_EQ(executions(-1, 1), 2U);
    EXPECT_EQ(executions(-1, 2), 6U);
    EXPECT_EQ(executions(-1, 8), 12'870U);
    // The scenario runs first. Without preemptions it runs to its end, then the other thread.
    EXPECT_EQ(executions(0, 3), 1U);
    // One preemption, before any of its 3 operations: the other thread then runs to its end.
    EXPECT_EQ(executions(1, 3), 4U);
    // Two: as before, or in addition one in the other thread, before its 2nd or 3rd operation. Back
    // in the scenario, the rest of it runs.
    EXPECT_EQ(executions(2, 3), 4U + 3U * 2U);
}

// A thread that starts another may be overtaken by it before its own first operation.
TEST(Search, ThreadIsOvertakenByTheOneItStarts) {
    std::set<int> outcomes;
    auto const result = check::explore({}, [&] {
        check::atomic<int> x{0};
        int seen = -1;
        check::thread parent([&] {
            check::thread child([&] { x.store(1); });
            seen = x.load();
            child.join();
        });
        parent.join();
        check::untracked_memory const guard;
        outcomes.insert(seen);
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_EQ(outcomes, (std::set<int>{0, 1}));
}

TEST(Search, LoadsBranchOverTheStoresTheyMayRead) {
    auto const result = check::explore({.preemptions = 0}, [] {
        check::atomic<int> x{0};
        check::thread reader([&] { static_cast<void>(x.load(order::relaxed)); });
        x.store(1, order::relaxed);
        x.store(2, order::relaxed);
        reader.join();
    });
    EXPECT_EQ(result.executions, 3U);
}

// The other thread must get the processor before the scenario is done, and lose it before it is.
void needs_exactly_two() {
    check::atomic<int> phase{0};
    check::atomic<int> seen{0};
    check::thread other([&] {
        seen.store(phase.load());
        phase.store(7);
    });
    phase.store(1);
    bool const between = seen.load() == 1;  // other was preempted after its store to seen,
    bool const early = phase.load() == 1;   // before its store to phase
    other.join();
    RONDO_CHECK_EXPECT(!(between && early));
}

TEST(Search, PreemptionBoundSeparatesBugs) {
    EXPECT_TRUE(check::explore({.preemptions = 1}, needs_exactly_two).ok);
    EXPECT_FALSE(check::explore({.preemptions = 2}, needs_exactly_two).ok);
}

TEST(Search, WeakCompareExchangeFailsSpuriouslyAsOftenAsAllowed) {
    auto const executions_with = [](unsigned failures) {
        auto const result = check::explore({.spurious_failures = failures}, [] {
            check::atomic<int> x{0};
            int expected = 0;
            while (!x.compare_exchange_weak(expected, 1)) {
            }
        });
        EXPECT_TRUE(result.ok) << result.error;
        return result.executions;
    };
    EXPECT_EQ(executions_with(0), 1U);
    EXPECT_EQ(executions_with(1), 2U);
    EXPECT_EQ(executions_with(3), 4U);
}

// An exchange has at most 26 outcomes: stores that may be read, and the failure without a reason.
TEST(Search, IsIncompleteIfASpuriousFailureIsOneOutcomeTooMany) {
    for (int const stores : {24, 25}) {
        bool failed = false;
        auto const result = check::explore({.preemptions = 0}, [&] {
            check::atomic<int> x{0};
            check::thread writer([&] {
                for (int i = 1; i <= stores; ++i) x.store(i, order::relaxed);
            });
            check::thread other([&] {
                int expected = stores;
                bool const done = x.compare_exchange_weak(expected, 0, order::relaxed);
                failed = failed || (!done && expected == stores);
            });
            writer.join();
            other.join();
        });
        EXPECT_TRUE(result.ok) << result.error;
        EXPECT_EQ(failed, stores == 24);
        EXPECT_EQ(result.complete, failed) << stores;
    }
}

TEST(Search, StopsAtTheGivenNumberOfExecutions) {
    auto const result = check::explore({.preemptions = -1, .max_executions = 10}, two_threads(8));
    EXPECT_TRUE(result.ok);
    EXPECT_FALSE(result.complete);
    EXPECT_EQ(result.executions, 10U);
}

TEST(Search, RepeatsItself) {
    auto const once = check::explore({}, needs_exactly_two);
    auto const again = check::explore({}, needs_exactly_two);
    EXPECT_EQ(once.executions, again.executions);
    EXPECT_EQ(once.schedule, again.schedule);
    EXPECT_EQ(once.error, again.error);
}

// Without preemptions nothing comes between the count and the wait that it announces.
TEST(Search, WakesEveryChoiceOfWaiters) {
    std::set<unsigned> woken;
    auto const result = check::explore({.preemptions = 0, .spurious_wakeups = false}, [&] {
        check::atomic<std::uint32_t> word{0};
        int waiting = 0;  // plain, as the threads take turns only where they block
        unsigned first = 0;
        auto const wait = [&] {
            ++waiting;
            check::futex_wait(word, 0);
            first = first == 0 ? check::thread_id() : first;
            check::futex_wake(&word, 1);  // and pass it on
        };
        check::thread a(wait);
        check::thread b(wait);
        check::thread waker([&] {
            bool const both = waiting == 2;
            word.store(both ? 0 : 1);
            check::futex_wake(&word, 1);
        });
        a.join();
        b.join();
        waker.join();
        if (word.load() == 0) {
            check::untracked_memory const guard;
            woken.insert(first);
        }
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_EQ(woken, (std::set<unsigned>{1, 2}));
}

TEST(Search, TimedWaitMayEndBothWays) {
    std::set<bool> outcomes;
    auto const result = check::explore({}, [&] {
        check::atomic<std::uint32_t> word{0};
        check::thread waker([&] {
            word.store(1);
            check::futex_wake(&word, 1);
        });
        bool const woken = check::futex_wait_until(word, 0, {});
        waker.join();
        check::untracked_memory const guard;
        outcomes.insert(woken);
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_EQ(outcomes, (std::set<bool>{false, true}));
}

TEST(Search, TimedWaitNobodyWakesTimesOut) {
    auto const result = check::explore({}, [] {
        check::atomic<std::uint32_t> word{0};
        RONDO_CHECK_EXPECT(!check::futex_wait_until(word, 0, {}));
    });
    EXPECT_TRUE(result.ok) << result.error;
}

// Two threads that poll must not keep a third one from the processor for ever.
TEST(Search, PollingThreadsAreScheduledFairly) {
    auto const poll_by = [](auto pause) {
        return [=] {
            check::atomic<std::uint32_t> idle{0};
            check::atomic<bool> done{false};
            auto const poll = [&] {
                while (!done.load(order::relaxed)) {
                    pause(idle);
                }
            };
            check::thread a(poll);
            check::thread b(poll);
            check::thread setter([&] { done.store(true, order::relaxed); });
            a.join();
            b.join();
            setter.join();
        };
    };
    auto const spinning =
        check::explore({.preemptions = 1}, poll_by([](auto&) { check::spin_pause(); }));
    EXPECT_TRUE(spinning.ok) << spinning.error;
    EXPECT_TRUE(spinning.complete);
    auto const sleeping = check::explore(
        {.preemptions = 1},
        poll_by([](auto& word) { static_cast<void>(check::futex_wait_until(word, 0, {})); }));
    EXPECT_TRUE(sleeping.ok) << sleeping.error;
    EXPECT_TRUE(sleeping.complete);
}

TEST(Search, PausingThreadLetsAnotherTakeAStep) {
    auto const result = check::explore({.preemptions = -1}, [] {
        check::atomic<int> x{0};
        check::thread other([&] { x.store(1, order::relaxed); });
        check::spin_pause();
        static_cast<void>(x.load(order::relaxed));
        other.join();
    });
    // The store comes first. The load reads it, or still the initial value.
    EXPECT_EQ(result.executions, 2U);
}

// Fairness must not hold a polling thread back for longer than one step of the one it waits for.
TEST(Search, PollingThreadSeesEveryStep) {
    std::set<std::string> seen;
    auto const result = check::explore({.preemptions = 2}, [&] {
        check::atomic<int> x{0};
        check::atomic<int> y{0};
        check::thread busy([&] {
            y.store(1);
            y.store(2);
        });
        check::thread writer([&] {
            x.store(1);
            x.store(2);
        });
        std::string reads;
        for (int i = 0; i < 3; ++i) {
            reads += static_cast<char>('0' + x.load());
            check::spin_pause();
        }
        busy.join();
        writer.join();
        check::untracked_memory const guard;
        seen.insert(std::string(reads));
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(seen.contains("001"));
    EXPECT_TRUE(seen.contains("002"));
}

TEST(Search, WakingADestroyedWordIsAllowed) {
    auto const result = check::explore({}, [] {
        std::optional<check::atomic<std::uint32_t>> word(std::in_place, 0U);
        auto const* const address = &*word;
        word.reset();
        check::futex_wake(address, 1);
    });
    EXPECT_TRUE(result.ok) << result.error;
}

TEST(Search, OfTwoThreadsAtOnceLeavesTheTerminateHandlerAsItWas) {
    std::terminate_handler const before = std::get_terminate();
    for (int i = 0; i < 10; ++i) {
        std::atomic<bool> begun{false};
        std::thread first{[&] {
            check::explore({}, [&] {
                if (begun.exchange(true)) return;
                // Time for the second one to come; it cannot be seen from here.
                for (int n = 0; n < 1'000; ++n) std::this_thread::yield();
            });
        }};
        std::thread second{[&] {
            while (!begun) std::this_thread::yield();
            check::explore({}, [] {});
        }};
        first.join();
        second.join();
        ASSERT_EQ(std::get_terminate(), before);
    }
}

// Depth 3: three ordering constraints, found by random priorities.
TEST(Pct, FindsABugOfDepthThree) {
    auto const scenario = [] {
        check::atomic<int> a{0};
        check::atomic<int> b{0};
        check::thread other([&] {
            a.store(1);
            b.store(1);
        });
        int const a_before = a.load();
        int const b_before = b.load();
        int const a_after = a.load();
        int const b_after = b.load();
        other.join();
        RONDO_CHECK_EXPECT(!(a_before == 0 && b_before == 0 && a_after == 1 && b_after == 0));
    };
    std::uint64_t const seed = rondo::test::seed(20);
    check::options const how{
        .mode = check::search::pct, .seed = seed, .pct_depth = 3, .max_executions = 5'000};
    auto const found = check::explore(how, scenario);
    EXPECT_EQ(found.kind, failure::assertion);
    EXPECT_EQ(check::replay(found.schedule, scenario).error.find(found.trace) != std::string::npos,
              true);
    EXPECT_EQ(check::explore(how, scenario).executions, found.executions);
}

TEST(Pct, RunsAsOftenAsAsked) {
    auto const result =
        check::explore({.mode = check::search::pct, .max_executions = 500}, two_threads(3));
    EXPECT_TRUE(result.ok);
    EXPECT_FALSE(result.complete);
    EXPECT_EQ(result.executions, 500U);
}

TEST(Replay, RefusesWhatIsNotASchedule) {
    auto const reason = [](std::string const& text) {
        auto const result = check::replay(text, [] {});
        EXPECT_EQ(result.kind, failure::bad_schedule);
        EXPECT_FALSE(result.ok);
        return result.error;
    };
    EXPECT_NE(reason("").find("does not start"), std::string::npos);
    EXPECT_NE(reason("rondo2:w1c1m9:a:00000000").find("does not start"), std::string::npos);
    EXPECT_NE(reason("rondo1:w1c1:a:00000000").find("settings"), std::string::npos);
    EXPECT_NE(reason("rondo1:w1c1m9:a99999999999:00000000").find("decisions"), std::string::npos);
    EXPECT_NE(reason("rondo1:w1c1m9:aXb:00000000").find("hash"), std::string::npos);
    EXPECT_NE(reason("rondo1:w1c1m9:a:00").find("hash"), std::string::npos);
}

TEST(Replay, OfAnotherScenarioIsNoticed) {
    auto const found = check::explore({}, needs_exactly_two);
    ASSERT_FALSE(found.ok);
    EXPECT_EQ(check::replay(found.schedule, two_threads(1)).kind, failure::nondeterminism);
    EXPECT_EQ(check::replay(found.schedule, two_threads(20)).kind, failure::nondeterminism);
}

TEST(Replay, ShowsOrdersValuesAndPlaces) {
    auto const found = check::explore({}, [] {
        check::atomic<int> state{3};
        label(state, "state");
        state.store(4, order::release);
        RONDO_CHECK_EXPECT(state.load(order::acquire) == 3);
    });
    EXPECT_NE(found.error.find("store state release <- 4"), std::string::npos) << found.error;
    EXPECT_NE(found.error.find("load state acquire -> 4"), std::string::npos);
    EXPECT_NE(found.error.find("search_test.cpp:"), std::string::npos);
    EXPECT_NE(found.error.find("expected state.load(order::acquire) == 3"), std::string::npos);
}

TEST(Replay, IsWhatTheEnvironmentAsksFor) {
    auto const found = check::explore({}, needs_exactly_two);
    ASSERT_FALSE(found.ok);
    setenv("RONDO_SCHEDULE", found.schedule.c_str(), 1);
    testing::internal::CaptureStderr();
    auto const again = check::explore({}, needs_exactly_two);
    unsetenv("RONDO_SCHEDULE");
    EXPECT_NE(testing::internal::GetCapturedStderr().find(found.trace), std::string::npos);
    EXPECT_EQ(again.executions, 1U);
    EXPECT_EQ(again.kind, found.kind);
}

TEST(Replay, ScenarioThatDoesNotRepeatItselfIsReported) {
    int run = 0;
    auto const shrinks = check::explore({}, [&] { two_threads(run++ == 0 ? 3 : 1)(); });
    EXPECT_EQ(shrinks.kind, failure::nondeterminism) << shrinks.error;
    run = 0;
    auto const changes = check::explore({}, [&] {
        check::atomic<std::uint32_t> x{0};
        check::thread other([&] { x.fetch_add(1); });
        if (run++ == 0) {
            static_cast<void>(x.load());
        } else {
            check::thread third([&] { x.fetch_add(1); });
            third.join();
        }
        static_cast<void>(x.load());
        other.join();
    });
    EXPECT_EQ(changes.kind, failure::nondeterminism) << changes.error;
}

// Not asserted: the number goes to the log, where a slower checker would be seen.
TEST(Speed, IsPrinted) {
    auto const result = check::explore({.preemptions = -1}, two_threads(8));
    std::printf("2 threads, 8 operations each: %llu executions, %.0f a second\n",
                static_cast<unsigned long long>(result.executions), result.executions_per_second);
    auto const lock = check::explore({.preemptions = 3}, [] {
        check::mutex m;
        check::cell<int> value{0};
        check::atomic<int> done{0};
        auto const body = [&] {
            m.lock();
            ++value.write();
            m.unlock();
            done.fetch_add(1, order::acq_rel);
        };
        check::thread a(body);
        check::thread b(body);
        body();
        a.join();
        b.join();
        RONDO_CHECK_EXPECT(value == 3 && done.load(order::relaxed) == 3);
    });
    EXPECT_TRUE(lock.ok) << lock.error;
    std::printf("3 threads, a mutex and a counter: %llu executions, %.0f a second\n",
                static_cast<unsigned long long>(lock.executions), lock.executions_per_second);
}

}  // namespace
