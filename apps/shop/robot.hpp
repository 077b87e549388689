// robot.hpp: a robot: it fills cups from containers that it has only while it has their tokens.
//
// Parts          by the names of the design they come from (they were threads there):
//                RobotReceiver   takes what is sent to the robot: orders of the leader, tokens
//                OrderHandler    makes one order after the other; waits for one token at a time
//                RobotInspector  watches the predecessor in the ring (cluster/token_ring.hpp)
//
// A token        carries what is left of a flavour and what is reserved of it, by whom. It is
//                clamped to what the leader said last that the gateway said, and topped up to it
//                when nothing is reserved. A leader tells what is at most `levels_age` old, robots
//                top up for twice as long after it came; docs/shop.md says why that is safe.
// A cup          that is ready is kept until it is fetched or discarded, or its screen orders
//                something else here; for `cup_kept` at most. What is reserved for a cup that is
//                aborted or not there any more, or by a robot that is in the ring no more, is put
//                back.
// Order twice    the same attempt at the same order is made once: who asks again gets that cup.
// Epochs         a leader of a lower epoch than one that was seen is refused, also after a restart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "limits.hpp"
#include "place.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/core/task.hpp"
#include "times.hpp"
#include "view.hpp"

namespace rondo::shop {

struct robot_options {
    std::uint32_t number = 0;
    std::vector<std::uint32_t> ring;  // in its order, this one first
    times patience;
    limits most;
    cluster::ring_options tokens;
    clock::duration scoop{};  // how long it takes to fill in one item
    onlooker shown{};
};

// Until it is stopped.
task<void> run_robot(place here, robot_options chosen);

}  // namespace rondo::shop
