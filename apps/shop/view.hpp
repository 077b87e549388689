// view.hpp: what a role shows of itself to who looks on, as long as it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/cluster/election.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/cluster/token_ring.hpp"

namespace rondo::shop {

// One of its queues. Each has a bound; what comes on top of that is answered busy, or asked again.
struct queue_view {
    char const* name = "";
    std::size_t length = 0;
    std::size_t bound = 0;
};

struct view {
    std::function<std::vector<queue_view>()> queues{};
    cluster::peer_counts const* traffic = nullptr;
    cluster::token_ring const* ring = nullptr;    // of a robot
    cluster::election const* election = nullptr;  // of a screen
    cluster::epoch const* followed = nullptr;     // of a robot: the highest it has seen
    // Of a robot: whether it makes or holds the cup of this number.
    std::function<bool(std::uint64_t)> has_cup{};
};

// Called when the role begins, and with nothing when it has ended by itself.
using onlooker = std::function<void(view)>;

std::vector<queue_view> queues_of(cluster::peer const& p);

// Datagrams that were served and sent again, and those that were dropped, by reason.
std::string to_text(cluster::peer_counts const& c);

}  // namespace rondo::shop
