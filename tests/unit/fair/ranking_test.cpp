// Who was served the most of late.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

using queue = scheduler<int>;

config<std::uint64_t> timed(manual_loop& loop) {
    config<std::uint64_t> c;
    c.time = &loop.timers();
    return c;
}

void visit(queue& q, std::uint64_t tenant, std::uint64_t cost) {
    ASSERT_TRUE(q.enqueue(tenant, 0, {.cost = cost}));
    ASSERT_TRUE(q.try_dequeue());
}

TEST(FairTop, TenantsAreRankedByTheCostThatWasDelivered) {
    manual_loop loop;
    queue q{timed(loop)};
    visit(q, 1, 10);
    visit(q, 2, 30);
    visit(q, 3, 20);
    visit(q, 1, 15);
    auto const top = q.top(2);
    ASSERT_EQ(top.first.size(), 2U);
    EXPECT_EQ(top.first[0].tenant, 2U);
    EXPECT_EQ(top.first[0].cost, 30);
    EXPECT_EQ(top.first[1].tenant, 1U);
    EXPECT_EQ(top.first[1].cost, 25);
    EXPECT_EQ(top.other, 20);
}

TEST(FairTop, WhatIsNotDeliveredDoesNotCount) {
    manual_loop loop;
    queue q{timed(loop)};
    auto const h = q.enqueue_with_handle(1, 0, {.cost = 100});
    EXPECT_EQ(q.cancel(*h), cancel_result::cancelled);
    visit(q, 2, 1);
    auto const top = q.top(10);
    ASSERT_EQ(top.first.size(), 1U);
    EXPECT_EQ(top.first[0].tenant, 2U);
}

TEST(FairTop, AfterTheEndOfTimeWhatIsServedStillCounts) {
    manual_loop loop;
    queue q{timed(loop)};
    visit(q, 1, 10);
    ASSERT_TRUE(q.enqueue(1, 0, {.deadline = loop.now() + 1h}));
    EXPECT_EQ(q.advance(time_point::max()), 1U);
    for (int i = 0; i < 100; ++i) visit(q, 2, 5);
    auto const top = q.top(2);
    ASSERT_FALSE(top.first.empty());
    EXPECT_EQ(top.first[0].tenant, 2U);
    EXPECT_EQ(top.first[0].cost, 500);
}

TEST(FairTop, WhatWasServedCountsForHalfAfterEachHalfLife) {
    manual_loop loop;
    queue q{timed(loop)};
    visit(q, 1, 80);
    loop.pass(served_half_life);
    visit(q, 2, 50);
    auto top = q.top(2);
    EXPECT_EQ(top.first[0].tenant, 2U);
    EXPECT_NEAR(top.first[1].cost, 40, 1e-9);
    loop.pass(3 * served_half_life);
    top = q.top(1);
    EXPECT_NEAR(top.first[0].cost, 50.0 / 8, 1e-9);
    EXPECT_NEAR(top.other, 40.0 / 8, 1e-9);
}

TEST(FairTop, YearsGoByWithoutAnythingRunningOver) {
    manual_loop loop;
    queue q{timed(loop)};
    for (int day = 0; day < 1'000; ++day) {
        visit(q, 1, max_cost);
        loop.pass(24h);
    }
    visit(q, 2, 7);
    auto const top = q.top(2);
    EXPECT_EQ(top.first[0].tenant, 2U);
    EXPECT_NEAR(top.first[0].cost, 7, 1e-9);
    EXPECT_LT(top.first[1].cost, 1e-9);
}

TEST(FairTop, AHeavyTenantIsFoundAmongManyThatComeAndGo) {
    manual_loop loop;
    queue q{timed(loop)};
    constexpr std::uint64_t heavy = 1'000'000;
    double in_all = 0;
    for (std::uint64_t n = 0; n < 20'000; ++n) {
        visit(q, n % 5'000, 1);
        in_all += 1;
        if (n <= 10'000 || n % 10 != 0) continue;
        visit(q, heavy + n % 3, 1 + n % 3);
        in_all += static_cast<double>(1 + n % 3);
    }
    auto const top = q.top(3);
    ASSERT_EQ(top.first.size(), 3U);
    for (auto const& one : top.first) EXPECT_GE(one.tenant, heavy);
    double sum = top.other;
    for (auto const& one : top.first) sum += one.cost;
    EXPECT_NEAR(sum, in_all, 1e-6);
    EXPECT_LE(q.stats().tenants_known, idle_tenants_kept + ranked_tenants);
}

TEST(FairTop, AnEqualTenantTakesNobodysPlace) {
    manual_loop loop;
    queue q{timed(loop)};
    for (std::uint64_t who = 0; who < ranked_tenants; ++who) visit(q, who, 100);
    visit(q, 1'000, 125);
    auto top = q.top(ranked_tenants);
    for (auto const& one : top.first) EXPECT_LT(one.tenant, 1'000U);
    EXPECT_EQ(top.other, 125);
    visit(q, 1'000, 1);
    top = q.top(ranked_tenants);
    EXPECT_EQ(top.first[0].tenant, 1'000U);
    EXPECT_EQ(top.first[0].cost, 126);
    EXPECT_EQ(top.other, 100);
}

TEST(FairTop, WhoLostItsPlaceKeepsItsSum) {
    manual_loop loop;
    queue q{timed(loop)};
    for (std::uint64_t who = 0; who < ranked_tenants; ++who) visit(q, who, who == 0 ? 50 : 100);
    visit(q, 1'000, 80);  // in place of 0
    visit(q, 0, 60);      // in place of that
    auto const top = q.top(1);
    EXPECT_EQ(top.first[0].tenant, 0U);
    EXPECT_EQ(top.first[0].cost, 110);
}

TEST(FairTop, WhoWasTheLeastAndHasGrownKeepsItsPlace) {
    manual_loop loop;
    queue q{timed(loop)};
    for (std::uint64_t who = 0; who < ranked_tenants; ++who) visit(q, who, who == 0 ? 50 : 100);
    visit(q, 0, 150);
    visit(q, 1'000, 80);
    auto const top = q.top(1);
    EXPECT_EQ(top.first[0].tenant, 0U);
    EXPECT_EQ(top.first[0].cost, 200);
}

TEST(FairTop, NobodyIsHeldOnceItIsClosed) {
    manual_loop loop;
    queue q{timed(loop)};
    for (std::uint64_t who = 0; who < 100; ++who) visit(q, who, 1);
    ASSERT_TRUE(q.enqueue(1, 0));
    q.close_drain();
    ASSERT_TRUE(q.try_dequeue());
    EXPECT_TRUE(q.top(10).first.empty());
    EXPECT_EQ(q.stats().tenants_known, 0U);
}

}  // namespace
}  // namespace rondo::fair
