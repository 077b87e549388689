// round_table: four knights pass a jug round; who has it may pour. One of them falls asleep.
//
// The jug is a token with what is left in it. A knight who wants to drink waits until the jug comes
// round. The third knight stops answering with the jug perhaps in his hands: the others close the
// ring without him, and bring a new jug, with no more in it than the cellar book allows. When he
// wakes up, he finds that his jug does not count any more, and takes his seat again.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "rondo/cluster/bytes.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/network.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/world.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo;

constexpr std::uint32_t full = 100;

endpoint seat_of(cluster::member_id id) { return {id, 7000}; }

std::vector<std::byte> to_bytes(std::uint32_t cups) {
    std::vector<std::byte> content;
    cluster::byte_writer{content}.put(cups);
    return content;
}
std::uint32_t cups_in(std::vector<std::byte> const& content) {
    return cluster::byte_reader{content}.get<std::uint32_t>();
}

// Every cup that was really poured: what decides in the end. A shop has a ledger for it.
struct cellar_book {
    std::uint32_t poured = 0;
};

class knight {
  public:
    knight(sim::world& w, sim::network& net, cluster::member_id id,
           std::vector<cluster::address> all, cellar_book& book)
        : id_(id),
          all_(std::move(all)),
          book_(book),
          body(w, net, id, [this](sim::node* n) { return live(n); }) {}

  private:
    task<void> live(sim::node* self) {
        auto const serve = [this](cluster::message m) { return answer(std::move(m)); };
        auto const renew = [this](std::vector<cluster::token> lost, std::vector<std::string> held) {
            return bring_a_jug(std::move(lost), std::move(held));
        };
        cluster::peer me{self->bind(seat_of(id_)).value(), {}, {id_, self->starts()}, serve};
        cluster::token_ring table{me, all_, renew};
        table_ = &table;
        auto const receiving = self->spawn(me.run());
        auto const drinking = self->spawn(drink());
        co_await table.run();
    }
    task<cluster::answer> answer(cluster::message m) {
        if (cluster::token_ring::serves(m.type)) co_return table_->serve(m);
        co_return cluster::answer{};
    }

    // [drink]
    task<void> drink() {
        for (;;) {
            {
                cluster::held_token jug = co_await table_->take("jug");
                std::uint32_t const left = cups_in(jug.content());
                if (left > 0 && book_.poured < full) {
                    jug.content() = to_bytes(left - 1);
                    ++book_.poured;
                    ++cups;
                }
            }  // the jug goes on
            co_await sleep_for(200ms);
        }
    }
    // [/drink]

    // [renew]
    task<std::vector<cluster::token>> bring_a_jug(std::vector<cluster::token> lost,
                                                  std::vector<std::string> held) {
        std::vector<cluster::token> made;
        if (!held.empty()) co_return made;  // somebody has it
        std::uint32_t const best = lost.empty() ? full : cups_in(lost.front().content);
        std::uint32_t const left = std::min(best, full - book_.poured);
        std::printf("  knight %u brings a jug with %u cups\n", id_, left);
        made.push_back({"jug", to_bytes(left)});
        co_return made;
    }
    // [/renew]

    cluster::member_id id_;
    std::vector<cluster::address> all_;
    cellar_book& book_;
    cluster::token_ring* table_ = nullptr;

  public:
    sim::node body;
    int cups = 0;
    std::size_t sits_with() const { return table_->members().size(); }
};

void require(bool condition, char const* what) {
    if (condition) return;
    std::printf("this should not be: %s\n", what);
    std::exit(EXIT_FAILURE);
}

}  // namespace

int main() {
    sim::world world{{.seed = 3}};
    sim::network network{world, {.most_delay = 5ms, .loss = 0.1, .duplication = 0.05}};
    std::vector<cluster::address> all;
    for (cluster::member_id id = 1; id <= 4; ++id) all.push_back({seat_of(id), id});
    cellar_book book;
    std::list<knight> knights;
    for (cluster::address const& a : all) knights.emplace_back(world, network, a.id, all, book);
    knight& first = knights.front();
    knight& third = *std::next(knights.begin(), 2);

    for (knight& k : knights) k.body.start();
    (void)world.run_for(3s);
    require(first.sits_with() == 4, "not everybody has a seat");

    std::printf("knight 3 falls asleep\n");
    third.body.pause();
    (void)world.run_for(4s);
    require(first.sits_with() == 3, "nobody has noticed");

    std::printf("knight 3 wakes up\n");
    third.body.resume();
    (void)world.run_for(30s);
    require(first.sits_with() == 4 && third.sits_with() == 4, "he has no seat");
    for (knight const& k : knights) {
        std::printf("a knight had %d cups\n", k.cups);
        require(k.cups > 10, "somebody is thirsty");
    }
    require(book.poured <= full, "more was poured than there was");
}
