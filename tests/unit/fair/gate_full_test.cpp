// The gate: who is refused when it is full or closed, and when it is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "gate_visits.hpp"
#include "rondo/fair/gate.hpp"
#include "rondo/fair/gate_limits.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;

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

// How often tenant 2 is let in in 110 times, whose only caller is replaced by another before each;
// beside tenant 1, that always has one in line.
std::size_t let_in_though_replaced(GateTest& at, gate_config<int> c, std::uint64_t cost) {
    c.max_queued_per_tenant = 1;
    c.when_full = backpressure::drop_oldest;
    c.quantum = 1;
    door g{at.at_the_loop(std::move(c))};
    std::deque<visit> all;
    auto const come = [&](int who, std::uint64_t price) {
        all.push_back({who, {}, {}});
        at.enter(g, all.back(), price).detach();
    };
    at.order.clear();
    for (int i = 0; i < 2; ++i) come(1, 1);
    while (at.order.size() < 111) {
        for (int i = 0; i < 2; ++i) come(2, cost);
        std::size_t const before = at.order.size();
        for (visit& v : all) {
            if (v.in()) (*v.got)->release();
        }
        at.loop.run_ready();
        EXPECT_GT(at.order.size(), before);
        if (at.order.size() == before) break;
        if (at.order.back() == 1) come(1, 1);
    }
    g.close();
    at.loop.run_ready();
    return static_cast<std::size_t>(std::ranges::count(at.order, 2));
}

TEST_F(GateTest, ATenantWhoseOnlyCallerIsReplacedHasItsShare) {
    EXPECT_NEAR(static_cast<double>(let_in_though_replaced(*this, places(1), 1)), 55, 2);
    EXPECT_NEAR(static_cast<double>(let_in_though_replaced(*this, places(1), 10)), 10, 1);
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
    EXPECT_EQ(g.stats().rejected_closed, 1U);  // who only tries is not refused
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
    EXPECT_EQ(g.stats().tenants_active, 1U);
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

TEST_F(GateTest, WhoWasHeldBackBehindOneThatLeavesHasWhatTheirTenantSaved) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_in_flight_per_tenant = 1;
    c.quantum = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    visit brief{1, {}, {}};
    enter(g, brief, 20, 5ms).detach();
    auto next = line(g, 1, 1, 20);
    auto two = line(g, 2, 60);
    auto three = line(g, 3, 60);
    held->release();
    come_and_go({&two, &three}, 30);  // some fifteen rounds
    loop.advance(5ms);
    EXPECT_EQ(brief.why(), gate_error::timed_out);
    for (auto* const all : {&two, &three}) {
        for (visit& v : *all) {
            if (v.in()) (*v.got)->release();
        }
    }
    come_and_go({&next, &two, &three}, 50);
    EXPECT_EQ(std::ranges::count(order, 1), 1);
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

}  // namespace
}  // namespace rondo::fair
