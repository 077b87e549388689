// arguments.hpp: the positional arguments of robots and screens, and the secret of their cluster.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/cluster/message.hpp"

namespace rondo::shop {

// The ring "1:2:0" of robot 1: rotated so that it begins with the robot itself. The error says what
// is wrong with it.
std::expected<std::vector<std::uint32_t>, std::string> parse_ring(std::string_view text,
                                                                  std::uint32_t self);

// The screens "0:1:2", in any order, with this one among them.
std::expected<std::vector<std::uint32_t>, std::string> parse_screens(std::string_view text,
                                                                     std::uint32_t self);

// A probability from 0 to 1, as CARD_REJECTION_PROBABILITY has it.
std::expected<double, std::string> parse_probability(std::string_view text);

// The key is a digest of the environment variable SHOP_KEY, if that is set; otherwise what is in
// the file `key` of the directory. The first process on the machine makes it, for its user alone.
std::expected<cluster::secret, std::string> load_secret(std::string const& directory);

}  // namespace rondo::shop
