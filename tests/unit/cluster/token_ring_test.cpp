// Tokens that go round, what they carry, and how they are made.
#include "rondo/cluster/token_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "robots.hpp"
#include "rondo/sim/seeds.hpp"

namespace rondo::cluster::test {
namespace {

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

// Cut off for longer than one offer waits for an answer, and not so long that anybody is missed.
TEST(TokenRing, ATokenIsOfferedUntilTheNextMemberHasIt) {
    std::array<sim::host, 1> const one{2};
    std::array<sim::host, 2> const rest{1, 3};
    for (std::uint64_t const seed : sim::seeds(5)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        robots r{seed, 3, {}};
        r.start_all();
        ASSERT_TRUE(r.turns_within(5s));
        r.net().partition(one, rest);
        r.run_for(1s);
        r.net().heal();
        EXPECT_TRUE(r.turns_within(5s));
        EXPECT_EQ(r.generations.size(), 1U) << "none was lost, so none is made again";
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

TEST(TokenRing, ATokenThatWasOnlyHeardOfIsKnownToo) {
    settings idle;
    idle.works = false;
    idle.ring.linger = 1h;
    robots r{1, 2, {}, idle};
    r.start_all();
    r.run_for(2s);
    for (robot& one : r.all()) {
        std::vector<token_view> const known = one.now()->tokens();
        ASSERT_EQ(known.size(), 2U);
        EXPECT_EQ(known[0].name, "lemon");
        EXPECT_EQ(known[1].name, "mint");
        bool const here = one.id() == r.generations.begin()->maker.id;
        EXPECT_EQ(known[0].state, here ? token_state::here : token_state::elsewhere);
        EXPECT_EQ(known[0].place == token_place{}, !here);
    }
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

}  // namespace
}  // namespace rondo::cluster::test
