// turn_taking.hpp: what every line of waiters owes to those who stand in it, as one suite of tests.
//
//   a stopped waiter at the head lets those behind it go that fit, at once
//   what comes in the instant of a stop goes to one of them, and is never lost
//   nor is what is there already when a loser comes
//
// A line is a primitive in which nothing is there to be had, and has these members:
//
//   next()             what one in line awaits
//   next(stop_token)   the same, with an explicit token
//   supply()           lets one of them go
//   static left        what is left for the next when one has been served
//   static one_waits   whether only one may wait at a time: then the follower comes later
//
// The same questions, asked of threads that meet in every possible way, are model-checked in
// tests/model: see support/turn_taking_model.hpp.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/foreign.hpp"
#include "support/left_over.hpp"
#include "support/manual_loop.hpp"

namespace rondo::test {

using names = std::vector<std::string>;

template <class Line>
class TurnTaking : public testing::Test {
  protected:
    static task<void> take(Line& from, names& went, std::string name) {
        (void)co_await from.next();
        went.push_back(std::move(name));
    }
    static task<void> take_unless(Line& from, names& went, std::string name, stop_token t) {
        auto const got = co_await from.next(t);
        if (got.has_value()) went.push_back(std::move(name));
    }
    static task<std::size_t> hear_or_take(Line& from, notify& bell) {
        auto const first = co_await when_any(bell.notified(), from.next());
        co_return first.index();
    }
    // The inner one begins to take when the outer one has its result.
    static task<std::size_t> take_too_late(Line& from, notify& bell, notify& rung) {
        auto const first =
            co_await when_any(when_any(bell.notified(), from.next()), rung.notified());
        co_return first.index();
    }
    static owned_foreign take_unowned(Line& from, bool& went) {
        (void)co_await from.next();
        went = true;
    }

    join_handle<void> line_up(std::string name) {
        auto waits = spawn(loop, take(line, went, std::move(name)));
        loop.run_ready();
        return waits;
    }
    void follower_comes() {
        line_up("follower").detach();
        has_come = true;
    }
    void follower_lines_up() {
        if (!Line::one_waits) follower_comes();
    }
    // What there is by now is the follower's.
    void expect_that_the_follower_goes() {
        if (!has_come) follower_comes();
        loop.run_ready();
        EXPECT_EQ(went, names{"follower"});
    }

    manual_loop loop;
    Line line;
    names went;
    bool has_come = false;
};

TYPED_TEST_SUITE_P(TurnTaking);

TYPED_TEST_P(TurnTaking, WhoIsStoppedLeavesWhatComesNextToTheOneBehind) {
    auto head = this->line_up("head");
    this->follower_lines_up();
    head.request_stop();
    this->loop.run_ready();
    EXPECT_FALSE(head.blocking_join().has_value());
    this->line.supply();
    this->expect_that_the_follower_goes();
}

TYPED_TEST_P(TurnTaking, WhatComesInTheInstantAfterTheStopGoesToTheOneBehind) {
    auto head = this->line_up("head");
    this->follower_lines_up();
    head.request_stop();
    this->line.supply();
    this->loop.run_ready();
    EXPECT_FALSE(head.blocking_join().has_value());
    this->expect_that_the_follower_goes();
}

TYPED_TEST_P(TurnTaking, WhoIsInterruptedByATokenLeavesItToTheOneBehind) {
    stop_source asks;
    auto head = spawn(this->loop, this->take_unless(this->line, this->went, "head", asks.token()));
    this->loop.run_ready();
    this->follower_lines_up();
    asks.request_stop();
    this->line.supply();
    this->loop.run_ready();
    EXPECT_TRUE(head.blocking_join().has_value()) << "it goes on, without";
    this->expect_that_the_follower_goes();
}

TYPED_TEST_P(TurnTaking, WhatCameInTheInstantBeforeTheStopIsHadAndThenTheNextHasItsTurn) {
    constexpr left_over left = TypeParam::left;
    auto head = this->line_up("head");
    this->follower_lines_up();
    this->line.supply();
    head.request_stop();
    this->loop.run_ready();
    EXPECT_TRUE(head.blocking_join().has_value());
    if constexpr (left == left_over::nothing) {
        EXPECT_EQ(this->went, names{"head"});
    } else {
        if (left == left_over::none) this->line.supply();
        if (!this->has_come) this->follower_comes();
        this->loop.run_ready();
        EXPECT_EQ(this->went, (names{"head", "follower"}));
    }
}

TYPED_TEST_P(TurnTaking, WhatALoserOfWhenAnyWasGrantedInTheSameInstantIsPassedOn) {
    notify bell;
    auto head = spawn(this->loop, this->hear_or_take(this->line, bell));
    this->loop.run_ready();
    this->follower_lines_up();
    bell.notify_one();
    this->line.supply();
    this->loop.run_ready();
    EXPECT_EQ(head.blocking_join().value(), 0U) << "the bell was first";
    this->expect_that_the_follower_goes();
}

TYPED_TEST_P(TurnTaking, WhatALoserOfWhenAnyFindsThereIsLeftToTheNext) {
    notify bell;
    notify rung;
    rung.notify_one();
    this->line.supply();
    auto head = spawn(this->loop, this->take_too_late(this->line, bell, rung));
    this->loop.run_ready();
    EXPECT_EQ(head.blocking_join().value(), 1U);
    this->expect_that_the_follower_goes();
}

TYPED_TEST_P(TurnTaking, WhatWasGrantedToACoroutineThatIsDestroyedIsPassedOn) {
    bool head_went = false;
    {
        fenced nowhere;
        executor::scope const here{&nowhere};
        owned_foreign const head = this->take_unowned(this->line, head_went);
        {
            executor::scope const back{&this->loop};
            this->follower_lines_up();
            this->line.supply();
        }
    }
    EXPECT_FALSE(head_went);
    this->expect_that_the_follower_goes();
}

REGISTER_TYPED_TEST_SUITE_P(TurnTaking, WhoIsStoppedLeavesWhatComesNextToTheOneBehind,
                            WhatComesInTheInstantAfterTheStopGoesToTheOneBehind,
                            WhoIsInterruptedByATokenLeavesItToTheOneBehind,
                            WhatCameInTheInstantBeforeTheStopIsHadAndThenTheNextHasItsTurn,
                            WhatALoserOfWhenAnyWasGrantedInTheSameInstantIsPassedOn,
                            WhatALoserOfWhenAnyFindsThereIsLeftToTheNext,
                            WhatWasGrantedToACoroutineThatIsDestroyedIsPassedOn);

}  // namespace rondo::test
