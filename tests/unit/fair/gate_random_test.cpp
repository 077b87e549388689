// The gate in a simulated world, at random: nobody loses, nobody is let in twice, and each tenant
// has its share. The same seed is the same run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

#include "rondo/core/this_task.hpp"
#include "rondo/fair/gate.hpp"
#include "rondo/sim/world.hpp"
#include "support/seed.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using door = gate<int>;

struct tallies {
    std::size_t inside = 0;
    std::size_t most_inside = 0;
    std::map<int, std::size_t> inside_of;
    std::size_t most_of_one = 0;
    std::size_t let_in = 0;
    std::size_t refused = 0;
    std::size_t late_answers = 0;  // told of a deadline at another moment than that

    void enter(int who) {
        most_inside = std::max(most_inside, ++inside);
        most_of_one = std::max(most_of_one, ++inside_of[who]);
        ++let_in;
    }
    void leave(int who) {
        --inside;
        --inside_of[who];
    }
};

// However the visit ends: a stop unwinds it. It goes before its permit does.
class presence {
  public:
    presence(tallies& t, int who) : tallies_(t), who_(who) { t.enter(who); }
    presence(presence const&) = delete;
    presence& operator=(presence const&) = delete;
    ~presence() { tallies_.leave(who_); }

  private:
    tallies& tallies_;
    int who_;
};

task<void> visit(sim::world* w, door* g, int who, tallies* t) {
    auto const patience = std::chrono::microseconds{w->random().below(20'000)};
    time_point const until = w->now() + patience;
    auto got = co_await g->acquire_until(who, until, 1 + w->random().below(5));
    if (!got) {
        ++t->refused;
        bool const on_time = got.error() != gate_error::timed_out || w->now() == until;
        if (!on_time) ++t->late_answers;
        co_return;
    }
    {
        presence const inside{*t, who};
        co_await sleep_for(std::chrono::microseconds{w->random().below(2'000)});
    }
    got->release(1 + w->random().below(9));
}

task<void> come_and_go(sim::world* w, door* g, int who, int times, tallies* t) {
    std::vector<join_handle<void>> all;
    for (int i = 0; i < times; ++i) {
        co_await sleep_for(std::chrono::microseconds{w->random().below(1'000)});
        all.push_back(w->spawn(visit(w, g, who, t)));
        if (w->random().below(10) == 0) all.back().request_stop();
    }
    for (auto& v : all) (void)co_await v.join();
}

TEST(GateRandom, EveryCallerHasOneEndAndNoLimitIsPassed) {
    for (std::uint64_t s = test::seed(1), last = s + 30; s < last; ++s) {
        SCOPED_TRACE(s);
        sim::world w{{.seed = s}};
        gate_config<int> c;
        c.max_in_flight = 1 + s % 5;
        c.max_in_flight_per_tenant = s % 3 == 0 ? 2 : 100;
        c.max_queued = 10 + s % 20;
        c.max_queued_per_tenant = 8;
        c.time = &w.timers();
        tallies t;
        {
            door g{c};
            for (int who = 0; who < 6; ++who) {
                w.spawn(come_and_go(&w, &g, who, 60, &t)).detach();
            }
            ASSERT_EQ(w.run(), sim::outcome::finished);
            gate_stats const all = g.stats();
            EXPECT_EQ(all.in_flight, 0U);
            EXPECT_EQ(all.queued, 0U);
            EXPECT_GE(all.admitted(), t.let_in);  // a stop may meet a permit
        }
        EXPECT_LE(t.most_inside, c.max_in_flight);
        EXPECT_LE(t.most_of_one, c.max_in_flight_per_tenant);
        EXPECT_EQ(t.late_answers, 0U);
        EXPECT_GT(t.let_in, 0U);
        EXPECT_LE(t.let_in + t.refused, 360U);
    }
}

// --- shares ------------------------------------------------------------------------------------

struct share {
    std::uint32_t weight = 1;
    std::uint64_t slowness = 1;   // what each of its permits comes to
    std::uint64_t work = 0;       // so far
    std::vector<double> history;  // work / weight whenever a permit was given back
};

task<void> busy(sim::world* w, door* g, int who, std::vector<share>* all, bool const* stop) {
    while (!*stop) {
        auto got = co_await g->acquire(who);
        if (!got) co_return;
        share& mine = (*all)[static_cast<std::size_t>(who)];
        std::uint64_t const cost = 1 + w->random().below(mine.slowness);
        mine.work += cost;
        for (share& s : *all) {
            s.history.push_back(static_cast<double>(s.work) / static_cast<double>(s.weight));
        }
        co_await sleep_for(std::chrono::microseconds{10 * cost});
        got->release(cost);
    }
}

// What i had in a stretch, beside what j had: the largest over all stretches.
double largest_difference(share const& i, share const& j) {
    double highest = 0;
    double lowest = 0;
    double worst = 0;
    for (std::size_t n = 0; n < i.history.size(); ++n) {
        double const d = i.history[n] - j.history[n];
        worst = std::max({worst, d - lowest, highest - d});
        highest = std::max(highest, d);
        lowest = std::min(lowest, d);
    }
    return worst;
}

TEST(GateRandom, SharesOfCorrectedCostAreWithinTheBound) {
    double worst = 0;
    for (std::uint64_t s = test::seed(1), last = s + 10; s < last; ++s) {
        SCOPED_TRACE(s);
        sim::world w{{.seed = s}};
        gate_config<int> c;
        std::size_t const in_flight = 1 + s % 4;
        c.max_in_flight = in_flight;
        c.quantum = 1 + s % 7;
        c.time = &w.timers();
        std::vector<share> all(4);
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].weight = 1 + static_cast<std::uint32_t>(w.random().below(4));
            all[i].slowness = 1 + w.random().below(30);
            c.tenants.push_back({static_cast<int>(i), {.weight = all[i].weight}});
        }
        bool stop = false;
        {
            door g{c};
            for (int who = 0; who < 4; ++who) {
                for (int n = 0; n < 12; ++n) w.spawn(busy(&w, &g, who, &all, &stop)).detach();
            }
            (void)w.run_for(100ms);
            stop = true;
            ASSERT_EQ(w.run(), sim::outcome::finished);
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            // Until all have come the first ones are alone: these are left out.
            all[i].history.erase(all[i].history.begin(), all[i].history.begin() + 200);
            all[i].history.resize(all[i].history.size() - 100);
        }
        for (share const& i : all) {
            for (share const& j : all) {
                double const each = 30.0 * (1 + static_cast<double>(in_flight));
                double const bound =
                    each / i.weight + each / j.weight + 2 * static_cast<double>(c.quantum);
                double const seen = largest_difference(i, j);
                EXPECT_LE(seen, bound);
                worst = std::max(worst, seen / bound);
            }
        }
    }
    std::printf("[    shares] the largest difference was %.0f %% of the bound\n", worst * 100);
}

// Tenants that are busy at a gate for a while, with these weights and costs, and what each had.
std::vector<share> work_under_a_limit(gate_limits const& l, std::uint64_t quantum,
                                      std::vector<share> all) {
    sim::world w{{.seed = test::seed(1)}};
    gate_config<int> c;
    static_cast<gate_limits&>(c) = l;
    c.quantum = quantum;
    c.time = &w.timers();
    for (std::size_t i = 0; i < all.size(); ++i) {
        c.tenants.push_back({static_cast<int>(i), {.weight = all[i].weight}});
    }
    bool stop = false;
    door g{c};
    for (std::size_t who = 0; who < all.size(); ++who) {
        for (int n = 0; n < 12; ++n) {
            w.spawn(busy(&w, &g, static_cast<int>(who), &all, &stop)).detach();
        }
    }
    (void)w.run_for(50ms);
    stop = true;
    EXPECT_EQ(w.run(), sim::outcome::finished);
    return all;
}

double part_of_the_first(std::vector<share> const& all) {
    double in_all = 0;
    for (share const& s : all) in_all += static_cast<double>(s.work);
    return static_cast<double>(all[0].work) / in_all;
}

gate_limits limits_of(std::size_t in_flight, std::size_t per_tenant) {
    gate_limits l;
    l.max_in_flight = in_flight;
    l.max_in_flight_per_tenant = per_tenant;
    return l;
}

TEST(GateRandom, WeightsCountThoughATenantMayHaveOnlySoMany) {
    std::vector<share> heavy(6);
    heavy[0].weight = 10;
    for (std::uint64_t const quantum : {1U, 8U}) {
        auto const seen = [&](std::size_t limit) {
            return part_of_the_first(work_under_a_limit(limits_of(4, limit), quantum, heavy));
        };
        EXPECT_NEAR(seen(4), 2.0 / 3, 0.02);
        EXPECT_NEAR(seen(3), 2.0 / 3, 0.02);
        EXPECT_NEAR(seen(2), 1.0 / 2, 0.02);  // two of four places: what its limit leaves it
    }
}

TEST(GateRandom, CostsCountThoughATenantMayHaveOnlyOne) {
    std::vector<share> slow(4);
    slow[0].slowness = 20;  // it is corrected: it pays 1
    for (std::uint64_t const quantum : {1U, 8U}) {
        auto const all = work_under_a_limit(limits_of(2, 1), quantum, slow);
        EXPECT_NEAR(part_of_the_first(all), 1.0 / 4, 0.02);
    }
}

// A round may end while some of them are at their limit.
TEST(GateRandom, EqualTenantsHaveEqualSharesWhateverTheirLimit) {
    for (std::size_t const limit : {1U, 2U, 3U}) {
        auto const all = work_under_a_limit(limits_of(4, limit), 8, std::vector<share>(6));
        for (share const& s : all) {
            EXPECT_NEAR(static_cast<double>(s.work) / static_cast<double>(all[0].work), 1, 0.03);
        }
    }
}

// A quiet tenant waits for the next place that is given back, and no longer.
TEST(GateRandom, AQuietTenantsWaitIsBounded) {
    sim::world w{{.seed = test::seed(1)}};
    gate_config<int> c;
    c.max_in_flight = 4;
    c.time = &w.timers();
    door g{c};
    bool stop = false;
    auto noisy = [](sim::world* in, door* at, bool const* until) -> task<void> {
        while (!*until) {
            auto const got = co_await at->acquire(0);
            co_await sleep_for(std::chrono::microseconds{900 + in->random().below(200)});
        }
    };
    clock::duration longest{};
    auto quiet = [](sim::world* in, door* at, clock::duration* most, bool* until) -> task<void> {
        for (int i = 0; i < 200; ++i) {
            co_await sleep_for(std::chrono::microseconds{3'000 + in->random().below(4'000)});
            auto const got = co_await at->acquire(1);
            if (got) *most = std::max(*most, got->waited());
        }
        *until = true;
    };
    for (int n = 0; n < 100; ++n) w.spawn(noisy(&w, &g, &stop)).detach();
    w.spawn(quiet(&w, &g, &longest, &stop)).detach();
    ASSERT_EQ(w.run(), sim::outcome::finished);
    EXPECT_LE(longest, 1'100us);
    EXPECT_GT(longest, 0us);
}

}  // namespace
}  // namespace rondo::fair
