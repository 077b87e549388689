// What is sent of an answer: what is counted of it, and what it waits for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <semaphore>
#include <string>
#include <string_view>

#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/notify.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using test::body_in;
using test::served;
using test::status_in;
using test::wire;

std::string const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
std::string const last_get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

constexpr std::size_t much = std::size_t{64} << 20;  // more than the systems take unasked

// Of what nobody got nobody pays.
TEST(Sending, CountsOfAFileWhatWasSent) {
    int const file = ::memfd_create("much", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(much)), 0);
    {
        notify ended;
        std::atomic<std::uint64_t> sent{0};
        served s{[&](exchange* x) {
            return [](exchange* on, int f, notify* end,
                      std::atomic<std::uint64_t>* count) -> task<void> {
                (void)co_await on->send_file(f, 0, much);
                *count = on->sent();
                end->notify_one();
            }(x, file, &ended, &sent);
        }};
        wire w = s.dial();
        w.say("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        ended.blocking_notified();
        EXPECT_EQ(sent.load(), 0U);
        w.hear_until("\r\n\r\n");
        w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        w.hear(1000);
        w.close();  // while something is unread: a reset
        ended.blocking_notified();
        EXPECT_GE(sent.load(), 1U);
        EXPECT_LT(sent.load(), much);
    }
    ::close(file);
}

// Not the client. With sendfile() it is not known at first which side has failed.
TEST(Sending, AFileThatCannotBeReadIsNotTheFaultOfTheClient) {
    int const none = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(none, 0);
    {
        served s{[none](exchange* x) {
            return [](exchange* on, int f) -> task<void> {
                auto const sent = co_await on->send_file(f, 0, 8);
                EXPECT_FALSE(sent);
                if (sent) co_return;
                EXPECT_EQ(sent.error().source, party::us) << sent.error().reason;
            }(x, none);
        }};
        EXPECT_EQ(body_in(s.answer_to(last_get)), "");
    }
    ::close(none);
}

// The same of what is sent without a file, in one piece.
TEST(Sending, CountsOfAPieceWhatWasSent) {
    std::string const body(much, 'm');
    notify ended;
    std::atomic<std::uint64_t> sent{0};
    served s{[&](exchange* x) {
        return [](exchange* on, std::string_view text, notify* end,
                  std::atomic<std::uint64_t>* count) -> task<void> {
            if (on->head().path == "/chunks") {
                (void)co_await on->write(text);
            } else {
                (void)co_await on->send(text);
            }
            *count = on->sent();
            end->notify_one();
        }(x, body, &ended, &sent);
    }};
    for (std::string const path : {"/", "/chunks"}) {
        wire w = s.dial();
        w.say("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
        w.hear(1000);
        w.close();  // while something is unread: a reset
        ended.blocking_notified();
        EXPECT_GE(sent.load(), 1U);
        EXPECT_LT(sent.load(), much);
    }
}

// As are some of the kernel's own, and those of some file systems.
TEST(Sending, AFileIsSentAlsoIfTheSystemHasToCopyIt) {
    int const file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    char text[5] = {};
    ASSERT_EQ(::pread(file, text, 4, 1), 4);
    {
        served s{[file](exchange* x) {
            return [](exchange* on, int f) -> task<void> {
                auto const sent = co_await on->send_file(f, 1, 4);
                EXPECT_TRUE(sent);
                EXPECT_EQ(on->sent(), 4U);
            }(x, file);
        }};
        EXPECT_EQ(body_in(s.answer_to(last_get)), text);
    }
    ::close(file);
}

// What the system takes as fast as it comes is never waited for.
TEST(Sending, OthersHaveTheirTurnWhileAFileIsReadAndSent) {
    constexpr std::size_t enough = std::size_t{5} << 19;  // more than is sent in a row
    int const file = ::memfd_create("enough", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(enough)), 0);
    {
        std::atomic<bool> between{false};
        served s{[&](exchange* x) {
            return [](exchange* on, int f, std::atomic<bool>* met) -> task<void> {
                bool sent = false;
                auto const send = [](exchange* to, int from, bool* all) -> task<void> {
                    (void)co_await to->write_file(from, 0, enough);
                    *all = true;
                };
                auto const look = [](bool const* all, std::atomic<bool>* some) -> task<void> {
                    *some = !*all;
                    co_return;
                };
                co_await when_all(send(on, f, &sent), look(&sent, met));
                (void)co_await on->finish();
            }(x, file, &between);
        }};
        wire w = s.dial();
        w.say(last_get);
        EXPECT_GT(w.hear_all().size(), enough);
        EXPECT_TRUE(between.load());
    }
    ::close(file);
}

// Hints that have to wait, and an answer at a moment in which it could be sent.
class hasty {
  public:
    handler serve() {
        return [this](exchange* x) { return answer(x, this); };
    }

    std::binary_semaphore waits{0};  // the hints do
    std::binary_semaphore go_on{0};

  private:
    static task<void> answer(exchange* x, hasty* h) {
        response_text hints;
        hints.status(103);
        hints.add("x-much", std::string(much / 4, 'm'));
        co_await when_all(x->inform(&hints), send(x, h));
    }
    // In the way of its worker: nobody else learns that there is room again.
    static task<void> send(exchange* x, hasty* h) {
        h->waits.release();
        h->go_on.acquire();
        (void)co_await x->send("hello");
    }
};

TEST(Sending, AnAnswerWaitsForTheHintsBeforeIt) {
    hasty h;
    served s{h.serve()};
    wire w = s.dial();
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    h.waits.acquire();
    std::string all;
    char some[16384];
    for (ssize_t n = 0; (n = ::recv(w.fd(), some, sizeof some, MSG_DONTWAIT)) > 0;) {
        all.append(some, static_cast<std::size_t>(n));
    }
    h.go_on.release();
    all += w.hear_all();
    std::string const end = "m\r\n\r\n";
    std::size_t const at = all.find_first_not_of('m', all.find("mm")) - 1;
    ASSERT_EQ(all.compare(at, end.size(), end), 0) << "something is in between";
    std::string const answer = all.substr(at + end.size());
    EXPECT_EQ(status_in(answer), 200);
    EXPECT_EQ(body_in(answer), "hello");
}

task<void> nothing() { co_return; }

// It has lost before its turn came, and so does not begin: nobody has sent anything.
TEST(Sending, AnEndThatDidNotBeginIsNoAnswer) {
    for (std::string const method : {"HEAD", "GET"}) {
        served s{[](exchange* x) -> task<void> {
            auto end = x->finish();
            (void)co_await when_any(nothing(), std::move(end));
        }};
        EXPECT_EQ(status_in(s.answer_to(method + " / HTTP/1.1\r\nHost: a\r\n\r\n" + get)), 500);
    }
}

// A client would take it for the answer.
TEST(Sending, NoPieceGoesWithoutTheHead) {
    served s{[](exchange* x) -> task<void> {
        x->answer().length(5);
        auto const too_much = co_await x->write("too much");
        EXPECT_FALSE(too_much);
        auto const fits = co_await x->write("hello");
        EXPECT_TRUE(fits);
    }};
    std::string const answer = s.answer_to(last_get);
    EXPECT_EQ(status_in(answer), 200) << answer;
    EXPECT_EQ(body_in(answer), "hello");
}

task<void> refuse_a_piece(exchange* x) {
    x->answer().length(5);
    auto const too_much = co_await x->write("too much");
    EXPECT_FALSE(too_much);
    EXPECT_FALSE(x->answered());
    x->answer().clear();
}

TEST(Sending, AnotherAnswerMayBeGivenAfterAPieceThatWasRefused) {
    served s{[](exchange* x) -> task<void> {
        co_await refuse_a_piece(x);
        x->answer().status(500);
        x->answer().length(5);
        auto const fits = co_await x->write("error");
        EXPECT_TRUE(fits);
        EXPECT_TRUE(x->answered());
    }};
    std::string const answer = s.answer_to(last_get);
    EXPECT_EQ(status_in(answer), 500) << answer;
    EXPECT_EQ(body_in(answer), "error");
}

TEST(Sending, AWholeAnswerMayBeGivenAfterAPieceThatWasRefused) {
    served s{[](exchange* x) -> task<void> {
        co_await refuse_a_piece(x);
        x->answer().status(413);
        auto const sent = co_await x->send("too long");
        EXPECT_TRUE(sent);
    }};
    std::string const answer = s.answer_to(last_get);
    EXPECT_EQ(status_in(answer), 413) << answer;
    EXPECT_EQ(body_in(answer), "too long");
}

TEST(Sending, AnotherAnswerMayBeGivenAfterAWholeOneThatWasRefused) {
    served s{[](exchange* x) -> task<void> {
        x->answer().length(5);
        auto const too_much = co_await x->send("too much");
        EXPECT_FALSE(too_much);
        EXPECT_FALSE(x->answered());
        x->answer().clear();
        auto const fits = co_await x->send("hello");
        EXPECT_TRUE(fits);
    }};
    std::string const answer = s.answer_to(last_get);
    EXPECT_EQ(status_in(answer), 200) << answer;
    EXPECT_EQ(body_in(answer), "hello");
}

TEST(Sending, AFileMayBeSentAfterAPieceThatWasRefused) {
    int const file = ::memfd_create("hello", MFD_CLOEXEC);
    ASSERT_EQ(::write(file, "hello", 5), 5);
    {
        served s{[file](exchange* x) {
            return [](exchange* on, int f) -> task<void> {
                co_await refuse_a_piece(on);
                auto const sent = co_await on->send_file(f, 0, 5);
                EXPECT_TRUE(sent);
            }(x, file);
        }};
        std::string const answer = s.answer_to(last_get);
        EXPECT_EQ(status_in(answer), 200) << answer;
        EXPECT_EQ(body_in(answer), "hello");
    }
    ::close(file);
}

TEST(Sending, ATunnelMayBeginAfterAPieceThatWasRefused) {
    served s{[](exchange* x) -> task<void> {
        co_await refuse_a_piece(x);
        auto const agreed = co_await x->upgrade();
        EXPECT_TRUE(agreed);
        (void)co_await x->write("hello");
    }};
    std::string const all = s.answer_to(last_get);
    EXPECT_EQ(status_in(all), 101) << all;
    EXPECT_EQ(body_in(all), "hello");
}

TEST(Sending, HintsMayBeSentAfterAPieceThatWasRefused) {
    served s{[](exchange* x) -> task<void> {
        co_await refuse_a_piece(x);
        response_text hints;
        hints.status(103);
        auto const informed = co_await x->inform(&hints);
        EXPECT_TRUE(informed);
        (void)co_await x->send("hello");
    }};
    std::string const all = s.answer_to(last_get);
    EXPECT_EQ(status_in(all), 103) << all;
    EXPECT_TRUE(all.ends_with("\r\n\r\nhello")) << all;
}

// Otherwise both would wait for the body.
TEST(Sending, WhoWaitsFor100HasItThoughAPieceWasRefusedBefore) {
    served s{[](exchange* x) -> task<void> {
        co_await refuse_a_piece(x);
        auto const body = co_await x->read();
        std::string_view const said = body.value_or("nothing");
        (void)co_await x->send(said);
    }};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(w.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    w.say("body");
    EXPECT_EQ(body_in(w.hear_all()), "body");
}

// Both would wait for the body otherwise: the client for 100, which hints are in the way of.
TEST(Sending, WhoWaitsFor100HasItBehindTheHintsThatAreBeingSent) {
    std::string const longer(much / 4, 'm');
    served s{[&longer](exchange* x) {
        return [](exchange* on, std::string_view text) -> task<void> {
            response_text hints;
            hints.status(103);
            hints.add("x-much", text);
            auto const read = [](exchange* from) -> task<std::string> {
                auto const body = co_await from->read();
                co_return std::string{body.value_or("nothing")};
            };
            auto both = co_await when_all(on->inform(&hints), read(on));
            (void)co_await on->send(std::get<1>(both));
        }(x, longer);
    }};
    wire w = s.dial();
    w.say(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n"
        "Connection: close\r\n\r\n");
    EXPECT_EQ(status_in(w.hear_until("\r\n\r\n")), 103);
    EXPECT_EQ(w.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    w.say("body");
    EXPECT_EQ(body_in(w.hear_all()), "body");
}

// It would be the beginning of the body, or of the next answer.
TEST(Sending, WhatIsSaidOfAHeadThatIsCompleteIsLeftOut) {
    served s{[](exchange* x) -> task<void> {
        x->answer().length(5);
        auto const too_much = co_await x->write("too much");
        EXPECT_FALSE(too_much);
        x->answer().status(500);
        x->answer().add("x-late", "yes");
        auto const fits = co_await x->write("hello");
        EXPECT_TRUE(fits);
        x->answer().add("x-later", "yes");
    }};
    std::string const answer = s.answer_to(last_get);
    EXPECT_EQ(status_in(answer), 200) << answer;
    EXPECT_EQ(body_in(answer), "hello");
    EXPECT_EQ(answer.find("x-late"), std::string::npos) << answer;
}

TEST(Sending, TheHeadGoesOnceThoughTwoCouldBeginWithIt) {
    served s{[](exchange* x) -> task<void> {
        auto piece = x->write("hello");
        auto end = x->finish();
        co_await when_all(std::move(piece), std::move(end));
    }};
    EXPECT_EQ(body_in(s.answer_to(last_get)), "5\r\nhello\r\n0\r\n\r\n");
}

// Nor can it in a head.
TEST(Sending, NoValueInATrailerEndsItsLine) {
    served s{[](exchange* x) -> task<void> {
        using namespace std::string_view_literals;
        field const trailer[] = {{"x-end", "a\r\n\r\nHTTP/1.1 200 OK\n\0b"sv}};
        (void)co_await x->finish(trailer);
    }};
    EXPECT_EQ(body_in(s.answer_to(last_get)), "0\r\nx-end: a    HTTP/1.1 200 OK  b\r\n\r\n");
}

}  // namespace
}  // namespace rondo::http
