// How connections end: what a client has sent, and what it has got, when they do.
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "rondo/core/when_all.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/notify.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;
using test::body_in;
using test::served;
using test::status_in;
using test::wire;

std::string const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

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

// Ends a tunnel in which the client is still speaking.
TEST(Ending, LosesNothingOfATunnelThatWasFinished) {
    std::string const much(1'000'000, 'm');  // more than the client's system takes unasked
    notify begun;
    notify go_on;
    served s{[&](exchange* x) {
        return [](exchange* on, std::string_view text, notify* b, notify* g) -> task<void> {
            (void)co_await on->upgrade();
            b->notify_one();
            co_await g->notified();
            (void)co_await on->write(text);
            (void)co_await on->finish();
        }(x, much, &begun, &go_on);
    }};
    wire w = s.dial();
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: talk\r\n\r\n");
    EXPECT_EQ(status_in(w.hear_until("\r\n\r\n")), 101);
    begun.blocking_notified();
    w.say("not heard");
    w.say_no_more();
    go_on.notify_one();
    while (s.server().measure().connections != 0) std::this_thread::yield();
    EXPECT_EQ(w.hear_all().size(), much.size());
}

// Speaks for long while it hears nothing.
TEST(Ending, ATunnelIsAliveWhileAPieceIsBeingTaken) {
    constexpr clock::duration patience = 2s;
    std::string const much(std::size_t{64} << 20, 'm');
    auto const listen = [](exchange* x) -> task<void> { (void)co_await x->read(); };
    auto const speak = [](exchange* x, std::string_view text) -> task<void> {
        auto const sent = co_await x->write(text);
        EXPECT_TRUE(sent);
        (void)co_await x->finish();
    };
    served s{[&](exchange* x) {
                 return [](exchange* on, std::string_view text, auto hear, auto say) -> task<void> {
                     (void)co_await on->upgrade();
                     co_await when_all(hear(on), say(on, text));
                 }(x, much, listen, speak);
             },
             {.read_timeout = patience}};
    wire w = s.dial();
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: talk\r\n\r\n");
    w.hear_until("\r\n\r\n");
    auto const began = clock::now();
    std::size_t heard = 0;
    // real time: it has to take longer than nothing may come
    while (clock::now() - began < 2 * patience) {
        heard += w.hear(std::size_t{128} * 1024).size();
        std::this_thread::sleep_for(20ms);
    }
    w.say_no_more();
    heard += w.hear_all().size();
    EXPECT_EQ(heard, much.size());
}

// Whoever ends a message is told whether all of it was sent.
TEST(Ending, AnAnswerWhoseClientHasGoneIsNotWholeThoughItIsFinished) {
    std::string const much(std::size_t{64} << 20, 'm');
    notify ended;
    served s{[&](exchange* x) {
        return [](exchange* on, std::string_view text, notify* e) -> task<void> {
            on->answer().length(text.size() + 1);
            auto const some = co_await on->write(text.substr(0, 1));
            EXPECT_TRUE(some);
            co_await on->gone();
            auto const rest = co_await on->write(text);
            EXPECT_FALSE(rest);
            auto const whole = co_await on->finish();
            EXPECT_FALSE(whole);
            e->notify_one();
        }(x, much, &ended);
    }};
    wire w = s.dial();
    w.say(get);
    w.hear_until("\r\n\r\n");
    linger const at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(w.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    w.close();
    ended.blocking_notified();
    while (s.server().measure().connections != 0) std::this_thread::yield();
    EXPECT_EQ(s.rt().block_on(s.server().survey())->answers[0], 1U);
}

}  // namespace
}  // namespace rondo::http
