// members.hpp: who is who in a shop: gateway, robots and screens, each with an id in the cluster.
#pragma once

#include <cstdint>
#include <string>

#include "rondo/cluster/message.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/datagram.hpp"

namespace rondo::shop {

using cluster::member_id;

// Ids of robots and screens have room for so many of each.
inline constexpr std::uint32_t most_of_a_kind = 64;
// So many there may be; their numbers are below this. A token ring has room for fewer.
inline constexpr std::uint32_t most_robots = 16;
inline constexpr std::uint32_t most_screens = most_of_a_kind;

inline constexpr member_id gateway_id = 0;
constexpr member_id robot_id(std::uint32_t number) noexcept { return 1 + number; }
constexpr member_id screen_id(std::uint32_t number) noexcept { return 1 + most_of_a_kind + number; }
constexpr bool is_robot(member_id id) noexcept { return id >= 1 && id <= most_of_a_kind; }
constexpr bool is_screen(member_id id) noexcept {
    return id > most_of_a_kind && id <= 2 * most_of_a_kind;
}
// Of a robot or of a screen.
constexpr std::uint32_t number_of(member_id id) noexcept {
    return is_screen(id) ? id - 1 - most_of_a_kind : id - 1;
}

// Ports follow each other from the base port on, in the order of the ids.
inline constexpr std::uint16_t last_base_port = 65535 - 2 * most_of_a_kind;

}  // namespace rondo::shop
