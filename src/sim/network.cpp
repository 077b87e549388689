// A datagram on its way is a timer of the world, so that arrivals take turns like everything else:
// which of two that are due at one instant comes first is drawn too.
//
// Maps and sets are ordered, and keyed by numbers: nothing here depends on an address.
#include "rondo/sim/network.hpp"

#include "rondo/core/assert.hpp"

namespace rondo::sim {

class network::socket final : public datagram_socket {
  public:
    socket(network& n, endpoint local, std::size_t queue_length)
        : datagram_socket(local, queue_length), network_(&n) {}
    ~socket() override { close(); }

    void send_to(endpoint to, std::span<std::byte const> bytes) noexcept override {
        RONDO_ASSERT(bytes.size() <= longest, "a datagram has at most 65507 bytes");
        count_sent(network_ != nullptr);
        if (network_ != nullptr) network_->send(local(), to, bytes);
    }

    using datagram_socket::deliver;
    void unplug() noexcept { network_ = nullptr; }

  private:
    void closed() noexcept override {
        if (network_ != nullptr) network_->sockets_.erase(local());
        network_ = nullptr;
    }

    network* network_;  // null: nothing goes out any more
};

struct network::flight : timer {
    flight(network& n, endpoint sender, endpoint receiver, std::span<std::byte const> content,
           std::uint64_t serial)
        : timer([](timer& t) noexcept {
              auto& landed = static_cast<flight&>(t);
              landed.over.arrive(landed);
          }),
          over(n),
          from(sender),
          to(receiver),
          number(serial),
          bytes(content.begin(), content.end()) {}

    network& over;
    endpoint from;
    endpoint to;
    std::uint64_t number;
    std::vector<std::byte> bytes;
    std::list<flight>::iterator place;
};

network::network(world& w, conditions everywhere)
    : world_(w), random_(w.random().split()), everywhere_(everywhere) {}

network::~network() {
    RONDO_ASSERT(sockets_.empty(), "the nodes of a sim::network go before it");
    for (flight& f : flights_) world_.timers().cancel(f);
}

void network::partition(std::span<host const> these, std::span<host const> those) {
    for (host const a : these) {
        for (host const b : those) {
            cut(a, b);
            cut(b, a);
        }
    }
}

datagram_network::bound network::bind(endpoint local, datagram_options chosen) {
    constexpr std::uint16_t first_free = 49152;
    if (local.port == 0) {
        local.port = first_free;
        while (sockets_.contains(local) && local.port != 0) ++local.port;
        if (local.port == 0) return std::unexpected{bind_error::refused};
    }
    if (sockets_.contains(local)) return std::unexpected{bind_error::in_use};
    auto bound = std::make_unique<socket>(*this, local, chosen.queue_length);
    sockets_[local] = bound.get();
    return bound;
}

void network::unplug(host h) noexcept {
    std::erase_if(sockets_, [h](auto const& at) {
        if (at.first.host != h) return false;
        at.second->unplug();
        return true;
    });
}

clock::duration network::draw_delay(conditions const& c) noexcept {
    clock::duration delay = random_.between(c.least_delay, c.most_delay);
    if (random_.chance(c.straggling)) {
        delay += random_.between(clock::duration::zero(), c.straggle);
    }
    return delay;
}

void network::send(endpoint from, endpoint to, std::span<std::byte const> bytes) {
    ++counts_.sent;
    if (from.host == to.host) return launch(from, to, bytes, clock::duration::zero());
    if (is_cut(from.host, to.host)) {
        ++counts_.cut;
        return;
    }
    auto const of_link = links_.find({from.host, to.host});
    conditions const& c = of_link != links_.end() ? of_link->second : everywhere_;
    if (random_.chance(c.loss)) {
        ++counts_.lost;
        return;
    }
    launch(from, to, bytes, draw_delay(c));
    if (random_.chance(c.duplication)) {
        ++counts_.doubled;
        launch(from, to, bytes, draw_delay(c));
    }
}

void network::launch(endpoint from, endpoint to, std::span<std::byte const> bytes,
                     clock::duration delay) {
    flights_.emplace_front(*this, from, to, bytes, ++launched_);
    flight& f = flights_.front();
    f.place = flights_.begin();
    world_.timers().add(f, later(world_.now(), delay));
}

void network::arrive(flight& f) noexcept {
    flight arrived{*this, f.from, f.to, {}, f.number};
    arrived.bytes = std::move(f.bytes);
    flights_.erase(f.place);

    if (is_cut(arrived.from.host, arrived.to.host)) {
        ++counts_.cut;
        return;
    }
    auto const receiver = sockets_.find(arrived.to);
    if (receiver == sockets_.end()) {
        ++counts_.unheard;
        return;
    }
    std::uint64_t& newest = newest_arrived_[{arrived.from, arrived.to}];
    if (arrived.number < newest) ++counts_.overtaken;
    newest = std::max(newest, arrived.number);
    ++counts_.arrived;
    receiver->second->deliver({arrived.from, std::move(arrived.bytes)});
}

}  // namespace rondo::sim
