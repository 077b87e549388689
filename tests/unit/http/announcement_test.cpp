// The PROXY protocol, byte by byte.
#include "rondo/http/detail/announcement.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace rondo::http::detail {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using namespace std::string_literals;
using announced = announcement::state;

std::string block(unsigned char command, unsigned char family, std::string const& rest) {
    std::string b = "\r\n\r\n\0\r\nQUIT\n"s;
    b += static_cast<char>(command);
    b += static_cast<char>(family);
    b += static_cast<char>(rest.size() >> 8U);
    b += static_cast<char>(rest.size() & 0xffU);
    return b + rest;
}

std::string const v4_addresses = "\xc0\x00\x02\x01\xc0\x00\x02\x02\x13\x88\x01\xbb"s;
std::string const v6_addresses = [] {
    std::string const ours = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x07";
    return ours + ours + "\x13\x88\x01\xbb"s;
}();

// The same however it is cut, and never asks for a byte of what follows.
announcement read_in_pieces(std::string const& text) {
    announcement const whole = read_announcement(text + "GET / HTTP/1.1\r\n");
    for (std::size_t n = 0; n < text.size(); ++n) {
        announcement const part = read_announcement(std::string_view{text}.substr(0, n));
        if (part.is == announced::malformed) {
            EXPECT_EQ(whole.is, announced::malformed) << n;
            return part;
        }
        if (part.is == announced::complete) {
            ADD_FAILURE() << "complete after " << n << " of " << text.size();
            return part;
        }
        EXPECT_GE(part.needed, 1U) << n;
        if (whole.is == announced::complete) {
            EXPECT_LE(n + part.needed, text.size()) << n;
        }
    }
    return whole;
}

void expect_client(std::string const& text, tcp::endpoint const& client) {
    announcement const a = read_in_pieces(text);
    ASSERT_EQ(a.is, announced::complete) << text;
    EXPECT_EQ(a.size, text.size());
    EXPECT_EQ(a.client, client);
}
void expect_nobody(std::string const& text) {
    announcement const a = read_in_pieces(text);
    ASSERT_EQ(a.is, announced::complete) << text;
    EXPECT_EQ(a.size, text.size());
    EXPECT_FALSE(a.client);
}
void expect_malformed(std::string const& text) {
    EXPECT_EQ(read_in_pieces(text).is, announced::malformed) << testing::PrintToString(text);
}

TEST(Announcement, ReadsALineOfText) {
    expect_client("PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n", {make_address("192.0.2.1"), 5000});
    expect_client("PROXY TCP6 2001:db8::7 2001:db8::1 65535 0\r\n",
                  {make_address("2001:db8::7"), 65535});
    expect_nobody("PROXY UNKNOWN\r\n");
    expect_nobody("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n");
}

TEST(Announcement, ReadsABlock) {
    tcp::endpoint const v4{make_address("192.0.2.1"), 5000};
    tcp::endpoint const v6{make_address("2001:db8::7"), 5000};
    expect_client(block(0x21, 0x11, v4_addresses), v4);
    expect_client(block(0x21, 0x21, v6_addresses), v6);
    expect_client(block(0x21, 0x11, v4_addresses + "\x04\x00\x02zz\xea\x00\x00"s), v4);
    expect_nobody(block(0x20, 0x00, ""));
    expect_nobody(block(0x20, 0x11, v4_addresses));
    expect_nobody(block(0x20, 0xff, "whatever"));
    expect_nobody(block(0x21, 0x00, "whatever"));
    expect_nobody(block(0x21, 0x31, std::string(216, 'u')));
}

TEST(Announcement, RefusesOtherLines) {
    for (char const* const line : {
             "GET / HTTP/1.1\r\n",
             "PROXY\r\n",
             "PROXX TCP4 ",
             "proxy TCP4 1.1.1.1 1.1.1.2 1 2\r\n",
             "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
             "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
             "PROXY TCP4 192.0.2.1  192.0.2.2 1 2\r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
             "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
             "PROXY TCP4 ::1 ::2 1 2\r\n",
             "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
             "PROXY TCP6 fe80::1%eth0 ::2 1 2\r\n",
             "PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n",
             "PROXY TCP4 192.0.2.1 x 1 2\r\n",
             "PROXY TCP4 0300.0.2.1 192.0.2.2 1 2\r\n",
         }) {
        expect_malformed(line);
    }
    EXPECT_EQ(read_announcement("PROXY UNKNOWN " + std::string(93, 'x')).is, announced::malformed);
}

TEST(Announcement, RefusesOtherBlocks) {
    expect_malformed(block(0x11, 0x11, v4_addresses));         // another version
    expect_malformed(block(0x22, 0x11, v4_addresses));         // another command
    expect_malformed(block(0x21, 0x12, v4_addresses));         // datagrams
    expect_malformed(block(0x21, 0x41, v4_addresses));         // another family
    expect_malformed(block(0x21, 0x11, "\xc0\x00\x02\x01"s));  // too short
    expect_malformed(block(0x21, 0x21, v4_addresses));
    expect_malformed(block(0x21, 0x11, v4_addresses + "\x04\x00"s));
    expect_malformed(block(0x21, 0x11, v4_addresses + "\x04\x00\x03zz"s));
    expect_malformed(block(0x20, 0x00, std::string(longest_announcement, 'x')));
    expect_malformed("\r\n\r\n\1"s);
}

}  // namespace
}  // namespace rondo::http::detail
