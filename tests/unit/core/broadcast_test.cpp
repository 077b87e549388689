// What a queue offers beside turns: many let go at once, the last in line first, enlisted waiters.
// Threads that meet there are explored in tests/model/core/enlisting_model_test.cpp.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/waiter.hpp"
#include "support/bell.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using test::bell;
using test::manual_loop;

task<void> hear(bell& b, std::vector<int>& heard, int who) {
    co_await b.stroke();
    heard.push_back(who);
}

TEST(Broadcast, LetsGoEveryoneInLineInTheirOrderHoweverMany) {
    manual_loop loop;
    bell b;
    std::vector<int> heard, expected;
    for (int i = 0; i < 100; ++i) {
        spawn(loop, hear(b, heard, i)).detach();
        expected.push_back(i);
    }
    loop.run_ready();
    b.strike_for_all();
    EXPECT_TRUE(heard.empty()) << "nobody runs inside the call that grants it";
    loop.run_ready();
    EXPECT_EQ(heard, expected);
    EXPECT_FALSE(b.awaited());
}

TEST(Broadcast, IsForThoseWhoWaitedNotForThoseWhoCome) {
    manual_loop loop;
    bell b;
    std::vector<int> heard;
    b.strike_for_all();
    spawn(loop, hear(b, heard, 1)).detach();
    loop.run_ready();
    EXPECT_TRUE(heard.empty());
    b.strike_for_all();
    loop.run_ready();
    EXPECT_EQ(heard, std::vector<int>{1});
}

TEST(Broadcast, ReachesAnOperationThatWasMadeBeforeItAndWaitsLater) {
    bell b;
    bell::stroke_op before{b};
    b.strike_for_all();
    bell::stroke_op after{b};
    EXPECT_FALSE(after.enlist());
    EXPECT_TRUE(before.enlist()) << "although another one is in line";
    EXPECT_TRUE(after.leave());
}

TEST(ServeLast, TakesThemFromTheEndOfTheLine) {
    manual_loop loop;
    bell b;
    std::vector<int> heard;
    for (int i = 0; i < 4; ++i) spawn(loop, hear(b, heard, i)).detach();
    loop.run_ready();
    b.strike_for_the_last();
    b.strike_for_the_first();
    b.strike_for_the_last();
    loop.run_ready();
    EXPECT_EQ(heard, (std::vector<int>{3, 0, 2}));
    b.strike_for_the_last();
    loop.run_ready();
    EXPECT_EQ(heard.back(), 1);
    b.strike_for_the_last();
    EXPECT_EQ(b.kept(), 1U);
}

TEST(ServeLast, WhatIsLeftGoesToTheFirst) {
    manual_loop loop;
    bell b;
    std::vector<int> heard;
    for (int i = 0; i < 3; ++i) spawn(loop, hear(b, heard, i)).detach();
    loop.run_ready();
    b.strike_for_the_last(2);
    loop.run_ready();
    EXPECT_EQ(heard, (std::vector<int>{2, 0}));
    b.strike_for_all();
    loop.run_ready();
}

TEST(Enlisting, KeepsThePlaceInLineOfAnOwnerThatRunsOn) {
    bell b;
    bell::stroke_op first{b}, second{b};
    EXPECT_FALSE(first.enlist());
    EXPECT_FALSE(first.enlist()) << "once is enough";
    EXPECT_TRUE(b.awaited_only_by(first));
    EXPECT_FALSE(second.enlist());
    EXPECT_FALSE(b.awaited_only_by(first));
    b.strike_for_the_first();
    EXPECT_FALSE(second.enlist());
    EXPECT_TRUE(first.enlist());
    EXPECT_EQ(first.state(), wait_state::granted);
    EXPECT_TRUE(second.leave());
    EXPECT_FALSE(b.awaited());
}

TEST(Enlisting, WhatIsWithdrawnSaysSo) {
    bell b;
    bell::stroke_op op{b};
    EXPECT_FALSE(op.enlist());
    EXPECT_TRUE(op.withdraw(wait_state::timed_out));
    EXPECT_FALSE(op.withdraw(wait_state::stopped));
    EXPECT_TRUE(op.enlist());
    EXPECT_EQ(op.state(), wait_state::timed_out);
}

TEST(EnlistingDeathTest, AnEnlistedOperationIsNotMoved) {
    EXPECT_DEATH(
        {
            bell b;
            bell::stroke_op op{b};
            if (!op.enlist()) bell::stroke_op moved{std::move(op)};
        },
        "moved before it is awaited");
}

}  // namespace
}  // namespace rondo
