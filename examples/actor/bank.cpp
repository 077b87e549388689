// Two accounts and a teller: actors that are told and asked, and share nothing. The teller asks one
// account and tells the other, while nobody waits for a lock.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "rondo/actor/actor.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/this_task.hpp"

namespace {

using namespace std::chrono_literals;
namespace actor = rondo::actor;

void require(bool holds, char const* what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

// [account]
struct deposit {
    int cents;
};
struct withdraw {
    using reply = bool;  // whether there was enough
    int cents;
};
struct balance {
    using reply = int;
};

class account {
  public:
    using accepts = actor::messages<deposit, withdraw, balance>;

    void receive(deposit d) { cents_ += d.cents; }
    bool receive(withdraw w) {
        if (w.cents > cents_) return false;
        cents_ -= w.cents;
        return true;
    }
    int receive(balance) const { return cents_; }

  private:
    int cents_ = 0;
};
// [/account]

// [teller]
struct transfer {
    using reply = bool;
    actor::address_of<account> from;
    actor::address_of<account> to;
    int cents;
};

class teller {
  public:
    using accepts = actor::messages<transfer>;

    rondo::task<bool> receive(transfer t) {
        auto const taken = co_await t.from.ask_for(withdraw{t.cents}, 1s);
        if (!taken || !*taken) co_return false;
        auto const told = co_await t.to.tell(deposit{t.cents});
        co_return told.has_value();
    }
};
// [/teller]

rondo::task<void> day_at_the_bank() {
    rondo::executor& where = *(co_await rondo::this_environment()).where;
    // [day]
    auto [anna, life_of_anna] = actor::spawn<account>(where);
    auto [ben, life_of_ben] = actor::spawn<account>(where);
    auto [counter, life_of_counter] = actor::spawn<teller>(where);

    (void)co_await anna.tell(deposit{100});
    transfer order{anna, ben, 70};
    auto const first = co_await counter.ask(order);
    auto const second = co_await counter.ask(order);
    // [/day]
    auto const of_anna = co_await anna.ask(balance{});
    auto const of_ben = co_await ben.ask(balance{});

    require(first && *first, "the first transfer is made");
    require(second && !*second, "the second one is refused");
    require(of_anna && *of_anna == 30, "Anna has 30");
    require(of_ben && *of_ben == 70, "Ben has 70");
    std::printf("Anna has %d cents, Ben has %d: the second transfer was refused\n", *of_anna,
                *of_ben);
    life_of_counter.drain();
    auto const end = co_await life_of_counter.join();
    require(end && end->received == 2, "the teller had two orders");
}

}  // namespace

int main() { rondo::block_on(day_at_the_bank()); }
