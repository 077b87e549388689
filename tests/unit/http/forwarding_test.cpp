#include "rondo/http/detail/forwarding.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/core/policy.hpp"

namespace rondo::http::detail {
namespace {

constexpr hop from_v4{.peer = "192.0.2.1", .local = "192.0.2.9", .via = "rondo", .secure = false};
constexpr hop from_v6{.peer = "2001:db8::1", .local = "::1", .via = "rondo", .secure = true};

// The fields that a request with these has when it goes on.
std::vector<std::string> passed_on(std::string_view fields_text, hop const& h = from_v4) {
    std::string const block =
        "GET /x HTTP/1.1\r\nHost: example.com\r\n" + std::string{fields_text} + "\r\n";
    std::array<field, 32> table;
    auto const head = scan_request(block, {}, table);
    EXPECT_TRUE(head.has_value());
    if (!head) return {};
    request_text out;
    out.line(head->verb, head->path);
    add_request_fields(out, *head, h);
    std::string_view text = out.seal().data();
    std::vector<std::string> lines;
    text.remove_prefix(text.find("\r\n") + 2);
    while (!text.starts_with("\r\n")) {
        std::size_t const end = text.find("\r\n");
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end + 2);
    }
    return lines;
}

std::string line_of(std::vector<std::string> const& lines, std::string_view name) {
    std::string found;
    for (std::string const& l : lines) {
        if (l.starts_with(std::string{name} + ": ")) found += l.substr(name.size() + 2) + "|";
    }
    return found;
}

TEST(Forwarding, AddsWhereTheRequestCameFrom) {
    auto const lines = passed_on("");
    EXPECT_EQ(line_of(lines, "host"), "example.com|");
    EXPECT_EQ(line_of(lines, "forwarded"),
              "for=192.0.2.1;by=192.0.2.9;host=example.com;proto=http|");
    EXPECT_EQ(line_of(lines, "x-forwarded-for"), "192.0.2.1|");
    EXPECT_EQ(line_of(lines, "x-forwarded-host"), "example.com|");
    EXPECT_EQ(line_of(lines, "x-forwarded-proto"), "http|");
    EXPECT_EQ(line_of(lines, "via"), "1.1 rondo|");
}

TEST(Forwarding, NamesTheAddressThatWasDialledIfTheClientNamesNoHost) {
    hop local = from_v6;
    local.local = "fe80::1%eth0";
    for (auto const& [h, host] :
         {std::pair{from_v4, "\r\nhost: 192.0.2.9\r\n"}, std::pair{from_v6, "\r\nhost: [::1]\r\n"},
          std::pair{local, "\r\nhost: [fe80::1]\r\n"}}) {
        std::array<field, 4> table;
        auto const head = scan_request("GET / HTTP/1.0\r\n\r\n", {}, table);
        ASSERT_TRUE(head.has_value());
        request_text out;
        out.line(head->verb, head->path);
        add_request_fields(out, *head, h);
        std::string const text{out.seal().data()};
        EXPECT_NE(text.find(host), std::string::npos) << text;
        EXPECT_EQ(text.find("x-forwarded-host"), std::string::npos) << text;
        std::array<field, 32> again;
        EXPECT_TRUE(scan_request(text, {}, again).has_value()) << "we would refuse it";
    }
}

TEST(Forwarding, QuotesWhatIsNoToken) {
    EXPECT_EQ(forwarded_element(from_v6, "example.com:8443"),
              "for=\"[2001:db8::1]\";by=\"[::1]\";host=\"example.com:8443\";proto=https");
    EXPECT_EQ(forwarded_element(from_v6, "a\"b\\c"),
              "for=\"[2001:db8::1]\";by=\"[::1]\";host=\"a\\\"b\\\\c\";proto=https");
    EXPECT_EQ(forwarded_element({}, ""), "for=\"\";by=\"\";proto=http");
}

// RFC 7239 has none in a node, and "eth0" is another one on the next machine.
TEST(Forwarding, NamesNoZoneOfAnAddress) {
    constexpr hop link{.peer = "fe80::2%eth0", .local = "fe80::1%eth0", .via = "rondo"};
    auto const lines = passed_on("X-Forwarded-For: 192.0.2.7\r\n", link);
    EXPECT_EQ(line_of(lines, "forwarded"),
              "for=\"[fe80::2]\";by=\"[fe80::1]\";host=example.com;proto=http|");
    EXPECT_EQ(line_of(lines, "x-forwarded-for"), "192.0.2.7, fe80::2|");
}

TEST(Forwarding, AppendsToWhatIsThere) {
    auto const lines = passed_on(
        "Forwarded: for=198.51.100.7;proto=https\r\nForwarded: for=\"[2001:db8::7]\"\r\n"
        "X-Forwarded-For: 198.51.100.7, 198.51.100.8\r\nVia: 1.0 fred\r\n");
    EXPECT_EQ(line_of(lines, "forwarded"),
              "for=198.51.100.7;proto=https, for=\"[2001:db8::7]\", "
              "for=192.0.2.1;by=192.0.2.9;host=example.com;proto=http|");
    EXPECT_EQ(line_of(lines, "x-forwarded-for"), "198.51.100.7, 198.51.100.8, 192.0.2.1|");
    EXPECT_EQ(line_of(lines, "via"), "1.0 fred, 1.1 rondo|");
}

TEST(Forwarding, DoesNotAppendToAQuoteThatDoesNotEnd) {
    EXPECT_EQ(line_of(passed_on("Forwarded: for=\"evil\r\n"), "forwarded"),
              "for=192.0.2.1;by=192.0.2.9;host=example.com;proto=http|");
    EXPECT_EQ(line_of(passed_on("Forwarded: for=\"evil\\\"\r\n"), "forwarded"),
              "for=192.0.2.1;by=192.0.2.9;host=example.com;proto=http|");
}

TEST(Forwarding, ReplacesWhatOnlyWeKnow) {
    auto const lines = passed_on("X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n");
    EXPECT_EQ(line_of(lines, "x-forwarded-proto"), "http|");
    EXPECT_EQ(line_of(lines, "x-forwarded-host"), "example.com|");
}

TEST(Forwarding, LeavesOutTheFieldsOfTheConnection) {
    auto const lines = passed_on(
        "Connection: close, X-Mine\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"
        "Proxy-Authorization: Basic x\r\nTE: trailers\r\nTrailer: X-T\r\nUpgrade: h2c\r\n"
        "X-Mine: 1\r\nX-Yours: 2\r\nExpect: 100-continue\r\n");
    for (std::string_view const name :
         {"Connection", "connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE",
          "Trailer", "Upgrade", "upgrade", "X-Mine", "Expect", "expect"}) {
        EXPECT_EQ(line_of(lines, name), "") << name;
    }
    EXPECT_EQ(line_of(lines, "X-Yours"), "2|");
}

// Who makes variables of fields, as CGI does, reads both spellings as one: perhaps the client's.
TEST(Forwarding, LeavesOutWhatIsReadAsAFieldOfOurs) {
    auto const lines = passed_on(
        "X_Forwarded_For: 10.0.0.1\r\nx-forwarded_for: 10.0.0.2\r\nX_FORWARDED_PROTO: https\r\n"
        "X-Forwarded_Host: evil\r\nX_Request_Id: made-up\r\nProxy_Authorization: Basic x\r\n"
        "Keep_Alive: 5\r\nX_Yours: 2\r\n");
    for (std::string_view const name :
         {"X_Forwarded_For", "x-forwarded_for", "X_FORWARDED_PROTO", "X-Forwarded_Host",
          "X_Request_Id", "Proxy_Authorization", "Keep_Alive"}) {
        EXPECT_EQ(line_of(lines, name), "") << name;
    }
    EXPECT_EQ(line_of(lines, "x-forwarded-for"), "192.0.2.1|");
    EXPECT_EQ(line_of(lines, "X_Yours"), "2|");
}

// Behind the last chunk they would be the client's word, for an upstream that reads them there.
TEST(Forwarding, LeavesTheSameFieldsOutOfATrailer) {
    std::array<field, 32> table;
    auto const head = scan_request(
        "POST /x HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n"
        "Connection: X-Mine\r\n\r\n",
        {}, table);
    ASSERT_TRUE(head.has_value());
    std::array<field, 32> behind;
    auto const trailer = scan_trailer(
        "X-Forwarded-For: 192.0.2.7\r\nforwarded: for=192.0.2.7\r\nX-Forwarded-Host: evil\r\n"
        "X-Forwarded-Proto: https\r\nVia: 1.1 evil\r\nX-Request-Id: made-up\r\n"
        "Proxy-Authorization: Basic x\r\nX-Mine: 1\r\nX-Sum: 7\r\nX_Forwarded_For: 192.0.2.8\r\n"
        "\r\n",
        behind);
    ASSERT_TRUE(trailer.has_value());
    auto const kept = request_trailer(*head, *trailer);
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].name, "X-Sum");
}

// Real time: that it does not take long is what is asked.
TEST(Forwarding, AConnectionThatListsALotTakesNoLongTime) {
    constexpr std::size_t others = 10'000;
    std::string listed = "x-0";
    while (listed.size() < 500'000) listed += ",x-" + std::to_string(others);
    std::string block = "GET / HTTP/1.1\r\nHost: a\r\nConnection: " + listed + "\r\n";
    for (std::size_t i = 0; i < others; ++i) block += "X-" + std::to_string(i) + ": 1\r\n";
    block += "\r\n";
    limits const wide{.head = block.size(), .fields = others + 2};
    std::vector<field> table(wide.fields);
    auto const head = scan_request(block, wide, table);
    ASSERT_TRUE(head.has_value());
    auto const began = clock::now();
    request_text out;
    out.line(head->verb, head->path);
    add_request_fields(out, *head, from_v4);
    EXPECT_LT(clock::now() - began, std::chrono::seconds{3});
    std::string const text{out.seal().data()};
    EXPECT_EQ(text.find("X-0: "), std::string::npos);
    EXPECT_NE(text.find("X-1: "), std::string::npos);
}

TEST(Forwarding, KeepsHostThoughConnectionListsIt) {
    EXPECT_EQ(line_of(passed_on("Connection: host\r\n"), "host"), "example.com|");
}

TEST(Forwarding, PassesAnUpgradeOn) {
    auto const lines = passed_on("Connection: Upgrade\r\nUpgrade: websocket\r\n");
    EXPECT_EQ(line_of(lines, "connection"), "upgrade|");
    EXPECT_EQ(line_of(lines, "upgrade"), "websocket|");
}

// Through a tunnel of HTTP/2 would go requests that nobody has looked at.
TEST(Forwarding, PassesNoOtherUpgradeOnThanWebSocket) {
    for (std::string_view const protocol :
         {"h2c", "H2C", "h2c, chat", "HTTP/2.0", "TLS/1.0", "websocket2", "chat"}) {
        auto const lines = passed_on(
            "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\nUpgrade: " +
            std::string{protocol} + "\r\n");
        EXPECT_EQ(line_of(lines, "connection"), "") << protocol;
        EXPECT_EQ(line_of(lines, "upgrade"), "") << protocol;
        EXPECT_EQ(line_of(lines, "HTTP2-Settings"), "") << protocol;
    }
    auto const several = passed_on("Connection: Upgrade\r\nUpgrade: h2c, WebSocket\r\n");
    EXPECT_EQ(line_of(several, "upgrade"), "websocket|");
    EXPECT_EQ(line_of(passed_on("HTTP2-Settings: AAMAAABk\r\n"), "HTTP2-Settings"), "")
        << "though Connection does not list it";
}

TEST(Forwarding, PassesTracesAndOtherFieldsOnAsTheyAre) {
    auto const lines = passed_on("traceparent: 00-0af7-b7ad-01\r\nX-A: 1\r\nX-A: 2\r\n");
    EXPECT_EQ(line_of(lines, "traceparent"), "00-0af7-b7ad-01|");
    EXPECT_EQ(line_of(lines, "X-A"), "1|2|");
}

TEST(Forwarding, PassesASoundRequestIdOn) {
    EXPECT_EQ(line_of(passed_on("X-Request-Id: abc-123\r\n"), "x-request-id"), "abc-123|");
}

TEST(Forwarding, MakesARequestIdIfThereIsNoneOrNoSoundOne) {
    std::set<std::string> seen;
    std::string const long_id(129, 'a');
    for (std::string const& sent :
         std::vector<std::string>{"", "X-Request-Id: a b\r\n", "X-Request-Id: \"q\"\r\n",
                                  "X-Request-Id:\r\n", "X-Request-Id: " + long_id + "\r\n"}) {
        std::string const id = line_of(passed_on(sent), "x-request-id");
        EXPECT_EQ(id.size(), 33U) << sent;
        EXPECT_EQ(id.find_first_not_of("0123456789abcdef|"), std::string::npos);
        EXPECT_TRUE(seen.insert(id).second);
    }
}

TEST(Forwarding, OfAResponseLeavesOutTheFieldsOfTheConnection) {
    std::string const block =
        "HTTP/1.0 200 OK\r\nConnection: x-mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nServer: s\r\n"
        "Content-Length: 3\r\nVia: 1.1 a\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n";
    std::array<field, 32> table;
    auto const head = scan_response(block, {}, table, false);
    ASSERT_TRUE(head.has_value());
    response_text out;
    out.clear();
    out.status(head->status);
    add_response_fields(out, *head, "rondo");
    std::string const text{out.seal().data()};
    EXPECT_EQ(text,
              "HTTP/1.1 200 OK\r\nServer: s\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
              "via: 1.1 a, 1.0 rondo\r\n\r\n");
}

}  // namespace
}  // namespace rondo::http::detail
