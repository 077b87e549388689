// The scheduler at random: arrivals, costs, weights, priorities, deadlines, cancels, policies and
// closes, against books kept in plain maps. What a task's end must be is not foretold (the order of
// turns has its own model in turns_random_test.cpp), but whatever is reported must be possible,
// once for each task, and the limits hold after every step.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"
#include "support/seed.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;

using queue = scheduler<int, int>;

struct known {
    int tenant;
    terms on;
    std::optional<handle> name;
};

class books {
  public:
    books(test::manual_loop& loop, config<int> const& c) : loop_(loop), limits_(c) {}

    void accept(int id, known k) {
        ++lengths_[k.tenant];
        live_.emplace(id, k);
        ++accepted_;
    }
    // Which of those that can be told apart ends: exactly one, that is live.
    known end(int id) {
        auto const at = live_.find(id);
        EXPECT_NE(at, live_.end()) << "task " << id << " has ended twice or was never accepted";
        if (at == live_.end()) return {};
        known const k = at->second;
        --lengths_[k.tenant];
        live_.erase(at);
        ++ended_;
        return k;
    }
    void delivered(queue::task const& t) {
        known const k = end(t.payload);
        EXPECT_EQ(t.tenant, k.tenant);
        EXPECT_LE(loop_.now(), k.on.deadline) << "delivered after its deadline";
        for (auto const& [other, o] : live_) {
            if (o.tenant != k.tenant) continue;
            EXPECT_GE(o.on.priority, k.on.priority) << "overtook one of higher priority";
            if (o.on.priority == k.on.priority) {
                EXPECT_GT(other, t.payload) << "overtook an older one";
            }
        }
    }
    void undelivered(disposition how, queue::task const& t) {
        if (arriving && arriving->first == t.payload) {  // late already: accepted and expired
            EXPECT_EQ(how, disposition::expired);
            EXPECT_GT(loop_.now(), t.deadline);
            arriving.reset();
            ++accepted_;
            ++ended_;
            return;
        }
        if (how == disposition::evicted) expect_longest(t);
        known const k = end(t.payload);
        EXPECT_EQ(how == disposition::expired, loop_.now() > k.on.deadline);
    }
    void check(fair::stats const& s) const {
        EXPECT_EQ(s.queued, live_.size());
        EXPECT_EQ(s.enqueued, accepted_);
        EXPECT_LE(live_.size(), limits_.max_global);
        std::size_t active = 0;
        for (auto const& [tenant, length] : lengths_) {
            EXPECT_LE(length, limits_.max_per_tenant);
            active += length != 0 ? 1U : 0U;
        }
        EXPECT_EQ(s.tenants_active, active);
        EXPECT_EQ(s.enqueued, s.dequeued + s.expired + s.cancelled + s.evicted + s.displaced +
                                  s.returned + s.queued);
    }

    std::map<int, known> const& live() const { return live_; }

    std::optional<std::pair<int, known>> arriving;
    std::map<int, std::uint32_t> weights;

  private:
    // Its tenant has the most for its weight, or was at its own limit.
    void expect_longest(queue::task const& victim) {
        if (arriving->second.tenant == victim.tenant &&
            lengths_[victim.tenant] == limits_.max_per_tenant) {
            return;
        }
        std::map<int, double> load;
        for (auto const& [id, k] : live_) {
            load[k.tenant] += static_cast<double>(k.on.cost) / weights.at(k.tenant);
            if (k.tenant != victim.tenant) continue;
            EXPECT_LE(k.on.priority, victim.priority) << "one of lower priority stayed";
            if (k.on.priority == victim.priority) {
                EXPECT_LE(id, victim.payload) << "a newer one stayed";
            }
        }
        for (auto const& [tenant, l] : load) EXPECT_LE(l, load[victim.tenant] + 1e-9);
    }

    test::manual_loop& loop_;
    limits limits_;
    std::map<int, known> live_;
    std::map<int, std::size_t> lengths_;
    std::size_t accepted_ = 0;
    std::size_t ended_ = 0;
};

void run(std::uint64_t seed, backpressure when_full) {
    std::mt19937_64 random{seed};
    auto const below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
    test::manual_loop loop;
    config<int> c;
    c.time = &loop.timers();
    c.shards = 1 + random() % 4;
    c.max_global = 12;
    c.max_per_tenant = 5;
    c.quantum = 1 + random() % 9;
    c.when_full = when_full;
    c.entitlement_of = [](int key) {
        return entitlement{.weight = static_cast<std::uint32_t>(key % 3 + 1)};
    };
    books b{loop, c};
    for (int key = 0; key < 6; ++key) b.weights[key] = c.entitlement_of(key).weight;
    queue q{c, [&](disposition how, queue::task const& t) { b.undelivered(how, t); }};

    for (int id = 0; id < 1'500; ++id) {
        int const dice = below(100);
        if (dice < 50) {
            known k{below(6), {.cost = 1 + random() % 20, .priority = priority(below(3))}, {}};
            if (below(2) == 0)
                k.on.deadline = loop.now() + std::chrono::microseconds{below(60) - 5};
            b.arriving = std::pair{id, k};
            auto const h = q.enqueue_with_handle(k.tenant, id, k.on);
            if (h && b.arriving) {
                k.name = *h;
                b.accept(id, k);
            }
            b.arriving.reset();
        } else if (dice < 75) {
            bool const there = !b.live().empty();
            auto const next = q.try_dequeue();
            if (next) b.delivered(*next);
            EXPECT_TRUE(there || !next);
            EXPECT_TRUE(next || b.live().empty());  // all had expired
        } else if (dice < 85 && !b.live().empty()) {
            auto const at =
                std::next(b.live().begin(), below(static_cast<std::uint64_t>(b.live().size())));
            handle const name = *at->second.name;
            int const gone = at->first;
            cancel_result const result = q.cancel(name);
            EXPECT_EQ(b.live().count(gone), 0U) << "neither cancelled nor expired";
            (void)result;
        } else if (dice < 90) {
            int const tenant = below(6);
            b.weights[tenant] = static_cast<std::uint32_t>(1 + below(5));
            q.set_weight(tenant, b.weights[tenant]);
        } else {
            loop.pass(std::chrono::microseconds{below(20)});
            if (dice > 95) q.advance(loop.now());
        }
        b.check(q.stats());
        if (testing::Test::HasFailure()) return;
    }
    if (below(2) == 0) {
        q.close_drain();
        while (auto const next = q.try_dequeue()) b.delivered(*next);
    } else {
        q.close_immediate();
    }
    EXPECT_TRUE(b.live().empty());
    EXPECT_EQ(q.try_dequeue().error(), try_dequeue_error::closed);
    b.check(q.stats());
    EXPECT_EQ(q.stats().tenants_known, 0U);
}

void run_often(std::uint64_t usual_seed, backpressure when_full) {
    std::uint64_t const seed = test::seed(usual_seed);
    for (std::uint64_t i = 0; i < 20 && !testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed + i));
        run(seed + i, when_full);
    }
}

// Two schedulers are offered the same: to one of them tasks are left without the lock, whenever
// that is possible, to the other never, as they all have handles.
void compare(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    auto const below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
    config<int> c;
    c.shards = 1 + random() % 4;
    c.max_global = 100 + random() % 400;  // full at times
    c.quantum = 1 + random() % 9;
    queue left{c};
    queue brought{c};
    for (int id = 0; id < 3'000; ++id) {
        int const dice = below(100);
        int const tenant = below(8);
        if (dice < 55) {
            terms const on{.cost = 1 + random() % 20, .priority = priority(below(3))};
            EXPECT_EQ(left.enqueue(tenant, id, on).has_value(),
                      brought.enqueue_with_handle(tenant, id, on).has_value());
        } else if (dice < 98) {
            auto const a = left.try_dequeue();
            auto const b = brought.try_dequeue();
            ASSERT_EQ(a ? a->payload : -1, b ? b->payload : -1);
        } else {
            auto const weight = static_cast<std::uint32_t>(1 + below(5));
            left.set_weight(tenant, weight);
            brought.set_weight(tenant, weight);
        }
    }
    EXPECT_EQ(left.stats().queued, brought.stats().queued);
}

TEST(FairAtRandom, WhatIsLeftWithoutTheLockIsServedInTheSameOrder) {
    std::uint64_t const seed = test::seed(15);
    for (std::uint64_t i = 0; i < 20 && !testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed + i));
        compare(seed + i);
    }
}

TEST(FairAtRandom, EveryAcceptedTaskEndsOnceWithReject) { run_often(11, backpressure::reject); }
TEST(FairAtRandom, EveryAcceptedTaskEndsOnceWithDropOldest) {
    run_often(12, backpressure::drop_oldest);
}
TEST(FairAtRandom, EveryAcceptedTaskEndsOnceWithDropNewest) {
    run_often(13, backpressure::drop_newest);
}
TEST(FairAtRandom, EveryAcceptedTaskEndsOnceWithEvictLongest) {
    run_often(14, backpressure::evict_longest);
}

}  // namespace
}  // namespace rondo::fair
