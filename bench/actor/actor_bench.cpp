// What actors cost, beside those of CAF.
//
// ping_pong   a message goes to another actor and one comes back, per round trip
// send        one actor tells another, per message
// spawn       actors that do nothing are begun and end, per actor
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"
#include "rondo/actor/actor.hpp"
#include "rondo/sync/notify.hpp"

namespace {

using namespace rondo::bench;
using rondo::task;
namespace actor = rondo::actor;

constexpr std::size_t room = 1024;

struct ball {
    std::size_t left;
    actor::address<ball> back;
};

class ponger {
  public:
    using accepts = actor::messages<ball>;
    task<void> receive(ball b) {
        count();
        actor::address<ball> const to = b.back;
        (void)co_await to.tell(std::move(b));
    }
};

class pinger {
  public:
    using accepts = actor::messages<ball>;
    pinger(actor::address<ball> to, rondo::notify& done) noexcept
        : to_(std::move(to)), done_(done) {}
    task<void> receive(ball b) {
        count();
        if (b.left == 0) {
            done_.notify_one();
        } else {
            --b.left;
            (void)co_await to_.tell(std::move(b));
        }
    }

  private:
    actor::address<ball> to_;
    rondo::notify& done_;
};

task<duration> ping_pong(std::size_t n) {
    rondo::executor& where = *(co_await rondo::this_environment()).where;
    rondo::notify done;
    auto pong = actor::spawn<ponger>(where);
    actor::address<ball> const to = pong.address;
    auto ping = actor::spawn<pinger>(where, [to, &done] { return pinger{to, done}; });
    stopwatch const watch;
    ball first{n, ping.address};
    (void)co_await ping.address.tell(std::move(first));
    co_await done.notified();
    duration const took = watch.elapsed();
    ping.life.drain();
    pong.life.drain();
    (void)co_await ping.life.join();
    (void)co_await pong.life.join();
    co_return took;
}

struct number {
    std::size_t value;
};

class sink {
  public:
    using accepts = actor::messages<number>;
    void receive(number) noexcept { count(); }
};

struct begin {
    std::size_t messages;
};

class source {
  public:
    using accepts = actor::messages<begin>;
    explicit source(actor::address<number> to) noexcept : to_(std::move(to)) {}
    task<void> receive(begin b) {
        for (std::size_t i = 0; i < b.messages; ++i) (void)co_await to_.tell(number{i});
    }

  private:
    actor::address<number> to_;
};

task<duration> send(std::size_t n) {
    rondo::executor& where = *(co_await rondo::this_environment()).where;
    auto to = actor::spawn<sink>(where, {.mailbox = room});
    actor::address<number> const there = to.address;
    auto from = actor::spawn<source>(where, [there] { return source{there}; });
    stopwatch const watch;
    (void)co_await from.address.tell(begin{n});
    from.life.drain();
    (void)co_await from.life.join();
    to.life.drain();
    (void)co_await to.life.join();
    co_return watch.elapsed();
}

task<duration> spawn(std::size_t n) {
    constexpr std::size_t together = 1000;
    rondo::executor& where = *(co_await rondo::this_environment()).where;
    std::vector<actor::spawned<sink>> all;
    all.reserve(together);
    stopwatch const watch;
    for (std::size_t done = 0; done < n; done += together) {
        for (std::size_t i = 0; i < together; ++i) {
            all.push_back(actor::spawn<sink>(where, {.mailbox = 1}));
            all.back().life.drain();
        }
        for (auto& one : all) {
            (void)co_await one.life.join();
            count();
        }
        all.clear();
    }
    co_return watch.elapsed();
}

template <class Body>
workload beside_caf(place where, std::string const& name, std::size_t operations, Body body) {
    std::string const param = where == place::mt ? "mt" : "ct";
    return {name + "_" + param,
            [=] { return measured(where, operations, body); },
            {{"caf", "caf_peer", name, param}},
            where == place::mt};
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<workload> all;
    for (place const where : {place::ct, place::mt}) {
        all.push_back(beside_caf(where, "ping_pong", 300'000, ping_pong));
        all.push_back(beside_caf(where, "send", 1'000'000, send));
        all.push_back(beside_caf(where, "spawn", 200'000, spawn));
    }
    return run("actor", argc, argv, all);
}
