#include "rondo/sim/network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "echo.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/seeds.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::bind_error;
using rondo::task;
using rondo::time_point;
using rondo::test::idle;
using rondo::test::to_bytes;
using rondo::test::to_string;
namespace sim = rondo::sim;

constexpr sim::host alice = 1;
constexpr sim::host bob = 2;

struct arrival {
    std::string what;
    time_point when;
};

// Alice sends numbers to Bob, one a millisecond.
struct post_office {
    explicit post_office(sim::conditions c, std::uint64_t seed = 1)
        : world({.seed = seed}), net(world, c) {
        a.start();
        b.start();
    }

    task<void> send(sim::node* from, sim::host to, int count) {
        auto const s = from->bind({0, 0}).value();
        for (int i = 0; i < count; ++i) {
            s->send_to({to, 7}, to_bytes(std::to_string(i)));
            co_await rondo::sleep_for(1ms);
        }
    }
    task<void> receive(sim::node* at) {
        auto const s = at->bind({0, 7}).value();
        for (;;) {
            auto d = co_await s->receive();
            arrivals.push_back({to_string(*d), world.now()});
        }
    }
    void run(int count) {
        b.spawn(receive(&b)).detach();
        a.spawn(send(&a, bob, count)).detach();
        EXPECT_NE(world.run_for(10s), sim::outcome::out_of_turns);
    }

    sim::world world;
    sim::network net;
    std::vector<arrival> arrivals;
    sim::node a{world, net, alice, idle};
    sim::node b{world, net, bob, idle};
};

TEST(Network, DeliversEachOnceWithinTheDelaysWhenNothingIsWrong) {
    post_office p{{.least_delay = 2ms, .most_delay = 5ms}};
    p.run(100);
    ASSERT_EQ(p.arrivals.size(), 100U);
    for (arrival const& a : p.arrivals) {
        time_point const sent = time_point{} + std::stoi(a.what) * 1ms;
        EXPECT_GE(a.when, sent + 2ms);
        EXPECT_LE(a.when, sent + 5ms);
    }
    EXPECT_EQ(p.net.counts().sent, 100U);
    EXPECT_EQ(p.net.counts().arrived, 100U);
    EXPECT_GT(p.net.counts().overtaken, 0U);
    EXPECT_EQ(p.net.in_flight(), 0U);
}

TEST(Network, KeepsTheOrderWhenDelaysAreEqual) {
    post_office p{{.least_delay = 2ms, .most_delay = 2ms}};
    p.run(50);
    ASSERT_EQ(p.arrivals.size(), 50U);
    EXPECT_EQ(p.net.counts().overtaken, 0U);
}

TEST(Network, LosesAboutAsManyAsItIsToldTo) {
    post_office p{{.loss = 0.3}};
    p.run(2000);
    EXPECT_NEAR(static_cast<double>(p.arrivals.size()), 1400, 100);
    EXPECT_EQ(p.net.counts().lost + p.net.counts().arrived, 2000U);
}

TEST(Network, LosesEverythingAtAHundredPerCent) {
    post_office p{{.loss = 1}};
    p.run(100);
    EXPECT_TRUE(p.arrivals.empty());
    EXPECT_EQ(p.net.counts().lost, 100U);
}

TEST(Network, DoublesAboutAsManyAsItIsToldTo) {
    post_office p{{.duplication = 0.2}};
    p.run(1000);
    EXPECT_EQ(p.arrivals.size(), 1000 + p.net.counts().doubled);
    EXPECT_NEAR(static_cast<double>(p.net.counts().doubled), 200, 60);
}

TEST(Network, SomeStraggle) {
    post_office p{{.least_delay = 1us, .most_delay = 1us, .straggling = 0.1, .straggle = 50ms}};
    p.run(500);
    EXPECT_GT(p.net.counts().overtaken, 10U);
    EXPECT_EQ(p.arrivals.size(), 500U);
}

TEST(Network, ACutLinkCarriesNothingThatWayUntilItIsHealed) {
    post_office p{{.least_delay = 10ms, .most_delay = 10ms}};
    p.a.spawn(p.receive(&p.a)).detach();
    p.b.spawn(p.receive(&p.b)).detach();
    p.net.cut(alice, bob);
    p.a.spawn(p.send(&p.a, bob, 10)).detach();
    p.b.spawn(p.send(&p.b, alice, 10)).detach();
    ASSERT_NE(p.world.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_EQ(p.net.counts().cut, 10U);
    EXPECT_EQ(p.arrivals.size(), 10U);
    p.net.heal(alice, bob);
    p.a.spawn(p.send(&p.a, bob, 10)).detach();
    ASSERT_NE(p.world.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_EQ(p.arrivals.size(), 20U);
}

TEST(Network, APartitionDropsWhatIsOnItsWayBothWays) {
    post_office p{{.least_delay = 10ms, .most_delay = 10ms}};
    std::array const these{alice};
    std::array const those{bob};
    p.b.spawn(p.receive(&p.b)).detach();
    p.a.spawn(p.send(&p.a, bob, 1)).detach();
    ASSERT_NE(p.world.run_for(5ms), sim::outcome::out_of_turns);
    p.net.partition(these, those);
    EXPECT_TRUE(p.net.is_cut(bob, alice));
    ASSERT_NE(p.world.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_TRUE(p.arrivals.empty());
    p.net.heal();
    EXPECT_FALSE(p.net.is_cut(alice, bob));
}

TEST(Network, ALinkMayHaveConditionsOfItsOwn) {
    post_office p{{}};
    p.net.set(alice, bob, {.loss = 1});
    p.run(10);
    EXPECT_TRUE(p.arrivals.empty());
    p.net.unset(alice, bob);
    p.a.spawn(p.send(&p.a, bob, 10)).detach();
    ASSERT_NE(p.world.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_EQ(p.arrivals.size(), 10U);
}

TEST(Network, AHostHearsItselfWhateverTheConditions) {
    post_office p{{.loss = 1}};
    p.net.cut(bob, bob);
    p.b.spawn(p.receive(&p.b)).detach();
    p.b.spawn(p.send(&p.b, bob, 3)).detach();
    ASSERT_NE(p.world.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_EQ(p.arrivals.size(), 3U);
}

TEST(Network, WhatNobodyIsBoundForIsUnheard) {
    post_office p{{}};
    p.a.spawn(p.send(&p.a, 99, 3)).detach();
    ASSERT_NE(p.world.run_for(1s), sim::outcome::out_of_turns);
    EXPECT_EQ(p.net.counts().unheard, 3U);
}

TEST(Network, BindSaysWhyItFails) {
    post_office p{{}};
    auto const taken = p.a.bind({alice, 80}).value();
    EXPECT_EQ(p.a.bind({0, 80}).error(), bind_error::in_use);
    EXPECT_EQ(p.a.bind({bob, 80}).error(), bind_error::not_here);
    auto const one = p.a.bind({0, 0}).value();
    auto const two = p.a.bind({0, 0}).value();
    EXPECT_NE(one->local().port, two->local().port);
    taken->close();
    EXPECT_TRUE(p.a.bind({0, 80}));
}

TEST(Network, TheSameSeedHasTheSameFates) {
    for (std::uint64_t const seed : sim::seeds(5)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        sim::conditions const bad{
            .most_delay = 20ms, .loss = 0.2, .duplication = 0.2, .straggling = 0.1};
        post_office one{bad, seed};
        post_office two{bad, seed};
        post_office other{bad, seed + 1};
        one.run(100);
        two.run(100);
        other.run(100);
        EXPECT_EQ(one.net.counts(), two.net.counts());
        EXPECT_EQ(one.world.trace_hash(), two.world.trace_hash());
        EXPECT_NE(one.world.trace_hash(), other.world.trace_hash());
    }
}

}  // namespace
