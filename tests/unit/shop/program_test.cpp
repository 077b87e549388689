// The program as it is run: a shop of real processes.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <boost/json.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rondo/cluster/ledger.hpp"
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

int shop_in_shell(std::string const& command) {
    return rondo::test::child_process{{"sh", "-c", command}}.wait();
}

// Another process that begins to look there finds another one, although nobody has come to it yet.
TEST(ShopProgram, TwoTestsHaveNoPlaceInCommon) { EXPECT_NE(free_base_port(7), free_base_port(7)); }

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
    EXPECT_EQ(shop({"robot", "16", "16"}).status, 2);
    EXPECT_EQ(shop({"robot", "0", "0:16"}).said, "ring '0:16': 16 is too high; numbers go to 15\n");
    EXPECT_EQ(shop({"screen", "0", "0", "x", "0"}).status, 2);
    EXPECT_EQ(shop({"screen", "0", "0", "x", "17"}).status, 2);
    EXPECT_EQ(shop({"robot", "0", "0", "--nonsense"}).status, 2);
    EXPECT_EQ(shop({}).status, 2);
    EXPECT_EQ(shop({"--help"}).status, 0);
    EXPECT_EQ(shop({"verify", "--state", "/no/such/directory"}).status, 2);
}

// The commands of the document as they stand there, but for the name of the program.
TEST(ShopProgram, TheCommandsOfTheDocumentWork) {
    rondo::test::scratch_directory const d;
    (void)d.write("stock.toml", "[flavour.lemon]\ncapacity = 5000\nprice = 10\n");
    std::string const port = "SHOP_BASE_PORT=" + std::to_string(free_base_port());
    std::vector<std::unique_ptr<child>> started;
    auto const run = [&](std::vector<std::string> command) -> child& {
        command.insert(command.begin(), {"env", "-C", d.path().string(), port, "RONDO_LOG=debug",
                                         "CARD_REJECTION_PROBABILITY=0.1", SHOP_PROGRAM});
        std::string const log = (d.path() / std::to_string(started.size())).string();
        started.push_back(std::make_unique<child>("/usr/bin/env", std::move(command), log));
        started.back()->start();
        return *started.back();
    };
    (void)run({"gateway"});
    (void)run({"robot", "0", "0:1:2"});
    (void)run({"robot", "1", "1:2:0"});
    (void)run({"robot", "2", "2:0:1"});
    std::vector<std::string> const files{"./pedidos/pedidos.jsonl", "./pedidos/pedidos1.jsonl",
                                         "./pedidos/pedidos2.jsonl"};
    std::string const order =
        R"({"id": "1", "card": "42", "items": [{"flavour": "lemon", "grams": 50}]})";
    std::vector<child*> screens;
    for (std::size_t s = 0; s < files.size(); ++s) {
        (void)d.write(files[s], order + "\n" + order + "\n");
        screens.push_back(&run({"screen", std::to_string(s), "0:1:2", files[s], "5"}));
    }
    for (child* const s : screens) {
        EXPECT_TRUE(until([s] { return s->has_ended(); })) << s->said();
        EXPECT_EQ(s->status(), 0) << s->said();
    }
    ended const checked = shop({"verify", "--state", (d.path() / "shop-state").string()});
    EXPECT_EQ(checked.status, 0) << checked.said;
    auto const seen = summarise((d.path() / "shop-state").string());
    ASSERT_TRUE(seen) << seen.error();
    EXPECT_EQ(seen->delivered + seen->aborted, 6);
}

TEST(ShopProgram, ARoleThatCannotStartSaysWhy) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 1}};
    s.gateway().start();
    ASSERT_TRUE(s.until_said(s.gateway(), "listens"));
    std::string const port = std::to_string(s.base_port());
    rondo::test::scratch_directory const other;
    ended const taken = shop({"gateway", "--stock", s.in("stock.toml"), "--base-port", port,
                              "--state", other.path().string()});
    EXPECT_EQ(taken.status, 1);
    EXPECT_NE(taken.said.find("cannot listen at 127.0.0.1:" + port + ": another process does"),
              std::string::npos)
        << taken.said;
    ended const unwritable = shop({"robot", "0", "0", "--state", "/dev/null/shop"});
    EXPECT_EQ(unwritable.status, 1);
    EXPECT_NE(unwritable.said.find("/dev/null/shop: Not a directory"), std::string::npos)
        << unwritable.said;
    (void)other.write("ledger.db", std::string(8192, 'x'));
    ended const garbage =
        shop({"gateway", "--stock", s.in("stock.toml"), "--base-port",
              std::to_string(free_base_port()), "--state", other.path().string()});
    EXPECT_EQ(garbage.status, 3);
    EXPECT_NE(garbage.said.find("ledger.db: file is not a database"), std::string::npos)
        << garbage.said;
    ended const silence = shop({"screen", "0", "0", "x", "1", "--leader-silence-ms", "0"});
    EXPECT_EQ(silence.status, 2);
    EXPECT_NE(silence.said.find("--leader-silence-ms"), std::string::npos) << silence.said;
    std::string const unmade = (other.path() / "new").string();
    ended const nowhere = shop({"robot", "0", "0", "--host", "example", "--state", unmade});
    EXPECT_EQ(nowhere.status, 2) << nowhere.said;
    EXPECT_NE(nowhere.said.find("'example' is not an IPv4 address"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(unmade));
}

// Each of them would hand over what is in the journal, and it is charged once.
TEST(ShopProgram, NobodyIsAMemberTwiceWithTheSameFilesAlsoAtOtherPorts) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 500}};
    s.start();
    ASSERT_TRUE(s.until_ended(1)) << s.dump();
    std::string const port = std::to_string(free_base_port());
    std::vector<std::pair<std::string, std::vector<std::string>>> const others{
        {"gateway", {"gateway", "--stock", s.in("stock.toml")}},
        {"robot-0", {"robot", "0", "0"}},
        {"screen-0", {"screen", "0", "0", s.in("orders0.jsonl"), "1"}}};
    for (auto const& [who, command] : others) {
        std::vector<std::string> all = command;
        all.insert(all.end(), {"--base-port", port, "--state", s.directory()});
        ended const second = shop(all);
        EXPECT_EQ(second.status, 1) << second.said;
        std::string const why = who + ".lock: another process is " + who + " already";
        EXPECT_NE(second.said.find(why), std::string::npos) << second.said;
    }
    s.screen(0).kill();  // the files are free when it is gone, however it went
    s.screen(0).start();
    std::int64_t const before = s.ended();
    EXPECT_TRUE(s.until_ended(before + 3)) << s.dump();
}

TEST(ShopProgram, ACapacityBelowWhatIsSoldIsSaidToBeThat) {
    rondo::test::scratch_directory const in;
    std::vector<cluster::amount_of> const lemon{{"lemon", 100}};
    {
        auto book = cluster::ledger::open(in.path() / "ledger.db", lemon).value();
        auto const accept = [] { return std::optional<std::string>{}; };
        (void)book.prepare("0-j-1", {lemon, "4242", 1}, accept, 0s, 60s);
        std::vector<cluster::take> const all{{"lemon", 100, 1, 1}};
        ASSERT_EQ(book.commit("0-j-1", 1, all, 1s)->at, cluster::standing::committed);
    }
    (void)in.write("stock.toml", "[flavour.lemon]\ncapacity = 99\nprice = 10\n");
    ended const less =
        shop({"gateway", "--stock", (in.path() / "stock.toml").string(), "--base-port",
              std::to_string(free_base_port()), "--state", in.path().string()});
    EXPECT_EQ(less.status, 1);
    EXPECT_NE(less.said.find("of lemon, 100 are sold already"), std::string::npos) << less.said;
}

TEST(ShopProgram, AGatewayThatCannotStartLeavesTheStockOfTheOtherAlone) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 1, .capacity = 1000}};
    s.gateway().start();
    ASSERT_TRUE(s.until_said(s.gateway(), "listens")) << s.dump();
    rondo::test::scratch_directory const other;
    (void)other.write("stock.toml", "[flavour.lemon]\ncapacity = 9000\nprice = 10\n");
    ended const second =
        shop({"gateway", "--stock", (other.path() / "stock.toml").string(), "--base-port",
              std::to_string(s.base_port()), "--state", s.directory()});
    EXPECT_EQ(second.status, 1) << second.said;
    auto const stock = s.ledger().stock;
    ASSERT_FALSE(stock.empty());
    for (auto const& f : stock) EXPECT_EQ(f.capacity, 1000) << f.name;
}

TEST(ShopProgram, ADemoThatCannotRunSaysWhyAtOnce) {
    rondo::test::child_process sure{{"env", "CARD_REJECTION_PROBABILITY=2", SHOP_PROGRAM, "demo"}};
    EXPECT_EQ(sure.wait(), 2);
    EXPECT_EQ(sure.said(), "CARD_REJECTION_PROBABILITY: '2' is not a probability from 0 to 1\n");
    ended const nowhere = shop({"demo", "--state", "/dev/null/shop"});
    EXPECT_EQ(nowhere.status, 2);
    EXPECT_EQ(nowhere.said, "/dev/null/shop: Not a directory\n");
    rondo::test::child_process homeless{{"env", "TMPDIR=/no/such/directory", SHOP_PROGRAM, "demo"}};
    EXPECT_EQ(homeless.wait(), 2) << homeless.said();
    rondo::test::scratch_directory const d;
    (void)d.write("ledger.db", "");
    ended const twice = shop({"demo", "--state", d.path().string()});
    EXPECT_EQ(twice.status, 2);
    EXPECT_EQ(twice.said, d.path().string() + ": there is a shop in it already\n");
    rondo::test::scratch_directory const bad_key;
    (void)bad_key.write("key", "short");
    rondo::test::child_process unsigned_shop{
        {"env", "-u", "SHOP_KEY", SHOP_PROGRAM, "demo", "--state", bad_key.path().string()}};
    EXPECT_EQ(unsigned_shop.wait(), 2);
    EXPECT_NE(unsigned_shop.said().find("/key: this is not a key of 32 bytes"), std::string::npos)
        << unsigned_shop.said();
}

// By a path with a link in it, as a shell shows it, and by the one that the system knows.
TEST(ShopProgram, AFileOfOrdersIsTheSameByWhateverPath) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 3, .farewell_ms = "100"}};
    s.start();
    s.expect_good_end();
    std::filesystem::create_directory_symlink(s.directory(), s.in("link"));
    ended const again = shop({"screen", "0", "0", s.in("link/orders0.jsonl"), "1", "--state",
                              s.directory(), "--base-port", std::to_string(s.base_port())});
    EXPECT_EQ(again.status, 0);
    EXPECT_EQ(s.ended(), 3) << again.said;
}

TEST(ShopProgram, ADemoWithTheSameSeedHasTheSameOrders) {
    rondo::test::scratch_directory const d;
    auto const orders_of = [&](std::string const& seed, std::string const& name) {
        std::string const in = (d.path() / name).string();
        EXPECT_EQ(shop({"demo", "--orders", "1", "--seed", seed, "--state", in}).status, 0);
        auto const others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
        auto const rights = std::filesystem::status(in + "/orders0.jsonl").permissions();
        EXPECT_EQ(rights & others, std::filesystem::perms::none) << "cards are in it";
        std::ostringstream text;
        text << std::ifstream{in + "/orders0.jsonl"}.rdbuf();
        return text.str();
    };
    EXPECT_EQ(orders_of("0", "one"), orders_of("0", "other"));
}

TEST(ShopProgram, BooksThatCannotBeWrittenAreNoSuccess) {
    running_shop s{{.robots = 0, .screens = 0}};
    {
        (void)cluster::ledger::open(s.in("ledger.db"), {}).value();
    }
    for (char const* const command : {"ledger", "ledger --json", "verify"}) {
        std::string const to_full =
            std::string{SHOP_PROGRAM} + " " + command + " --state " + s.directory();
        EXPECT_EQ(shop_in_shell(to_full), 0);
        EXPECT_EQ(shop_in_shell(to_full + " >/dev/full"), 4) << command;
    }
}

TEST(ShopProgram, ALineThatIsNoOrderIsReportedAndSkipped) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 3}};
    std::ofstream{s.in("orders0.jsonl"), std::ios::app} << "nonsense\n";
    s.start();
    s.expect_good_end();
    EXPECT_NE(s.screen(0).said().find("orders0.jsonl:4: this is not JSON"), std::string::npos)
        << s.dump();
}

TEST(ShopProgram, ADemoShowsWhatWaitsAndEndsWithAVerdict) {
    ended const demo = shop({"demo", "--orders", "2"});
    EXPECT_EQ(demo.status, 0);
    EXPECT_NE(demo.said.find(" s  0 queued, 0 open, "), std::string::npos) << demo.said;
    EXPECT_NE(demo.said.find("6 of 6 orders came to their end"), std::string::npos) << demo.said;
}

// Whom the demo has killed is started again; this one has fallen by itself. Which one it is depends
// on whom the demo has killed by then: it begins before the first line.
TEST(ShopProgram, ADemoEndsAtOnceWhenAMemberCrashesAlsoAmongKills) {
    rondo::test::child_process demo{{SHOP_PROGRAM, "demo", "--chaos"}};
    (void)demo.read_until(" queued, ");
    std::string const p = std::to_string(demo.pid());
    std::ifstream children{"/proc/" + p + "/task/" + p + "/children"};
    pid_t member = 0;
    ASSERT_TRUE(children >> member);
    ASSERT_EQ(::kill(member, SIGSEGV), 0);
    EXPECT_EQ(demo.wait(), 2);
    EXPECT_NE(demo.said().find(" has ended with status "), std::string::npos) << demo.said();
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
    EXPECT_TRUE(breaks("DROP TABLE j.lines"));

    std::filesystem::remove(s.in("screen-0.db"));
    ended const lost = shop({"verify", "--state", s.directory()});
    EXPECT_EQ(lost.status, 1) << lost.said;
    EXPECT_NE(lost.said.find("FAILS  I7"), std::string::npos) << lost.said;
}

TEST(ShopVerify, PassesOverJournalsThatWereNotBegunAndCopies) {
    running_shop s{{.robots = 1, .screens = 1, .orders = 1}};
    s.start();
    s.expect_good_end();
    (void)std::ofstream{s.in("screen-7.db")};  // a screen that has died at its start
    std::filesystem::copy_file(s.in("screen-0.db"), s.in("screen-0-old.db"));
    ended const e = shop({"verify", "--state", s.directory()});
    EXPECT_EQ(e.status, 0) << e.said;
}

}  // namespace
}  // namespace rondo::shop::test
