// What tenants get when there is more to do than can be done: admission before an upstream of fixed
// capacity, in virtual time. bench/turns measures the same of the program, where the machine has a
// say in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/this_task.hpp"
#include "rondo/http/admission.hpp"
#include "rondo/sim/world.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/semaphore.hpp"
#include "support/seed.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t upstream_slots = 32;
constexpr clock::duration mean_service = 10ms;
constexpr double upstream_capacity = 3200;
constexpr std::size_t quiet_ones = 20;
constexpr double quiet_rate = upstream_capacity * 0.2 / quiet_ones;
constexpr clock::duration run_time = 3s;

clock::duration exponential(sim::random_source& from, double mean_seconds) {
    double const u = (static_cast<double>(from.below(1'000'000'000)) + 1) / 1e9;
    return std::chrono::duration_cast<clock::duration>(
        std::chrono::duration<double>{-std::log(u) * mean_seconds});
}

struct offered {
    std::string tenant;
    double rate;
};

struct served_one {
    std::size_t who;
    clock::duration due, took;
    bool in;  // let in, and answered
};

admission_settings limits_of_overload(std::size_t queued) {
    admission_settings s;
    s.limits.max_in_flight = upstream_slots + 4;
    s.limits.max_queued = queued;
    s.limits.max_queued_per_tenant = queued;
    return s;
}

class overloaded {
  public:
    overloaded(std::uint64_t seed, admission_settings s)
        : world_({.seed = seed, .max_turns = 100'000'000}),
          service_(seed),
          arrivals_(seed + 1),
          admission_(std::move(s), 1, 8, &world_.timers()) {}

    // Offers the load for a while, by times(now) of its rates, and waits for the last.
    std::vector<served_one> const& offer(std::vector<offered> const& load,
                                         clock::duration patience = clock::duration::max(),
                                         std::function<double(clock::duration)> times = {}) {
        world_.spawn(arrive(this, load, patience, std::move(times))).detach();
        EXPECT_EQ(world_.run(), sim::outcome::finished);
        return done_;
    }

  private:
    static task<void> never() {
        notify nobody;
        co_await nobody.notified();
    }
    static task<void> arrive(overloaded* self, std::vector<offered> load, clock::duration patience,
                             std::function<double(clock::duration)> times) {
        time_point const begin = self->world_.now();
        double total = 0;
        for (offered const& o : load) total += o.rate;
        for (;;) {
            double const now_times = times ? times(self->world_.now() - begin) : 1.0;
            co_await sleep_for(exponential(self->arrivals_, 1 / (total * now_times)));
            clock::duration const due = self->world_.now() - begin;
            if (due > run_time) co_return;
            double pick = total * static_cast<double>(self->arrivals_.below(1'000'000)) / 1e6;
            std::size_t who = 0;
            while (who + 1 < load.size() && pick >= load[who].rate) pick -= load[who++].rate;
            self->world_.spawn(ask(self, who, load[who].tenant, due, patience)).detach();
        }
    }
    static task<void> ask(overloaded* self, std::size_t who, std::string tenant,
                          clock::duration due, clock::duration patience) {
        time_point const came = self->world_.now();
        admission::request r;
        r.tenant = std::move(tenant);
        r.deadline = later(came, patience);
        auto let_in = co_await self->admission_.admit(std::move(r), never());
        bool const in = let_in.has_value();
        if (in) {
            auto const slot = co_await self->slots_.acquire();
            double const mean = std::chrono::duration<double>{mean_service}.count();
            co_await sleep_for(exponential(self->service_, mean));
        }
        self->done_.push_back({who, due, self->world_.now() - came, in});
    }

    sim::world world_;
    sim::random_source service_, arrivals_;
    semaphore slots_{upstream_slots};
    admission admission_;
    std::vector<served_one> done_;
};

std::vector<offered> quiet_and_noisy(double times) {
    std::vector<offered> all;
    for (std::size_t i = 0; i < quiet_ones; ++i) {
        all.push_back({"quiet" + std::to_string(i), quiet_rate});
    }
    if (times > 0) all.push_back({"noisy", quiet_rate * times});
    return all;
}
std::vector<offered> all_alike(double times) {
    std::vector<offered> all = quiet_and_noisy(1);
    for (offered& o : all) o.rate = upstream_capacity * times / static_cast<double>(all.size());
    return all;
}

double quiet_p99_ms(std::vector<served_one> const& all) {
    std::vector<clock::duration> times;
    for (served_one const& d : all) {
        if (d.who < quiet_ones && d.in) times.push_back(d.took);
    }
    std::ranges::sort(times);
    return std::chrono::duration<double, std::milli>{times[times.size() * 99 / 100]}.count();
}
std::ptrdiff_t quiet_refusals(std::vector<served_one> const& all) {
    return std::ranges::count_if(all,
                                 [](served_one const& d) { return d.who < quiet_ones && !d.in; });
}
// How many the upstream does if it always has something to do: with the very services that it has
// when it is asked through admission.
double could_have_been(std::uint64_t seed) {
    sim::random_source service{seed};
    std::priority_queue<clock::duration, std::vector<clock::duration>, std::greater<>> busy;
    double const mean = std::chrono::duration<double>{mean_service}.count();
    for (std::size_t i = 0; i < upstream_slots; ++i) busy.push(exponential(service, mean));
    std::size_t done = 0;
    for (; busy.top() <= run_time; ++done) {
        clock::duration const ended = busy.top();
        busy.pop();
        busy.push(ended + exponential(service, mean));
    }
    return static_cast<double>(done);
}
double goodput(std::vector<served_one> const& all, clock::duration patience, std::uint64_t seed) {
    auto const good = std::ranges::count_if(all, [&](served_one const& d) {
        return d.in && d.took <= patience && d.due + d.took <= run_time;
    });
    return static_cast<double>(good) / could_have_been(seed);
}

constexpr std::size_t queue_of_75ms = 240;

TEST(Overload, QuietTenantsHardlyNoticeANoisyOne) {
    std::uint64_t const seed = test::seed(3);
    auto const p99_beside = [&](double times) {
        overloaded o{seed, limits_of_overload(queue_of_75ms)};
        auto const& all = o.offer(quiet_and_noisy(times));
        EXPECT_EQ(quiet_refusals(all), 0) << times;
        return quiet_p99_ms(all);
    };
    double const alone = p99_beside(0);
    EXPECT_LE(p99_beside(100), 1.25 * alone);
    EXPECT_LE(p99_beside(1000), 1.5 * alone);
}

TEST(Overload, FirstInFirstOutMakesEverybodyWait) {
    admission_settings s = limits_of_overload(queue_of_75ms);
    s.turns = false;
    overloaded o{test::seed(3), s};
    auto const& all = o.offer(quiet_and_noisy(100));
    EXPECT_GT(quiet_p99_ms(all), 75);
    EXPECT_GT(quiet_refusals(all), 0);
}

TEST(Overload, WhatCanBeDoneIsDoneInTimeHoweverMuchIsAskedFor) {
    std::uint64_t const seed = test::seed(5);
    for (double const times : {2.0, 10.0}) {
        overloaded o{seed, limits_of_overload(queue_of_75ms)};
        EXPECT_GE(goodput(o.offer(all_alike(times), 250ms), 250ms, seed), 0.99) << times;
    }
}

// The line is longer than what can be done within the deadline: everybody waits until the end of
// its time, and who is let in then is answered too late.
TEST(Overload, AReserveKeepsALongLineFromWastingTheUpstream) {
    std::uint64_t const seed = test::seed(5);
    admission_settings s = limits_of_overload(4000);
    overloaded without{seed, s};
    EXPECT_LE(goodput(without.offer(all_alike(2), 250ms), 250ms, seed), 0.85);
    s.deadline_reserve = 80ms;
    overloaded with{seed, s};
    EXPECT_GE(goodput(with.offer(all_alike(2), 250ms), 250ms, seed), 0.99);
}

TEST(Overload, ASpikeIsForgottenWithinATenthOfASecond) {
    overloaded o{test::seed(7), limits_of_overload(queue_of_75ms)};
    auto const& all = o.offer(all_alike(1), clock::duration::max(), [](clock::duration t) {
        return t >= 300ms && t < 600ms ? 10.0 : 0.2;
    });
    auto const late = std::ranges::count_if(all, [](served_one const& d) {
        return d.due > 700ms && (!d.in || d.took > 92ms);  // twice the p99 of the service
    });
    auto const later = std::ranges::count_if(all, [](auto const& d) { return d.due > 700ms; });
    EXPECT_GT(later, 100);
    EXPECT_LE(late * 500, later);
}

}  // namespace
}  // namespace rondo::http
