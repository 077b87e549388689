// limits.hpp: how much the members of a shop keep at a time; one more is answered busy.
#pragma once

#include <cstddef>

#include "container.hpp"

namespace rondo::shop {

struct limits {
    std::size_t open_orders = 64;   // of a leader: that wait or are being made
    std::size_t known_cups = 1024;  // of robots, that a leader knows of
    std::size_t cups = 256;         // of a robot
    // Of a token, for cups; while there is no room for another one it is waited for.
    std::size_t reserved = container::most_reserved;
};

}  // namespace rondo::shop
