// How connections end: what a client has sent, and what it has got, when they do.
#include <gtest/gtest.h>

#include <string>

#include "rondo/http/server.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using test::body_in;
using test::served;
using test::wire;

task<void> hello(exchange* x) { (void)co_await x->send("hello"); }

// It says all it has to say before it listens, as many do.
TEST(Ending, LosesNoAnswerThoughMuchOfTheBodyIsStillToCome) {
    served s{hello};
    constexpr std::size_t much = std::size_t{16} << 20;
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(much) + "\r\n\r\n");
    EXPECT_TRUE(w.say(std::string(much, 'x'))) << "a reset";
    EXPECT_EQ(body_in(w.hear_all()), "hello");
}

}  // namespace
}  // namespace rondo::http
