#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "after.hpp"
#include "rondo/core/waker.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sim/seeds.hpp"
#include "rondo/sim/world.hpp"
#include "support/permits.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::task;
using rondo::timer;
using rondo::test::after;
using rondo::test::permits;
namespace sim = rondo::sim;

// Enough seeds to meet each of 6 orders: one is missed with a probability below 10^-15.
constexpr std::uint64_t enough = 200;

// Tasks that write their letter when they have a turn.
struct letters {
    explicit letters(sim::options chosen) : w(chosen) {}

    sim::world w;
    std::string written;

    task<void> write(char letter, int times) {
        for (int i = 0; i < times; ++i) {
            written += letter;
            co_await rondo::yield();
        }
    }
    task<void> write_at(char letter, std::chrono::nanoseconds when) {
        co_await after(when);
        written += letter;
    }
    std::string abc(int times) {
        for (char const letter : {'a', 'b', 'c'}) w.spawn(write(letter, times)).detach();
        (void)w.run();
        return written;
    }
};

TEST(Schedule, ReadyTasksRunInEveryOrderOverTheSeeds) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 1; seed <= enough; ++seed) {
        orders.insert(letters{{.seed = seed}}.abc(1));
    }
    EXPECT_EQ(orders, (std::set<std::string>{"abc", "acb", "bac", "bca", "cab", "cba"}));
}

TEST(Schedule, SleepersOfOneInstantWakeInEveryOrderOverTheSeeds) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 1; seed <= enough; ++seed) {
        letters l{{.seed = seed}};
        for (char const letter : {'a', 'b', 'c'}) l.w.spawn(l.write_at(letter, 1h)).detach();
        (void)l.w.run();
        orders.insert(l.written);
    }
    EXPECT_EQ(orders.size(), 6U);
}

// Timers of their own, without a task behind them.
struct bell : timer {
    bell(std::string& log, char name) noexcept : timer(&ring), log_(log), name_(name) {}
    static void ring(timer& t) noexcept {
        auto& self = static_cast<bell&>(t);
        self.log_ += self.name_;
    }
    std::string& log_;
    char name_;
};

std::string ring_at_once(sim::options chosen) {
    sim::world w{chosen};
    std::string log;
    bell a{log, 'a'};
    bell b{log, 'b'};
    bell c{log, 'c'};
    for (bell* each : {&a, &b, &c}) w.timers().add(*each, w.now() + 1s);
    (void)w.run();
    return log;
}

TEST(Schedule, TimersOfOneInstantFireInEveryOrderOverTheSeeds) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 1; seed <= enough; ++seed)
        orders.insert(ring_at_once({.seed = seed}));
    EXPECT_EQ(orders.size(), 6U);
}

TEST(Schedule, TimersOfDifferentInstantsFireInOrderEvenWhenAllOfThemAreDue) {
    for (std::uint64_t const seed : sim::seeds(enough)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        sim::world w{{.seed = seed}};
        std::string log;
        bell a{log, 'a'};
        bell b{log, 'b'};
        bell c{log, 'c'};
        w.timers().add(c, w.now() + 1h);
        w.timers().add(a, w.now() + 1ns);
        w.timers().add(b, w.now() + 2ns);
        w.advance(2h);
        EXPECT_EQ(w.run_ready(), sim::outcome::finished);
        EXPECT_EQ(log, "abc");
    }
}

TEST(Schedule, ATimerThatIsDueCanStillBeCancelledByAnother) {
    struct silencer : timer {
        silencer(sim::world& w, bell& b) noexcept : timer(&fire_it), world(w), other(b) {}
        static void fire_it(timer& t) noexcept {
            auto& self = static_cast<silencer&>(t);
            self.silenced = self.world.timers().cancel(self.other);
        }
        sim::world& world;
        bell& other;
        bool silenced = false;
    };
    std::set<bool> outcomes;
    for (std::uint64_t seed = 1; seed <= enough; ++seed) {
        sim::world w{{.seed = seed}};
        std::string log;
        bell b{log, 'b'};
        silencer s{w, b};
        w.timers().add(b, w.now() + 1s);
        w.timers().add(s, w.now() + 1s);
        (void)w.run();
        EXPECT_EQ(log, s.silenced ? "" : "b");
        outcomes.insert(s.silenced);
    }
    EXPECT_EQ(outcomes.size(), 2U);
}

TEST(Schedule, ADeadlineRacesWithWhatHappensAtTheSameInstant) {
    struct race {
        explicit race(std::uint64_t seed) : w({.seed = seed}) {}
        permits p{0};
        sim::world w;
        task<void> release() {
            co_await after(1s);
            p.release();
        }
        task<bool> acquire() {
            auto const got = co_await p.acquire_until(1, w.now() + 1s);
            co_return got.has_value();
        }
    };
    std::set<bool> outcomes;
    for (std::uint64_t seed = 1; seed <= enough; ++seed) {
        race r{seed};
        r.w.spawn(r.release()).detach();
        auto const got = r.w.block_on(r.acquire());
        ASSERT_TRUE(got);
        outcomes.insert(*got);
    }
    EXPECT_EQ(outcomes.size(), 2U);
}

TEST(Schedule, FifoTakesJobsInTheirOrder) {
    for (std::uint64_t const seed : {1U, 2U, 3U}) {
        EXPECT_EQ((letters{{.seed = seed, .order = sim::schedule::fifo}}.abc(2)), "abcabc");
    }
}

TEST(Schedule, FifoFiresTimersOfOneInstantByAge) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        EXPECT_EQ(ring_at_once({.seed = seed, .order = sim::schedule::fifo}), "abc");
    }
}

TEST(Schedule, FifoFiresWhatIsDueBeforeWhatIsReady) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        letters l{{.seed = seed, .order = sim::schedule::fifo}};
        bell b{l.written, 'b'};
        l.w.spawn(l.write('j', 1)).detach();
        l.w.timers().add(b, l.w.now() + 1s);
        l.w.advance(1s);
        EXPECT_EQ(l.w.run(), sim::outcome::finished);
        EXPECT_EQ(l.written, "bj");
    }
}

TEST(Schedule, ATimerThatIsDueRacesWithWhatIsReady) {
    std::set<std::string> orders;
    for (std::uint64_t seed = 1; seed <= enough; ++seed) {
        letters l{{.seed = seed}};
        bell b{l.written, 'b'};
        l.w.spawn(l.write('j', 1)).detach();
        l.w.timers().add(b, l.w.now() + 1s);
        l.w.advance(1s);
        EXPECT_EQ(l.w.run(), sim::outcome::finished);
        orders.insert(l.written);
    }
    EXPECT_EQ(orders, (std::set<std::string>{"bj", "jb"}));
}

TEST(Schedule, WhatATimerWakesInPlaceRunsWhenTheTimerIsFreeAgain) {
    struct waking_bell : bell {
        using bell::bell;
        struct in_place : rondo::job {
            explicit in_place(std::string& written) noexcept : job(&resume), log(written) {}
            static void resume(job& j) noexcept { static_cast<in_place&>(j).log += 'w'; }
            std::string& log;
        } woken{log_};
        static void wake_and_ring(timer& t) noexcept {
            rondo::post_to_trampoline(static_cast<waking_bell&>(t).woken);
            ring(t);
        }
    };
    sim::world w;
    std::string log;
    waking_bell b{log, 'b'};
    b.fire = &waking_bell::wake_and_ring;
    w.timers().add(b, w.now() + 1s);
    EXPECT_EQ(w.run(), sim::outcome::finished);
    EXPECT_EQ(log, "bw");
}

TEST(Schedule, TheSameSeedTakesTheSameTurns) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        letters one{{.seed = seed}};
        letters two{{.seed = seed}};
        EXPECT_EQ(one.abc(20), two.abc(20));
        EXPECT_EQ(one.w.trace_hash(), two.w.trace_hash());
        EXPECT_EQ(one.w.turns(), two.w.turns());
    }
}

TEST(Schedule, DifferentSeedsTakeDifferentTurns) {
    std::set<std::string> texts;
    std::set<std::uint64_t> digests;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        letters l{{.seed = seed}};
        texts.insert(l.abc(20));
        digests.insert(l.w.trace_hash());
    }
    EXPECT_EQ(texts.size(), 100U);
    EXPECT_EQ(digests.size(), 100U);
}

TEST(Schedule, TheDigestTellsRunsThatDifferInTimeOnly) {
    letters one{{.seed = 1}};
    letters two{{.seed = 1}};
    EXPECT_TRUE(one.w.block_on(one.write_at('a', 1s)));
    EXPECT_TRUE(two.w.block_on(two.write_at('a', 1s + 1ns)));
    EXPECT_EQ(one.w.turns(), two.w.turns());
    EXPECT_NE(one.w.trace_hash(), two.w.trace_hash());
}

TEST(Schedule, WhatAProgramDrawsDoesNotChangeIt) {
    letters one{{.seed = 5}};
    letters two{{.seed = 5}};
    two.w.random().next();
    EXPECT_EQ(one.abc(20), two.abc(20));
    EXPECT_EQ(one.w.trace_hash(), two.w.trace_hash());
}

TEST(Schedule, ProgramsDrawTheSameForTheSameSeed) {
    sim::world one{{.seed = 9}};
    sim::world two{{.seed = 9}};
    sim::world other{{.seed = 10}};
    std::uint64_t const drawn = one.random().next();
    EXPECT_EQ(drawn, two.random().next());
    EXPECT_NE(drawn, other.random().next());
    EXPECT_NE(drawn, sim::random_source{9}.next()) << "these are the schedule's";
    EXPECT_EQ(one.seed(), 9U);
}

TEST(Schedule, NobodyIsForgottenHoweverManyAreReady) {
    struct crowd {
        sim::world w;
        int arrived = 0;
        task<void> arrive() {
            co_await rondo::yield();
            ++arrived;
        }
    } c;
    for (int i = 0; i < 10'000; ++i) c.w.spawn(c.arrive()).detach();
    EXPECT_EQ(c.w.run(), sim::outcome::finished);
    EXPECT_EQ(c.arrived, 10'000);
}

}  // namespace
