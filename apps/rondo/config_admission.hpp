// config_admission.hpp: the sections about turns between tenants.
#pragma once

#include <toml++/toml.h>

#include "config.hpp"
#include "config_reader.hpp"

namespace rondo::gateway {

// [admission], [tenants] and [[tenant]]. Without [admission] nobody waits for anything.
void read_admission(config_reader& r, toml::table const& file, config& c);

}  // namespace rondo::gateway
