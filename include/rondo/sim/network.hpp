// network.hpp: datagrams between the nodes of a world: late, lost, doubled, overtaken, cut off.
//
//   sim::world w{{.seed = 7}};
//   sim::network net{w, {.most_delay = 30ms, .loss = 0.1, .duplication = 0.05}};
//   sim::node server{w, net, 1, serve};        // node.hpp
//   net.cut(1, 2);                             // nothing from 1 reaches 2; 2 still reaches 1
//
// What runs on a node sends and receives through datagram_socket (core/datagram.hpp), as over UDP.
//
// Guarantee      the fate of each datagram is drawn from the world's seed: whether it is lost, how
//                often it arrives and after what delay, each independently of the others. Hence
//                datagrams overtake each other as soon as delays differ by more than the time
//                between them.
// Cuts           a cut link carries nothing: what is sent is dropped, and so is what is on its way
//                at that time and would arrive before it is healed.
// Itself         what a host sends to itself is neither lost, doubled, delayed nor cut.
// Not simulated  bandwidth, fragments, routes.
// Lifetime       after the world, before its nodes.
// Thread safety  none, as of the world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "rondo/core/datagram.hpp"
#include "rondo/sim/random.hpp"
#include "rondo/sim/world.hpp"

namespace rondo::sim {

class node;

// An address as it stands in an endpoint; any number will do.
using host = std::uint32_t;

// What happens to a datagram. Each delay between the two is as likely as the others; one in
// `straggling` takes up to `straggle` longer than that.
struct conditions {
    clock::duration least_delay = std::chrono::microseconds{100};
    clock::duration most_delay = std::chrono::milliseconds{1};
    double loss = 0;
    double duplication = 0;
    double straggling = 0;
    clock::duration straggle = std::chrono::milliseconds{100};
};

struct network_counts {
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    std::uint64_t cut = 0;
    std::uint64_t doubled = 0;
    std::uint64_t arrived = 0;    // at a socket, the second ones too; its queue may be full
    std::uint64_t overtaken = 0;  // of those: after one that was sent later between the same two
    std::uint64_t unheard = 0;    // nobody was bound there when it arrived

    friend bool operator==(network_counts const&, network_counts const&) = default;
};

class network {
  public:
    explicit network(world& w, conditions everywhere = {});
    ~network();
    network(network const&) = delete;
    network& operator=(network const&) = delete;

    // For what is sent from now on; those of a link go before those of everywhere.
    void set(conditions everywhere) noexcept { everywhere_ = everywhere; }
    void set(host from, host to, conditions of_link) { links_[{from, to}] = of_link; }
    void unset(host from, host to) { links_.erase({from, to}); }

    // Of a host and itself: nothing.
    void cut(host from, host to) {
        if (from != to) cuts_.insert({from, to});
    }
    void heal(host from, host to) { cuts_.erase({from, to}); }
    // Both ways, between each of these and each of those.
    void partition(std::span<host const> these, std::span<host const> those);
    void heal() noexcept { cuts_.clear(); }
    bool is_cut(host from, host to) const { return cuts_.contains({from, to}); }

    network_counts const& counts() const noexcept { return counts_; }
    std::size_t in_flight() const noexcept { return flights_.size(); }

  private:
    friend node;

    using link = std::pair<host, host>;
    class socket;
    struct flight;

    // For nodes.
    datagram_network::bound bind(endpoint local, datagram_options chosen);
    // The sockets of a host belong to the network no more: nothing goes out or comes in.
    void unplug(host h) noexcept;

    void send(endpoint from, endpoint to, std::span<std::byte const> bytes);
    void launch(endpoint from, endpoint to, std::span<std::byte const> bytes,
                clock::duration delay);
    clock::duration draw_delay(conditions const& c) noexcept;
    void arrive(flight& f) noexcept;

    world& world_;
    random_source random_;
    conditions everywhere_;
    std::map<link, conditions> links_;
    std::set<link> cuts_;
    std::map<endpoint, socket*> sockets_;
    std::list<flight> flights_;
    std::uint64_t launched_ = 0;
    std::map<std::pair<endpoint, endpoint>, std::uint64_t> newest_arrived_;
    network_counts counts_;
};

}  // namespace rondo::sim
