// simulated_member.hpp: a member of the simulated shop: its node, its files, what was seen of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shop/view.hpp"
#include "simulated_shop.hpp"

namespace rondo::shop::test {

inline sim::host host_of(member_id id) noexcept { return 1000 + id; }

inline std::string name_of(member_id id) {
    if (id == gateway_id) return "gateway";
    return (is_robot(id) ? "robot " : "screen ") + std::to_string(number_of(id));
}

struct held_token {
    std::string name;
    cluster::generation gen;

    friend bool operator==(held_token const&, held_token const&) = default;
};

struct simulated_shop::member {
    member(simulated_shop& in, member_id who)
        : id(who),
          node(in.world_, in.network_, host_of(who),
               [&in, who](sim::node* self) { return in.live(who, self); }),
          files(node) {}
    ~member() {
        if (node.is_up()) node.crash();
    }
    member(member const&) = delete;
    member& operator=(member const&) = delete;

    // Synced or not: what was told and not synced has to be seen before a crash takes it away.
    std::uint64_t changes() noexcept {
        return node.disk().counts().writes + node.disk().counts().syncs;
    }

    member_id id;
    sim::node node;
    sim::sqlite_vfs files;
    view shown;                      // while it is up
    std::uint64_t changes_seen = 0;  // of its disk
    bool ended = false;              // a screen that is not to be started again
    bool away = false;               // for good
    bool over = false;               // its program is
    std::size_t lines_done = 0;
    time_point starts_at = time_point::max();
    time_point resumes_at = time_point::max();
    std::map<std::string, cluster::token_place> places;  // in this run
    std::vector<held_token> held;                        // after its last turn
    // In this run, as they were seen last.
    cluster::ring_counts ring;
    cluster::election_counts election;
    cluster::peer_counts traffic;
};

}  // namespace rondo::shop::test
