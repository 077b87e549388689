// How connections end: what a client has sent, and what it has got, when they do.
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
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

// What a layer throws that writes a log, say.
TEST(Ending, AnAnswerThatWasWholeStaysSoThoughItsHandlerThrows) {
    served s{[](exchange* x) -> task<void> {
                 (void)co_await x->write("hello");
                 (void)co_await x->finish();
                 throw std::runtime_error{"no room for the log"};
             },
             {.on_failure = [](std::exception_ptr) {}}};
    wire w = s.dial();
    w.say("GET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(body_in(w.hear_until("hello")), "hello");
    char more = 0;
    EXPECT_EQ(::recv(w.fd(), &more, 1, 0), 0) << "a reset: it seems to be half of one";
    EXPECT_EQ(s.rt().block_on(s.server().survey())->answers[2], 1U);
}

}  // namespace
}  // namespace rondo::http
