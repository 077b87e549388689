// A server behind a proxy that announces its connections.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "rondo/http/server.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::body_in;
using test::served;
using test::status_in;
using test::wire;

std::string const line_of_client = "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n";
std::string const get_once = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

task<void> say_who(exchange* x) {
    std::string const who =
        x->peer().address().to_string() + " " + std::to_string(x->peer().port());
    (void)co_await x->send(who);
}

// Whose proxies are in that network.
served server_behind(std::string_view network, server_options o = {}) {
    o.listen.push_back({test::loopback(), nullptr, -1, {*parse_network(network)}});
    return served{say_who, std::move(o)};
}

TEST(BehindProxy, TheClientIsWhoTheProxySays) {
    served const s = server_behind("127.0.0.0/8");
    EXPECT_EQ(body_in(s.answer_to(line_of_client + get_once)), "192.0.2.1 5000");
    std::string const block =
        "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0f"s
        "\xc6\x33\x64\x07\xc0\x00\x02\x02\x13\x88\x01\xbb"s
        "\x04\x00\x00"s;
    EXPECT_EQ(body_in(s.answer_to(block + get_once)), "198.51.100.7 5000");
}

TEST(BehindProxy, AnAnnouncementIsReadHoweverItIsCutAndIsForTheWholeConnection) {
    served const s = server_behind("127.0.0.1");
    wire w = s.dial();
    for (char const c : line_of_client) w.say(std::string_view{&c, 1});
    w.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(body_in(w.hear_message()), "192.0.2.1 5000");
    w.say(get_once);
    EXPECT_EQ(body_in(w.hear_message()), "192.0.2.1 5000");
}

TEST(BehindProxy, AConnectionOfTheProxyItselfIsTheProxys) {
    served const s = server_behind("127.0.0.1");
    std::string const own = body_in(s.answer_to("PROXY UNKNOWN\r\n" + get_once));
    EXPECT_TRUE(own.starts_with("127.0.0.1 ")) << own;
    std::string const local = "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"s;
    EXPECT_TRUE(body_in(s.answer_to(local + get_once)).starts_with("127.0.0.1 "));
}

TEST(BehindProxy, AProxyThatDoesNotAnnounceIsClosedWithoutAnAnswer) {
    served s = server_behind("127.0.0.1");
    EXPECT_EQ(s.answer_to(get_once), "");
    EXPECT_EQ(s.answer_to("PROXY TCP4 192.0.2.1 192.0.2.2 5000 443 \r\n" + get_once), "");
    EXPECT_EQ(s.answer_to("PROXY TCP4 192.0"), "");
    EXPECT_EQ(s.server().measure().refused, 2U);  // the third just went
    EXPECT_EQ(s.server().measure().requests, 0U);
}

// Real time: that it ends is what is asked.
TEST(BehindProxy, AnAnnouncementHasToComeInTheTimeOfAHeader) {
    server_options o;
    o.head_timeout = 20ms;
    served const s = server_behind("127.0.0.1", std::move(o));
    wire w = s.dial();
    w.say("PROXY TCP4 192");
    EXPECT_EQ(w.hear_all(), "");
}

// Real time: that it does not take all of it is what is asked.
TEST(BehindProxy, AServerStopsThoughAProxyHasAnnouncedNobodyYet) {
    served s = server_behind("127.0.0.1", {.head_timeout = 20s});
    wire silent = s.dial();
    while (s.server().measure().accepted == 0) std::this_thread::yield();
    auto const began = clock::now();
    EXPECT_EQ(s.server().blocking_stop(30s), 0U);
    EXPECT_LT(clock::now() - began, 10s);
    EXPECT_EQ(silent.hear_all(), "");
}

// At such a door the addresses of IPv4 come as ones of IPv6.
TEST(BehindProxy, AProxyIsRecognizedAtADoorForBothVersionsOfIp) {
    int const listening = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const off = 0;
    ::setsockopt(listening, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(listening, 16), 0);
    server_options o;
    o.listen.push_back(
        {{boost::asio::ip::tcp::v6(), 0}, nullptr, listening, {*parse_network("127.0.0.0/8")}});
    {
        served const s{say_who, std::move(o)};
        EXPECT_EQ(body_in(s.answer_to(line_of_client + get_once)), "192.0.2.1 5000");
    }
    ::close(listening);
}

TEST(BehindProxy, WhoIsNotAProxyIsNotBelieved) {
    served const s = server_behind("192.0.2.0/24");
    EXPECT_TRUE(body_in(s.answer_to(get_once)).starts_with("127.0.0.1 "));
    EXPECT_EQ(status_in(s.answer_to(line_of_client + get_once)), 400);
    EXPECT_EQ(status_in(s.answer_to("\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"s + get_once)), 400);
}

TEST(BehindProxy, ConnectionsAreCountedForTheClientAndNotForTheProxy) {
    server_options o;
    o.max_connections_per_address = 1;
    served const s = server_behind("127.0.0.1", std::move(o));
    std::string const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    wire one = s.dial();
    one.say(line_of_client + get);
    EXPECT_EQ(body_in(one.hear_message()), "192.0.2.1 5000");
    wire other = s.dial();
    other.say("PROXY TCP4 192.0.2.9 192.0.2.2 1 443\r\n" + get);
    EXPECT_EQ(body_in(other.hear_message()), "192.0.2.9 1");
    wire again = s.dial();
    again.say(line_of_client + get);
    EXPECT_EQ(again.hear_all(), "");
}

std::string announced(std::string const& client) {
    return "PROXY TCP6 " + client + " ::1 5000 443\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n";
}

// Who has a network of its own has as many addresses as it likes.
TEST(BehindProxy, ConnectionsOfIpv6AreCountedForTheNetwork) {
    server_options o;
    o.max_connections_per_address = 1;
    served const s = server_behind("127.0.0.1", std::move(o));
    wire one = s.dial();
    one.say(announced("2001:db8:0:1::1"));
    EXPECT_EQ(body_in(one.hear_message()), "2001:db8:0:1::1 5000");
    wire same = s.dial();
    same.say(announced("2001:db8:0:1:ffff::2"));
    EXPECT_EQ(same.hear_all(), "");
    wire other = s.dial();
    other.say(announced("2001:db8:0:2::1"));
    EXPECT_EQ(body_in(other.hear_message()), "2001:db8:0:2::1 5000");
}

// All of IPv4 is one network of 64 bits there.
TEST(BehindProxy, ConnectionsOfIpv4InIpv6AreCountedForTheAddress) {
    server_options o;
    o.max_connections_per_address = 1;
    served const s = server_behind("127.0.0.1", std::move(o));
    wire one = s.dial();
    one.say(announced("::ffff:203.0.113.9"));
    EXPECT_EQ(body_in(one.hear_message()), "::ffff:203.0.113.9 5000");
    wire other = s.dial();
    other.say(announced("::ffff:203.0.113.10"));
    EXPECT_EQ(body_in(other.hear_message()), "::ffff:203.0.113.10 5000");
    wire same = s.dial();
    same.say("PROXY TCP4 203.0.113.9 192.0.2.2 5001 443\r\n" + get_once);
    EXPECT_EQ(same.hear_all(), "");
}

}  // namespace
}  // namespace rondo::http
