#include "rondo/address.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rondo::gateway {
namespace {

TEST(Address, IsHostAndPort) {
    std::vector<std::pair<std::string, address>> const good{
        {"127.0.0.1:8080", {"127.0.0.1", 8080}},
        {"[::1]:443", {"::1", 443}},
        {"localhost:80", {"localhost", 80}},
        {"0.0.0.0:0", {"0.0.0.0", 0}},
        {"a-b.c_d.example:65535", {"a-b.c_d.example", 65535}},
        {"[2001:db8::1]:1", {"2001:db8::1", 1}},
    };
    for (auto const& [text, expected] : good) {
        auto const parsed = parse_address(text);
        ASSERT_TRUE(parsed.has_value()) << text << ": " << parsed.error().problem;
        EXPECT_EQ(*parsed, expected) << text;
        EXPECT_EQ(to_string(*parsed), text);
    }
}

TEST(Address, ThatIsNoneIsRefused) {
    for (std::string const text : {"",
                                   ":",
                                   "8080",
                                   "localhost",
                                   ":80",
                                   "::1",
                                   "::1:80",
                                   "[::1]",
                                   "[::1]80",
                                   "[]:80",
                                   "[1.2.3.4]:80",
                                   "1.2.3:80",
                                   "1.2.3.4.5:80",
                                   "256.1.1.1:80",
                                   "a..b:80",
                                   "-a:80",
                                   "a b:80",
                                   "a:",
                                   "a:-1",
                                   "a:+1",
                                   "a:65536",
                                   "a:8o",
                                   "a:80 ",
                                   "http://a:80",
                                   "a/b:80",
                                   "[fe80::1%eth0]:80"}) {
        auto const parsed = parse_address(text);
        ASSERT_FALSE(parsed.has_value()) << text;
        EXPECT_TRUE(parsed.error().problem.starts_with("'" + text + "' is not an address")) << text;
    }
}

TEST(Address, OfThisMachineIsInAnyCase) {
    for (char const* const here : {"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1"}) {
        EXPECT_TRUE(is_of_this_machine({.host = here})) << here;
    }
    for (char const* const elsewhere : {"localhost.example", "128.0.0.1", "::", "", "::2"}) {
        EXPECT_FALSE(is_of_this_machine({.host = elsewhere})) << elsewhere;
    }
}

TEST(Address, AdviceIsAnAddress) {
    EXPECT_EQ(parse_address("8080").error().advice, "write '127.0.0.1:8080'");
    EXPECT_EQ(parse_address("localhost").error().advice, "write 'localhost:8080'");
    EXPECT_EQ(parse_address("::1:80").error().advice, "write '[::1]:80'");
    EXPECT_EQ(parse_address("2001:db8::1").error().advice, "write '[2001:db8::1]:8080'");
    EXPECT_EQ(parse_address("https://a:1").error().advice, "write 'a:1'");
}

}  // namespace
}  // namespace rondo::gateway
