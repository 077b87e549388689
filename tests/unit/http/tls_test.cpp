// A server over TLS: where it does things in other ways than without.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "rondo/http/server.hpp"
#include "rondo/sync/notify.hpp"
#include "tls_wire.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;
using test::body_in;
using test::served;
using test::status_in;
using test::tls_wire;
using test::wire;

std::string const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

task<void> hello(exchange* x) { (void)co_await x->send("hello"); }

// The first door is over TLS, the second one is not.
server_options two_doors(server_options o = {}) {
    o.listen.push_back({test::loopback(), test::server_secrets()});
    o.listen.push_back({test::loopback()});
    return o;
}

wire dial_plain(served& s) { return wire{s.server().addresses().at(1).port()}; }

TEST(ServerOverTls, KeepsAConnectionForFurtherRequests) {
    served s{hello, two_doors()};
    tls_wire w{s.port()};
    for (int i = 0; i < 3; ++i) {
        w.say(get);
        EXPECT_EQ(body_in(w.hear_some(1000)), "hello");
    }
}

// A record that has come in part, though nothing of what it says: for the client it is sent.
TEST(ServerOverTls, AnswersARequestOfWhichHalfARecordHadComeAtTheStop) {
    served s{hello, two_doors(), 1};
    wire idle = dial_plain(s);
    tls_wire w{s.port()};
    w.say(get);
    EXPECT_EQ(status_in(w.hear_some(1000)), 200);
    std::string const record = w.record_of(get);
    w.below().say(std::string_view{record}.substr(0, record.size() / 2));
    std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(30s), 0U); }};
    EXPECT_EQ(idle.hear_all(), "");  // then all connections of its worker were told
    w.below().say(std::string_view{record}.substr(record.size() / 2));
    std::string const answer = w.hear_all();
    EXPECT_EQ(status_in(answer), 200);
    EXPECT_EQ(body_in(answer), "hello");
    stopper.join();
}

// Real time: that it does not take all of it is what is asked.
TEST(ServerOverTls, StopsThoughSomebodyHasNotBegunTheHandshake) {
    served s{hello, two_doors({.head_timeout = 20s})};
    wire silent = s.dial();
    while (s.server().measure().accepted == 0) std::this_thread::yield();
    auto const began = clock::now();
    EXPECT_EQ(s.server().blocking_stop(30s), 0U);
    EXPECT_LT(clock::now() - began, 10s);
    EXPECT_EQ(silent.hear_all(), "");
}

// What a client reads with pauses, each of which is short, is not cut however long it takes.
TEST(ServerOverTls, HasTheTimeOfAWriteForEachStepAndNotForAPiece) {
    constexpr clock::duration patience = 2s;
    std::string const much(std::size_t{64} << 20, 'm');
    served s{[&much](exchange* x) -> task<void> {
                 return [](exchange* on, std::string const* body) -> task<void> {
                     auto const sent = co_await on->send(*body);
                     EXPECT_TRUE(sent);
                 }(x, &much);
             },
             two_doors({.write_timeout = patience})};
    tls_wire w{s.port()};
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    auto const began = clock::now();
    std::size_t heard = 0;
    // real time: it has to take longer than one step may
    while (clock::now() - began < 2 * patience) {
        heard += w.hear(std::size_t{256} * 1024).size();
        std::this_thread::sleep_for(20ms);
    }
    heard += w.hear_all().size();
    EXPECT_GT(heard, much.size());
}

// As without TLS: the head of an answer whose body will not come would be all that the client gets.
TEST(ServerOverTls, SendsNothingOfAFileThatIsLongerThanWhatWasPromised) {
    int const file = ::memfd_create("too long", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, 8), 0);
    {
        served s{[file](exchange* x) {
                     return [](exchange* on, int f) -> task<void> {
                         on->answer().length(5);
                         auto const sent = co_await on->write_file(f, 0, 8);
                         EXPECT_FALSE(sent);
                         EXPECT_FALSE(on->answered());
                     }(x, file);
                 },
                 two_doors()};
        for (std::string const method : {"GET", "HEAD"}) {
            tls_wire w{s.port()};
            w.say(method + " / HTTP/1.1\r\nHost: a\r\n\r\n");
            EXPECT_EQ(status_in(w.hear_all()), 500);
        }
    }
    ::close(file);
}

TEST(ServerOverTls, CutsAnAnswerThatNobodyTakes) {
    std::string const much(std::size_t{64} << 20, 'm');
    notify given_up;
    served s{[&](exchange* x) -> task<void> {
                 return [](exchange* on, std::string const* body, notify* end) -> task<void> {
                     auto const sent = co_await on->send(*body);
                     EXPECT_TRUE(!sent && sent.error().kind == failure_kind::timed_out);
                     end->notify_one();
                 }(x, &much, &given_up);
             },
             two_doors({.write_timeout = 50ms})};
    tls_wire w{s.port()};
    w.say(get);
    given_up.blocking_notified();
    EXPECT_LT(w.hear_all().size(), much.size());
}

TEST(ServerOverTls, CountsOfAPieceWhatWasSent) {
    std::string const much(std::size_t{64} << 20, 'm');
    notify ended;
    std::uint64_t sent = 0;
    served s{[&](exchange* x) {
                 return [](exchange* on, std::string_view text, notify* end,
                           std::uint64_t* count) -> task<void> {
                     (void)co_await on->write(text);
                     *count = on->sent();
                     end->notify_one();
                 }(x, much, &ended, &sent);
             },
             two_doors()};
    {
        tls_wire w{s.port()};
        w.say(get);
        w.hear(1000);
    }
    ended.blocking_notified();
    EXPECT_GE(sent, 1U);
    EXPECT_LT(sent, much.size());
}

}  // namespace
}  // namespace rondo::http
