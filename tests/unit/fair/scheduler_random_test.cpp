// The scheduler at random: arrivals, costs, weights, priorities, deadlines, cancels, policies and
// closes, against books kept in plain maps. What a task's end must be is not foretold (the order of
// turns has its own model in turns_random_test.cpp), but whatever is reported must be possible,
// once for each task, and the limits hold after every step.
#include <gtest/gtest.h>

#include <algorithm>
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
    void check_limits() const {
        EXPECT_LE(live_.size(), limits_.max_global);
        for (auto const& [tenant, length] : lengths_) EXPECT_LE(length, limits_.max_per_tenant);
    }
    void check(fair::stats const& s) const {
        EXPECT_EQ(s.queued, live_.size());
        EXPECT_EQ(s.enqueued, accepted_);
        EXPECT_EQ(s.tenants_active,
                  std::ranges::count_if(lengths_, [](auto const& l) { return l.second != 0; }));
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

// The larger limits leave room for an intake, which in bursts is filled with nobody looking; the
// smaller ones are met more often.
void run(std::uint64_t seed, backpressure when_full) {
    std::mt19937_64 random{seed};
    auto const below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
    test::manual_loop loop;
    config<int> c;
    c.time = &loop.timers();
    c.shards = 1 + random() % 4;
    bool const large = random() % 2 == 0;
    c.max_global = large ? 110 : 12;
    c.max_per_tenant = large ? 80 : 5;
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
        bool const burst = id % 300 >= 150;
        if (burst || dice < 40) {
            known k{burst ? 0 : below(6),
                    {.cost = 1 + random() % 20, .priority = priority(below(3))},
                    {}};
            if (!burst && below(2) == 0)
                k.on.deadline = loop.now() + std::chrono::microseconds{below(60) - 5};
            b.arriving = std::pair{id, k};
            bool accepted = false;
            if (burst || below(2) == 0) {
                accepted = q.enqueue(k.tenant, id, k.on).has_value();
            } else if (auto const h = q.enqueue_with_handle(k.tenant, id, k.on)) {
                k.name = *h;
                accepted = true;
            }
            if (accepted && b.arriving) b.accept(id, k);
            b.arriving.reset();
        } else if (dice < 80) {
            bool const there = !b.live().empty();
            auto const next = q.try_dequeue();
            if (next) b.delivered(*next);
            EXPECT_TRUE(there || !next);
            EXPECT_TRUE(next || b.live().empty());  // all had expired
        } else if (dice < 85 && !b.live().empty()) {
            auto const at =
                std::next(b.live().begin(), below(static_cast<std::uint64_t>(b.live().size())));
            int const gone = at->first;
            if (at->second.name) {
                (void)q.cancel(*at->second.name);
                EXPECT_EQ(b.live().count(gone), 0U) << "neither cancelled nor expired";
            }
        } else if (dice < 90) {
            int const tenant = below(6);
            b.weights[tenant] = static_cast<std::uint32_t>(1 + below(5));
            q.set_weight(tenant, b.weights[tenant]);
        } else {
            loop.pass(std::chrono::microseconds{below(20)});
            if (dice > 95) q.advance(loop.now());
        }
        b.check_limits();
        if (!burst) b.check(q.stats());
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

// A scheduler, and what has become of each task.
struct noted {
    explicit noted(config<int> const& c)
        : queue(c, [this](disposition how, scheduler<int, int>::task const& t) {
              ends.emplace_back(how, t.payload);
          }) {}

    bool deliver() {
        auto const next = queue.try_dequeue();
        if (next) ends.emplace_back(disposition::delivered, next->payload);
        return next.has_value();
    }

    std::vector<std::pair<disposition, int>> ends;
    scheduler<int, int> queue;
};

// Two schedulers are offered the same: to one of them tasks are left without the lock, whenever
// that is possible, to the other never, as they all have handles.
void compare(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    auto const below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
    test::manual_loop loop;
    config<int> c;
    c.time = &loop.timers();
    c.shards = 1 + random() % 4;
    c.max_global = 100 + random() % 400;  // full at times
    c.max_per_tenant = 80 + random() % 100;
    c.quantum = 1 + random() % 9;
    c.when_full = backpressure(below(5));
    noted left{c};
    noted brought{c};
    std::vector<std::pair<handle, handle>> named;
    for (int id = 0; id < 3'000; ++id) {
        loop.pass(1us);
        bool const burst = id % 500 >= 350;
        int const dice = below(100);
        int const tenant = burst ? 0 : below(8);
        if (burst || dice < 45) {
            terms on{.cost = 1 + random() % 20, .priority = priority(below(3))};
            if (below(10) == 0) on.deadline = loop.now() + std::chrono::microseconds{below(300)};
            EXPECT_EQ(left.queue.enqueue(tenant, id, on).has_value(),
                      brought.queue.enqueue_with_handle(tenant, id, on).has_value());
        } else if (dice < 50) {
            auto const a = left.queue.enqueue_with_handle(tenant, id);
            auto const b = brought.queue.enqueue_with_handle(tenant, id);
            ASSERT_EQ(a.has_value(), b.has_value());
            if (a) named.emplace_back(*a, *b);
        } else if (dice < 55 && !named.empty()) {
            auto const [a, b] = named[static_cast<std::size_t>(below(named.size()))];
            EXPECT_EQ(left.queue.cancel(a), brought.queue.cancel(b));
        } else if (dice < 98) {
            EXPECT_EQ(left.deliver(), brought.deliver());
        } else {
            auto const weight = static_cast<std::uint32_t>(1 + below(5));
            left.queue.set_weight(tenant, weight);
            brought.queue.set_weight(tenant, weight);
        }
        ASSERT_EQ(left.ends.size(), brought.ends.size());
    }
    EXPECT_EQ(left.queue.stats().queued, brought.queue.stats().queued);
    for (noted* const one : {&left, &brought}) {
        one->queue.close_drain();
        for (int i = 0; i < 20; ++i) one->deliver();
        one->queue.close_immediate();
    }
    EXPECT_EQ(left.ends, brought.ends);
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
