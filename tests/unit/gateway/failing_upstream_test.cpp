// Forwarding to upstreams that fail: what is tried again, and what the client is told.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "forwarding.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/free_port.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using test::scripted_server;
using test::wire;

// A port where nobody listens.
std::string nobody() { return "'" + test::free_address() + "'"; }

TEST(Proxy, SaysThatNobodyListens) {
    running r{forwarding_to(nobody())};
    std::string const answer = r.ask("/");
    EXPECT_EQ(status_of(answer), "502");
    EXPECT_TRUE(body_of(answer).starts_with("Bad Gateway: ")) << answer;
}

TEST(Proxy, GoesToAnotherBackendIfNobodyListens) {
    scripted_server up{always(ok)};
    running r{forwarding_to("[" + nobody() + ", " + quoted(up) + "]")};
    for (int i = 0; i < 10; ++i) EXPECT_EQ(body_of(r.ask("/")), "ok");
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(body_of(r.ask("/", "Content-Length: 0\r\n", "POST")), "ok");
    }
}

TEST(Proxy, SaysThatTheUpstreamClosedBeforeItAnswered) {
    scripted_server up{[](wire& w) { w.read_head(); }};
    running r{forwarding_to(quoted(up))};
    EXPECT_EQ(status_of(r.ask("/")), "502");
    scripted_server resetting{[](wire& w) {
        w.read_head();
        w.reset();
    }};
    running s{forwarding_to(quoted(resetting))};
    EXPECT_EQ(status_of(s.ask("/")), "502");
}

TEST(Proxy, TriesAnotherBackendIfOneDropsARequestThatMayBeRepeated) {
    std::atomic<int> dropped{0};
    scripted_server bad{[&](wire& w) {
        if (!w.read_head().empty()) ++dropped;
    }};
    scripted_server good{always(ok)};
    running r{forwarding_to("[" + quoted(bad) + ", " + quoted(good) + "]")};
    for (int i = 0; i < 6; ++i) EXPECT_EQ(body_of(r.ask("/")), "ok");
    EXPECT_EQ(dropped, 1);  // then it is set aside
}

TEST(Proxy, DoesNotRepeatAPost) {
    std::atomic<int> seen{0};
    auto const dropping = [&](wire& w) {
        if (!w.read_head().empty()) ++seen;
    };
    scripted_server a{dropping};
    scripted_server b{dropping};
    running r{forwarding_to("[" + quoted(a) + ", " + quoted(b) + "]")};
    EXPECT_EQ(status_of(r.ask("/", "Content-Length: 0\r\n", "POST")), "502");
    EXPECT_EQ(seen, 1);
}

TEST(Proxy, MakesUpForAConnectionThatWasKeptTooLong) {
    std::atomic<int> connections{0};
    scripted_server up{[&](wire& w) {
        ++connections;
        (void)w.read_message();
        w.send(ok);  // and closes, without having said so
    }};
    running r{forwarding_to(quoted(up))};
    for (int i = 0; i < 10; ++i) EXPECT_EQ(body_of(r.ask("/")), "ok");
    EXPECT_EQ(connections, 10);
}

// The connection that was kept, and the backend itself: a request that may be repeated finds out
// about both, one after the other, and still has an answer.
TEST(Proxy, GoesToAnotherBackendIfOneIsGoneWithTheConnectionThatWasKept) {
    std::optional<scripted_server> leaving;
    leaving.emplace([](wire& w) {
        (void)w.read_message();
        w.send(ok);
    });
    scripted_server staying{always(ok)};
    running r{forwarding_to("[" + quoted(*leaving) + ", " + quoted(staying) + "]")};
    wire w = r.connect();
    auto const ask = [&w] {
        w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        return body_of(w.read_message());
    };
    for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(), "ok");
    leaving.reset();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(ask(), "ok");
}

// The other way round: the backend is gone, and the connection of the other one that was kept.
TEST(Proxy, LooksAtWhatItKeptForASecondTryToo) {
    std::atomic<int> closed{0};
    scripted_server closing{[&](wire& w) {
        (void)w.read_message();
        w.send(ok);
        w.close();  // without having said so
        ++closed;
    }};
    running r{forwarding_to("[" + quoted(closing) + ", " + nobody() + "]")};
    wire w = r.connect();
    for (int i = 1; i <= 4; ++i) {
        w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        ASSERT_EQ(body_of(w.read_message()), "ok");
        while (closed != i) std::this_thread::yield();
    }
}

// It would be taken for the answer to the next request, of anybody.
TEST(Proxy, ThrowsAConnectionAwayOnWhichSomethingCameThatNobodyAskedFor) {
    std::atomic<int> answered{0};
    std::atomic<int> said{0};
    scripted_server talkative{[&](wire& w) {
        for (int which = said; !w.read_message().empty();) {
            w.send(ok);
            while (answered == which) std::this_thread::yield();
            w.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
            ++said;
        }
    }};
    running r{forwarding_to(quoted(talkative))};
    for (int i = 1; i <= 5; ++i) {
        ASSERT_EQ(body_of(r.ask("/")), "ok");
        answered = i;
        while (said != i) std::this_thread::yield();
    }
}

// The reset may be there when the part before it is read: then no event tells of it.
TEST(Proxy, SeesAResetThatCameWithTheRestOfABodyThatNobodyWanted) {
    scripted_server up{always(ok)};
    running r{forwarding_to(quoted(up), "uri = '/api'\nmax_connections = 1\n")};
    for (int i = 0; i < 20; ++i) {
        wire w = r.connect();
        w.send("POST /elsewhere HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n");
        char answered = 0;
        EXPECT_EQ(::recv(w.fd(), &answered, 1, MSG_PEEK), 1);
        w.send("rest");
        w.reset();
        // It is the only connection that there may be.
        EXPECT_EQ(status_of(r.ask("/elsewhere")), "404");
    }
}

TEST(Proxy, SeesAResetThatCameWithAPartOfAnAnswer) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        w.reset();
    }};
    running r{forwarding_to(quoted(up))};
    auto const begun = clock::now();
    for (int i = 0; i < 20; ++i) {
        std::string const answer = r.ask("/");
        // Without a word if the reset came first.
        bool const cut_off = answer.empty() || answer.ends_with("half");
        EXPECT_TRUE(cut_off || status_of(answer) == "502") << answer;
    }
    EXPECT_LT(clock::now() - begun, std::chrono::seconds{15})
        << "an answer was given up waiting for";
}

// An upstream that answers a request and keeps the connection, then waits for what comes next and
// closes without an answer, or with some last words. Connections after the first one answer
// everything.
class fickle_upstream {
  public:
    // Its first connection closes when the next request is there, or when it is told to.
    enum class closes : std::uint8_t { after_a_request, when_told };
    explicit fickle_upstream(closes when, std::string last_words = {})
        : when_(when), last_words_(std::move(last_words)) {}
    ~fickle_upstream() { close_now(); }

    std::string address() const { return quoted(server_); }
    void close_now() { close_.add_permits(1); }
    bool await_connections(std::size_t n) {
        for (int i = 0; i < 2000 && server_.accepted() < n; ++i) {
            // real time: what is waited for is a thread of the gateway's.
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        return server_.accepted() == n;
    }
    int requests(std::string_view method) {
        std::lock_guard const guard{lock_};
        int n = 0;
        for (std::string const& r : seen_) n += r.starts_with(method) ? 1 : 0;
        return n;
    }

  private:
    bool read_one(wire& w) {
        std::string message = w.read_message();
        if (message.empty()) return false;
        std::lock_guard const guard{lock_};
        seen_.push_back(std::move(message));
        return true;
    }
    void serve(wire& w) {
        if (first_.exchange(false)) {
            if (read_one(w)) w.send(ok);
            if (when_ == closes::after_a_request) {
                (void)read_one(w);
            } else if (auto told = close_.blocking_acquire()) {
                told->forget();
            }
            w.send(last_words_);
            return;
        }
        while (read_one(w)) w.send(ok);
    }

    closes when_;
    std::string last_words_;
    std::atomic<bool> first_{true};
    semaphore close_{0};
    std::mutex lock_;
    std::vector<std::string> seen_;
    scripted_server server_{[this](wire& w) { serve(w); }};
};

// A kept connection ends while a POST that goes by it has sent nothing: it goes by another.
void expect_post_by_another_connection(fickle_upstream& up) {
    running r{forwarding_to(up.address())};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(body_of(w.read_message()), "ok");
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    // It has chosen a connection, and waits for something to send.
    EXPECT_EQ(w.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
    up.close_now();
    ASSERT_TRUE(up.await_connections(2));
    w.send("body");
    EXPECT_EQ(body_of(w.read_message()), "ok");
    EXPECT_EQ(up.requests("POST"), 1);
}

TEST(Proxy, SendsAPostAgainOfWhichNothingWasSent) {
    fickle_upstream up{fickle_upstream::closes::when_told};
    expect_post_by_another_connection(up);
}

std::string const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";

// The client decides for how long nothing is sent, and what comes meanwhile may be for anybody.
TEST(Proxy, TakesNothingForAnAnswerThatCameBeforeTheRequestWasSent) {
    fickle_upstream up{fickle_upstream::closes::when_told, poison};
    expect_post_by_another_connection(up);
}

TEST(Proxy, SendsAnIdempotentRequestAgainWhoseBodyIsStillThere) {
    fickle_upstream up{fickle_upstream::closes::after_a_request};
    running r{forwarding_to(up.address())};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(body_of(w.read_message()), "ok");
    w.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
    EXPECT_EQ(body_of(w.read_message()), "ok");
    EXPECT_EQ(up.requests("PUT"), 2);
}

TEST(Proxy, DoesNotSendAgainWhatMayHaveBeenAppliedOrIsHereNoMore) {
    std::string const large(3'000'000, 'l');
    for (std::string const& request :
         {std::string{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"},
          "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" + large}) {
        fickle_upstream up{fickle_upstream::closes::after_a_request};
        running r{forwarding_to(up.address())};
        wire w = r.connect();
        w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        EXPECT_EQ(body_of(w.read_message()), "ok");
        w.send(request);
        EXPECT_EQ(status_of(w.read_message()), "502");
        EXPECT_EQ(up.requests("P"), 1);
    }
}

TEST(Proxy, RefusesAHeadThatBreaksOff) {
    scripted_server up{[](wire& w) {
        w.read_head();
        w.send("HTTP/1.1 200 OK\r\nContent-Le");
    }};
    running r{forwarding_to(quoted(up))};
    EXPECT_EQ(status_of(r.ask("/")), "502");
}

TEST(Proxy, DoesNotTryAgainAfterAPartOfAHead) {
    std::atomic<int> seen{0};
    auto const breaking_off = [&](wire& w) {
        if (!w.read_head().empty()) ++seen;
        w.send("HTTP/1.1 200 OK\r\nContent-Le");
    };
    scripted_server a{breaking_off};
    scripted_server b{breaking_off};
    running r{forwarding_to("[" + quoted(a) + ", " + quoted(b) + "]")};
    EXPECT_EQ(status_of(r.ask("/")), "502");
    EXPECT_EQ(seen, 1);
}

TEST(Proxy, RefusesAHostileHead) {
    for (std::string const head :
         {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
          "HTTP/1.1 200 OK\r\nX : 1\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
          "SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"}) {
        scripted_server up{[&](wire& w) {
            w.read_head();
            w.send(head);
        }};
        running r{forwarding_to(quoted(up))};
        EXPECT_EQ(status_of(r.ask("/")), "502") << head;
    }
}

// It has neither a method nor a target.
TEST(Proxy, SpeaksOfTheFirstLineOfAnAnswerThatIsNone) {
    for (std::string const answer : {"hello\n", "\x15\x03\x01", "\r\nHTTP/1.1 200 OK\r\n\r\n"}) {
        scripted_server up{[&](wire& w) {
            w.read_head();
            w.send(answer);
        }};
        running r{forwarding_to(quoted(up))};
        std::string const said = r.ask("/");
        EXPECT_EQ(status_of(said), "502");
        EXPECT_TRUE(body_of(said).contains("the first line is malformed")) << said;
    }
    std::string const long_line = "HTTP/1.1 200 " + std::string(9000, 'a') + "\r\n\r\n";
    scripted_server up{[&](wire& w) {
        w.read_head();
        w.send(long_line);
    }};
    running r{forwarding_to(quoted(up))};
    EXPECT_TRUE(body_of(r.ask("/")).contains("the first line is malformed"));
}

TEST(Proxy, CutsAnAnswerThatBreaksOff) {
    for (std::string const part :
         {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"}) {
        scripted_server up{[&](wire& w) {
            w.read_head();
            w.send(part);
        }};
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        std::string const answer = w.read_to_end();
        EXPECT_NE(answer.find("abc"), std::string::npos);
        EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
    }
}

TEST(Proxy, SaysThatTheUpstreamIsTooSlow) {
    scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
    running r{forwarding_to(quoted(up), "timeouts = { response = '50ms' }\n")};
    std::string const answer = r.ask("/");
    EXPECT_EQ(status_of(answer), "504");
    EXPECT_TRUE(body_of(answer).starts_with("Gateway Timeout: ")) << answer;
}

TEST(Proxy, DoesNotCountTheTimeThatABodyTakesAgainstTheUpstream) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send(ok);
        (void)w.read_to_end();
    }};
    running r{forwarding_to(quoted(up), "timeouts = { response = '1s' }\n")};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\n");
    for (int i = 0; i < 8; ++i) {
        // real time: what is slow here is the client.
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
        w.send("x");
    }
    EXPECT_EQ(body_of(w.read_message()), "ok");
}

TEST(Proxy, ClosesTheUpstreamIfTheClientIsGone) {
    semaphore ended{0};
    scripted_server up{[&](wire& w) {
        w.read_head();
        std::string const piece(64 * 1024, 'x');
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
        while (w.send(piece)) {
        }
        ended.add_permits(1);
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    (void)w.read(100'000);
    w.reset();
    // Before the gateway ends, which closes it too, and before the wire of the upstream gives up.
    EXPECT_TRUE(ended.blocking_acquire_for(1, std::chrono::seconds{15}));
}

TEST(Proxy, DoesNotSendHalfABodyAsAWhole) {
    std::string seen;
    {
        scripted_server up{[&](wire& w) { seen = w.read_to_end(); }};
        running r{forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        w.end_sending();
        (void)w.read_to_end();
    }
    EXPECT_FALSE(seen.ends_with("0\r\n\r\n")) << seen;
}

}  // namespace
}  // namespace rondo::gateway
