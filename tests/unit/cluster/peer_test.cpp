#include "rondo/cluster/peer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/seeds.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo::cluster;
using rondo::endpoint;
using rondo::task;
namespace sim = rondo::sim;

constexpr endpoint server_at{1, 7};
constexpr endpoint client_at{2, 7};

std::vector<std::byte> to_bytes(int number) {
    auto const view = std::as_bytes(std::span{&number, 1});
    return {view.begin(), view.end()};
}
int to_number(std::vector<std::byte> const& bytes) {
    int number = 0;
    std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
    return number;
}

// A server that squares numbers, slowly, and a client that asks for some.
class squares {
  public:
    squares(std::uint64_t seed, sim::conditions c, peer_options o = {})
        : options_(o), world_({.seed = seed}), net_(world_, c) {}

    void run(int questions) {
        questions_ = questions;
        server_.start();
        client_.start();
        (void)world_.run_for(120s);
    }

    std::map<int, int> answers;
    std::map<int, int> served;  // how often, in one run of the server
    int served_twice = 0;
    int failed = 0;
    peer_counts server_counts;
    peer_counts client_counts;

    sim::node& server() { return server_; }
    sim::world& world() { return world_; }
    sim::network& net() { return net_; }

  private:
    task<answer> square(sim::node* self, message m) {
        int const n = to_number(m.body);
        if (++served[n] > 1) ++served_twice;
        rondo::clock::duration const work = self->random().between(0ms, 200ms);
        co_await rondo::sleep_for(work);
        co_return answer{2, to_bytes(n * n)};
    }
    task<void> serve(sim::node* self) {
        served.clear();
        auto const service = [this, self](message m) { return square(self, std::move(m)); };
        peer me{self->bind(server_at).value(), shared_, {1, self->starts()}, service, options_};
        auto running = self->spawn(me.run());
        for (;;) {
            co_await rondo::sleep_for(1s);
            server_counts = me.counts();
        }
    }
    static task<answer> nothing(message) { co_return answer{}; }
    task<void> ask_one(peer* me, int n) {
        address const server{server_at, 1};
        auto const a = co_await me->ask(server, 1, to_bytes(n), 100s);
        if (!a) {
            ++failed;
        } else {
            answers[n] = to_number(a->body);
        }
    }
    task<void> ask_all(sim::node* self) {
        peer me{self->bind(client_at).value(), shared_, {2, self->starts()}, nothing};
        auto running = self->spawn(me.run());
        for (int n = 1; n <= questions_; ++n) {
            self->spawn(ask_one(&me, n)).detach();
            co_await rondo::sleep_for(20ms);
        }
        for (;;) {
            co_await rondo::sleep_for(1s);
            client_counts = me.counts();
        }
    }

    peer_options options_;
    secret shared_{5, {}};
    int questions_ = 0;
    sim::world world_;
    sim::network net_;
    sim::node server_{world_, net_, 1, [this](sim::node* n) { return serve(n); }};
    sim::node client_{world_, net_, 2, [this](sim::node* n) { return ask_all(n); }};
};

constexpr sim::conditions bad{
    .most_delay = 50ms, .loss = 0.3, .duplication = 0.2, .straggling = 0.1, .straggle = 500ms};

TEST(Peer, AsksOnceWhenNothingIsLost) {
    squares s{1, {}, {.first_repeat = 1s}};
    s.run(20);
    ASSERT_EQ(s.answers.size(), 20U);
    EXPECT_EQ(s.answers[7], 49);
    EXPECT_EQ(s.server_counts.served, 20U);
}

TEST(Peer, EveryQuestionIsAnsweredAndServedOnceWhateverIsLostAndDoubled) {
    std::uint64_t repeated = 0;
    for (std::uint64_t const seed : sim::seeds(200)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        squares s{seed, bad};
        s.run(20);
        EXPECT_EQ(s.failed, 0);
        EXPECT_EQ(s.answers.size(), 20U);
        for (auto const& [n, square] : s.answers) EXPECT_EQ(square, n * n);
        EXPECT_EQ(s.served_twice, 0);
        repeated += s.server_counts.repeated;
    }
    EXPECT_GT(repeated, 0U);
}

TEST(Peer, WithoutMemoryRepetitionsAreServedAgain) {  // so the test above can fail
    int twice = 0;
    for (std::uint64_t const seed : sim::seeds(10)) {
        squares s{seed, bad, {.remembered = 0}};
        s.run(20);
        twice += s.served_twice;
    }
    EXPECT_GT(twice, 0);
}

TEST(Peer, AnswersComeThroughCrashesOfTheServerAndPartitions) {
    for (std::uint64_t const seed : sim::seeds(50)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        squares s{seed, bad};
        struct faults {
            static task<void> happen(squares* in) {
                for (int i = 0; i < 3; ++i) {
                    rondo::clock::duration const calm = in->world().random().between(10ms, 400ms);
                    co_await rondo::sleep_for(calm);
                    in->server().crash();
                    in->net().cut(1, 2);
                    co_await rondo::sleep_for(300ms);
                    in->server().start();
                    in->net().heal();
                }
            }
        };
        s.world().spawn(faults::happen(&s)).detach();
        s.run(20);
        EXPECT_EQ(s.failed, 0);
        EXPECT_EQ(s.answers.size(), 20U);
        EXPECT_EQ(s.served_twice, 0);
    }
}

TEST(Peer, AnOverloadedServerIgnoresAndIsAskedAgain) {
    squares s{1, {}, {.served_at_once = 1}};
    s.run(20);
    EXPECT_EQ(s.answers.size(), 20U);
    EXPECT_GT(s.server_counts.overloaded, 0U);
}

TEST(Peer, WhatIsNotForItIsDroppedAndCounted) {
    sim::world world{{.seed = 1}};
    sim::network net{world};
    struct programs {
        static task<answer> echo(message m) { co_return answer{m.type, std::move(m.body)}; }
        static task<void> serve(sim::node* self, peer_counts* counts) {
            peer me{self->bind(server_at).value(), secret{5, {}}, {1, 1}, echo};
            auto running = self->spawn(me.run());
            co_await rondo::sleep_for(1s);
            *counts = me.counts();
            me.close();
            auto const ended = co_await running.join();
            (void)ended;
        }
        static task<void> attack(sim::node* self) {
            auto const s = self->bind(client_at).value();
            message m;
            m.type = 1;
            m.source = {2, 1};
            m.destination = 1;
            m.request = {{2, 1}, 1};
            std::vector<std::byte> const good = encode(m, secret{5, {}});
            s->send_to(server_at, good);
            co_await rondo::sleep_for(100ms);
            s->send_to(server_at, good);                       // replayed
            s->send_to(server_at, std::span{good}.first(50));  // truncated
            s->send_to(server_at, encode(m, secret{6, {}}));   // another cluster
            m.epoch.term = ~0ULL;
            std::vector<std::byte> forged = encode(m, secret{5, {}});
            forged.back() ^= std::byte{1};
            s->send_to(server_at, forged);  // not signed
            m.source.id = 3;
            s->send_to(server_at, encode(m, secret{5, {}}));  // in another's name
            m.destination = 4;
            s->send_to(server_at, encode(m, secret{5, {}}));
            m.destination = 1;
            m.type = 0x81;
            s->send_to(server_at, encode(m, secret{5, {}}));
            co_await rondo::sleep_for(1s);
        }
    };
    peer_counts seen;
    sim::node server{world, net, 1, [&seen](sim::node* n) { return programs::serve(n, &seen); }};
    sim::node client{world, net, 2, programs::attack};
    server.start();
    client.start();
    EXPECT_EQ(world.run_for(10s), sim::outcome::finished);
    EXPECT_EQ(seen.served, 1U);
    EXPECT_EQ(seen.repeated, 1U);
    EXPECT_EQ(seen.refused[static_cast<std::size_t>(refusal::wrong_size)], 1U);
    EXPECT_EQ(seen.refused[static_cast<std::size_t>(refusal::other_cluster)], 1U);
    EXPECT_EQ(seen.refused[static_cast<std::size_t>(refusal::not_signed)], 1U);
    EXPECT_EQ(seen.forged, 1U);
    EXPECT_EQ(seen.for_another, 1U);
    EXPECT_EQ(seen.unasked, 1U);
}

TEST(Peer, ARequestWhoseServiceThrewIsServedAgainAndCloseWaitsForTheRest) {
    sim::world world{{.seed = 1}};
    sim::network net{world};
    struct programs {
        static task<answer> fail_once(int* calls) {
            if (++*calls == 1) throw 1;
            co_await rondo::sleep_for(1s);
            co_return answer{};
        }
        static task<void> serve(sim::node* self, int* calls) {
            auto const service = [calls](message const&) { return fail_once(calls); };
            peer me{self->bind(server_at).value(), secret{}, {1, 1}, service};
            auto running = self->spawn(me.run());
            co_await rondo::sleep_for(500ms);
            me.close();
            auto const ended = co_await running.join();
            EXPECT_TRUE(ended);
            EXPECT_GT(self->now(), rondo::time_point{} + 1s);
        }
        static task<answer> nothing(message) { co_return answer{}; }
        static task<void> ask(sim::node* self) {
            peer me{self->bind(client_at).value(), secret{}, {2, 1}, nothing};
            auto running = self->spawn(me.run());
            std::vector<std::byte> const empty;
            address const server{server_at, 1};
            auto const a = co_await me.ask(server, 1, empty, 3s);
            EXPECT_FALSE(a);  // it was closed before it could answer
            me.close();
            auto const ended = co_await running.join();
            EXPECT_TRUE(ended);
        }
    };
    int calls = 0;
    sim::node server{world, net, 1, [&calls](sim::node* n) { return programs::serve(n, &calls); }};
    sim::node client{world, net, 2, programs::ask};
    server.start();
    client.start();
    EXPECT_EQ(world.run(), sim::outcome::finished);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(world.take_unobserved().size(), 1U);
}

TEST(Peer, AnAskEndsWithItsTimeOrTheSocket) {
    sim::world world{{.seed = 1}};
    sim::network net{world, {.loss = 1}};
    struct programs {
        static task<answer> nothing(message) { co_return answer{}; }
        static task<void> ask_twice(sim::node* self, std::vector<ask_error>* errors) {
            peer me{self->bind(client_at).value(), secret{}, {2, 1}, nothing};
            auto running = self->spawn(me.run());
            address const nobody{server_at, 1};
            std::vector<std::byte> const empty;
            auto const late = co_await me.ask(nobody, 1, empty, 3s);
            errors->push_back(late.error());
            auto const second = self->spawn(close_later(&me));
            auto const shut = co_await me.ask(nobody, 1, empty, 3h);
            errors->push_back(shut.error());
            auto const ended = co_await running.join();
            (void)ended;
        }
        static task<void> close_later(peer* p) {
            co_await rondo::sleep_for(1s);
            p->close();
        }
    };
    std::vector<ask_error> errors;
    sim::node n{world, net, 2,
                [&errors](sim::node* self) { return programs::ask_twice(self, &errors); }};
    n.start();
    EXPECT_EQ(world.run(), sim::outcome::finished);
    EXPECT_EQ(errors, (std::vector<ask_error>{ask_error::timed_out, ask_error::closed}));
}

TEST(Peer, TheLimitOfRepetitionsHoldsFromTheFirstOneOn) {
    sim::world world{{.seed = 1}};
    sim::network net{world, {.loss = 1}};
    struct programs {
        static task<answer> nothing(message) { co_return answer{}; }
        static task<void> ask(sim::node* self, peer_counts* counts) {
            peer_options const o{.first_repeat = 1h, .longest_repeat = 1s};
            peer me{self->bind(client_at).value(), secret{}, {2, 1}, nothing, o};
            address const nobody{server_at, 1};
            std::vector<std::byte> const empty;
            auto const a = co_await me.ask(nobody, 1, empty, 10s);
            EXPECT_EQ(a.error(), ask_error::timed_out);
            *counts = me.counts();
        }
    };
    peer_counts counts;
    sim::node n{world, net, 2, [&counts](sim::node* self) { return programs::ask(self, &counts); }};
    n.start();
    EXPECT_EQ(world.run(), sim::outcome::finished);
    EXPECT_GE(counts.sent_again, 7U);  // with jitter
    EXPECT_LE(counts.sent_again, 13U);
}

}  // namespace
