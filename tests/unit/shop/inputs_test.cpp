// What the shop reads: orders, the stock, arguments and its key.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rondo/cluster/token_ring.hpp"
#include "shop/arguments.hpp"
#include "shop/order.hpp"
#include "shop/stock.hpp"
#include "support/child_process.hpp"

namespace {

namespace cluster = rondo::cluster;
using namespace rondo::shop;
using rondo::test::scratch_directory;

std::string problem_with(std::string const& line) {
    auto const read = parse_order(line);
    return read ? "none" : read.error();
}

TEST(ShopOrder, IsALineOfJson) {
    auto const read =
        parse_order(R"({"id": "7", "card": "4242", "items": [{"flavour": "lemon", "grams": 250},)"
                    R"( {"flavour": "mint", "grams": 2000}]})");
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(*read, (order{"7", "4242", {{"lemon", 250}, {"mint", 2000}}}));
}

TEST(ShopOrder, WhatIsWrongIsSaid) {
    std::string const good = R"({"id":"1","card":"2","items":[{"flavour":"x","grams":1}]})";
    EXPECT_EQ(problem_with(good), "none");
    EXPECT_EQ(problem_with("hello").substr(0, 16), "this is not JSON");
    EXPECT_EQ(problem_with("[1]"), "an order is an object");
    EXPECT_EQ(problem_with(good + "x").substr(0, 16), "this is not JSON");
    EXPECT_EQ(problem_with(R"({"card":"2","items":[]})"), "'id' is missing");
    EXPECT_EQ(problem_with(R"({"id":1,"card":"2","items":[]})"), "'id' is not a text");
    EXPECT_EQ(problem_with(R"({"id":"","card":"2","items":[]})"), "'id' is empty");
    EXPECT_EQ(problem_with(R"({"id":"1","card":"2"})"), "'items' is missing");
    EXPECT_EQ(problem_with(R"({"id":"1","card":"2","items":{}})"), "'items' is not a list");
    EXPECT_EQ(problem_with(R"({"id":"1","card":"2","items":[]})"),
              "'items' has 0 items; 1 to 8 are possible");
    EXPECT_EQ(problem_with(R"({"id":"1","card":"2","itmes":[]})"), "unknown key 'itmes'");
    EXPECT_EQ(problem_with(R"({"id":"1","card":"2","items":[7]})"),
              "item 1: an item is not an object");
    for (char const* const grams : {"0", "2001", "-1", "1.5", "\"1\"", "1e3", "99999999999"}) {
        EXPECT_EQ(problem_with(R"({"id":"1","card":"2","items":[{"flavour":"x","grams":)" +
                               std::string{grams} + "}]}"),
                  "item 1: 'grams' is not a whole number from 1 to 2000")
            << grams;
    }
    EXPECT_EQ(problem_with(R"({"id":"1","card":")" + std::string(33, '4') + R"(","items":[]})"),
              "'card' has more than 32 bytes");
    EXPECT_NE(problem_with(std::string(100'000, '[')), "none");
}

// What is in an order is printed, by logs and by `shop ledger`: a line stays a line, and a terminal
// is not told what to do.
TEST(ShopOrder, HasNoControlCharacters) {
    auto const with = [](std::string const& id, std::string const& flavour) {
        return R"({"id":")" + id + R"(","card":"2","items":[{"flavour":")" + flavour +
               R"(","grams":1}]})";
    };
    EXPECT_EQ(problem_with(with("caf\u00e9", "cr\u00e8me")), "none");
    EXPECT_EQ(problem_with(with("\\u00a0", "\\u00b5")), "none");  // behind the last of them
    // U+009B is what ESC [ is, in one character.
    for (char const* const control : {"\\n", "\\u001b[2J", "\\u0000", "\\u007f", "\\u0080",
                                      "\\u009b2J", "\xc2\x9b\x32J", "\\u009f"}) {
        EXPECT_EQ(problem_with(with(control, "x")), "'id' has a control character") << control;
        EXPECT_EQ(problem_with(with("1", control)), "item 1: 'flavour' has a control character");
    }
    EXPECT_EQ(problem_with(R"({"a\nb":1})"), "unknown key with a control character");
}

TEST(ShopOrder, AFileIsReadLineByLineAndEveryLineKeepsItsNumber) {
    scratch_directory const in;
    std::string const file =
        in.write("o.jsonl",
                 "{\"id\":\"1\",\"card\":\"2\",\"items\":[{\"flavour\":\"x\",\"grams\":1}]}\r\n"
                 "\n  \nnonsense\n");
    auto const lines = read_orders(file);
    ASSERT_TRUE(lines);
    ASSERT_EQ(lines->size(), 2U);
    EXPECT_TRUE(lines->at(0).read);
    EXPECT_EQ(lines->at(1).number, 4U);
    EXPECT_FALSE(lines->at(1).read);
    EXPECT_FALSE(read_orders(file + "x"));
}

TEST(ShopStock, HasFlavoursWithCapacityAndPrice) {
    auto const read = parse_stock("[flavour.lemon]\ncapacity = 5000\nprice = 12.5\n", "s.toml");
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, (stock{{"lemon", 5000, 1250}}));
    EXPECT_EQ(price_of({{"lemon", 250}, {"lemon", 1}}, *read), 313 + 2);
}

TEST(ShopStock, EveryErrorIsSaidWithItsPlace) {
    auto const read = parse_stock(
        "[flavour.lemon]\ncapacity = -1\nprice = 1\ncolour = 2\n[flavour.mint]\nprice = 1\n"
        "[other]\n",
        "s.toml");
    ASSERT_FALSE(read);
    std::string all;
    for (std::string const& e : read.error()) all += e + "\n";
    EXPECT_NE(all.find("s.toml:2:12: 'capacity' is not a number of grams"), std::string::npos);
    EXPECT_NE(all.find("s.toml:4:1: unknown key 'colour'"), std::string::npos);
    EXPECT_NE(all.find("'mint' has no capacity"), std::string::npos);
    EXPECT_NE(all.find("unknown key 'other'"), std::string::npos);
    EXPECT_FALSE(parse_stock("", "s.toml"));
    EXPECT_FALSE(parse_stock("[flavour", "s.toml"));
    EXPECT_FALSE(load_stock("/no/such/file"));
    auto const folder = load_stock("/");  // it can be opened, and not be read
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().at(0), "/: cannot be read to its end");
}

TEST(ShopArguments, TheRingBeginsWithTheRobotItself) {
    EXPECT_EQ(parse_ring("1:2:0", 1).value(), (std::vector<std::uint32_t>{1, 2, 0}));
    EXPECT_EQ(parse_ring("0", 0).value(), std::vector<std::uint32_t>{0});
    EXPECT_EQ(parse_ring("0:1:2", 1).error(),
              "ring '0:1:2': it begins with 0, not with robot 1 itself");
    EXPECT_EQ(parse_ring("0:2", 1).error(), "ring '0:2': robot 1 is not in it");
    EXPECT_EQ(parse_ring("1:2:1", 1).error(), "ring '1:2:1': 1 is there twice");
    EXPECT_EQ(parse_ring("1:x", 1).error(), "ring '1:x': 'x' is not a number");
    EXPECT_EQ(parse_ring("1:", 1).error(), "ring '1:': '' is not a number");
    EXPECT_EQ(parse_ring("", 1).error(), "ring '': '' is not a number");
    EXPECT_EQ(parse_ring("1:-2", 1).error(), "ring '1:-2': '-2' is not a number");
    EXPECT_EQ(parse_ring("1:16", 1).error(), "ring '1:16': 16 is too high; numbers go to 15");
    std::string ring = "0";
    for (int r = 1; r < 16; ++r) ring += ":" + std::to_string(r);
    EXPECT_EQ(parse_ring(ring, 0).value().size(), cluster::token_ring::most_members);
}

TEST(ShopArguments, AScreenIsAmongTheScreens) {
    EXPECT_EQ(parse_screens("0:1:2", 1).value().size(), 3U);
    EXPECT_EQ(parse_screens("0:2", 1).error(), "screens '0:2': screen 1 is not among them");
    EXPECT_EQ(parse_screens("1:63", 1).value().size(), 2U);
    EXPECT_EQ(parse_screens("1:64", 1).error(), "screens '1:64': 64 is too high; numbers go to 63");
}

TEST(ShopArguments, AProbabilityIsFromZeroToOne) {
    EXPECT_EQ(parse_probability("0.1").value(), 0.1);
    EXPECT_EQ(parse_probability("1").value(), 1.0);
    for (char const* const bad : {"", "1.1", "-0.1", "x", "0.1x", "nan"}) {
        EXPECT_FALSE(parse_probability(bad)) << bad;
    }
}

TEST(ShopKey, IsMadeOnceForItsUserAlone) {
    ::unsetenv("SHOP_KEY");
    scratch_directory const in;
    std::string const directory = in.path() / "state";
    auto const first = load_secret(directory);
    ASSERT_TRUE(first) << first.error();
    struct stat seen{};
    ASSERT_EQ(::stat((directory + "/key").c_str(), &seen), 0);
    EXPECT_EQ(seen.st_mode & 0777U, 0600U);
    EXPECT_EQ(seen.st_size, 32);
    EXPECT_EQ(load_secret(directory)->key, first->key);
    EXPECT_NE(load_secret(in.path() / "other")->key, first->key);
    (void)in.write("broken/key", "short");
    EXPECT_FALSE(load_secret(in.path() / "broken"));
}

TEST(ShopKey, IsMadeThoughSomebodyHasDiedWhileMakingIt) {
    ::unsetenv("SHOP_KEY");
    scratch_directory const in;
    (void)in.write("key." + std::to_string(::getpid()), "half a");
    auto const made = load_secret(in.path());
    EXPECT_TRUE(made) << made.error();
}

TEST(ShopKey, OfTheEnvironmentGoesFirst) {
    scratch_directory const in;
    ::setenv("SHOP_KEY", "sesame", 1);
    auto const a = load_secret(in.path());
    ::setenv("SHOP_KEY", "sesamo", 1);
    auto const b = load_secret(in.path());
    ::unsetenv("SHOP_KEY");
    ASSERT_TRUE(a && b);
    EXPECT_NE(a->key, b->key);
    EXPECT_NE(a->cluster, b->cluster);
    EXPECT_FALSE(std::filesystem::exists(in.path() / "key"));
}

}  // namespace
