// Chains of a million: whatever wakes, awaits, stops or ends next to a million others needs the
// stack of one. Every test marks the stack at each link and compares the extremes.
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"
#include "support/stack_gauge.hpp"

namespace rondo {
namespace {

using test::manual_loop;
using test::marks_its_end;
using test::permits;
using test::stack_gauge;

constexpr std::size_t million = 1'000'000;
constexpr std::size_t one_stack = 64 * 1024;  // bytes; a million levels would take tens of MB

task<void> wake_next(permits& mine, permits& next, stack_gauge& gauge) {
    auto got = co_await mine.acquire();
    gauge.mark();
    got.forget();
    next.release();
}

TEST(Chains, AMillionTasksEachWakingTheNextDoNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    std::deque<permits> turns;
    turns.emplace_back(0U);
    for (std::size_t i = 0; i < million; ++i) {
        permits& mine = turns.back();
        spawn(loop, wake_next(mine, turns.emplace_back(0U), gauge)).detach();
    }
    loop.run_ready();
    ASSERT_EQ(gauge.marks(), 0U);
    turns.front().release();
    loop.run_ready();
    EXPECT_EQ(gauge.marks(), million);
    EXPECT_EQ(turns.back().available(), 1U);
    EXPECT_LT(gauge.span(), one_stack);
}

task<void> join_next(run_loop& loop, std::size_t below, stack_gauge& gauge) {
    if (below != 0) {
        auto next = spawn(loop, join_next(loop, below - 1, gauge));
        auto const ended = co_await next.join();
        EXPECT_TRUE(ended.has_value());
    }
    gauge.mark();
}

TEST(Chains, AHundredThousandTasksEachJoiningTheNextDoNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    spawn(loop, join_next(loop, million / 10, gauge)).detach();
    loop.run_ready();
    EXPECT_EQ(gauge.marks(), million / 10 + 1);
    EXPECT_LT(gauge.span(), one_stack);
}

// A chain of tasks that await each other; the last one waits for a permit.
task<std::size_t> nest(std::size_t below, permits& bottom, stack_gauge& gauge) {
    marks_its_end const end{gauge};
    gauge.mark();
    if (below == 0) {
        auto const got = co_await bottom.acquire();
        co_return 0;
    }
    std::size_t const depth = co_await nest(below - 1, bottom, gauge);
    gauge.mark();
    co_return depth + 1;
}

TEST(Chains, AMillionNestedAwaitsThatNeverSuspendDoNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    permits bottom{1};
    auto chain = spawn(loop, nest(million, bottom, gauge));
    loop.run_ready();
    EXPECT_EQ(chain.blocking_join().value(), million);
    EXPECT_EQ(gauge.marks(), 3 * million + 2);
    EXPECT_LT(gauge.span(), one_stack);
}

TEST(Chains, AMillionNestedAwaitsResumedFromTheBottomDoNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    permits bottom{0};
    auto chain = spawn(loop, nest(million, bottom, gauge));
    loop.run_ready();
    ASSERT_FALSE(chain.ended());
    bottom.release();
    loop.run_ready();
    EXPECT_EQ(chain.blocking_join().value(), million);
    EXPECT_LT(gauge.span(), one_stack);
}

TEST(Chains, StoppingAMillionSuspendedTasksThatAwaitEachOtherDoesNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    permits bottom{0};
    auto chain = spawn(loop, nest(million, bottom, gauge));
    loop.run_ready();
    std::size_t const before = gauge.marks();
    gauge.mark();
    chain.request_stop();
    EXPECT_EQ(gauge.marks(), before + 1) << "nothing unwinds in the thread that asks";
    loop.run_ready();
    EXPECT_EQ(chain.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(gauge.marks(), before + 1 + million + 1);
    EXPECT_LT(gauge.span(), one_stack);
    EXPECT_FALSE(bottom.awaited());
}

TEST(Chains, StoppingAHundredThousandTasksOfOneParentDoesNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    permits shared{0};
    stop_source parent;
    for (std::size_t i = 0; i < million / 10; ++i) {
        spawn(loop, wake_next(shared, shared, gauge), parent.token()).detach();
        spawn(loop, nest(0, shared, gauge), parent.token()).detach();
    }
    loop.run_ready();
    std::size_t const before = gauge.marks();
    parent.request_stop();
    loop.run_ready();
    EXPECT_EQ(gauge.marks(), before + million / 10);
    EXPECT_FALSE(shared.awaited());
    EXPECT_LT(gauge.span(), one_stack);
}

task<void> throw_through(std::size_t below, stack_gauge& gauge) {
    marks_its_end const end{gauge};
    if (below == 0) throw std::runtime_error{"from the bottom"};
    co_await throw_through(below - 1, gauge);
}

TEST(Chains, AnExceptionThroughAHundredThousandAwaitsDoesNotGrowTheStack) {
    stack_gauge gauge;
    run_loop loop;
    auto chain = spawn(loop, throw_through(million / 10, gauge));
    loop.run_ready();
    EXPECT_THROW(std::ignore = chain.blocking_join(), std::runtime_error);
    EXPECT_EQ(gauge.marks(), million / 10 + 1);
    EXPECT_LT(gauge.span(), one_stack);
}

TEST(Chains, AMillionStopSourcesLinkedToEachOtherAreStoppedWithoutRecursion) {
    struct level : stop_hook {
        explicit level(stack_gauge& g)
            : stop_hook([](stop_hook& h) noexcept { static_cast<level&>(h).gauge.mark(); }),
              gauge(g) {}
        stack_gauge& gauge;
        stop_source source;
        stop_link link{source};
    };
    stack_gauge gauge;
    stop_source top;
    std::deque<level> levels;
    stop_token above = top.token();
    for (std::size_t i = 0; i < million; ++i) {
        level& here = levels.emplace_back(gauge);
        here.link.attach(above);
        above = here.source.token();
        ASSERT_TRUE(above.add(here));
    }
    gauge.mark();
    EXPECT_TRUE(top.request_stop());
    EXPECT_EQ(gauge.marks(), million + 1);
    EXPECT_TRUE(levels.back().source.stop_requested());
    while (!levels.empty()) levels.pop_back();  // a source outlives what is attached to it
    EXPECT_LT(gauge.span(), one_stack);
}

// --- combinators inside combinators ----------------------------------------------------------

constexpr std::size_t combinators = 100'000;

task<void> nest_timeouts(std::size_t below, permits& bottom, stack_gauge& gauge) {
    marks_its_end const end{gauge};
    if (below == 0) {
        auto const got = co_await bottom.acquire();
        co_return;
    }
    auto const r = co_await with_timeout(nest_timeouts(below - 1, bottom, gauge),
                                         std::chrono::hours{static_cast<int>(below)});
    EXPECT_TRUE(r.has_value());
}

task<void> nest_races(std::size_t below, permits& bottom, permits& never, stack_gauge& gauge) {
    marks_its_end const end{gauge};
    if (below == 0) {
        auto const got = co_await bottom.acquire();
        co_return;
    }
    auto const r = co_await when_any(never.acquire(), nest_races(below - 1, bottom, never, gauge));
    EXPECT_EQ(r.index(), 1U);
}

task<void> nest_groups(std::size_t below, permits& bottom, stack_gauge& gauge) {
    marks_its_end const end{gauge};
    auto const got = co_await bottom.acquire();
    if (below != 0) (void)co_await when_all(yield(), nest_groups(below - 1, bottom, gauge));
}

template <class Chain>
void expect_flat_when_stopped(Chain chain, std::size_t levels) {
    stack_gauge gauge;
    manual_loop loop;
    permits bottom{0};
    auto handle = spawn(loop, chain(bottom, gauge));
    loop.run_ready();
    gauge.mark();
    handle.request_stop();
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(gauge.marks(), levels + 2);
    EXPECT_LT(gauge.span(), one_stack);
    EXPECT_FALSE(bottom.awaited());
}

template <class Chain>
void expect_flat_when_completed(Chain chain, std::size_t levels) {
    stack_gauge gauge;
    manual_loop loop;
    permits bottom{0};
    auto handle = spawn(loop, chain(bottom, gauge));
    loop.run_ready();
    bottom.release(levels + 1);
    loop.run_ready();
    EXPECT_TRUE(handle.blocking_join().has_value());
    EXPECT_EQ(gauge.marks(), levels + 1);
    EXPECT_LT(gauge.span(), one_stack);
}

auto const timeouts = [](permits& bottom, stack_gauge& gauge) {
    return nest_timeouts(combinators, bottom, gauge);
};

TEST(Chains, AHundredThousandTimeoutsInEachOtherStopWithoutGrowingTheStack) {
    expect_flat_when_stopped(timeouts, combinators);
}

TEST(Chains, AHundredThousandTimeoutsInEachOtherEndWithoutGrowingTheStack) {
    expect_flat_when_completed(timeouts, combinators);
}

TEST(Chains, TheOutermostOfAHundredThousandTimeoutsStopsThoseInsideWithoutGrowingTheStack) {
    stack_gauge gauge;
    manual_loop loop;
    permits bottom{0};
    auto handle = spawn(loop, [](permits& p, stack_gauge& g) -> task<bool> {
        auto const r =
            co_await with_timeout(nest_timeouts(combinators, p, g), std::chrono::milliseconds{1});
        co_return r.has_value();
    }(bottom, gauge));
    loop.run_ready();
    loop.advance(std::chrono::milliseconds{1});
    EXPECT_FALSE(handle.blocking_join().value());
    EXPECT_EQ(gauge.marks(), combinators + 1);
    EXPECT_LT(gauge.span(), one_stack);
}

TEST(Chains, AHundredThousandRacesInEachOtherStopWithoutGrowingTheStack) {
    permits never{0};
    expect_flat_when_stopped(
        [&](permits& bottom, stack_gauge& gauge) {
            return nest_races(combinators, bottom, never, gauge);
        },
        combinators);
    EXPECT_FALSE(never.awaited());
}

TEST(Chains, AHundredThousandRacesInEachOtherEndWithoutGrowingTheStack) {
    permits never{0};
    expect_flat_when_completed(
        [&](permits& bottom, stack_gauge& gauge) {
            return nest_races(combinators, bottom, never, gauge);
        },
        combinators);
    EXPECT_FALSE(never.awaited());
}

TEST(Chains, AHundredThousandGroupsInEachOtherEndWithoutGrowingTheStack) {
    expect_flat_when_completed(
        [](permits& bottom, stack_gauge& gauge) { return nest_groups(combinators, bottom, gauge); },
        combinators);
}

}  // namespace
}  // namespace rondo
