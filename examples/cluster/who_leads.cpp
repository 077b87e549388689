// who_leads: three servers choose one of them, and another one when that is gone.
//
// The one with the highest id leads. Here the network loses a tenth of the datagrams, the leader
// loses power, another takes its place, and steps down when the first one is back. On real machines
// only main() differs: a udp_network instead of the simulated one, a file instead of `saved_`.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "rondo/cluster/election.hpp"
#include "rondo/sim/network.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/world.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo;

endpoint door_of(cluster::member_id id) { return {id, 7000}; }

class server final : cluster::epoch_store {
  public:
    server(sim::world& w, sim::network& net, cluster::member_id id,
           std::vector<cluster::address> all)
        : id_(id), all_(std::move(all)), machine(w, net, id, std::bind_front(&server::run, this)) {}

  private:
    // [server]
    task<void> run(sim::node* self) {
        auto const serve = std::bind_front(&server::answer, this);
        cluster::peer me{self->bind(door_of(id_)).value(), {}, {id_, self->starts()}, serve};
        cluster::election choosing{me, all_, *this};
        election_ = &choosing;
        auto const receiving = self->spawn(me.run());
        auto const saying = self->spawn(say_who_leads(self));
        co_await choosing.run();
    }
    task<cluster::answer> answer(cluster::message m) {
        if (cluster::election::serves(m.type)) co_return election_->serve(m);
        co_return cluster::answer{};  // here are the messages of the program itself
    }
    task<void> say_who_leads(sim::node* self) {
        auto changes = election_->subscribe();
        for (;;) {
            auto const changed = co_await changes.changed();
            if (!changed) co_return;
            cluster::leadership const now = *changes.borrow_and_update();
            double const s = std::chrono::duration<double>(self->now().time_since_epoch()).count();
            if (now.mine) std::printf("%7.3f s  server %u leads, in term %u\n", s, id_, term(now));
        }
    }
    static unsigned term(cluster::leadership const& l) {
        return static_cast<unsigned>(l.leader->term);
    }

    // What has to survive a crash: the highest epoch. Durable when save() returns.
    cluster::epoch load() override { return saved_; }
    void save(cluster::epoch e) override { saved_ = e; }
    // [/server]

    cluster::member_id id_;
    std::vector<cluster::address> all_;
    cluster::epoch saved_;
    cluster::election* election_ = nullptr;

  public:
    sim::node machine;
    bool leads() const { return machine.is_up() && election_->leads(); }
};

void require(bool condition, char const* what) {
    if (condition) return;
    std::printf("this should not be: %s\n", what);
    std::exit(EXIT_FAILURE);
}

}  // namespace

int main() {
    sim::world world{{.seed = 4}};
    sim::network network{world, {.most_delay = 10ms, .loss = 0.1}};
    std::vector<cluster::address> all;
    for (cluster::member_id id = 1; id <= 3; ++id) all.push_back({door_of(id), id});
    std::list<server> servers;
    for (cluster::address const& a : all) servers.emplace_back(world, network, a.id, all);
    server& second = *std::next(servers.begin());
    server& third = servers.back();

    for (server& s : servers) s.machine.start();
    (void)world.run_for(3s);
    require(third.leads(), "the highest does not lead");

    std::printf("           server 3 loses power\n");
    third.machine.crash();
    (void)world.run_for(3s);
    require(second.leads(), "nobody took over");

    std::printf("           server 3 is back\n");
    third.machine.start();
    (void)world.run_for(3s);
    require(third.leads() && !second.leads(), "two lead, or the wrong one");
}
