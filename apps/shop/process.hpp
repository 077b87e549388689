// process.hpp: a role of the shop as a process of its own: real UDP, clocks and disks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "place.hpp"
#include "rondo/core/task.hpp"
#include "view.hpp"

namespace rondo::shop {

struct process_options {
    std::string directory = "shop-state";
    std::string host = "127.0.0.1";
    std::uint16_t base_port = 7100;
    // Where the others are reached, if that is not their own ports: through a proxy, say.
    std::uint16_t peers_port = 0;
    cluster::peer_options datagrams;
};

// Exit statuses.
inline constexpr int exit_cannot_start = 1;
inline constexpr int exit_bad_arguments = 2;
inline constexpr int exit_storage_failed = 3;
inline constexpr int exit_unforeseen = 4;  // out of memory, say

// Runs a role, the member `self`, to its end or until a signal asks the process to end; then the
// process exits. (Nothing has to be put in order: see place.hpp.) Returns only if it cannot start.
// What it has seen is logged when a signal ends it. An exception that leaves any task of the role
// ends the process too: who looks after it starts it again, and the others go on meanwhile.
int run_as_process(process_options const& chosen, member_id self,
                   std::shared_ptr<spdlog::logger> const& log,
                   std::function<task<int>(place, onlooker)> const& role);

}  // namespace rondo::shop
