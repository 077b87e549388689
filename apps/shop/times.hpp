// times.hpp: how long the members of a shop wait for each other.
#pragma once

#include <chrono>

#include "rondo/core/policy.hpp"

namespace rondo::shop {

struct times {
    clock::duration order_silence = std::chrono::seconds{1};  // then KEEPALIVE
    clock::duration leader_silence = std::chrono::milliseconds{700};
    clock::duration robot_silence = std::chrono::milliseconds{1500};  // three keep-alives
    clock::duration levels_age = std::chrono::seconds{1};             // of what a leader tells
    clock::duration screen_gone = std::chrono::seconds{10};  // then its orders are taken over
    clock::duration cup_wait = std::chrono::seconds{5};      // for a cup that was paid for
    clock::duration cup_kept = std::chrono::seconds{90};     // by a robot; more than authorisations
    // After all is done a screen answers still, and a leader tells the robots what is left: so
    // that no token shows more than there is when the shop closes.
    clock::duration farewell = std::chrono::seconds{2};
};

}  // namespace rondo::shop
