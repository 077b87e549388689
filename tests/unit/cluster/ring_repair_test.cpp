// Members that die, return, are cut off or only thought dead: the ring is repaired.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "robots.hpp"
#include "rondo/cluster/bytes.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/sim/random.hpp"
#include "rondo/sim/seeds.hpp"
#include "support/sanitized.hpp"

namespace rondo::cluster::test {
namespace {

#ifdef RONDO_TEST_SANITIZED
constexpr std::uint64_t thoroughness = 1;
#else
constexpr std::uint64_t thoroughness = 10;
#endif

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

// As many and as long as there may be.
std::vector<std::string> names_from(char first) {
    std::vector<std::string> names;
    for (int i = 0; i < 16; ++i) names.emplace_back(24, static_cast<char>(first + i));
    return names;
}

TEST(TokenRing, ManyLargeTokensGoThroughAHandshakeInPages) {
    settings many;
    many.names = names_from('a');
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

// Who makes them knows no others itself yet.
TEST(TokenRing, ARingThatIsFullGetsNoOtherTokens) {
    settings many;
    many.names = names_from('a');
    many.works = false;
    robots r{1, 2, {}, many};
    r.start_all();
    r.run_for(3s);
    r.of(2).node().crash();
    r.run_for(5s);  // the other one has all of them
    r.of(2).set_names(names_from('A'));
    r.of(2).node().start();
    (void)r.world().run_ready();
    r.of(2).now()->repair();
    r.run_for(10s);
    for (robot& one : r.all()) {
        EXPECT_EQ(one.now()->members().size(), 2U);
        std::vector<std::string> names;
        for (token_view const& t : one.now()->tokens()) names.push_back(t.name);
        EXPECT_EQ(names, many.names);
        EXPECT_FALSE(one.now()->has_room_for(names_from('A')[0]));
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
}  // namespace rondo::cluster::test
