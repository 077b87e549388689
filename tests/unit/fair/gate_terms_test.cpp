// The gate: costs that are corrected, limits and weights that change, what it remembers.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gate_visits.hpp"
#include "rondo/fair/gate.hpp"
#include "rondo/fair/gate_limits.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;

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

TEST_F(GateTest, WhatAPermitCostLessIsPaidBackToATenantAtItsLimitToo) {
    gate_config<int> c = at_the_loop(places(2));
    c.max_in_flight_per_tenant = 1;
    c.quantum = 1;
    door g{std::move(c)};
    auto cautious = line(g, 1, 60, 10);  // pays for ten
    auto one = line(g, 2, 60);
    auto another = line(g, 3, 60);
    for (int i = 0; i < 40; ++i) {
        loop.run_ready();
        for (visit& v : cautious) {
            if (v.in()) (*v.got)->release(1);
        }
        for (auto* const exact : {&one, &another}) {
            for (visit& v : *exact) {
                if (v.in()) (*v.got)->release();
            }
        }
    }
    ASSERT_GE(order.size(), 60U);
    auto const later = std::count(order.begin() + 30, order.begin() + 60, 1);
    EXPECT_GE(later, 8);  // every third one
    EXPECT_LE(later, 12);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, WhatWasTakenWhileNobodyWaitedIsNotPaidBack) {
    gate_config<int> c = at_the_loop(places(2));
    c.max_in_flight_per_tenant = 1;
    c.quantum = 1;
    door g{std::move(c)};
    auto dear = line(g, 1, 2, 100);  // the first one is let in at once
    auto one = line(g, 2, 20);
    auto another = line(g, 3, 20);
    (*dear[0].got)->release(1);
    come_and_go({&one, &another}, 30);
    EXPECT_TRUE(dear[1].waits());  // its tenant has saved fifteen or so
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

TEST_F(GateTest, ALoweredLimitOfATenantHoldsForThoseInLine) {
    door g{at_the_loop(places(3))};
    std::vector<gate_permit> held;
    for (int i = 0; i < 3; ++i) held.push_back(*g.try_acquire(9));
    auto mine = line(g, 1, 4);
    auto other = line(g, 2, 1);
    gate_terms<int> less;
    less.max_in_flight = 3;
    less.max_in_flight_per_tenant = 1;
    g.reconfigure(less);
    held.clear();
    loop.run_ready();
    EXPECT_EQ(g.stats().in_flight, 2U);
    EXPECT_TRUE(other[0].in());
    for (std::size_t i = 0; i < 4; ++i) {  // one after the other, as they came
        ASSERT_TRUE(mine[i].in()) << i;
        EXPECT_TRUE(i == 3 || mine[i + 1].waits()) << i;
        (*mine[i].got)->release();
        loop.run_ready();
    }
}

TEST_F(GateTest, ALoweredLimitLeavesNobodyInTurnOfATenantThatHasMore) {
    gate_config<int> c = at_the_loop(places(3));
    c.max_in_flight_per_tenant = 2;
    door g{std::move(c)};
    auto mine = line(g, 1, 2);
    auto other = line(g, 2, 1);
    auto more = line(g, 1, 1);
    gate_terms<int> less;
    less.max_in_flight = 3;
    less.max_in_flight_per_tenant = 1;
    g.reconfigure(less);
    (*mine[0].got)->release();
    loop.run_ready();
    EXPECT_TRUE(more[0].waits());
    (*mine[1].got)->release();
    loop.run_ready();
    EXPECT_TRUE(more[0].in());
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

TEST_F(GateTest, TermsThatCameMeanwhileAreNotReplacedByThoseBefore) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto one = line(g, 1, 30);
    auto two = line(g, 2, 30);
    gate_terms<int> before;
    before.max_in_flight = 1;
    gate_terms<int> after = before;
    after.tenants = {{1, {.weight = 4}}};
    before.entitlement_of = [&](int) -> entitlement {  // it is asked without the lock
        g.reconfigure(after);
        return {};
    };
    g.reconfigure(before);
    held->release();
    come_and_go({&one, &two}, 30);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 20, 1)), 16, 2);
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
    come_and_go({&one, &two}, 60);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 50, 1)), 40, 5);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, TermsWhoseFunctionThrowsHoldButForTheTenantsThatAreRemembered) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    c.tenants = {{1, {.weight = 4}}};
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto one = line(g, 1, 80);
    auto two = line(g, 2, 80);
    gate_terms<int> t;
    t.max_in_flight = 2;
    t.entitlement_of = [](int who) -> entitlement {
        if (who == 2) throw std::runtime_error{"no such tenant"};
        return {.weight = 64};
    };
    EXPECT_THROW(g.reconfigure(t), std::runtime_error);
    EXPECT_EQ(g.stats().max_in_flight, 2U);
    EXPECT_EQ(g.stats().in_flight, 2U);  // one was let in at once
    held->release();
    come_and_go({&one, &two}, 60);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 50, 1)), 40, 5);
    t.entitlement_of = nullptr;  // and all is well with terms that do not throw
    EXPECT_NO_THROW(g.reconfigure(t));
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, RaisedLimitsLetInWhoWaitsThoughTheFunctionThrows) {
    gate_config<int> c = at_the_loop(places(4));
    c.max_in_flight_per_tenant = 1;
    door g{std::move(c)};
    auto mine = line(g, 1, 3);
    EXPECT_TRUE(mine[1].waits());
    gate_terms<int> more;
    more.max_in_flight = 4;
    bool overtaken = false;
    more.entitlement_of = [&](int) -> entitlement {  // it is asked without the lock
        overtaken = g.stats().in_flight < 3;
        throw std::runtime_error{"no such tenant"};
    };
    EXPECT_THROW(g.reconfigure(more), std::runtime_error);
    EXPECT_FALSE(overtaken);
    loop.run_ready();
    EXPECT_TRUE(mine[2].in());
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

TEST_F(GateTest, WhatWasPaidBackWasNotLetIn) {
    gate_config<int> c = at_the_loop(places(8));
    c.max_in_flight_per_tenant = 4;  // so all are counted
    door g{std::move(c)};
    g.try_acquire(1, 10)->release(1);
    g.try_acquire(2, 10)->release(0);
    auto const top = g.top(1);
    ASSERT_EQ(top.first.size(), 1U);
    EXPECT_EQ(top.first[0].tenant, 1);
    EXPECT_NEAR(top.first[0].cost, 1, 0.01);
    EXPECT_NEAR(top.other, 0, 0.01);
}

TEST_F(GateTest, WhatIsPaidBackLateIsTakenOffAsFarAsItStillCounts) {
    gate_config<int> c = at_the_loop(places(8));
    c.max_in_flight_per_tenant = 4;  // so all are counted
    door g{std::move(c)};
    auto early = g.try_acquire(1, 100);
    loop.pass(10min);
    g.try_acquire(1, 50)->release();
    early->release(1);
    auto const top = g.top(1);
    ASSERT_EQ(top.first.size(), 1U);
    EXPECT_NEAR(top.first[0].cost, 50, 1);
}

// --- what cannot be --------------------------------------------------------------------------

TEST(Gate, AFunctionThatIsReplacedWhileItIsAskedGoesWithoutTheLock) {
    door* at = nullptr;
    bool gone = false;
    auto const goes = [&](int* last) {
        gone = at->stats().in_flight == 1;  // never returns if the gate is locked
        delete last;
    };
    gate_config<int> c = places(1);
    c.entitlement_of = [&, last = std::shared_ptr<int>{new int{}, goes}](int) {
        gate_terms<int> t;
        t.max_in_flight = 1;
        at->reconfigure(std::move(t));
        return entitlement{};
    };
    door g{std::move(c)};
    at = &g;
    c = {};
    auto held = g.try_acquire(9);
    EXPECT_FALSE(g.blocking_acquire_for(1, 0ns));
    EXPECT_TRUE(gone);
}

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
    wrong([](auto& c) { c.shards = 0; });
    wrong([](auto& c) { c.shards = max_shards + 1; });
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

// --- who is remembered -----------------------------------------------------------------------

// A gate that counts all, and whose ranking is full: who is remembered is so for another reason.
class GateThatCounts : public GateTest {
  public:
    int asked_of_first = 0;
    int asked = 0;
    door g{[&] {
        gate_config<int> c = at_the_loop(places(3));
        c.max_in_flight_per_tenant = 2;
        c.quantum = 1;
        c.entitlement_of = [this](int who) {
            ++asked;
            if (who == first) ++asked_of_first;
            return entitlement{};
        };
        return c;
    }()};
    static constexpr int first = static_cast<int>(ranked_tenants);

    GateThatCounts() {
        for (int who = 0; who < first; ++who) g.try_acquire(who, 100)->release();
    }
};

TEST_F(GateThatCounts, RanksWhoComesOftenThoughNobodyWaits) {
    for (int i = 0; i < 1'000; ++i) g.try_acquire(first, 100)->release();
    auto const top = g.top(1);
    ASSERT_EQ(top.first.size(), 1U);
    EXPECT_EQ(top.first[0].tenant, first);
    EXPECT_NEAR(top.first[0].cost, 100'000, 1);
}

TEST_F(GateThatCounts, RemembersWhoOwesThoughItDidNotWait) {
    auto dear = g.try_acquire(first);
    auto one = g.try_acquire(first + 1);
    auto two = g.try_acquire(first + 1);
    auto backlog = line(g, first + 2, 20);
    dear->release(50);
    auto debtor = line(g, first, 1);
    (*backlog[0].got)->release();
    come_and_go({&backlog, &debtor}, 21);
    EXPECT_EQ(order.back(), first);
}

TEST_F(GateThatCounts, RemembersWhoDidNotWait) {
    for (int i = 0; i < 2; ++i) {
        for (int who = 0; who < 200; ++who) g.try_acquire(who)->release();
    }
    EXPECT_EQ(g.stats().tenants_known, 200U);
    EXPECT_EQ(asked, 200);
}

TEST_F(GateThatCounts, ForgetsWhoHasBeenAwayTheLongest) {
    for (int i = 0; i < 2 * int{idle_tenants_kept}; ++i) {
        g.try_acquire(first + 1 + i)->release();
        if (i % 100 == 0) g.try_acquire(first)->release();
    }
    EXPECT_EQ(asked_of_first, 1);
    EXPECT_LE(g.stats().tenants_known, idle_tenants_kept + ranked_tenants);
}

TEST_F(GateTest, RemembersNobodyOnceItIsClosed) {
    gate_config<int> c = places(2);
    c.max_in_flight_per_tenant = 1;
    door g{std::move(c)};
    for (int who = 0; who < 200; ++who) g.try_acquire(who)->release();
    EXPECT_EQ(g.stats().tenants_known, 200U);
    g.close_drain();
    EXPECT_EQ(g.stats().tenants_known, 0U);
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

TEST_F(GateTest, RemembersNoMoreOfThoseWhoLineUpAndLeave) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(-1);
    auto stays = line(g, 0, 1);  // so the round goes on
    std::deque<visit> all;
    for (int who = 1; who <= 5'000; ++who) {
        all.push_back({who, {}, {}});
        enter(g, all.back(), 1, 1ms).detach();
        if (who % 100 == 0) loop.advance(1ms);
    }
    EXPECT_EQ(g.stats().expired, 5'000U);
    EXPECT_LE(g.stats().tenants_known, idle_tenants_kept + 10);
    g.close();
    loop.run_ready();
}

}  // namespace
}  // namespace rondo::fair
