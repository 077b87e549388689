// config_admission.hpp: the sections about turns between tenants.
#pragma once

#include <toml++/toml.h>

#include <string_view>
#include <vector>

#include "config.hpp"
#include "config_reader.hpp"

namespace rondo::gateway {

// [admission], [tenants] and [[tenant]]. Without [admission] nobody waits for anything.
void read_admission(config_reader& r, toml::table const& file, config& c);

// ["10.0.0.0/8", "::1"]
void read_networks(config_reader& r, toml::node const& n, std::string_view key,
                   std::vector<http::network>& to);

}  // namespace rondo::gateway
