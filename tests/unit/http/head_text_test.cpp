#include "rondo/http/head_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rondo::http {
namespace {

TEST(ResponseText, IsWrittenInTheOrderOfTheCalls) {
    response_text r;
    r.clear();
    r.add("a", "1");
    r.status(404);
    r.add("b", std::uint64_t{22});
    EXPECT_EQ(r.seal().data(), "HTTP/1.1 404 Not Found\r\na: 1\r\nb: 22\r\n\r\n");
}

TEST(ResponseText, NoValueCanEndItsLine) {
    response_text r;
    r.clear();
    r.status(200, "fine\r\nX: y");
    r.add("location", std::string{"/\r\nSet-Cookie: a\0b", 18});
    EXPECT_EQ(r.seal().data(), "HTTP/1.1 200 fine  X: y\r\nlocation: /  Set-Cookie: a b\r\n\r\n");
}

TEST(ResponseText, GrowsWithItsFields) {
    response_text r;
    r.clear();
    std::string expected = "HTTP/1.1 200 OK\r\n";
    std::string const value(1000, 'v');
    for (int i = 0; i < 100; ++i) {
        r.add("x", value);
        expected += "x: " + value + "\r\n";
    }
    EXPECT_EQ(r.seal().data(), expected + "\r\n");
}

TEST(RequestText, BeginsWithItsLine) {
    request_text r;
    r.line("PUT", "/a?b");
    r.length(3);
    r.add_framing(framing::length);
    EXPECT_EQ(r.method(), method::put);
    EXPECT_EQ(r.seal().data(), "PUT /a?b HTTP/1.1\r\ncontent-length: 3\r\n\r\n");
}

}  // namespace
}  // namespace rondo::http
