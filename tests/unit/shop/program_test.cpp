// The program as it is run: a shop of real processes.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "running_shop.hpp"

namespace rondo::shop::test {
namespace {

struct ended {
    int status;
    std::string said;
};
ended shop(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), SHOP_PROGRAM);
    rondo::test::child_process p{arguments};
    int const status = p.wait();
    return {status, p.said()};
}

TEST(ShopProgram, OrdersOfAScreenAreMadePaidForAndDelivered) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 8}};
    s.start();
    s.expect_good_end();
    EXPECT_EQ(s.ledger().delivered, 8);
    EXPECT_NE(s.screen(0).said().find("8 delivered, 0 aborted, 0 refunded, 0 lines skipped"),
              std::string::npos)
        << s.dump();
    EXPECT_EQ(shop({"verify", "--state", s.directory()}).status, 0);
    for (char const* const file : {"ledger.db", "screen-0.db", "key"}) {  // cards are in them
        auto const others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
        auto const rights = std::filesystem::status(s.in(file)).permissions();
        EXPECT_EQ(rights & others, std::filesystem::perms::none) << file;
    }

    ended const text = shop({"ledger", "--state", s.directory()});
    EXPECT_EQ(text.status, 0);
    EXPECT_NE(text.said.find("8 orders; charged "), std::string::npos) << text.said;
    ended const json = shop({"ledger", "--json", "--state", s.directory()});
    boost::json::array const orders = boost::json::parse(json.said).as_array();
    ASSERT_EQ(orders.size(), 8U);
    EXPECT_EQ(orders[0].at("state").as_string(), "DELIVERED");
    EXPECT_EQ(orders[0].at("steps").as_array().size(), 3U);
}

TEST(ShopProgram, ThreeScreensAndThreeRobotsAsInTheDocument) {
    running_shop s{{.robots = 3, .screens = 3, .orders = 6}};
    s.start();
    s.expect_good_end();
    EXPECT_EQ(s.ledger().delivered, 18) << s.dump();
}

TEST(ShopProgram, WhatIsSoldOutIsAborted) {
    running_shop s{{.robots = 2, .screens = 2, .orders = 8, .capacity = 500}};
    s.start();
    s.expect_good_end();
    EXPECT_GT(s.ledger().aborted, 0);
    EXPECT_GT(s.ledger().delivered, 0);
    for (flavour_level const& f : s.ledger().stock) EXPECT_LE(f.committed, f.capacity);
}

TEST(ShopProgram, ASignalEndsItWell) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 500}};
    s.start();
    ASSERT_TRUE(s.until_ended(3)) << s.dump();
    EXPECT_EQ(s.screen(0).end(SIGTERM), 0);
    EXPECT_EQ(s.robot(0).end(SIGINT), 0);
    EXPECT_EQ(s.gateway().end(SIGTERM), 0);
}

TEST(ShopProgram, WhatIsWrongWithItsArgumentsIsSaid) {
    ended const ring = shop({"robot", "1", "0:1:2"});
    EXPECT_EQ(ring.status, 2);
    EXPECT_EQ(ring.said, "ring '0:1:2': it begins with 0, not with robot 1 itself\n");
    ended const screens = shop({"screen", "3", "0:1:2", "/no/such/file", "2"});
    EXPECT_EQ(screens.status, 2);
    EXPECT_EQ(screens.said, "screens '0:1:2': screen 3 is not among them\n");
    ended const orders = shop({"screen", "1", "0:1:2", "/no/such/file", "2"});
    EXPECT_EQ(orders.status, 2);
    EXPECT_EQ(orders.said, "/no/such/file: cannot be read\n");
    ended const stock = shop({"gateway", "--stock", "/no/such/file"});
    EXPECT_EQ(stock.status, 2);
    EXPECT_NE(shop({"robot", "64", "64"}).status, 0);
    EXPECT_NE(shop({"screen", "0", "0", "x", "0"}).status, 0);
    EXPECT_NE(shop({}).status, 0);
    EXPECT_EQ(shop({"verify", "--state", "/no/such/directory"}).status, 2);
}

TEST(ShopProgram, ALineThatIsNoOrderIsReportedAndSkipped) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 3}};
    std::ofstream{s.in("orders0.jsonl"), std::ios::app} << "nonsense\n";
    s.start();
    s.expect_good_end();
    EXPECT_NE(s.screen(0).said().find("orders0.jsonl:4: this is not JSON"), std::string::npos)
        << s.dump();
}

TEST(ShopVerify, FindsWhatIsWrong) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 4}};
    s.start();
    s.expect_good_end();
    auto const breaks = [&](std::string const& sql) {
        running_shop copy{{.robots = 0, .screens = 0}};
        std::filesystem::copy_file(s.in("ledger.db"), copy.in("ledger.db"));
        std::filesystem::copy_file(s.in("screen-0.db"), copy.in("screen-0.db"));
        sqlite3* db = nullptr;
        EXPECT_EQ(sqlite3_open(copy.in("ledger.db").c_str(), &db), SQLITE_OK);
        std::string const attach = "ATTACH '" + copy.in("screen-0.db") + "' AS j;";
        EXPECT_EQ(sqlite3_exec(db, (attach + sql).c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
        sqlite3_close(db);
        ended const e = shop({"verify", "--state", copy.directory()});
        return e.status == 1 && e.said.find("FAILS") != std::string::npos;
    };
    EXPECT_FALSE(breaks("SELECT 1"));
    EXPECT_TRUE(breaks("UPDATE stock SET capacity = 10"));
    EXPECT_TRUE(breaks("UPDATE stock SET committed = committed + 1"));
    EXPECT_TRUE(breaks("DELETE FROM steps WHERE number = 1"));
    EXPECT_TRUE(
        breaks("INSERT INTO steps SELECT NULL, key, state, attempt, reason, at FROM steps"));
    EXPECT_TRUE(breaks("UPDATE entries SET state = 'COMMITTED'"));
    EXPECT_TRUE(breaks("DELETE FROM takes WHERE rowid = 1"));
    EXPECT_TRUE(breaks("UPDATE takes SET amount = amount + 1 WHERE rowid = 1"));
    EXPECT_TRUE(breaks("UPDATE j.lines SET outcome = 'aborted' WHERE line = 1"));
    EXPECT_TRUE(breaks("UPDATE j.lines SET step = 'ready' WHERE line = 1"));
    EXPECT_TRUE(breaks("UPDATE j.lines SET attempt = 1 WHERE line = 1"));
    EXPECT_TRUE(breaks("DELETE FROM j.lines WHERE line = 2"));
}

}  // namespace
}  // namespace rondo::shop::test
