// screen.hpp: a screen: it takes the orders of its file one after the other, to their ends.
//
// An order       prepare at the gateway; have it made by the leader's robots; commit at the
//                gateway; fetch the cup; tell the gateway that it was delivered. Each step is in
//                the journal before it is taken: a screen that starts again goes on where it was.
// A cup          is handed over only when it was paid for and the gateway knows. One that is not
//                paid for is discarded; one that is lost with its robot is refunded.
// Leading        the screen with the highest number leads (cluster/election.hpp). The order of a
//                screen that becomes leader goes on: it orders from itself as from any other.
// End            at the end of its file a screen stays, as a peer or as the leader, until all
//                screens are at their ends. One that has not answered for long counts as gone;
//                then until the leader has ended what it had begun.
// Left behind    an order that was begun, and that its file does not have any more as it was read,
//                is cancelled at the start: aborted, or refunded if it was charged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "limits.hpp"
#include "order.hpp"
#include "place.hpp"
#include "rondo/cluster/election.hpp"
#include "rondo/core/task.hpp"
#include "times.hpp"
#include "view.hpp"

namespace rondo::shop {

// How many of its orders ended how.
struct screen_tally {
    std::uint32_t delivered = 0;
    std::uint32_t aborted = 0;
    std::uint32_t refunded = 0;
    std::uint32_t skipped = 0;  // lines that are no orders, or were changed
};

struct screen_options {
    std::uint32_t number = 0;
    std::vector<std::uint32_t> screens;  // this one among them
    std::uint32_t robots = 0;
    std::string file;  // what the orders are from: its name
    std::vector<order_line> orders;
    times patience;
    limits most;
    cluster::election_options election;
    onlooker shown{};
};

// Ends when all screens have.
task<screen_tally> run_screen(place here, screen_options chosen);

}  // namespace rondo::shop
