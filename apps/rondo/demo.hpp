// demo.hpp: `rondo demo`: a gateway with no configuration at all, something behind it, and tenants
// in front of it: one that is noisy, and some that are quiet.
//
// All of it is real: requests of HTTP over the loopback to a backend that can do so many at a time.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string_view>

namespace rondo::gateway {

// Until SIGINT, SIGTERM or SIGHUP, which have to be blocked. An empty line on stdin switches turns
// off and on. `program` is how this program was called, for the command to try next. What it exits
// with.
int run_demo(bool turns, std::string_view program, std::shared_ptr<spdlog::logger> const& log);

}  // namespace rondo::gateway
