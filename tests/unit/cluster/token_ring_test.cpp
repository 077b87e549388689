#include "rondo/cluster/token_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "rondo/cluster/bytes.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/seeds.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo::cluster;
using rondo::endpoint;
using rondo::task;
namespace sim = rondo::sim;

#ifdef RONDO_TEST_SANITIZED
constexpr std::uint64_t thoroughness = 1;
#else
constexpr std::uint64_t thoroughness = 10;
#endif

endpoint at(member_id id) { return {id, 7}; }

std::vector<std::byte> to_bytes(std::uint64_t number) {
    std::vector<std::byte> bytes;
    byte_writer{bytes}.put(number);
    return bytes;
}
std::uint64_t to_number(std::vector<std::byte> const& bytes) {
    return byte_reader{bytes}.get<std::uint64_t>();
}

struct settings {
    std::vector<std::string> names{"lemon", "mint"};
    ring_options ring{.linger = 20ms};
    bool works = true;  // robots take tokens all the time
    rondo::clock::duration scooping = 5ms;
};

// One member: it takes every token in turn and adds one to it.
class robot {
  public:
    robot(sim::world& w, sim::network& net, member_id id, std::vector<address> all,
          settings const& chosen)
        : id_(id),
          all_(std::move(all)),
          settings_(chosen),
          node_(w, net, id, [this](sim::node* n) { return live(n); }) {}

    sim::node& node() { return node_; }
    token_ring* now() { return node_.is_up() ? ring_ : nullptr; }
    member_id id() const { return id_; }

    std::map<std::string, int> visits;  // in this run
    std::string violation;
    std::uint64_t least = 0;  // what REMAINS says: a counter is at least this when it is renewed
    std::uint64_t renewals = 0;
    std::map<std::string, std::uint64_t> made_from;
    bool renews = true;
    bool renews_slowly = false;

  private:
    task<answer> serve(message m) {
        answer given = ring_->serve(m);
        co_return given;
    }
    task<std::vector<token>> renew(std::vector<token> lost, std::vector<std::string> held) {
        ++renewals;
        co_await rondo::sleep_for(renews_slowly ? 10s : 1ms);
        std::vector<token> made;
        if (!renews) co_return made;
        for (std::string const& name : settings_.names) {
            if (std::ranges::find(held, name) != held.end()) continue;
            auto const copy = std::ranges::find(lost, name, &token::name);
            std::uint64_t const n = copy == lost.end() ? 0 : to_number(copy->content);
            if (copy != lost.end()) made_from[name] = n;
            made.push_back({name, to_bytes(std::max(n, least))});
        }
        co_return made;
    }
    void arrived(std::string const& name, token_place const& p) {
        if (p <= last_[name]) violation = "what a run accepts does not rise";
        last_[name] = p;
    }
    task<void> work() {
        for (;;) {
            for (std::string const& name : settings_.names) {
                {
                    held_token t = co_await ring_->take(name);
                    ++visits[name];
                    co_await rondo::sleep_for(settings_.scooping);
                    if (t.is_valid()) t.content() = to_bytes(to_number(t.content()) + 1);
                }
                co_await rondo::sleep_for(1ms);
            }
        }
    }
    task<void> live(sim::node* self) {
        ring_ = nullptr;
        visits.clear();
        last_.clear();
        auto const service = [this](message m) { return serve(std::move(m)); };
        auto const run = static_cast<std::uint32_t>(self->starts() * 100 + id_);
        peer me{self->bind(at(id_)).value(),
                secret{},
                {id_, self->starts()},
                service,
                {.jitter_seed = run}};
        ring_options options = settings_.ring;
        options.jitter_seed = run;
        token_ring ring{me, all_,
                        [this](std::vector<token> lost, std::vector<std::string> held) {
                            return renew(std::move(lost), std::move(held));
                        },
                        options,
                        [this](std::string const& name, token_place const& p,
                               std::vector<std::byte>&) { arrived(name, p); }};
        ring_ = &ring;
        auto receiving = self->spawn(me.run());
        auto working = self->spawn(settings_.works ? work() : idle());
        co_await ring.run();
    }
    static task<void> idle() { co_return; }

    member_id id_;
    std::vector<address> all_;
    settings settings_;
    std::map<std::string, token_place> last_;
    token_ring* ring_ = nullptr;
    sim::node node_;
};

// Robots, and the invariant that is checked at every step of time:
//   I4  a generation of a token has one holder at most; what a run accepts rises, and so do the
//       rings that it is in.
class robots {
  public:
    robots(std::uint64_t seed, member_id count, sim::conditions c, settings const& chosen = {})
        : names_(chosen.names), world_({.seed = seed}), net_(world_, c) {
        std::vector<address> all;
        for (member_id id = 1; id <= count; ++id) all.push_back({at(id), id});
        for (address const& a : all) robots_.emplace_back(world_, net_, a.id, all, chosen);
    }

    void start_all() {
        for (robot& r : robots_) r.node().start();
    }
    void run_for(rondo::clock::duration span) {
        for (auto const end = world_.now() + span; world_.now() < end;) {
            (void)world_.run_for(2ms);
            check();
        }
    }
    robot& of(member_id id) { return *std::next(robots_.begin(), id - 1); }
    // All that are up are in one ring, nobody else is, and every robot is visited by every token.
    bool turns_within(rondo::clock::duration span) {
        for (robot& r : robots_) r.visits.clear();
        for (auto const end = world_.now() + span; world_.now() < end;) {
            run_for(20ms);
            if (turns()) return true;
        }
        return false;
    }
    std::size_t up() {
        return static_cast<std::size_t>(
            std::ranges::count_if(robots_, [](robot& r) { return r.node().is_up(); }));
    }

    sim::world& world() { return world_; }
    sim::network& net() { return net_; }
    std::list<robot>& all() { return robots_; }
    std::string violation;
    std::set<generation> generations;

  private:
    bool turns() {
        std::size_t const count = up();
        std::optional<ring_epoch> in;
        for (robot& r : robots_) {
            if (r.now() == nullptr) continue;
            if (r.now()->members().size() != count) return false;
            if (in && *in != r.now()->epoch()) return false;
            in = r.now()->epoch();
            for (std::string const& name : names_) {
                if (r.visits[name] < 2) return false;
            }
        }
        return true;
    }
    void check() {
        std::set<std::pair<std::string, generation>> held;
        for (robot& r : robots_) {
            if (!r.violation.empty()) violation = r.violation;
            if (r.now() == nullptr) continue;
            ring_epoch& last = rings_[{r.id(), r.node().starts()}];
            if (r.now()->epoch() < last) violation = "a run goes back to an older ring";
            last = r.now()->epoch();
            for (token_view const& t : r.now()->tokens()) {
                generations.insert(t.place.gen);
                bool const holds = t.state == token_state::here || t.state == token_state::taken;
                if (holds && !held.insert({t.name, t.place.gen}).second) {
                    violation = "two hold one generation of " + t.name;
                }
            }
        }
    }

    std::vector<std::string> names_;
    std::map<member_run, ring_epoch> rings_;
    sim::world world_;
    sim::network net_;
    std::list<robot> robots_;
};

constexpr sim::conditions bad{
    .most_delay = 20ms, .loss = 0.3, .duplication = 0.2, .straggling = 0.1, .straggle = 500ms};

TEST(TokenRing, EveryTokenComesToEveryMember) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 5, {}};
        r.start_all();
        EXPECT_TRUE(r.turns_within(5s));
        EXPECT_EQ(r.of(3).now()->members(), (std::vector<member_id>{1, 2, 3, 4, 5}));
        EXPECT_EQ(r.generations.size(), 1U) << "both tokens are made by the lowest, once";
        EXPECT_EQ(r.generations.begin()->maker.id, 1U);
        EXPECT_EQ(r.generations.begin()->count, 1U);
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, ARingOfOneKeepsItsTokens) {
    robots r{1, 1, {}};
    r.start_all();
    r.run_for(1s);
    EXPECT_EQ(r.of(1).now()->counts().passed, 0U);
    EXPECT_GT(r.of(1).visits["lemon"], 10);
}

TEST(TokenRing, WhatATokenCarriesGoesRoundWithIt) {
    robots r{1, 3, {}};
    r.start_all();
    r.run_for(10s);
    int visits = 0;
    for (robot& one : r.all()) visits += one.visits["mint"];
    std::uint64_t most = 0;
    for (robot& one : r.all()) most = std::max(most, to_number(one.now()->tokens()[1].content));
    EXPECT_GE(most + 1, static_cast<std::uint64_t>(visits));
    EXPECT_LE(most, static_cast<std::uint64_t>(visits));
}

TEST(TokenRing, LossAloneMakesNoNewTokens) {
    for (std::uint64_t const seed : sim::seeds(5)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 3, {.loss = 0.1, .duplication = 0.1}};
        r.start_all();
        r.run_for(60s);
        EXPECT_EQ(r.generations.size(), 1U);
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, ATokenIsMadeAgainFromTheBestCopy) {
    std::size_t remade = 0;
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 3, {}};
        r.start_all();
        r.run_for(3s + r.world().random().between(0ms, 1s));
        r.of(1).node().crash();
        std::map<std::string, std::uint64_t> best;
        for (member_id const id : {2U, 3U}) {
            for (token_view const& t : r.of(id).now()->tokens()) {
                best[t.name] = std::max(best[t.name], to_number(t.content));
            }
        }
        EXPECT_TRUE(r.turns_within(10s));
        for (member_id const id : {2U, 3U}) {
            for (auto const& [name, from] : r.of(id).made_from) EXPECT_GE(from, best[name]) << name;
            remade += r.of(id).made_from.size();
        }
    }
    EXPECT_GT(remade, 5U);
}

TEST(TokenRing, ADeadMemberIsLeftOutAndItsTokensAreMadeAgain) {
    for (std::uint64_t const seed : sim::seeds(50)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 4, {.loss = 0.1}};
        r.start_all();
        r.run_for(3s + r.world().random().between(0ms, 1s));
        r.of(1 + static_cast<member_id>(seed % 4)).node().crash();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, AdjacentDeadMembersAreLeftOut) {
    settings patient;
    patient.ring.overdue = 1h;  // they are missed for their silence, not for their tokens
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 5, {}, patient};
        r.start_all();
        r.run_for(3s);
        for (member_id const id : {2U, 3U, 4U}) r.of(id).node().crash();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.of(1).now()->members(), (std::vector<member_id>{1, 5}));
        r.of(5).node().crash();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.of(1).now()->members(), (std::vector<member_id>{1}));
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, ATokenThatWasUsedIsThereAgainForTheOnlyOneLeft) {
    settings one;
    one.names = {"lemon"};
    one.scooping = 100ms;
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 2, {}, one};
        r.start_all();
        r.run_for(3s + r.world().random().between(0ms, 200ms));
        r.of(2).renews_slowly =
            true;  // so that it freezes the other one, and dies before it commits
        r.of(2).now()->repair();
        r.run_for(100ms);
        EXPECT_TRUE(r.of(1).now()->is_frozen());
        r.of(2).node().crash();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, AMemberThatReturnsIsTakenInAgain) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 3, {}};
        r.start_all();
        r.run_for(3s);
        r.of(2).node().crash();
        r.run_for(seed % 2 == 0 ? 10ms : 5s);  // before it is missed, or long after
        r.of(2).node().start();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.of(1).now()->members(), (std::vector<member_id>{1, 2, 3}));
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, OneThatWasThoughtDeadLosesItsTokensToTheRing) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 3, {}};
        r.start_all();
        r.run_for(3s);
        r.of(2).node().pause();
        r.run_for(5s);
        EXPECT_EQ(r.of(1).now()->members(), (std::vector<member_id>{1, 3}));
        r.of(2).node().resume();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, OneThatWasCutOffIsToldAndJoins) {
    std::array<sim::host, 1> const one{2};
    std::array<sim::host, 3> const rest{1, 3, 4};
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 4, {}};
        r.start_all();
        r.run_for(3s);
        r.net().partition(one, rest);
        r.run_for(1s);
        r.net().heal();  // nobody has missed it yet
        r.run_for(2s);
        EXPECT_EQ(r.of(2).now()->counts().joins, 0U);
        r.net().partition(one, rest);
        r.run_for(8s);
        EXPECT_EQ(r.of(2).now()->members(), (std::vector<member_id>{2})) << "a ring of its own";
        r.net().heal();
        EXPECT_TRUE(r.turns_within(10s));
        std::uint64_t joins = 0;
        for (robot& member : r.all()) joins += member.now()->counts().joins;
        EXPECT_GT(joins, 0U);
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, HalvesOfARingComeTogetherAgain) {
    std::array<sim::host, 2> const these{1, 2};
    std::array<sim::host, 2> const those{3, 4};
    for (std::uint64_t const seed : sim::seeds(20)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 4, {}};
        r.start_all();
        r.run_for(3s);
        r.net().partition(these, those);
        r.run_for(8s);
        EXPECT_EQ(r.of(1).now()->members(), (std::vector<member_id>{1, 2}));
        EXPECT_EQ(r.of(3).now()->members(), (std::vector<member_id>{3, 4}));
        r.net().heal();
        EXPECT_TRUE(r.turns_within(10s));
        EXPECT_EQ(r.violation, "");
    }
}

TEST(TokenRing, ATokenThatIsMadeAgainIsWhatRenewSays) {
    robots r{1, 2, {}};
    r.start_all();
    r.run_for(3s);
    r.of(1).least = r.of(2).least = 1'000'000;
    r.of(1).node().pause();  // with a token, or one is on its way to it
    r.run_for(3s);
    r.of(1).node().crash();
    r.of(1).node().start();
    EXPECT_TRUE(r.turns_within(10s));
    EXPECT_GT(r.of(1).renewals + r.of(2).renewals, 1U);
}

TEST(TokenRing, WhatRenewDoesNotGiveIsMissingUntilItIsLookedFor) {
    robots r{1, 2, {}};
    for (robot& one : r.all()) one.renews = false;
    r.start_all();
    r.run_for(2s);
    EXPECT_EQ(r.of(1).now()->members().size(), 2U);
    EXPECT_TRUE(r.of(1).now()->tokens().empty());
    for (robot& one : r.all()) one.renews = true;
    EXPECT_TRUE(r.turns_within(10s)) << "it is overdue";
    robots slow{1, 1, {}};
    slow.of(1).renews_slowly = true;
    slow.start_all();
    slow.run_for(2s);
    EXPECT_EQ(slow.of(1).now()->members().size(), 1U);
    EXPECT_TRUE(slow.of(1).now()->tokens().empty());
}

TEST(TokenRing, ANewTokenIsMadeByARepair) {
    settings idle;
    idle.works = false;
    robots r{1, 3, {}, idle};
    for (robot& one : r.all()) one.renews = false;
    r.start_all();
    r.run_for(2s);
    for (robot& one : r.all()) one.renews = true;
    r.of(2).now()->repair();
    r.run_for(2s);
    for (robot& one : r.all()) EXPECT_EQ(one.now()->tokens().size(), 2U);
    EXPECT_EQ(r.generations.begin()->maker.id, 2U);
}

TEST(TokenRing, HasRoomForSoManyNamesAndForgetsNone) {
    settings all;
    all.works = false;
    all.names.clear();
    while (all.names.size() < token_ring::most_tokens) {
        robots r{1, 1, {}, all};
        r.start_all();
        r.run_for(100ms);
        EXPECT_TRUE(r.of(1).now()->has_room_for("another"));
        EXPECT_FALSE(r.of(1).now()->has_room_for(""));
        EXPECT_FALSE(r.of(1).now()->has_room_for(std::string(25, 'n')));
        all.names.push_back("flavour " + std::to_string(all.names.size()));
    }
    robots r{1, 1, {}, all};
    r.start_all();
    r.run_for(100ms);
    EXPECT_FALSE(r.of(1).now()->has_room_for("another"));
    EXPECT_TRUE(r.of(1).now()->has_room_for("flavour 15"));
}

TEST(TokenRing, ManyLargeTokensGoThroughAHandshakeInPages) {
    settings many;
    many.names.clear();
    for (char c = 'a'; c < 'a' + 16; ++c) many.names.emplace_back(24, c);
    many.works = false;
    robots r{1, 3, {}, many};
    r.start_all();
    r.run_for(3s);
    r.of(2).node().crash();
    r.run_for(5s);
    r.of(2).node().start();
    r.run_for(5s);
    for (robot& one : r.all()) {
        EXPECT_EQ(one.now()->members().size(), 3U);
        EXPECT_EQ(one.now()->tokens().size(), 16U);
    }
    EXPECT_EQ(r.violation, "");
}

TEST(TokenRing, AFreezeWithoutACommitIsEndedByANewHandshake) {
    robots r{1, 3, {}};
    r.start_all();
    r.run_for(3s);
    message handshake;
    handshake.type = piece_types + 4;
    handshake.source = {3, 1};
    byte_writer{handshake.body}.put(std::uint64_t{50}).put(handshake.source).put(std::uint16_t{0});
    (void)r.of(1).now()->serve(handshake);  // of somebody who does not go on
    EXPECT_TRUE(r.of(1).now()->is_frozen());
    EXPECT_TRUE(r.turns_within(10s));
    EXPECT_GT(r.of(1).now()->epoch().number, 50U);
    EXPECT_EQ(r.of(1).now()->counts().freezes_timed_out, 1U);
}

TEST(TokenRing, AMessageThatWasUnderWayDoesNotBringANewRunIntoAnOldRing) {
    robots r{1, 3, {}};
    r.start_all();
    r.run_for(3s);
    ring_epoch const ring = r.of(1).now()->epoch();
    message handshake;
    handshake.type = piece_types + 4;
    handshake.source = ring.coordinator;
    byte_writer{handshake.body}.put(ring.number).put(ring.coordinator).put(std::uint16_t{0});
    message commit;
    commit.type = piece_types + 5;
    commit.source = ring.coordinator;
    byte_writer{commit.body}.put(ring.number).put(ring.coordinator).put(std::uint16_t{3});
    for (member_id const id : {1U, 2U, 3U}) byte_writer{commit.body}.put(member_run{id, 1});
    byte_writer{commit.body}.put(std::uint16_t{0});
    (void)r.of(2).now()->serve(commit);  // it is in that ring: nothing changes
    EXPECT_EQ(r.of(2).now()->members().size(), 3U);
    EXPECT_EQ(r.of(2).now()->tokens().size(), 2U);
    r.of(2).node().crash();
    r.of(2).node().start();
    (void)r.world().run_ready();
    (void)r.of(2).now()->serve(handshake);
    (void)r.of(2).now()->serve(commit);
    EXPECT_EQ(r.of(2).now()->epoch(), ring_epoch{});
    EXPECT_TRUE(r.turns_within(10s));
    EXPECT_EQ(r.violation, "");
}

TEST(TokenRing, StrangeBytesFromAMemberAreRefused) {
    robots r{1, 2, {}};
    r.start_all();
    r.run_for(2s);
    ring_epoch const before = r.of(1).now()->epoch();
    for (std::uint8_t type = piece_types + 2; type <= piece_types + 7; ++type) {
        for (std::size_t length = 0; length < 80; ++length) {
            message m;
            m.type = type;
            m.source = {2, 1};
            m.body.assign(length, std::byte{0});
            (void)r.of(1).now()->serve(m);
        }
    }
    EXPECT_EQ(r.of(1).now()->epoch(), before);
    EXPECT_TRUE(r.turns_within(5s));
    EXPECT_EQ(r.violation, "");
}

// Faults of every kind, for a while; then quiet, in which the tokens turn.
class storm {
  public:
    explicit storm(std::uint64_t seed)
        : random_(seed), robots_(seed, 1 + static_cast<member_id>(random_.below(5)), bad) {}

    robots& run() {
        robots_.start_all();
        robots_.run_for(random_.between(0ms, 3s));
        for (int i = 0; i < 12; ++i) {
            fault(robots_.of(some_member()));
            robots_.run_for(random_.between(0ms, random_.chance(0.5) ? 200ms : 2500ms));
        }
        robots_.net().heal();
        for (robot& r : robots_.all()) {
            if (!r.node().is_up()) r.node().start();
            if (r.node().is_paused()) r.node().resume();
        }
        return robots_;
    }

  private:
    member_id some_member() {
        return 1 + static_cast<member_id>(random_.below(robots_.all().size()));
    }
    void fault(robot& r) {
        member_id const other = some_member();
        switch (random_.below(7)) {
            case 0:
                if (r.node().is_up()) r.node().crash();
                break;
            case 1:
                if (!r.node().is_up()) r.node().start();
                break;
            case 2:
                if (r.node().is_up() && !r.node().is_paused()) r.node().pause();
                break;
            case 3:
                if (r.node().is_paused()) r.node().resume();
                break;
            case 4:
                robots_.net().cut(r.id(), other);
                break;
            case 5:
                if (r.node().is_up()) r.node().crash();
                r.node().start();
                break;
            default:
                robots_.net().heal(r.id(), other);
        }
    }

    sim::random_source random_;
    robots robots_;
};

TEST(TokenRing, AGenerationHasOneHolderWhateverHappens) {
    std::size_t generations = 0;
    for (std::uint64_t const seed : sim::seeds(50 * thoroughness)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        storm s{seed};
        robots& r = s.run();
        EXPECT_TRUE(r.turns_within(30s));
        ASSERT_EQ(r.violation, "");
        generations += r.generations.size();
    }
    EXPECT_GT(generations, 100 * thoroughness) << "too few repairs to show anything";
}

}  // namespace
