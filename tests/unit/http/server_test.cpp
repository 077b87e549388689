#include "rondo/http/server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "rondo/core/stop.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/with_timeout.hpp"
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
std::string const last_get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

task<void> hello(exchange* x) {
    x->answer().add("content-type", "text/plain");
    (void)co_await x->send("hello");
}

// Reads everything, and says it back with its length.
task<void> echo(exchange* x) {
    std::string all;
    for (;;) {
        auto const piece = co_await x->read();
        if (!piece) co_return;
        if (piece->empty()) break;
        all += *piece;
    }
    for (field const& f : x->trailers()) all += std::string{f.name} + "=" + std::string{f.value};
    (void)co_await x->send(all);
}

// Streams everything back as it comes.
task<void> pass_back(exchange* x) {
    for (;;) {
        auto const piece = co_await x->read();
        if (!piece) co_return;
        if (piece->empty()) break;
        auto const written = co_await x->write(*piece);
        if (!written) co_return;
    }
    field const trailer[] = {{"x-end", "yes"}};
    (void)co_await x->finish(trailer);
}

TEST(Server, AnswersARequest) {
    served s{hello};
    std::string const answer = s.answer_to(last_get);
    EXPECT_EQ(status_in(answer), 200);
    EXPECT_EQ(body_in(answer), "hello");
    EXPECT_NE(answer.find("content-length: 5\r\n"), std::string::npos);
    EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos);
    EXPECT_NE(answer.find("date: "), std::string::npos);
    EXPECT_NE(answer.find("content-type: text/plain\r\n"), std::string::npos);
}

TEST(Server, KeepsAConnectionForFurtherRequests) {
    served s{hello};
    wire w = s.dial();
    for (int i = 0; i < 5; ++i) {
        w.say(get);
        EXPECT_EQ(body_in(w.hear_message()), "hello");
    }
    EXPECT_EQ(s.server().measure().accepted, 1U);
    EXPECT_EQ(s.server().measure().requests, 5U);
}

TEST(Server, AnswersPipelinedRequestsInTheirOrder) {
    served s{echo};
    std::string all;
    for (int i = 0; i < 200; ++i) {
        std::string const n = std::to_string(i);
        all += "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(n.size()) +
               "\r\n\r\n" + n;
    }
    wire w = s.dial();
    w.say(all);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(body_in(w.hear_message()), std::to_string(i));
}

TEST(Server, ReadsARequestThatComesByteByByte) {
    served s{echo};
    wire w = s.dial();
    for (char const c :
         std::string{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n0\r\nX: y\r\n\r\n"}) {
        w.say({&c, 1});
    }
    EXPECT_EQ(body_in(w.hear_message()), "abcX=y");
}

TEST(Server, StreamsABodyOfUnknownLengthInChunks) {
    served s{pass_back};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    std::string const answer = w.hear_until("x-end: yes\r\n\r\n");
    EXPECT_NE(answer.find("transfer-encoding: chunked\r\n"), std::string::npos);
    EXPECT_EQ(body_in(answer), "5\r\nhello\r\n0\r\nx-end: yes\r\n\r\n");
    w.say(get);
    EXPECT_EQ(status_in(w.hear_until("0\r\n")), 200) << "the connection goes on";
}

TEST(Server, StreamsUntilTheEndOfTheConnectionToHttp10) {
    served s{pass_back};
    std::string const answer =
        s.answer_to("POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(answer.find("transfer-encoding"), std::string::npos);
    EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos);
    EXPECT_EQ(body_in(answer), "hello");
}

TEST(Server, KeepsAConnectionOfHttp10ThatAsksForIt) {
    served s{hello};
    wire w = s.dial();
    w.say("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_NE(w.hear_message().find("connection: keep-alive\r\n"), std::string::npos);
    w.say("GET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(body_in(w.hear_all()), "hello");
}

TEST(Server, SendsNoBodyToHead) {
    served s{hello};
    wire w = s.dial();
    w.say("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    std::string const head = w.hear_until("\r\n\r\n");
    EXPECT_NE(head.find("content-length: 5\r\n"), std::string::npos);
    w.say(last_get);
    EXPECT_TRUE(w.hear_all().starts_with("HTTP/1.1 200 OK\r\n")) << "nothing was in between";
}

TEST(Server, SendsNoBodyWith204And304) {
    served s{[](exchange* x) -> task<void> {
        x->answer().status(x->head().path == "/204" ? 204 : 304);
        (void)co_await x->send();
    }};
    wire w = s.dial();
    for (char const* const path : {"/204", "/304"}) {
        w.say(std::string{"GET "} + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
        std::string const head = w.hear_until("\r\n\r\n");
        EXPECT_EQ(std::to_string(status_in(head)), path + 1);
        EXPECT_EQ(head.find("transfer-encoding"), std::string::npos);
        EXPECT_EQ(head.find("content-length"), std::string::npos) << "it is not that of the 200";
    }
}

TEST(Server, SaysContinueWhenTheHandlerBeginsToRead) {
    served s{echo};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(w.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    w.say("ok");
    EXPECT_EQ(body_in(w.hear_message()), "ok");
}

TEST(Server, DoesNotSayContinueWhenTheHandlerDoesNotRead) {
    served s{hello};
    std::string const answer = s.answer_to(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(status_in(answer), 200);
    EXPECT_EQ(body_in(answer), "hello") << "and the connection ends: the body may come or not";
}

// It cannot be known whether the body comes, or where it ends: nothing is read behind it.
TEST(Server, SaysThatTheConnectionEndsIfTheBodyCannotBeReadToItsEnd) {
    served s{hello};
    EXPECT_NE(s.answer_to("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                          "Content-Length: 2\r\n\r\n")
                  .find("connection: close\r\n"),
              std::string::npos);
    served answering{[](exchange* x) -> task<void> {
        auto const piece = co_await x->read();
        x->answer().status(piece ? 200 : 422);
        (void)co_await x->send("so be it");
    }};
    std::string const answer = answering.answer_to(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n");
    EXPECT_EQ(status_in(answer), 422);
    EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos);
}

TEST(Server, DropsABodyThatNobodyReads) {
    served s{hello};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" +
          std::string(100000, 'x'));
    EXPECT_EQ(body_in(w.hear_message()), "hello");
    w.say(get);
    EXPECT_EQ(body_in(w.hear_message()), "hello");
}

TEST(Server, EndsTheConnectionRatherThanToDropTooMuch) {
    served s{hello};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" +
          std::string(400000, 'x'));
    EXPECT_EQ(body_in(w.hear_message()), "hello");
    w.say_no_more();
    EXPECT_EQ(w.hear_all(), "");
}

// What is closed while something is unread is reset, and what was sent is lost.
TEST(Server, LosesNoAnswerThatIsTheLastThoughARequestFollows) {
    notify begun;
    notify go_on;
    notify sent;
    std::string const large(1'000'000, 'a');  // more than the client's system takes unasked
    served s{[&](exchange* x) {
        return
            [](exchange* on, std::string_view body, notify* b, notify* g, notify* e) -> task<void> {
                b->notify_one();
                co_await g->notified();
                on->answer().close();
                (void)co_await on->send(body);
                e->notify_one();
            }(x, large, &begun, &go_on, &sent);
    }};
    wire w = s.dial();
    w.say(get);
    begun.blocking_notified();
    w.say(get);
    go_on.notify_one();
    sent.blocking_notified();
    EXPECT_EQ(body_in(w.hear_all()).size(), large.size());
}

TEST(Server, PassesALargeBodyThroughInBothDirections) {
    served s{pass_back};
    std::string big;
    for (int i = 0; big.size() < 3'000'000; ++i) big += std::to_string(i);
    wire w = s.dial();
    std::thread writer{[&] {
        w.say("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " +
              std::to_string(big.size()) + "\r\n\r\n");
        w.say(big);
    }};
    std::string const answer = body_in(w.hear_all());
    writer.join();
    std::string decoded;
    for (std::size_t at = 0; at < answer.size();) {
        std::size_t const size = std::stoul(answer.substr(at), nullptr, 16);
        at = answer.find("\r\n", at) + 2;
        if (size == 0) break;
        decoded += answer.substr(at, size);
        at += size + 2;
    }
    EXPECT_TRUE(decoded == big);
}

TEST(Server, AnswersForAHandlerThatThrows) {
    std::atomic<int> told{0};
    served s{[](exchange*) -> task<void> {
                 throw std::runtime_error{"no"};
                 co_return;
             },
             {.on_failure = [&told](std::exception_ptr) { ++told; }}};
    EXPECT_EQ(status_in(s.answer_to(get)), 500);
    EXPECT_EQ(told.load(), 1);
}

TEST(Server, AnswersForAHandlerThatDoesNot) {
    served s{[](exchange*) -> task<void> { co_return; }};
    EXPECT_EQ(status_in(s.answer_to(get)), 500);
}

TEST(Server, CutsAnAnswerThatIsShorterThanItPromised) {
    served s{[](exchange* x) -> task<void> {
        x->answer().length(10);
        (void)co_await x->write("short");
    }};
    EXPECT_EQ(body_in(s.answer_to(get + get)), "short") << "and nothing is taken for the rest";
}

task<void> ask_to_stop(stop_source* what) {
    what->request_stop();
    co_return;
}

// An answer that is too long to be sent at once, and is left off when that has been tried.
task<void> leave_off(exchange* x, task<exchange::done> sending) {
    stop_source enough;
    auto const both =
        co_await when_all(with_stop(std::move(sending), enough.token()), ask_to_stop(&enough));
    EXPECT_FALSE(std::get<0>(both)) << "it was not stopped, but sent";
    // What some handlers do, come what may.
    if (x->head().path == "/ends") {
        auto const ended = co_await x->finish();
        EXPECT_FALSE(ended);
    }
}

// The next answer would come where the rest of this one is expected.
void expect_cut(served& s, std::string const& path, std::string_view last = "m") {
    wire w = s.dial();
    w.say("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    w.hear_until("\r\n\r\n");
    w.say(last_get);
    std::string const rest = w.hear_all();
    EXPECT_EQ(rest.find("HTTP/1.1"), std::string::npos) << "another answer";
    EXPECT_TRUE(rest.ends_with(last)) << "a last chunk";
}

// A file with that in it, and without a name.
int file_of(std::string_view text) {
    char name[] = "/tmp/rondo_http_XXXXXX";
    int const file = ::mkstemp(name);
    ::unlink(name);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return file;
}

TEST(Server, CutsAnAnswerThatWasLeftOff) {
    std::string const much(std::size_t{32} << 20, 'm');
    served with_length{[&much](exchange* x) { return leave_off(x, x->send(much)); }};
    served in_chunks{[&much](exchange* x) { return leave_off(x, x->write(much)); }};
    int const file = file_of(much);
    std::size_t const size = much.size();
    served of_file{[=](exchange* x) { return leave_off(x, x->send_file(file, 0, size)); }};
    for (served* const s : {&with_length, &in_chunks, &of_file}) {
        expect_cut(*s, "/");
        expect_cut(*s, "/ends");
        auto const report = s->rt().block_on(s->server().survey());
        EXPECT_EQ(report->answers[0], 2U);
        EXPECT_EQ(report->totals.requests, 2U);
    }
    ::close(file);
}

// As a layer does that gives handlers so much time and no more.
TEST(Server, CutsAnAnswerThatWasLeftOffBetweenTwoChunks) {
    served s{[](exchange* x) -> task<void> {
        stop_source enough;
        auto const begin = [](exchange* of, stop_source* end) -> task<void> {
            (void)co_await of->write("m");
            end->request_stop();
            co_await sleep_for(1h);
            (void)co_await of->finish();
        };
        auto handler = begin(x, &enough);
        (void)co_await with_stop(std::move(handler), enough.token());
    }};
    expect_cut(s, "/", "m\r\n");
    EXPECT_EQ(s.rt().block_on(s.server().survey())->answers[0], 1U);
}

// Reads no more of a body that does not come, thinks for a while, and answers.
task<void> answer_without_body(exchange* x, std::string_view answer) {
    stop_source enough;
    auto const both = co_await when_all(with_stop(x->read(), enough.token()), ask_to_stop(&enough));
    EXPECT_FALSE(std::get<0>(both));
    // real time: the deadline of the read has to pass
    co_await sleep_for(100ms);
    (void)co_await x->send(answer);
}

TEST(Server, AReadThatWasLeftOffLeavesNoDeadline) {
    std::string const much(std::size_t{32} << 20, 'm');  // more than the system takes unasked
    served s{[&much](exchange* x) { return answer_without_body(x, much); }, {.read_timeout = 20ms}};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    EXPECT_EQ(body_in(w.hear_message()).size(), much.size());
}

TEST(Server, TurnsAConnectionIntoATunnel) {
    served s{[](exchange* x) -> task<void> {
        x->answer().add("upgrade", x->head().upgrade);
        auto const upgraded = co_await x->upgrade();
        if (!upgraded) co_return;
        for (;;) {
            auto const piece = co_await x->read();
            if (!piece || piece->empty()) break;
            (void)co_await x->write(*piece);
        }
        (void)co_await x->write("bye");
        (void)co_await x->finish();
    }};
    wire w = s.dial();
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
    std::string const head = w.hear_until("\r\n\r\n");
    EXPECT_EQ(status_in(head), 101);
    EXPECT_NE(head.find("upgrade: echo\r\n"), std::string::npos);
    EXPECT_NE(head.find("connection: upgrade\r\n"), std::string::npos);
    EXPECT_EQ(w.hear(5), "early");
    w.say("late");
    EXPECT_EQ(w.hear(4), "late");
    w.say_no_more();
    EXPECT_EQ(w.hear_all(), "bye");
}

// The time becomes short when it is only there to pass: who dials and is held up before it says
// something would be late by itself.
TEST(Server, EndsAConnectionWhoseHeadDoesNotComeInTime) {
    served s{hello};
    wire w = s.dial();
    w.say(get);
    EXPECT_EQ(body_in(w.hear_message()), "hello");
    s.rt().block_on(s.server().adjust({.head_timeout = 50ms}));
    w.say("GET / HTTP/1.1\r\nHost:");
    EXPECT_EQ(status_in(w.hear_all()), 408);
    EXPECT_EQ(s.server().measure().refused, 1U);
    EXPECT_EQ(s.server().measure().requests, 1U);
}

TEST(Server, EndsAConnectionThatIsIdleForTooLong) {
    served s{hello, {.idle_timeout = 50ms}};
    wire w = s.dial();
    w.say(get);
    EXPECT_EQ(body_in(w.hear_all()), "hello");
}

// Both are looked after by one task: when that has closed the one, it has seen the other.
TEST(Server, KeepsAConnectionForEverIfItIsToldTo) {
    server_options o;
    o.idle_timeout = o.read_timeout = o.write_timeout = clock::duration::max();
    served s{hello, o, 1};
    wire idle = s.dial();
    idle.say(get);
    EXPECT_EQ(body_in(idle.hear_message()), "hello");
    o.head_timeout = 50ms;  // not before: the one that is kept has said something
    s.rt().block_on(s.server().adjust(o));
    EXPECT_EQ(s.dial().hear_all(), "");
    idle.say(get);
    EXPECT_EQ(body_in(idle.hear_message()), "hello");
}

TEST(Server, EndsAConnectionWhoseBodyStops) {
    served s{echo, {.read_timeout = 50ms}};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    EXPECT_EQ(status_in(w.hear_all()), 408);
}

TEST(Server, RefusesNobodyWhoWentInTheMiddleOfABody) {
    served s{echo};
    EXPECT_EQ(s.answer_to("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"), "");
    EXPECT_EQ(s.server().measure().requests, 1U);
    EXPECT_EQ(s.server().measure().refused, 0U);
}

TEST(Server, TheTimeOfAWriteDoesNotEndAConnectionThatIsIdle) {
    served s{hello, {.write_timeout = 40ms}};
    wire w = s.dial();
    for (int i = 0; i < 3; ++i) {
        w.say(get);
        EXPECT_EQ(body_in(w.hear_message()), "hello");
        // real time: it has to be idle for longer than that
        std::this_thread::sleep_for(60ms);
    }
}

TEST(Server, CutsAnAnswerThatNobodyTakes) {
    std::string const much(std::size_t{64} << 20, 'm');
    notify given_up;
    served s{[&](exchange* x) -> task<void> {
                 return [](exchange* on, std::string const* body, notify* end) -> task<void> {
                     auto const sent = co_await on->send(*body);
                     EXPECT_TRUE(!sent && sent.error().kind == failure_kind::timed_out);
                     end->notify_one();
                 }(x, &much, &given_up);
             },
             {.write_timeout = 50ms}};
    wire w = s.dial();
    w.say(get);
    given_up.blocking_notified();
    EXPECT_LT(w.hear_all().size(), much.size());
}

TEST(Server, HoldsTheExcessInTheBacklog) {
    served s{hello, {.max_connections = 1}};
    wire first = s.dial();
    first.say(get);
    EXPECT_EQ(body_in(first.hear_message()), "hello");
    wire second = s.dial();
    second.say(get);
    first.say(get);
    EXPECT_EQ(body_in(first.hear_message()), "hello");
    EXPECT_EQ(s.server().measure().accepted, 1U);
    first.close();
    EXPECT_EQ(body_in(second.hear_message()), "hello");
}

TEST(Server, ClosesWhatIsTooMuchFromOneAddress) {
    served s{hello, {.max_connections_per_address = 1}};
    wire first = s.dial();
    first.say(get);
    EXPECT_EQ(body_in(first.hear_message()), "hello");
    wire second = s.dial();
    EXPECT_EQ(second.hear_all(), "");
}

// Those that were there before there was a limit are of that address, too.
TEST(Server, CountsAllConnectionsOfAnAddressWhenALimitIsSet) {
    served s{hello};
    wire first = s.dial();
    first.say(get);
    EXPECT_EQ(body_in(first.hear_message()), "hello");
    s.rt().block_on(s.server().adjust({.max_connections_per_address = 1}));
    wire second = s.dial();
    second.say(get);
    EXPECT_EQ(second.hear_all(), "");
}

TEST(Server, SaysWhichAddressItCannotListenAt) {
    served s{hello};
    runtime rt{{.workers = 1}};
    server other{rt, {.listen = {{test::loopback()}, {test::loopback(s.port())}}}, hello};
    auto const started = other.start();
    ASSERT_FALSE(started.has_value());
    EXPECT_EQ(started.error().address.port(), s.port());
    EXPECT_NE(started.error().reason, "");
    EXPECT_TRUE(other.addresses().empty());
}

// Says that there is more in a file than there is; and ends the answer, come what may.
task<void> send_more_than_there_is(exchange* x, int file, std::uint64_t size) {
    if (x->head().path == "/length") x->answer().length(size + 1);
    auto const sent = co_await x->write_file(file, 0, size + 1);
    EXPECT_FALSE(sent);
    auto const ended = co_await x->finish();
    EXPECT_FALSE(ended);
}

std::string const get_length = "GET /length HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(Server, CutsAnAnswerWhoseFileHasShrunk) {
    std::string const text(100'000, 'm');
    int const file = file_of(text);
    {
        served s{[&](exchange* x) { return send_more_than_there_is(x, file, text.size()); }};
        EXPECT_EQ(body_in(s.answer_to(get_length)), text);
        EXPECT_TRUE(s.answer_to(get).ends_with("m\r\n")) << "a last chunk";
        EXPECT_EQ(s.rt().block_on(s.server().survey())->answers[0], 2U);
    }
    ::close(file);
}

TEST(Server, CutsAnAnswerWhoseFileCannotBeRead) {
    int const none = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(none, 0);
    {
        served s{[&](exchange* x) { return send_more_than_there_is(x, none, 10); }};
        EXPECT_EQ(body_in(s.answer_to(get_length)), "");
        EXPECT_EQ(body_in(s.answer_to(get)), "");
        EXPECT_EQ(s.rt().block_on(s.server().survey())->answers[0], 2U);
    }
    ::close(none);
}

TEST(Server, SendsAPartOfAFile) {
    std::string big;
    for (int i = 0; big.size() < 5'000'000; ++i) big += std::to_string(i) + "\n";
    int const file = file_of(big);
    std::size_t const size = big.size() - 20;
    {
        served s{[file, size](exchange* x) {
            return [](exchange* on, int f, std::size_t n) -> task<void> {
                (void)co_await on->send_file(f, 10, n);
            }(x, file, size);
        }};
        wire w = s.dial();
        w.say(get);
        EXPECT_TRUE(body_in(w.hear_message()) == big.substr(10, size));
        w.say("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_NE(w.hear_until("\r\n\r\n").find("content-length: " + std::to_string(size)),
                  std::string::npos);
    }
    ::close(file);
}

}  // namespace
}  // namespace rondo::http
