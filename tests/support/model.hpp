// model.hpp: how a model-checked scenario becomes a test.
//
// EXPECT_HOLDS(scenario) explores it exhaustively within a preemption bound of 3, or of
// RONDO_PREEMPTIONS, and prints how many executions that took. EXPECT_HOLDS(scenario, 1) does with
// one preemption fewer, for scenarios of more threads. EXPECT_HOLDS_AT_RANDOM(scenario) is for
// those with so many that even no preemption is too much: schedules at random (PCT), from the seed
// that it prints and takes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "rondo/check/check.hpp"
#include "support/seed.hpp"

namespace rondo::test {

inline int preemption_bound() {
    char const* const set = std::getenv("RONDO_PREEMPTIONS");
    return set != nullptr ? std::atoi(set) : 3;
}

inline void expect_holds(std::function<void()> const& scenario, int fewer = 0) {
    int const most = preemption_bound();  // below 0: without a bound, if somebody asks for that
    int const bound = most < 0 ? most : std::max(most - fewer, 0);
    check::options how;
    how.preemptions = bound;
    how.max_executions = 200'000'000;
    check::report const found = check::explore(how, scenario);
    EXPECT_TRUE(found.ok) << found.error << "\nRONDO_SCHEDULE=" << found.schedule;
    EXPECT_TRUE(!found.ok || found.complete);
    std::printf("[  explored] %llu executions with %d preemptions, %.0f a second\n",
                static_cast<unsigned long long>(found.executions), bound,
                found.executions_per_second);
}

inline void expect_holds_at_random(std::function<void()> const& scenario) {
    check::options how;
    how.mode = check::search::pct;
    how.seed = seed(1);
    how.max_executions = 50'000;
    check::report const found = check::explore(how, scenario);
    EXPECT_TRUE(found.ok) << found.error << "\nRONDO_SCHEDULE=" << found.schedule;
    std::printf("[  explored] %llu executions at random, %.0f a second\n",
                static_cast<unsigned long long>(found.executions), found.executions_per_second);
}

}  // namespace rondo::test

#define EXPECT_HOLDS(...) ::rondo::test::expect_holds(__VA_ARGS__)
#define EXPECT_HOLDS_AT_RANDOM(...) ::rondo::test::expect_holds_at_random(__VA_ARGS__)
