// place.hpp: where a role of the shop runs: everything it does to the world goes through this.
//
// A role is a task that is given a place; it is the same over real UDP, clocks and disks (main.cpp)
// and on a node of the simulator (sim/node.hpp).
//
// End            a role needs no goodbye: what matters is on its disk before anybody is told. So a
//                process may be ended anywhere, and a place goes with its process.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "members.hpp"
#include "rondo/cluster/message.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/datagram.hpp"
#include "rondo/core/executor.hpp"
#include "rondo/core/task.hpp"

namespace rondo::shop {

struct place {
    // Runs one thing at a time.
    executor* where = nullptr;
    datagram_network* network = nullptr;
    std::function<endpoint(member_id)> endpoint_of;
    cluster::secret shared;
    // Another one in each run.
    std::uint64_t incarnation = 0;
    std::function<std::uint64_t()> random;
    // Since the beginning of 1970.
    std::function<std::chrono::milliseconds()> wall_clock;
    // Where the files are, and the VFS of SQLite that they are opened with (null: the real one).
    std::string directory;
    char const* vfs = nullptr;
    // Ends the process, as its disk cannot be relied on. Nothing that it sends goes out after that.
    std::function<void(std::string const& reason)> fail;
    // Ends it as well, as something that it needs is not to be had.
    std::function<void(std::string const& reason)> cannot_start;
    // How requests are repeated; each role draws the seed of its jitter itself.
    cluster::peer_options datagrams;
    std::shared_ptr<spdlog::logger> log;

    // Of a member of this place.
    std::unique_ptr<datagram_socket> bind(member_id id) const;
    cluster::peer_options peer_options() const {
        cluster::peer_options o = datagrams;
        o.jitter_seed = static_cast<std::uint32_t>(random());
        return o;
    }
    cluster::address address_of(member_id id) const { return {endpoint_of(id), id}; }
    std::string file(std::string const& name) const {
        return directory.empty() ? name : directory + "/" + name;
    }
};

// A part of a role that is joined only at its end. What it throws goes to executor::unobserved() at
// once: a role of which a part is missing must not go on as if it were whole.
task<void> reporting(task<void> part);

}  // namespace rondo::shop
