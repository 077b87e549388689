// turn_taking_model.hpp: what every line of waiters owes to those who stand in it, model-checked.
//
// The questions are those of turn_taking.hpp, asked of threads: a head that is stopped by one while
// another brings what it waits for, and a follower behind it. A line has these members:
//
//   take(stop_token)   waits; whether it had it
//   supply()           lets one of them go
//   static left        what is left for the next when one has been served
//   static one_waits   whether only one may wait at a time: then the follower comes later
#pragma once

#include <gtest/gtest.h>

#include "rondo/check/check.hpp"
#include "rondo/core/stop.hpp"
#include "support/left_over.hpp"
#include "support/model.hpp"

namespace rondo::test {

template <class Line>
class TurnTakingModel : public testing::Test {};

TYPED_TEST_SUITE_P(TurnTakingModel);

// Four threads have too many schedules to try them all: each primitive's own model tests do that
// for fewer.
// Mutants: skip_the_head_rerun, withdraw_after_the_decision
TYPED_TEST_P(TurnTakingModel, WhatComesInTheInstantOfAStopIsNeverLost) {
    auto const scenario = [] {
        constexpr left_over left = TypeParam::left;
        TypeParam line;
        stop_source stop;
        bool head_went = false;
        check::thread head{[&] {
            head_went = line.take(stop.token());
            if (head_went && left == left_over::none) line.supply();
        }};
        check::thread stops{[&] { stop.request_stop(); }};
        auto const follow = [&] { RONDO_CHECK_EXPECT(line.take({})); };
        if constexpr (TypeParam::one_waits) {
            line.supply();
            head.join();
            if (!head_went || left != left_over::nothing) follow();
        } else {
            check::thread follower{follow};
            line.supply();
            head.join();
            follower.join();
        }
        stops.join();
    };
    EXPECT_HOLDS_AT_RANDOM(scenario);
}

REGISTER_TYPED_TEST_SUITE_P(TurnTakingModel, WhatComesInTheInstantOfAStopIsNeverLost);

}  // namespace rondo::test
