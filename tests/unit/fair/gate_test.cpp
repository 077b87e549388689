// The gate: who passes, who waits and in which order, who is refused and when it is told.
#include "rondo/fair/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/fair/gate_limits.hpp"
#include "rondo/fair/gate_permit.hpp"
#include "support/counted_new.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using door = gate<int>;

gate_config<int> places(std::size_t in_flight) {
    gate_config<int> c;
    c.max_in_flight = in_flight;
    return c;
}

// A caller in a task of its own: what it got, and when.
struct visit {
    int tenant = 0;
    std::optional<std::expected<gate_permit, gate_error>> got;
    time_point at{};

    bool waits() const { return !got.has_value(); }
    bool in() const { return got && got->has_value(); }
    gate_error why() const { return got->error(); }
};

class GateTest : public testing::Test {
  public:
    manual_loop loop;
    std::vector<int> order;  // of tenants let in

    task<void> come(door* g, visit* v, std::uint64_t cost, clock::duration patience) {
        auto got = co_await g->acquire_for(v->tenant, patience, cost);
        v->at = loop.now();
        if (got) order.push_back(v->tenant);
        v->got.emplace(std::move(got));
    }
    join_handle<void> enter(door& g, visit& v, std::uint64_t cost = 1,
                            clock::duration patience = clock::duration::max()) {
        auto task = spawn(loop, come(&g, &v, cost, patience));
        loop.run_ready();
        return task;
    }
    // So many visits of a tenant, waiting.
    std::vector<visit> line(door& g, int tenant, std::size_t callers, std::uint64_t cost = 1) {
        std::vector<visit> all(callers);
        for (visit& v : all) {
            v.tenant = tenant;
            enter(g, v, cost).detach();
        }
        return all;
    }
    gate_config<int> at_the_loop(gate_config<int> c) {
        c.time = &loop.timers();
        return c;
    }
};

TEST(Gate, PassesWhileThereArePlaces) {
    door g{places(2)};
    auto one = g.try_acquire(1);
    auto two = g.try_acquire(1);
    ASSERT_TRUE(one && two);
    EXPECT_EQ(g.try_acquire(2).error(), try_gate_error::no_permit);
    EXPECT_EQ(g.stats().in_flight, 2U);
    one->release();
    EXPECT_EQ(g.stats().in_flight, 1U);
    EXPECT_TRUE(g.try_acquire(2));
    gate_stats const s = g.stats();
    EXPECT_EQ(s.passed, 3U);
    EXPECT_EQ(s.admitted(), 3U);
    EXPECT_EQ(s.queued, 0U);
    EXPECT_EQ(s.max_in_flight, 2U);
}

TEST(Gate, PassingAllocatesNothingAndRemembersNobody) {
    door g{places(2)};
    test::allocation_count const during;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(g.try_acquire(i));
    EXPECT_EQ(during.count(), 0);
    EXPECT_EQ(g.stats().tenants_known, 0U);
}

TEST(Gate, APermitIsGivenBackOnceWhoeverHasIt) {
    door g{places(1)};
    auto one = g.try_acquire(1);
    ASSERT_TRUE(one);
    gate_permit moved = std::move(*one);
    one->release();
    EXPECT_EQ(g.stats().in_flight, 1U);
    moved.release();
    moved.release();
    EXPECT_EQ(g.stats().in_flight, 0U);
    moved = *g.try_acquire(1);
    moved = *[&] {
        moved.release();
        return g.try_acquire(2);
    }();
    EXPECT_EQ(g.stats().in_flight, 1U);
}

TEST_F(GateTest, WhoWaitsHasThePlaceThatIsGivenBack) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit v{2, {}, {}};
    enter(g, v).detach();
    EXPECT_TRUE(v.waits());
    EXPECT_EQ(g.stats().queued, 1U);
    loop.advance(3ms);
    held->release();
    EXPECT_EQ(g.try_acquire(3).error(), try_gate_error::no_permit);  // it is v's by now
    loop.run_ready();
    ASSERT_TRUE(v.in());
    EXPECT_EQ((*v.got)->waited(), 3ms);
    EXPECT_EQ(g.stats().dequeued, 1U);
    EXPECT_EQ(g.stats().queue_time.max(), 3'000'000U);
}

TEST_F(GateTest, NobodyOvertakesTheLine) {
    door g{at_the_loop(places(2))};
    auto one = g.try_acquire(1);
    auto two = g.try_acquire(1);
    visit waits{1, {}, {}};
    enter(g, waits).detach();
    EXPECT_FALSE(g.try_acquire(7));
    one->release();
    EXPECT_FALSE(g.try_acquire(7));
    loop.run_ready();
    EXPECT_TRUE(waits.in());
    two->release();
    EXPECT_TRUE(g.try_acquire(7));  // the line is gone
}

TEST_F(GateTest, OneAtomicOperationIsEnoughAgainWhenTheLineIsGone) {
    door g{at_the_loop(places(1))};
    {
        auto held = g.try_acquire(1);
        auto waited = line(g, 2, 1);
        held->release();
        loop.run_ready();
        ASSERT_TRUE(waited[0].in());
    }
    std::size_t const known = g.stats().tenants_known;
    EXPECT_TRUE(g.try_acquire(3));
    EXPECT_EQ(g.stats().tenants_known, known);  // nobody has looked who it is
}

TEST_F(GateTest, TenantsTakeTurnsByWeight) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    c.tenants = {{1, {.weight = 3}}, {2, {.weight = 1}}};
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto heavy = line(g, 1, 60);
    auto light = line(g, 2, 60);
    held->release();
    for (int i = 0; i < 40; ++i) {
        loop.run_ready();
        for (auto* const all : {&heavy, &light}) {
            for (visit& v : *all) {
                if (v.in()) (*v.got)->release();
            }
        }
    }
    loop.run_ready();
    ASSERT_GE(order.size(), 40U);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 40, 1)), 30, 3);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, ATenantThatComesIsLetInBeforeTheBacklogOfOthers) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(9);
    auto noisy = line(g, 1, 50);
    held->release();
    loop.run_ready();
    visit quiet{2, {}, {}};
    enter(g, quiet).detach();
    (*noisy[0].got)->release();
    loop.run_ready();
    EXPECT_TRUE(quiet.in());
    g.close();
    loop.run_ready();
}

// --- refusals --------------------------------------------------------------------------------

TEST_F(GateTest, EndsAWaitWhenItsTimeIsUpNotWhenItsTurnComes) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit v{1, {}, {}};
    enter(g, v, 1, 10ms).detach();
    time_point const came = loop.now();
    loop.advance(1h);
    ASSERT_FALSE(v.waits());
    EXPECT_EQ(v.why(), gate_error::timed_out);
    EXPECT_EQ(v.at, came + 10ms);
    EXPECT_EQ(g.stats().expired, 1U);
    held->release();
    EXPECT_TRUE(g.try_acquire(2));
}

TEST_F(GateTest, MaxWaitIsForWhoSaysNothing) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_wait = 7ms;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    std::optional<gate_error> why;
    auto waits = [](door* from, std::optional<gate_error>* to) -> task<void> {
        auto const got = co_await from->acquire(1);
        if (!got) *to = got.error();
    };
    spawn(loop, waits(&g, &why)).detach();
    loop.advance(6ms);
    EXPECT_FALSE(why);
    loop.advance(1ms);
    EXPECT_EQ(why, gate_error::timed_out);
}

TEST_F(GateTest, AStoppedCallerLeavesTheLine) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    stop_source stop;
    std::optional<gate_error> why;
    auto waits = [](door* from, stop_token s, std::optional<gate_error>* to) -> task<void> {
        auto const got = co_await from->acquire(1, 1, s);
        if (!got) *to = got.error();
    };
    spawn(loop, waits(&g, stop.token(), &why)).detach();
    loop.run_ready();
    EXPECT_EQ(g.stats().queued, 1U);
    stop.request_stop();
    loop.run_ready();
    EXPECT_EQ(why, gate_error::stopped);
    EXPECT_EQ(g.stats().queued, 0U);
    EXPECT_EQ(g.stats().cancelled, 1U);
}

TEST_F(GateTest, ATaskThatUnwindsWhileItWaitsLeavesTheLine) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit v{2, {}, {}};
    {
        auto handle = enter(g, v);
        handle.request_stop();
        loop.run_ready();
    }
    EXPECT_TRUE(v.waits());
    EXPECT_EQ(g.stats().queued, 0U);
    held->release();
    EXPECT_TRUE(g.try_acquire(3));
}

TEST_F(GateTest, APermitThatNobodyIsLeftToTakeGoesToTheNext) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit gone{2, {}, {}};
    visit next{3, {}, {}};
    auto handle = enter(g, gone);
    enter(g, next).detach();
    held->release();        // gone has it, and has not run yet
    handle.request_stop();  // completion beats stop: it still has it
    loop.run_ready();
    EXPECT_TRUE(gone.in());
    EXPECT_TRUE(next.waits());
    (*gone.got)->release();
    loop.run_ready();
    EXPECT_TRUE(next.in());
}

TEST_F(GateTest, RefusesATenantThatHasItsLineFull) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_queued_per_tenant = 2;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto mine = line(g, 1, 3);
    EXPECT_TRUE(mine[1].waits());
    ASSERT_FALSE(mine[2].waits());
    EXPECT_EQ(mine[2].why(), gate_error::tenant_full);
    auto other = line(g, 2, 1);
    EXPECT_TRUE(other[0].waits());
    EXPECT_EQ(g.stats().rejected_tenant, 1U);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, EvictsTheNewestOfTheLongestForAnother) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_queued = 3;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto noisy = line(g, 1, 4);
    EXPECT_EQ(noisy[3].why(), gate_error::tenant_full);  // nobody has more than its own tenant
    auto quiet = line(g, 2, 1);
    EXPECT_TRUE(quiet[0].waits());
    EXPECT_TRUE(noisy[1].waits());
    ASSERT_FALSE(noisy[2].waits());
    EXPECT_EQ(noisy[2].why(), gate_error::evicted);
    gate_stats const s = g.stats();
    EXPECT_EQ(s.evicted, 1U);
    EXPECT_EQ(s.queued, 3U);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, RejectsWhoComesIfThatIsThePolicy) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_queued = 1;
    c.when_full = backpressure::reject;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto noisy = line(g, 1, 1);
    auto quiet = line(g, 2, 1);
    ASSERT_FALSE(quiet[0].waits());
    EXPECT_EQ(quiet[0].why(), gate_error::gate_full);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, DropsOneOfItsOwnIfThatIsThePolicy) {
    for (auto const how : {backpressure::drop_oldest, backpressure::drop_newest}) {
        gate_config<int> c = at_the_loop(places(1));
        c.max_queued_per_tenant = 2;
        c.when_full = how;
        door g{std::move(c)};
        auto held = g.try_acquire(1);
        auto mine = line(g, 1, 3);
        std::size_t const gone = how == backpressure::drop_oldest ? 0 : 1;
        for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(mine[i].waits(), i != gone);
        EXPECT_EQ(mine[gone].why(), gate_error::evicted);
        EXPECT_EQ(g.stats().displaced, 1U);
        g.close();
        loop.run_ready();
    }
}

TEST_F(GateTest, WithoutALineWhoFindsNoPlaceIsRefused) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_queued = 0;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto more = line(g, 1, 1);
    EXPECT_EQ(more[0].why(), gate_error::gate_full);
}

TEST_F(GateTest, CloseDrainLetsInThoseInLineAndRefusesOthers) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    auto two = line(g, 1, 2);
    g.close_drain();
    auto late = line(g, 2, 1);
    EXPECT_EQ(late[0].why(), gate_error::closed);
    EXPECT_EQ(g.try_acquire(3).error(), try_gate_error::closed);
    held->release();
    loop.run_ready();
    EXPECT_TRUE(two[0].in());
    EXPECT_FALSE(g.is_finished());
    (*two[0].got)->release();
    loop.run_ready();
    EXPECT_TRUE(two[1].in());
    (*two[1].got)->release();
    EXPECT_TRUE(g.is_finished());
    EXPECT_TRUE(g.is_closed());
}

TEST_F(GateTest, CloseRefusesThoseInLine) {
    gate_config<int> c = at_the_loop(places(2));
    c.max_in_flight_per_tenant = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto held_back = line(g, 1, 2);
    auto other = g.try_acquire(2);
    auto in_turn = line(g, 3, 2);
    g.close();
    loop.run_ready();
    for (auto* const all : {&held_back, &in_turn}) {
        for (visit const& v : *all) {
            ASSERT_FALSE(v.waits());
            EXPECT_EQ(v.why(), gate_error::closed);
        }
    }
    EXPECT_EQ(g.stats().returned, 4U);
    EXPECT_FALSE(g.is_finished());
    held->release();
    other->release();
    EXPECT_TRUE(g.is_finished());
}

// --- the limit of a tenant -------------------------------------------------------------------

TEST_F(GateTest, ATenantAtItsLimitHoldsUpNobodyElse) {
    gate_config<int> c = at_the_loop(places(4));
    c.max_in_flight_per_tenant = 2;
    door g{std::move(c)};
    auto slow = line(g, 1, 5);
    EXPECT_TRUE(slow[1].in());
    EXPECT_TRUE(slow[2].waits());
    auto other = g.try_acquire(2);
    EXPECT_TRUE(other);
    EXPECT_EQ(g.stats().in_flight, 3U);
    (*slow[0].got)->release();
    loop.run_ready();
    EXPECT_TRUE(slow[2].in());
    EXPECT_TRUE(slow[3].waits());
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, WhoIsHeldBackByItsTenantCanExpireAndBeEvicted) {
    gate_config<int> c = at_the_loop(places(2));
    c.max_in_flight_per_tenant = 1;
    c.max_queued = 3;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto held_back = line(g, 1, 2);
    visit brief{1, {}, {}};
    enter(g, brief, 1, 5ms).detach();
    loop.advance(5ms);
    EXPECT_EQ(brief.why(), gate_error::timed_out);
    auto other = g.try_acquire(2);
    auto in_turn = line(g, 2, 1);
    auto quiet = line(g, 3, 1);
    EXPECT_TRUE(held_back[0].waits());
    EXPECT_EQ(held_back[1].why(), gate_error::evicted);
    EXPECT_TRUE(quiet[0].waits());
    g.close();
    loop.run_ready();
}

// --- costs that are known later --------------------------------------------------------------

TEST_F(GateTest, WhatAPermitCostMoreDelaysItsTenantsNextTurn) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto slow = line(g, 1, 30);
    auto quick = line(g, 2, 30);
    held->release();
    for (int i = 0; i < 22; ++i) {
        loop.run_ready();
        for (visit& v : slow) {
            if (v.in()) (*v.got)->release(10);  // each of it takes ten times what it paid
        }
        for (visit& v : quick) {
            if (v.in()) (*v.got)->release();
        }
    }
    std::size_t const first = 22;
    ASSERT_GE(order.size(), first);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + first, 1)), 2, 1);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, WhatAPermitCostLessIsPaidBackOnlyForTheNextCaller) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto cautious = line(g, 1, 30, 10);  // pays for ten
    auto exact = line(g, 2, 30);
    held->release();
    for (int i = 0; i < 32; ++i) {
        loop.run_ready();
        for (visit& v : cautious) {
            if (v.in()) (*v.got)->release(1);
        }
        for (visit& v : exact) {
            if (v.in()) (*v.got)->release();
        }
    }
    ASSERT_GE(order.size(), 32U);
    EXPECT_LE(std::count(order.begin(), order.begin() + 10, 1), 1);  // it saved for the first one
    auto const later = std::count(order.begin() + 12, order.begin() + 32, 1);
    EXPECT_GE(later, 9);  // every second one
    EXPECT_LE(later, 11);
    g.close();
    loop.run_ready();
}

// --- changes ---------------------------------------------------------------------------------

TEST_F(GateTest, LoweredLimitsDropNobody) {
    door g{at_the_loop(places(4))};
    std::vector<gate_permit> held;
    for (int i = 0; i < 4; ++i) held.push_back(*g.try_acquire(1));
    auto waiting = line(g, 1, 3);
    gate_terms<int> less;
    less.max_in_flight = 2;
    less.max_queued = 1;
    less.max_queued_per_tenant = 1;
    g.reconfigure(less);
    loop.run_ready();
    EXPECT_EQ(g.stats().in_flight, 4U);
    EXPECT_EQ(g.stats().queued, 3U);
    auto late = line(g, 2, 1);
    EXPECT_FALSE(late[0].in());
    held.pop_back();
    held.pop_back();
    loop.run_ready();
    EXPECT_EQ(g.stats().in_flight, 2U);
    EXPECT_TRUE(waiting[0].waits());
    held.pop_back();
    loop.run_ready();
    EXPECT_EQ(g.stats().in_flight, 2U);
    EXPECT_TRUE(waiting[0].in());
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, RaisedLimitsLetInWhoWaits) {
    gate_config<int> c = at_the_loop(places(2));
    c.max_in_flight_per_tenant = 1;
    door g{std::move(c)};
    auto mine = line(g, 1, 4);
    EXPECT_TRUE(mine[1].waits());
    gate_terms<int> more;
    more.max_in_flight = 3;
    g.reconfigure(more);
    loop.run_ready();
    EXPECT_TRUE(mine[2].in());
    EXPECT_TRUE(mine[3].waits());
    EXPECT_EQ(g.stats().in_flight, 3U);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, NewWeightsHoldForWhoIsRemembered) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto one = line(g, 1, 80);
    auto two = line(g, 2, 80);
    gate_terms<int> t;
    t.max_in_flight = 1;
    t.entitlement_of = [](int who) { return entitlement{.weight = who == 1 ? 4U : 1U}; };
    g.reconfigure(std::move(t));
    held->release();
    for (int i = 0; i < 60; ++i) {
        loop.run_ready();
        for (auto* const all : {&one, &two}) {
            for (visit& v : *all) {
                if (v.in()) (*v.got)->release();
            }
        }
    }
    ASSERT_GE(order.size(), 50U);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 50, 1)), 40, 5);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, SaysWhoWasLetInTheMost) {
    gate_config<int> c = at_the_loop(places(8));
    c.max_in_flight_per_tenant = 4;  // so all are counted
    door g{std::move(c)};
    for (int i = 0; i < 5; ++i) (void)g.try_acquire(1, 3);
    (void)g.try_acquire(2);
    auto const top = g.top(1);
    ASSERT_EQ(top.first.size(), 1U);
    EXPECT_EQ(top.first[0].tenant, 1);
    EXPECT_NEAR(top.first[0].cost, 15, 0.1);
    EXPECT_NEAR(top.other, 1, 0.1);
}

// --- what cannot be --------------------------------------------------------------------------

TEST(Gate, ThrowsForWhatCannotBe) {
    auto const wrong = [](auto change) {
        gate_config<int> c;
        change(c);
        EXPECT_THROW(door{std::move(c)}, std::invalid_argument);
    };
    wrong([](auto& c) { c.max_in_flight = 0; });
    wrong([](auto& c) { c.max_in_flight_per_tenant = 0; });
    wrong([](auto& c) { c.max_queued_per_tenant = 0; });
    wrong([](auto& c) { c.when_full = backpressure::wait; });
    wrong([](auto& c) { c.max_wait = -1ns; });
    wrong([](auto& c) { c.quantum = 0; });
    wrong([](auto& c) { c.tenants = {{1, {.weight = 0}}}; });
    door g;
    EXPECT_THROW((void)g.try_acquire(1, 0), std::invalid_argument);
    EXPECT_THROW(g.reconfigure([] {
        gate_terms<int> t;
        t.max_in_flight = 0;
        return t;
    }()),
                 std::invalid_argument);
}

TEST(Gate, WhatTheUsersFunctionThrowsIsTheResult) {
    gate_config<int> c = places(1);
    c.entitlement_of = [](int) -> entitlement { throw std::runtime_error{"no such tenant"}; };
    door g{std::move(c)};
    auto held = g.try_acquire(1);  // passes: nobody is asked
    EXPECT_THROW((void)g.blocking_acquire_for(2, 1ms), std::runtime_error);
    EXPECT_EQ(g.stats().queued, 0U);
}

TEST(Gate, PlainThreadsWaitTheirTurn) {
    gate<std::string> g{[] {
        gate_config<std::string> c;
        c.max_in_flight = 2;
        return c;
    }()};
    int inside = 0;
    int most = 0;
    std::mutex lock;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, name = std::to_string(t % 2)] {
            for (int i = 0; i < 200; ++i) {
                auto const permit = g.blocking_acquire(name);
                ASSERT_TRUE(permit);
                {
                    std::lock_guard const guard{lock};
                    most = std::max(most, ++inside);
                }
                std::this_thread::yield();
                std::lock_guard const guard{lock};
                --inside;
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_LE(most, 2);
    EXPECT_EQ(g.stats().admitted(), 800U);
    EXPECT_EQ(g.stats().in_flight, 0U);
}

TEST_F(GateTest, RemembersNoMoreTenantsThanItNeeds) {
    door g{at_the_loop(places(1))};
    for (int round = 0; round < 100; ++round) {
        auto held = g.try_acquire(-1);
        std::vector<std::vector<visit>> all;
        for (int i = 0; i < 100; ++i) all.push_back(line(g, round * 100 + i, 1));
        held->release();
        for (int i = 0; i < 100; ++i) {
            loop.run_ready();
            for (auto& v : all) {
                if (v[0].in()) (*v[0].got)->release();
            }
        }
        loop.run_ready();
        ASSERT_EQ(g.stats().in_flight, 0U);
    }
    EXPECT_EQ(g.stats().dequeued, 10'000U);
    EXPECT_LE(g.stats().tenants_known, idle_tenants_kept + 200);
}

}  // namespace
}  // namespace rondo::fair
