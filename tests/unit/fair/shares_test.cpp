// What tenants get of each other: the seed's six invariants by number, shares for any number of
// shards, tenants that game the rules, and what it costs to have many.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/fair/key.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

using queue = scheduler<int>;

config<std::uint64_t> ample(std::uint64_t quantum = 8, std::size_t shards = 1) {
    config<std::uint64_t> c;
    c.max_global = c.max_per_tenant = 2'000'000;
    c.quantum = quantum;
    c.shards = shards;
    return c;
}

void fill(queue& q, std::uint64_t tenant, int tasks, std::uint64_t cost = 1) {
    for (int i = 0; i < tasks; ++i) ASSERT_TRUE(q.enqueue(tenant, i, {.cost = cost}));
}

std::map<std::uint64_t, std::uint64_t> serve(queue& q, int tasks) {
    std::map<std::uint64_t, std::uint64_t> cost;
    for (int i = 0; i < tasks; ++i) {
        auto const next = q.try_dequeue();
        if (!next) break;
        cost[next->tenant] += next->cost;
    }
    return cost;
}

// --- the invariants --------------------------------------------------------------------------

TEST(Fair, Invariant1NoExpiredTaskIsDelivered) {
    manual_loop loop;
    auto c = ample();
    c.time = &loop.timers();
    queue q{std::move(c)};
    for (int i = 0; i < 1'000; ++i) {
        terms const t{.deadline = loop.now() + std::chrono::microseconds{i * 7 % 50}};
        ASSERT_TRUE(q.enqueue(static_cast<std::uint64_t>(i % 5), i, t));
        loop.pass(1us);
        if (i % 3 != 0) continue;
        auto const next = q.try_dequeue();
        if (next) {
            ASSERT_LE(loop.now(), next->deadline);
        }
    }
    fair::stats const s = q.stats();
    EXPECT_GT(s.expired, 100U);
    EXPECT_EQ(s.enqueued, s.dequeued + s.expired + s.queued);
}

void come_from_three_threads(std::size_t in_all, std::size_t each) {
    auto c = ample();
    c.max_global = in_all;
    c.max_per_tenant = each;
    queue q{std::move(c)};
    std::atomic<bool> over{false};
    {
        std::vector<std::jthread> threads;
        for (std::uint64_t who = 0; who < 3; ++who) {
            threads.emplace_back([&, who] {
                for (int i = 0; i < 8'000; ++i) {
                    if (i % 300 < 200) {  // more than there is room for, in a row
                        (void)q.enqueue(who, i);
                    } else {
                        (void)q.try_dequeue();
                        (void)q.try_dequeue();
                    }
                    if (i % 100 == 0 && q.stats().queued > in_all) over = true;
                }
            });
        }
    }
    EXPECT_FALSE(over);
    EXPECT_LE(q.stats().queued, in_all);
    auto const left = serve(q, 1'000);
    for (auto const& [who, cost] : left) EXPECT_LE(cost, each);
}

TEST(Fair, Invariant2CapacityIsNeverExceededUnderConcurrency) {
    come_from_three_threads(50, 20);    // every task under the lock
    come_from_three_threads(200, 150);  // and some without it, while there is room
}

TEST(Fair, Invariant3NoQueuedTaskIsOverlookedWhateverTheShards) {
    for (std::size_t const shards : {1U, 4U, 16U}) {
        queue q{ample(1, shards)};
        for (std::uint64_t who = 0; who < 300; ++who) {
            ASSERT_TRUE(q.enqueue(who, 0, {.cost = who * who + 1}));
        }
        for (int i = 0; i < 300; ++i) ASSERT_TRUE(q.try_dequeue()) << i;
        EXPECT_EQ(q.try_dequeue().error(), try_dequeue_error::empty);
    }
}

TEST(Fair, Invariant4ATenantWithWorkMakesProgress) {
    queue q{ample(2)};
    fill(q, 1, 5, 100);
    for (std::uint64_t hog = 2; hog < 12; ++hog) fill(q, hog, 2'000);
    auto const served = serve(q, 100 / 2 * (10 * 2) * 5 + 1'000);
    EXPECT_EQ(served.at(1), 500U);
}

// Tenant 2 replaces its only task again and again, of a cost that its quantum does not always pay.
std::uint64_t served_though_replaced(std::uint64_t cost, int replacements) {
    auto c = ample(1);
    c.max_per_tenant = 1;
    c.when_full = backpressure::drop_oldest;
    queue q{std::move(c)};
    std::uint64_t served = 0;
    EXPECT_TRUE(q.enqueue(1, 0));
    for (int i = 0; i < 1'100; ++i) {
        for (int n = 0; n < replacements; ++n) (void)q.enqueue(2, i, {.cost = cost});
        if (q.try_dequeue()->tenant == 2) {
            ++served;
        } else {
            EXPECT_TRUE(q.enqueue(1, i));
        }
    }
    return served;
}

TEST(Fair, Invariant4ATenantWhoseOnlyTaskIsReplacedHasItsShare) {
    EXPECT_NEAR(static_cast<double>(served_though_replaced(1, 2)), 550, 2);
    EXPECT_NEAR(static_cast<double>(served_though_replaced(10, 1)), 100, 2);
    EXPECT_NEAR(static_cast<double>(served_though_replaced(10, 2)), 100, 2);
}

TEST(Fair, Invariant5CloseImmediateWakesWaitingConsumersWithClosed) {
    queue q;
    std::atomic<int> closed{0};
    {
        std::vector<std::jthread> consumers;
        for (int i = 0; i < 3; ++i) {
            consumers.emplace_back([&] {
                auto const end = q.blocking_dequeue();
                if (!end && end.error() == dequeue_error::closed) ++closed;
            });
        }
        q.close_immediate();
    }
    EXPECT_EQ(closed, 3);
}

TEST(Fair, Invariant6CloseDrainAdmitsNothingNewAndDrainsToTheLast) {
    queue q;
    fill(q, 1, 100);
    fill(q, 2, 100);
    q.close_drain();
    EXPECT_EQ(q.enqueue(3, 0).error().why, enqueue_error::closed);
    std::atomic<int> delivered{0};
    {
        std::vector<std::jthread> consumers;
        for (int i = 0; i < 3; ++i) {
            consumers.emplace_back([&] {
                while (q.blocking_dequeue()) ++delivered;
            });
        }
    }
    EXPECT_EQ(delivered, 200);
    EXPECT_EQ(q.stats().queued, 0U);
}

// --- shares ----------------------------------------------------------------------------------

// So many keys that fall into the same one of 16 shards, and so of 4.
std::vector<std::uint64_t> colliding(std::size_t how_many) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; keys.size() < how_many; ++key) {
        if (key_hash<std::uint64_t>{}(key) >> 60U == 3) keys.push_back(key);
    }
    return keys;
}

// Serves tenants that have more than enough and prints how far they drifted apart.
void expect_shares(std::size_t shards, std::vector<std::pair<std::uint32_t, std::uint64_t>> of) {
    constexpr std::uint64_t quantum = 5;
    auto c = ample(quantum, shards);
    std::vector<std::uint64_t> const keys = colliding(of.size());
    std::uint64_t most_cost = 0;
    double weights = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
        c.tenants.emplace_back(keys[i], entitlement{.weight = of[i].first});
        most_cost = std::max(most_cost, of[i].second);
        weights += of[i].first;
    }
    queue q{std::move(c)};
    for (std::size_t i = 0; i < of.size(); ++i) fill(q, keys[i], 20'000, of[i].second);
    std::vector<double> work(of.size());
    std::vector<double> low(of.size() * of.size());
    std::vector<double> high(of.size() * of.size());
    double total = 0;
    for (int n = 0; n < 15'000; ++n) {
        auto const next = q.try_dequeue();
        ASSERT_TRUE(next);
        auto const who =
            static_cast<std::size_t>(std::ranges::find(keys, next->tenant) - keys.begin());
        work[who] += static_cast<double>(next->cost) / of[who].first;
        total += static_cast<double>(next->cost);
        for (std::size_t i = 0; i < of.size(); ++i) {
            for (std::size_t j = 0; j < of.size(); ++j) {
                low[i * of.size() + j] = std::min(low[i * of.size() + j], work[i] - work[j]);
                high[i * of.size() + j] = std::max(high[i * of.size() + j], work[i] - work[j]);
            }
        }
    }
    double worst = 0;
    double largest_bound = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
        for (std::size_t j = 0; j < of.size(); ++j) {
            double const bound = static_cast<double>(most_cost) / of[i].first +
                                 static_cast<double>(most_cost) / of[j].first + 2.0 * quantum;
            double const apart = high[i * of.size() + j] - low[i * of.size() + j];
            EXPECT_LE(apart, bound);
            largest_bound = std::max(largest_bound, bound);
            if (apart / bound > worst) {
                worst = apart / bound;
                std::printf("[    share ] %zu shards: apart by %.1f, bound %.1f\n", shards, apart,
                            bound);
            }
        }
    }
    double least = 1;
    for (double const w : work) least = std::min(least, w * weights / total);
    std::printf("[    share ] %zu shards: the worst tenant had %.3f of its share\n", shards, least);
    EXPECT_GE(least, 1 - largest_bound * weights / total);
}

TEST(FairShares, WeightsTenToOneServeTenToOneWhateverTheShards) {
    for (std::size_t const shards : {1U, 4U, 16U}) expect_shares(shards, {{10, 1}, {1, 1}});
}
TEST(FairShares, WeightsAHundredToOneServeAHundredToOneWhateverTheShards) {
    for (std::size_t const shards : {1U, 4U, 16U}) expect_shares(shards, {{100, 1}, {1, 1}});
}
TEST(FairShares, CostsOneAndTenServeEqualWorkWhateverTheShards) {
    for (std::size_t const shards : {1U, 4U, 16U}) {
        expect_shares(shards, {{1, 1}, {1, 10}, {1, 1}, {1, 10}});
    }
}

TEST(FairShares, WeightsAreSetByTableByFunctionAndByHand) {
    auto c = ample(1);
    c.tenants = {{1, {.weight = 2}}};
    c.entitlement_of = [](std::uint64_t key) {
        return entitlement{.weight = static_cast<std::uint32_t>(key)};
    };
    queue q{std::move(c)};
    for (std::uint64_t const who : {1U, 3U, 5U}) fill(q, who, 10'000);
    auto served = serve(q, 1'000);
    EXPECT_NEAR(static_cast<double>(served[1]), 200, 8);
    EXPECT_NEAR(static_cast<double>(served[3]), 300, 8);
    EXPECT_NEAR(static_cast<double>(served[5]), 500, 8);
    q.set_weight(1, 12);
    served = serve(q, 1'000);
    EXPECT_NEAR(static_cast<double>(served[1]), 600, 16);
    q.clear_weight(1);
    served = serve(q, 1'000);
    EXPECT_NEAR(static_cast<double>(served[1]), 200, 16);
}

TEST(FairShares, AWeightThatWasSetHoldsForATenantThatComesLater) {
    queue q{ample(1)};
    q.set_weight(1, 3);
    fill(q, 1, 1'000);
    fill(q, 2, 1'000);
    EXPECT_NEAR(static_cast<double>(serve(q, 400)[1]), 300, 4);
}

TEST(FairShares, AWeightStaysIfTheFunctionThatGivesTheUsualOneThrows) {
    bool knows = false;
    auto c = ample(1);
    c.entitlement_of = [&knows](std::uint64_t) -> entitlement {
        if (!knows) throw std::runtime_error{"not now"};
        return {};
    };
    queue q{std::move(c)};
    q.set_weight(1, 3);
    EXPECT_THROW(q.clear_weight(1), std::runtime_error);
    knows = true;
    fill(q, 1, 1'000);
    fill(q, 2, 1'000);
    EXPECT_NEAR(static_cast<double>(serve(q, 400)[1]), 300, 4);
}

TEST(FairShares, AFunctionThatSetsWeightsIsAskedOnceMoreAtMost) {
    queue* at = nullptr;
    int asked = 0;
    auto c = ample(1);
    c.entitlement_of = [&](std::uint64_t tenant) -> entitlement {
        if (++asked > 100) throw std::runtime_error{"asked without end"};
        if (tenant == 1) at->set_weight(1, 3);
        at->set_weight(9, static_cast<std::uint32_t>(asked));
        return {};
    };
    queue q{std::move(c)};
    at = &q;
    ASSERT_TRUE(q.enqueue(1, 0));
    EXPECT_EQ(asked, 2);  // it was another weight by then
    ASSERT_TRUE(q.enqueue(2, 0));
    EXPECT_EQ(asked, 3);  // only that of another tenant was
    fill(q, 1, 1'000);
    fill(q, 2, 1'000);
    EXPECT_NEAR(static_cast<double>(serve(q, 400)[1]), 300, 4);
}

// --- tenants that game the rules -------------------------------------------------------------

// How much of 2000 deliveries tenant 2 has, that does `trick` before each, beside tenant 1 that has
// a backlog.
template <class Trick>
std::uint64_t gained_by(Trick trick, manual_loop& loop) {
    auto c = ample(4);
    c.time = &loop.timers();
    queue q{std::move(c)};
    fill(q, 1, 10'000);
    std::uint64_t gained = 0;
    for (int i = 0; i < 2'000; ++i) {
        trick(q, i);
        loop.pass(10us);
        auto const next = q.try_dequeue();
        gained += next && next->tenant == 2 ? 1U : 0U;
    }
    return gained;
}

constexpr std::uint64_t fair_half = 1'000 + 4;

TEST(FairGames, LettingDeadlinesExpireGainsNothing) {
    manual_loop loop;
    EXPECT_LE(gained_by(
                  [&](queue& q, int i) {
                      for (int n = 0; n < 3; ++n) {
                          terms const t{.deadline = loop.now() + (n == 0 ? 15us : 5us)};
                          (void)q.enqueue(2, i, t);
                      }
                  },
                  loop),
              fair_half);
}

TEST(FairGames, CancellingAndComingBackGainsNothing) {
    manual_loop loop;
    std::vector<handle> mine;
    EXPECT_LE(gained_by(
                  [&](queue& q, int i) {
                      for (handle const h : std::exchange(mine, {})) q.cancel(h);
                      for (int n = 0; n < 3; ++n) mine.push_back(*q.enqueue_with_handle(2, i));
                  },
                  loop),
              fair_half);
}

TEST(FairGames, SavingCreditForATaskThatIsCancelledGainsNothing) {
    manual_loop loop;
    std::vector<handle> dear;
    EXPECT_LE(gained_by(
                  [&](queue& q, int i) {
                      if (i % 500 == 0) {
                          for (handle const h : std::exchange(dear, {})) q.cancel(h);
                          terms const t{.cost = 1'000, .priority = priority::high};
                          dear.push_back(*q.enqueue_with_handle(2, i, t));
                      }
                      (void)q.enqueue(2, i);
                  },
                  loop),
              fair_half);
}

TEST(FairGames, LeavingAndReturningGainsNothing) {
    manual_loop loop;
    EXPECT_LE(gained_by(
                  [&](queue& q, int i) {
                      if (q.stats().tenants_active < 2) (void)q.enqueue(2, i);
                  },
                  loop),
              fair_half);
}

TEST(FairGames, AQuietTenantWaitsForNoneOfTheBacklog) {
    queue q{ample(8)};
    for (std::uint64_t hog = 1; hog <= 20; ++hog) fill(q, hog, 100);
    (void)serve(q, 50);
    for (std::uint64_t quiet = 100; quiet < 105; ++quiet) fill(q, quiet, 1);
    for (std::uint64_t quiet = 100; quiet < 105; ++quiet) {
        EXPECT_EQ(q.try_dequeue()->tenant, quiet);
    }
}

// --- many tenants, huge costs ----------------------------------------------------------------

TEST(FairScale, AHugeCostOnAnIdleSchedulerIsDeliveredAtOnce) {
    queue q{ample(1)};
    ASSERT_TRUE(q.enqueue(1, 0, {.cost = 1'000'000'000}));
    EXPECT_EQ(q.try_dequeue()->cost, 1'000'000'000U);
}

TEST(FairScale, AMillionTenantsOverTimeLeaveNothingBehind) {
    queue q{ample()};
    std::size_t most = 0;
    for (std::uint64_t who = 0; who < 1'000'000; ++who) {
        ASSERT_TRUE(q.enqueue(who, 0));
        if (who % 2 == 1) {
            ASSERT_TRUE(q.try_dequeue());
            ASSERT_TRUE(q.try_dequeue());
        }
        if (who % 50'000 == 0) most = std::max(most, q.stats().tenants_known);
    }
    EXPECT_LE(most, 2'000U);
    EXPECT_LE(q.stats().tenants_known, idle_tenants_kept + ranked_tenants);
    q.close();
    EXPECT_EQ(q.stats().tenants_known, 0U);
}

TEST(FairScale, TenantsThatCancelAreForgottenThoughNoRoundEnds) {
    queue q{ample()};
    ASSERT_TRUE(q.enqueue(0, 0));
    for (std::uint64_t who = 1; who <= 100'000; ++who) {
        auto const h = q.enqueue_with_handle(who, 0);
        ASSERT_TRUE(h);
        ASSERT_EQ(q.cancel(*h), cancel_result::cancelled);
    }
    EXPECT_LE(q.stats().tenants_known, idle_tenants_kept + 10);
    EXPECT_EQ(q.try_dequeue()->tenant, 0U);
}

// Blocks that tasks and tenants have from the system; all is done by this thread.
std::uint64_t blocks_taken() {
    auto const now = this_thread_frame_stats();
    return now.system_allocations - now.system_frees;
}

TEST(FairScale, AMillionTenantsOverTimeTakeNoMoreMemoryThanTheFirstThousands) {
    queue q{ample()};
    auto const visit = [&q](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t who = from; who < to; ++who) {
            ASSERT_TRUE(q.enqueue(who, 0));
            ASSERT_TRUE(q.try_dequeue());
        }
    };
    visit(0, 5'000);
    std::uint64_t const before = blocks_taken();
    visit(5'000, 1'000'000);
    EXPECT_LE(blocks_taken(), before);
}

TEST(FairScale, ManyTenantsAtOnceAreForgottenWhenTheyAreServed) {
    queue q{ample()};
    for (std::uint64_t who = 0; who < 100'000; ++who) ASSERT_TRUE(q.enqueue(who, 0));
    EXPECT_EQ(q.stats().tenants_known, 100'000U);
    while (q.try_dequeue()) {
    }
    EXPECT_LE(q.stats().tenants_known, idle_tenants_kept + ranked_tenants);
    q.close();
    EXPECT_EQ(q.stats().tenants_known, 0U);
}

TEST(FairScale, OneOfTheLastTenantsThatComesBackIsNotAskedAboutAgain) {
    auto c = ample();
    int asked = 0;
    c.entitlement_of = [&](std::uint64_t) {
        ++asked;
        return entitlement{};
    };
    queue q{std::move(c)};
    auto const visit = [&q](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t who = from; who < to; ++who) {
            ASSERT_TRUE(q.enqueue(who, 0));
            ASSERT_TRUE(q.try_dequeue());
        }
    };
    visit(0, idle_tenants_kept);
    visit(0, idle_tenants_kept);
    EXPECT_EQ(asked, int{idle_tenants_kept});
    visit(idle_tenants_kept, 2 * idle_tenants_kept);
    visit(500, 501);  // it has made room for them
    EXPECT_EQ(asked, 2 * int{idle_tenants_kept} + 1);
}

}  // namespace
}  // namespace rondo::fair
