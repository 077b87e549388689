// options::after_turn: who looks on after each turn is told whose it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/network.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/world.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::executor;
using rondo::task;
namespace sim = rondo::sim;

class AfterTurn : public testing::Test {
  protected:
    static task<void> tick(executor*) {
        for (;;) co_await rondo::sleep_for(1s);
    }
    static task<void> crash_in_its_second_turn(sim::node* self) {
        co_await rondo::sleep_for(1s);
        self->crash();
    }
    std::ptrdiff_t turns_of(executor const& e) const { return std::ranges::count(whose, &e); }

    std::vector<executor const*> whose;  // of each turn
    sim::options looked_at{.seed = 1, .after_turn = [this](executor const& e) {
                               EXPECT_EQ(executor::current(), looks_on) << "between turns";
                               whose.push_back(&e);
                           }};
    executor const* looks_on = nullptr;
};

TEST_F(AfterTurn, EachTurnIsToldOnce) {
    sim::world w{looked_at};
    looks_on = &w;
    w.spawn(tick(&w)).detach();
    EXPECT_EQ(w.run_for(3500ms), sim::outcome::paused);
    EXPECT_EQ(whose.size(), w.turns());
    EXPECT_EQ(turns_of(w), static_cast<std::ptrdiff_t>(w.turns()));
    EXPECT_GE(w.turns(), 4U) << "it begins, and three timers fire";
}

TEST_F(AfterTurn, AlsoThoseOfNodesAndTheOneInWhichANodeCrashes) {
    sim::world w{looked_at};
    looks_on = &w;
    sim::network net{w};
    sim::node lasting{w, net, 1, [](sim::node* self) { return tick(self); }};
    sim::node brief{w, net, 2, crash_in_its_second_turn};
    lasting.start();
    brief.start();
    EXPECT_EQ(w.run_for(1500ms), sim::outcome::paused);
    EXPECT_FALSE(brief.is_up());
    EXPECT_EQ(whose.size(), w.turns());
    std::ptrdiff_t const until_the_crash = turns_of(brief);
    EXPECT_GE(until_the_crash, 2) << "its crash was seen";
    EXPECT_EQ(w.run_for(1s), sim::outcome::paused);
    EXPECT_EQ(turns_of(brief), until_the_crash);
    EXPECT_EQ(turns_of(lasting) + turns_of(brief) + turns_of(w),
              static_cast<std::ptrdiff_t>(w.turns()));
}

TEST_F(AfterTurn, IsNotCalledByAWorldThatIsDestroyed) {
    std::size_t told = 0;
    {
        sim::world w{looked_at};
        looks_on = &w;
        w.spawn(tick(&w)).detach();
        (void)w.run_for(1500ms);
        told = whose.size();
    }
    EXPECT_EQ(whose.size(), told) << "although its task has unwound";
}

}  // namespace
