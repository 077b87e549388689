// Forwarding, with upstreams that do what they should; failing_upstream_test.cpp has the others.
#include "rondo/http/proxy.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <barrier>
#include <string>
#include <vector>

#include "forwarding.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using test::scripted_server;
using test::wire;

TEST(Proxy, ForwardsARequestAndItsAnswer) {
    std::string seen;
    scripted_server up{[&](wire& w) {
        seen = w.read_message();
        w.send("HTTP/1.1 201 Made\r\nContent-Length: 5\r\nX-Up: 1\r\n\r\nhello");
        w.ended();
    }};
    std::string answer;
    {
        running r{forwarding_to(quoted(up))};
        answer = r.ask("/a/%2Fb?c=d", "X-Down: 2\r\n");
    }
    EXPECT_TRUE(seen.starts_with("GET /a/%2Fb?c=d HTTP/1.1\r\nhost: h\r\n")) << seen;
    EXPECT_EQ(field_of(seen, "X-Down"), "2");
    EXPECT_EQ(field_of(seen, "x-forwarded-for"), "127.0.0.1");
    EXPECT_EQ(field_of(seen, "forwarded"), "for=127.0.0.1;by=127.0.0.1;host=h;proto=http");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 201 Made\r\n")) << answer;
    EXPECT_EQ(field_of(answer, "X-Up"), "1");
    EXPECT_EQ(field_of(answer, "via"), "1.1 rondo");
    EXPECT_EQ(body_of(answer), "hello");
}

TEST(Proxy, KeepsConnectionsOnBothSides) {
    scripted_server up{always(ok)};
    {
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        for (int i = 0; i < 20; ++i) {
            w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            EXPECT_EQ(body_of(w.read_message()), "ok");
        }
    }
    EXPECT_EQ(up.accepted(), 1U);
}

// As many as there were requests at once; otherwise a busy gateway would close and connect all the
// time. More than 64 of one worker.
TEST(Proxy, KeepsTheConnectionsOfManyRequestsAtOnce) {
    constexpr std::size_t many = 80;
    cpu_set_t before;
    cpu_set_t one;
    ::sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    }
    std::barrier all_are_here{many};
    scripted_server up{[&](wire& w) {
        while (!w.read_message().empty()) {
            all_are_here.arrive_and_wait();
            w.send(ok);
        }
    }};
    ::sched_setaffinity(0, sizeof one, &one);
    {
        running r{forwarding_to(quoted(up))};
        ::sched_setaffinity(0, sizeof before, &before);
        std::vector<wire> clients;
        for (std::size_t i = 0; i < many; ++i) clients.push_back(r.connect());
        for (int round = 0; round < 3; ++round) {
            for (wire& w : clients) w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            for (wire& w : clients) EXPECT_EQ(body_of(w.read_message()), "ok");
        }
    }
    EXPECT_EQ(up.accepted(), many);
}

TEST(Proxy, StreamsABodyOfALength) {
    std::string const body(2'000'000, 'b');
    std::atomic<bool> same{false};
    scripted_server up{[&](wire& w) {
        same = body_of(w.read_message()) == body;
        w.send(ok);
        w.ended();
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" + body);
    EXPECT_EQ(body_of(w.read_message()), "ok");
    EXPECT_TRUE(same);
}

TEST(Proxy, StreamsChunksAndTheirTrailer) {
    std::string seen;
    scripted_server up{[&](wire& w) {
        seen = w.read_head();
        seen += w.read_until("0\r\n");
        seen += w.read_until("\r\n\r\n");
        w.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n");
        w.ended();
    }};
    {
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n0\r\nX-Check: 1\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n");
        std::string answer = w.read_head();
        EXPECT_EQ(field_of(answer, "transfer-encoding"), "chunked");
        answer += w.read_until("\r\n0\r\n");
        answer += w.read_until("\r\n\r\n");
        EXPECT_NE(answer.find("abc"), std::string::npos);
        EXPECT_NE(answer.find("defg"), std::string::npos);
        EXPECT_NE(answer.find("X-Sum: 7\r\n"), std::string::npos) << answer;
    }
    EXPECT_NE(seen.find("5\r\nhello\r\n0\r\nX-Check: 1\r\n\r\n"), std::string::npos) << seen;
}

TEST(Proxy, PassesNoFieldOfTheConnectionOnInATrailer) {
    scripted_server up{[](wire& w) {
        w.read_message();
        w.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Mine\r\n\r\n"
            "3\r\nabc\r\n0\r\nX-Mine: 1\r\nKeep-Alive: timeout=1\r\n"
            "Proxy-Authenticate: Basic\r\nVia: 1.1 other\r\nX-Sum: 7\r\n\r\n");
        w.ended();
    }};
    running r{forwarding_to(quoted(up))};
    EXPECT_TRUE(r.ask("/").ends_with("\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"));
}

TEST(Proxy, PassesAnAnswerOnBeforeItIsComplete) {
    scripted_server up{[](wire& w) {
        w.read_message();
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
        w.ended();  // the rest never comes
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    (void)w.read_head();
    EXPECT_EQ(w.read(3), "abc");
}

// A stream of events may have none for long.
TEST(Proxy, PassesAHeadOnBeforeItsBodyBegins) {
    struct answer {
        std::string head;
        std::string rest;
    };
    for (answer const& a : {answer{"Transfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n"},
                            answer{"Transfer-Encoding: chunked\r\n\r\n3\r\n", "abc\r\n0\r\n\r\n"},
                            answer{"Content-Length: 3\r\n\r\n", "abc"}, answer{"\r\n", "abc"}}) {
        semaphore go_on{0};
        scripted_server up{[&](wire& w) {
            w.read_message();
            w.send("HTTP/1.1 200 OK\r\n" + a.head);
            if (auto one = go_on.blocking_acquire()) one->forget();
            w.send(a.rest);
        }};
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        std::string const head = w.read_head();
        go_on.add_permits(1);
        ASSERT_EQ(status_of(head), "200") << a.head;
        std::string const body = w.read_to_end();
        EXPECT_NE(body.find("abc"), std::string::npos) << body;
    }
}

TEST(Proxy, LetsTheUpstreamAnswerBeforeTheBodyIsThere) {
    scripted_server up{[](wire& w) {
        w.read_head();
        w.send(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n");
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\nsome");
    EXPECT_EQ(status_of(w.read_message()), "413");
}

TEST(Proxy, AnswersWhoWaitsForContinue) {
    scripted_server up{[](wire& w) {
        std::string const seen = w.read_message();
        w.send(field_of(seen, "expect").empty() && body_of(seen) == "body"
                   ? ok
                   : "HTTP/1.1 500 E\r\n\r\n");
        w.ended();
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(w.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
    w.send("body");
    EXPECT_EQ(body_of(w.read_message()), "ok");
}

TEST(Proxy, PassesHintsOnBeforeTheAnswer) {
    semaphore go_on{0};
    scripted_server up{[&](wire& w) {
        while (!w.read_message().empty()) {
            w.send(
                "HTTP/1.1 100 Continue\r\n\r\n"
                "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: X-Hop\r\nX-Hop: "
                "1\r\n\r\n"
                "HTTP/1.1 199 More\r\n\r\n");
            if (auto one = go_on.blocking_acquire()) one->forget();
            w.send(ok);
        }
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    for (std::string_view const request :
         {"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"}) {
        w.send(request);
        // 100 is for who asked for it: that is us, if anybody.
        std::string const hints = w.read_head();
        EXPECT_TRUE(hints.starts_with("HTTP/1.1 103 Early Hints\r\n")) << hints;
        EXPECT_EQ(field_of(hints, "Link"), "</a.css>");
        EXPECT_EQ(field_of(hints, "X-Hop"), "");
        EXPECT_EQ(status_of(w.read_head()), "199");
        go_on.add_permits(1);
        EXPECT_EQ(body_of(w.read_message()), "ok");
    }
    // HTTP/1.0 has no such thing.
    go_on.add_permits(1);
    wire old = r.connect();
    old.send("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    EXPECT_EQ(status_of(old.read_message()), "200");
}

// RFC 9110, 7.6.2.
TEST(Proxy, CountsHowManyMayForwardARequest) {
    std::string seen;
    {
        scripted_server up{[&](wire& w) {
            for (std::string one; !(one = w.read_message()).empty();) {
                seen += one.substr(0, one.find(' ')) + "=" + field_of(one, "max-forwards") +
                        field_of(one, "Max-Forwards") + ";";
                w.send(ok);
            }
        }};
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        auto const ask = [&w](std::string const& method, std::string const& value) {
            w.send(method + " / HTTP/1.1\r\nHost: h\r\nMax-Forwards: " + value + "\r\n\r\n");
            return status_of(w.read_message());
        };
        EXPECT_EQ(ask("OPTIONS", "2"), "200");
        EXPECT_EQ(ask("TRACE", "1"), "200");
        EXPECT_EQ(ask("OPTIONS", "0"), "204");
        EXPECT_EQ(ask("TRACE", "0"), "501");
        // It means nothing to others, nor if it is no number.
        EXPECT_EQ(ask("GET", "0"), "200");
        EXPECT_EQ(ask("OPTIONS", "many"), "200");
    }
    EXPECT_EQ(seen, "OPTIONS=1;TRACE=0;GET=0;OPTIONS=many;");
}

TEST(Proxy, AnswersHeadAndWhatHasNoBody) {
    scripted_server up{[](wire& w) {
        for (;;) {
            std::string const seen = w.read_message();
            if (seen.empty()) return;
            if (seen.starts_with("HEAD")) {
                w.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
            } else if (seen.starts_with("GET /304")) {
                w.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n");
            } else {
                w.send("HTTP/1.1 204 No Content\r\n\r\n");
            }
        }
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    for (int i = 0; i < 3; ++i) {
        w.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
        std::string const head = w.read_head();
        EXPECT_EQ(status_of(head), "200");
        EXPECT_EQ(field_of(head, "content-length"), "1234");
        w.send("GET /304 HTTP/1.1\r\nHost: h\r\n\r\n");
        std::string const unchanged = w.read_head();
        EXPECT_EQ(status_of(unchanged), "304");
        EXPECT_EQ(field_of(unchanged, "content-length"), "99");
        w.send("GET /204 HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_EQ(status_of(w.read_head()), "204");
    }
}

TEST(Proxy, PassesALengthOfNothingOn) {
    scripted_server up{always("HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n")};
    running r{forwarding_to(quoted(up))};
    std::string const answer = r.ask("/");
    EXPECT_EQ(field_of(answer, "content-length"), "0");
    EXPECT_EQ(field_of(answer, "transfer-encoding"), "");
    wire w = r.connect();
    for (int i = 0; i < 2; ++i) {
        w.send("GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
        EXPECT_EQ(field_of(w.read_head(), "connection"), "keep-alive");
    }
}

TEST(Proxy, ForwardsABodyThatEndsWithTheConnection) {
    scripted_server up{[](wire& w) {
        w.read_message();
        w.send("HTTP/1.0 200 OK\r\n\r\nuntil the end");
    }};
    running r{forwarding_to(quoted(up))};
    std::string const answer = r.ask("/");
    EXPECT_NE(answer.find("until the end"), std::string::npos);
    EXPECT_TRUE(answer.ends_with("0\r\n\r\n")) << answer;
}

TEST(Proxy, TunnelsAnUpgrade) {
    scripted_server up{[](wire& w) {
        std::string const seen = w.read_head();
        if (field_of(seen, "upgrade") != "websocket" || field_of(seen, "connection") != "upgrade")
            return;
        w.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
            "Upgrade\r\n\r\nhi");
        w.send("<" + w.read_until("!") + ">");
        (void)w.read_to_end();
        w.send("bye");
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    std::string const head = w.read_head();
    EXPECT_EQ(status_of(head), "101");
    EXPECT_EQ(field_of(head, "upgrade"), "websocket");
    EXPECT_EQ(w.read(2), "hi");
    w.send("hello!");
    EXPECT_EQ(w.read(8), "<hello!>");
    w.end_sending();
    EXPECT_EQ(w.read_to_end(), "bye");
}

TEST(Proxy, ForwardsWhatAnUpstreamSaysThatDoesNotUpgrade) {
    scripted_server up{always(ok)};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    for (int i = 0; i < 2; ++i) {
        w.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
        EXPECT_EQ(body_of(w.read_message()), "ok");
    }
}

TEST(Proxy, MakesNoTunnelOfAnythingElse) {
    std::string seen;
    {
        scripted_server up{[&](wire& w) {
            seen = w.read_head();
            w.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
            (void)w.read_to_end();
        }};
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
        EXPECT_EQ(status_of(w.read_message()), "502");
        // Nor of what it agrees to though another was asked for.
        w.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        EXPECT_EQ(status_of(w.read_message()), "502");
    }
    EXPECT_EQ(field_of(seen, "upgrade"), "websocket");
}

// --- turns and routes --------------------------------------------------------------------------

TEST(Proxy, GivesTurnsByWeight) {
    std::atomic<int> a{0};
    std::atomic<int> b{0};
    auto const counting = [](std::atomic<int>& n) {
        return [&n](wire& w) {
            while (!w.read_message().empty()) {
                ++n;
                w.send(ok);
            }
        };
    };
    scripted_server first{counting(a)};
    scripted_server second{counting(b)};
    {
        running r{forwarding_to("[{ address = " + quoted(first) + ", weight = 3 }, { address = " +
                                quoted(second) + ", weight = 1 }]")};
        for (int i = 0; i < 40; ++i) EXPECT_EQ(body_of(r.ask("/")), "ok");
    }
    EXPECT_EQ(a, 30);
    EXPECT_EQ(b, 10);
}

TEST(Proxy, ChoosesByRoute) {
    scripted_server api{always("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\napi")};
    scripted_server rest{always("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrest")};
    running r{"[[server]]\nlisten = '127.0.0.1:0'\nmatch = [\n{ uri = '/api', forward = " +
              quoted(api) + " },\n{ uri = '/x', forward = " + quoted(rest) + " },\n]\n"};
    EXPECT_EQ(body_of(r.ask("/api")), "api");
    EXPECT_EQ(body_of(r.ask("/api/y?z")), "api");
    EXPECT_EQ(body_of(r.ask("/api?z")), "api");
    EXPECT_EQ(status_of(r.ask("/apix")), "404");
    EXPECT_EQ(body_of(r.ask("/x/api")), "rest");
    EXPECT_EQ(status_of(r.ask("/")), "404");
}

TEST(Proxy, RunsSeveralServersSideBySide) {
    scripted_server a{always("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")};
    scripted_server b{always("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb")};
    running r{forwarding_to(quoted(a)) + forwarding_to(quoted(b), "name = 'b'\n")};
    for (std::size_t i = 0; i < 2; ++i) {
        wire w = r.connect(i);
        w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_EQ(body_of(w.read_message()), i == 0 ? "a" : "b");
    }
}

}  // namespace
}  // namespace rondo::gateway
