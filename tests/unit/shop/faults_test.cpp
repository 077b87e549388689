// A shop of real processes of which some are killed, paused or hardly heard: every order ends, and
// the files agree. Real time, because the processes are real.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <regex>
#include <string>

#include "fault_proxy.hpp"
#include "rondo/cluster/message.hpp"
#include "running_shop.hpp"
#include "shop/arguments.hpp"
#include "shop/messages.hpp"
#include "support/seed.hpp"

namespace rondo::shop::test {
namespace {

TEST(ShopFaults, EveryRoleIsKilledAndStartedAgainWhileOneDatagramInFiveIsLost) {
    std::minstd_rand random{static_cast<std::uint32_t>(rondo::test::seed(5))};
    std::uint16_t const peers = free_base_port();
    running_shop s{{.robots = 3, .screens = 3, .orders = 4, .scoop_ms = 40, .peers_port = peers}};
    fault_proxy const proxy{peers,
                            s.base_port(),
                            {gateway_id, robot_id(0), robot_id(1), robot_id(2), screen_id(0),
                             screen_id(1), screen_id(2)},
                            0.2,
                            random()};
    s.start();
    child* const victims[] = {&s.gateway(), &s.robot(0), &s.screen(2), &s.robot(1), &s.screen(0)};
    std::int64_t orders = 1;
    for (child* const m : victims) {
        EXPECT_TRUE(s.until_ended(orders)) << s.dump();
        orders += 2;
        // real time: at a random point of what the processes do.
        std::this_thread::sleep_for(std::chrono::milliseconds{random() % 100});
        m->kill();
        // real time: others notice it, or not.
        std::this_thread::sleep_for(std::chrono::milliseconds{100 + random() % 200});
        m->start();
    }
    s.expect_good_end(100s);
    EXPECT_GT(proxy.lost(), proxy.passed() / 8);
}

TEST(ShopFaults, ARobotThatStaysDeadIsDoneWithout) {
    running_shop s{{.robots = 3, .screens = 1, .orders = 8, .scoop_ms = 40}};
    s.start();
    ASSERT_TRUE(s.until_ended(2)) << s.dump();
    s.robot(1).kill();
    s.expect_good_end();
}

TEST(ShopFaults, AdjacentRobotsDieAndTheRingIsRepaired) {
    running_shop s{{.robots = 4, .screens = 1, .orders = 8, .scoop_ms = 20}};
    s.start();
    ASSERT_TRUE(s.until_ended(2)) << s.dump();
    s.robot(1).kill();
    s.robot(2).kill();
    s.expect_good_end();
    EXPECT_GT(s.ledger().delivered, 4) << s.dump();
}

TEST(ShopFaults, AGivenUpRobotReturns) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 6, .scoop_ms = 40}};
    s.start();
    ASSERT_TRUE(s.until_ended(1)) << s.dump();
    s.robot(0).kill();
    ASSERT_TRUE(s.until_said(s.screen(0), "robot 0 does not answer")) << s.dump();
    s.robot(0).start();
    s.expect_good_end();
}

TEST(ShopFaults, TheLeaderDiesAndReturnsInTheMiddleOfOrders) {
    running_shop s{{.robots = 2, .screens = 3, .orders = 5, .scoop_ms = 120}};
    s.start();
    ASSERT_TRUE(s.until_ended(2)) << s.dump();
    s.screen(2).kill();
    ASSERT_TRUE(s.until_said(s.screen(1), "screen 1 leads")) << s.dump();
    std::int64_t const before = s.ended();
    ASSERT_TRUE(s.until_ended(before + 2)) << s.dump();
    s.screen(2).start();
    s.expect_good_end(90s);
}

// The seed lost this one.
TEST(ShopFaults, TheOrderOfTheVeryScreenThatBecomesLeaderGoesOn) {
    running_shop s{{.robots = 1, .screens = 2, .orders = 3, .scoop_ms = 500}};
    s.start();
    ASSERT_TRUE(s.until_said(s.screen(1), "screen 1 leads")) << s.dump();
    auto const open_of_0 = [&] {  // it waits for the leader's robot
        std::string const text = report(s.directory(), report_form::text).value_or("");
        return text.starts_with("0-") || text.find("\n0-") != std::string::npos;
    };
    ASSERT_TRUE(until(open_of_0)) << s.dump();
    s.screen(1).kill();
    ASSERT_TRUE(s.until_said(s.screen(0), "screen 0 leads")) << s.dump();
    ASSERT_TRUE(s.until_said(s.screen(0), "order 0.1 ")) << s.dump();
    EXPECT_NE(s.screen(0).said().find("orders0.jsonl:1): delivered"), std::string::npos)
        << s.dump();
    s.screen(1).start();
    s.expect_good_end(90s);
}

TEST(ShopFaults, AnElectionInTheMiddleOfAnOrderDisturbsNothing) {
    running_shop s{{.robots = 2, .screens = 3, .orders = 4, .scoop_ms = 200}};
    s.gateway().start();
    s.robot(0).start();
    s.robot(1).start();
    s.screen(0).start();
    s.screen(1).start();
    ASSERT_TRUE(s.until_ended(1)) << s.dump();
    ASSERT_TRUE(until([&] { return s.ledger().open >= 1; })) << s.dump();
    s.screen(2).start();  // the highest: it leads from now on
    ASSERT_TRUE(s.until_said(s.screen(2), "screen 2 leads")) << s.dump();
    s.expect_good_end(90s);
    EXPECT_EQ(s.ledger().delivered, 12) << s.dump();
}

TEST(ShopFaults, OrdersOfAScreenThatStaysAwayAreTakenOver) {
    running_shop s{{.robots = 1, .screens = 2, .orders = 4, .scoop_ms = 400, .gone_after = "3"}};
    s.gateway().start();
    s.screen(0).start();
    s.screen(1).start();
    ASSERT_TRUE(until([&] { return s.ledger().open >= 2; })) << s.dump();
    s.screen(0).kill();  // its order is open: there is no robot yet
    s.robot(0).start();
    ASSERT_TRUE(until([&] { return s.screen(1).has_ended(); })) << s.dump();
    EXPECT_TRUE(until([&] { return s.ledger().open == 0; }, 1s)) << s.dump();
    EXPECT_NE(s.screen(1).said().find("is taken over"), std::string::npos) << s.dump();
    s.expect_files_agree();
}

TEST(ShopFaults, AScreenStaysUntilTheOrdersOfThoseThatAreGoneHaveEnded) {
    running_shop s{{.robots = 1,
                    .screens = 2,
                    .orders = 1,
                    .scoop_ms = 400,
                    .gone_after = "1",
                    .farewell_ms = "1"}};
    s.gateway().start();
    s.screen(0).start();
    ASSERT_TRUE(until([&] { return s.ledger().open == 1; })) << s.dump();
    s.screen(0).kill();
    s.robot(0).start();
    s.screen(1).start();
    ASSERT_TRUE(s.until_said(s.screen(1), "at the end of ")) << s.dump();
    s.gateway().kill();
    EXPECT_TRUE(s.until_said(s.screen(1), "screen 0 is gone")) << s.dump();
    EXPECT_FALSE(until([&] { return s.screen(1).has_ended(); }, 1s)) << s.dump();
    s.gateway().start();
    EXPECT_TRUE(until([&] { return s.screen(1).has_ended(); })) << s.dump();
    EXPECT_EQ(s.ledger().open, 0) << s.dump();
    s.expect_files_agree();
}

TEST(ShopFaults, AnOrderWhoseLineHasChangedIsPaidBack) {
    std::uint16_t const peers = free_base_port();
    running_shop s{{.robots = 1, .screens = 1, .orders = 3, .peers_port = peers}};
    fault_proxy proxy{peers, s.base_port(), {gateway_id, robot_id(0), screen_id(0)}, 0};
    proxy.drop_type(type(request::deliver));
    s.start();
    ASSERT_TRUE(until([&] { return s.sold() > 0; })) << s.dump();
    s.screen(0).kill();  // waits for its cup
    std::fstream{s.in("orders0.jsonl")} << R"({"id": "0.x")";
    proxy.drop_type(0);
    s.screen(0).start();
    s.expect_good_end();
    EXPECT_EQ(s.ledger().refunded, 1) << s.dump();
    EXPECT_EQ(s.ledger().delivered, 2) << s.dump();
}

TEST(ShopFaults, TheGatewayIsKilledBetweenCommitAndReply) {
    std::uint16_t const peers = free_base_port();
    running_shop s{{.robots = 1, .screens = 1, .orders = 3, .peers_port = peers}};
    fault_proxy proxy{peers, s.base_port(), {gateway_id, robot_id(0), screen_id(0)}, 0};
    constexpr std::uint8_t answers = 0x80;
    proxy.drop_type(static_cast<std::uint8_t>(reply::finished) | answers);
    s.start();
    ASSERT_TRUE(until([&] { return s.sold() > 0; })) << s.dump();
    EXPECT_EQ(s.ledger().open, 1);
    s.gateway().kill();
    s.gateway().start();
    proxy.drop_type(0);
    s.expect_good_end();
    EXPECT_EQ(s.ledger().delivered, 3) << s.dump();
    EXPECT_EQ(s.sold(), 100 + 100 + 150);
}

TEST(ShopFaults, TheGatewayIsKilledAgainAndAgain) {
    running_shop s{{.robots = 1, .screens = 2, .orders = 6}};
    s.start();
    for (int i = 1; i <= 6; ++i) {
        ASSERT_TRUE(s.until_ended(i)) << s.dump();
        s.gateway().kill();
        s.gateway().start();
    }
    s.expect_good_end(90s);
}

TEST(ShopFaults, OneDatagramInFiveIsLost) {
    std::uint16_t const peers = free_base_port();
    running_shop s{{.robots = 2, .screens = 2, .orders = 4, .peers_port = peers}};
    fault_proxy const proxy{peers,
                            s.base_port(),
                            {gateway_id, robot_id(0), robot_id(1), screen_id(0), screen_id(1)},
                            0.2,
                            rondo::test::seed(7)};
    s.start();
    s.expect_good_end(100s);
    EXPECT_GT(proxy.lost(), proxy.passed() / 8);
}

// What is truncated, flipped, signed with another key or forged is dropped; what is replayed
// changes nothing.
TEST(ShopFaults, BadDatagramsAreDroppedAndAReplayedCommitChangesNothing) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 4}};
    s.start();
    int const out = ::socket(AF_INET, SOCK_DGRAM, 0);
    ASSERT_TRUE(s.until_ended(1)) << s.dump();
    auto const send = [&](std::vector<std::byte> const& bytes, member_id to) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(static_cast<std::uint16_t>(s.base_port() + to));
        (void)::sendto(out, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&at),
                       sizeof at);
    };
    cluster::secret const real = load_secret(s.directory()).value();
    cluster::secret other = real;
    other.key[0] ^= std::byte{1};
    cluster::message m;
    m.type = cluster::piece_types + 1;  // COORDINATOR
    m.source = {screen_id(9), 1};
    m.destination = screen_id(0);
    m.request = {m.source, 1};
    m.epoch = {~0ULL >> 2U, screen_id(9)};
    std::vector<std::byte> const forged = encode(m, other);
    for (int i = 0; i < 50; ++i) {
        send(forged, screen_id(0));
        std::vector<std::byte> cut = encode(m, real);
        cut.resize(cut.size() - 1 - static_cast<std::size_t>(i));
        send(cut, screen_id(0));
        std::vector<std::byte> flipped = encode(m, real);
        flipped[static_cast<std::size_t>(i)] ^= std::byte{4};
        send(flipped, screen_id(0));
    }
    s.expect_good_end();
    EXPECT_EQ(last_leader(s.directory(), 1), 0);
    std::smatch dropped;  // answers that come twice too
    std::string const said = s.screen(0).said();
    std::regex const counted{"([0-9]+) datagrams dropped \\(50 of a wrong size,.* not signed with"};
    ASSERT_TRUE(std::regex_search(said, dropped, counted)) << s.dump();
    EXPECT_GE(std::stoi(dropped[1]), 150);

    // Recorded or made by who has the key: the ledger has its own memory.
    std::int64_t const sold = s.sold();
    auto const text = report(s.directory(), report_form::json).value();
    std::string const oid = text.substr(text.find("\"order\":\"") + 9);
    cluster::message commit;
    commit.type = type(request::commit);
    commit.source = {screen_id(0), 77};
    commit.destination = gateway_id;
    commit.body = pack(payment{oid.substr(0, oid.find('"')), 1, {{"mint", 100, 1, 1}}});
    for (std::uint64_t i = 1; i <= 20; ++i) {
        commit.request = {commit.source, i};
        send(encode(commit, real), gateway_id);
    }
    ASSERT_TRUE(until([&] {  // as it logs every one that it serves
        std::string const served = s.gateway().said();
        std::size_t seen = 0;
        for (std::size_t at = served.find("DELIVERED"); at != std::string::npos;
             at = served.find("DELIVERED", at + 1)) {
            ++seen;
        }
        return seen >= 4 + 20;
    }));
    EXPECT_EQ(s.sold(), sold);
    s.expect_files_agree();
    ::close(out);
}

}  // namespace
}  // namespace rondo::shop::test
