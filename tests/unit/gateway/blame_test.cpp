// Whose fault it is that an answer is late, or not whole: who is told so, and who is set aside.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "few_descriptors.hpp"
#include "forwarding.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/proxy.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/sanitized.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using namespace std::chrono_literals;
using test::scripted_server;
using test::wire;

std::string const with_admin = "[admin]\nlisten = '127.0.0.1:0'\n";
std::string const chunked_post =
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
std::string const chunked_ok = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// What a figure of the only backend is; of all classes of answers, that of one.
std::string figure(running const& r, std::string_view name, std::string_view with = {}) {
    std::string const page = body_of(r.ask_admin("/metrics"));
    for (std::size_t at = page.find(name); at != std::string::npos; at = page.find(name, at + 1)) {
        std::string const line = page.substr(at, page.find('\n', at) - at);
        if (line.find(with) != std::string::npos && line[name.size()] == '{') {
            return line.substr(line.rfind(' ') + 1);
        }
    }
    return "none";
}
std::string failures(running const& r) { return figure(r, "rondo_upstream_failures_total"); }
std::string answers(running const& r, std::string_view status_class) {
    return figure(r, "rondo_responses_total", status_class);
}

// An upstream that begins an answer to a body that is still on its way.
scripted_server::script answering_early(semaphore& began) {
    return [&began](wire& w) {
        (void)w.read_until("abc\r\n");
        w.send(chunked_ok + "4\r\nhalf\r\n");
        began.add_permits(1);
        (void)w.read_to_end();
    };
}

TEST(Blame, APauseOfTheClientIsNotTheBackends) {
    scripted_server up{always(ok)};
    running r{with_admin + forwarding_to(quoted(up), "timeouts = { response = '300ms' }\n")};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nx");
    // real time: what is slow here is the client.
    std::this_thread::sleep_for(800ms);
    w.send("xxxxxxx");
    EXPECT_EQ(body_of(w.read_message()), "ok");
    EXPECT_EQ(failures(r), "0");
}

// The head goes with the first piece of the body: until then nobody but the client is late.
TEST(Blame, ABackendThatIsTiredOfWaitingForARequestIsNotToBlame) {
    for (std::string const last_words : {"", "HTTP/1.1 408 Request Timeout\r\n\r\n"}) {
        semaphore end_now{0};
        scripted_server up{[&](wire& w) {
            if (auto told = end_now.blocking_acquire()) told->forget();
            w.send(last_words);
        }};
        running r{with_admin + forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
        EXPECT_EQ(w.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
        end_now.add_permits(1);
        EXPECT_EQ(status_of(w.read_message()), "502");
        EXPECT_EQ(failures(r), "0");
        EXPECT_EQ(figure(r, "rondo_upstream_up"), "1");
    }
}

// As nginx does after its client_body_timeout: without an answer. Who has all of a body has no
// reason to be tired.
TEST(Blame, ABackendThatIsTiredOfWaitingForTheRestOfABodyIsNotToBlame) {
    struct client {
        bool pauses;
        bool says_all;
    };
    for (client const& c : {client{true, false}, client{false, false}, client{true, true}}) {
        semaphore end_now{0};
        scripted_server up{[&](wire& w) {
            (void)w.read_until(c.says_all ? "0\r\n\r\n" : "abc\r\n");
            if (auto told = end_now.blocking_acquire()) told->forget();
        }};
        running r{with_admin + forwarding_to(quoted(up))};
        wire w = r.connect();
        w.send(chunked_post);
        // real time: what is slow here is the client.
        if (c.pauses) std::this_thread::sleep_for(1500ms);
        if (c.says_all) w.send("0\r\n\r\n");
        end_now.add_permits(1);
        EXPECT_EQ(status_of(w.read_message()), "502");
        bool const excused = c.pauses && !c.says_all;
        EXPECT_EQ(failures(r), excused ? "0" : "1");
        EXPECT_EQ(figure(r, "rondo_upstream_up"), excused ? "1" : "0");
    }
}

// As nginx does after its send_timeout.
TEST(Blame, ABackendThatIsTiredOfAClientThatReadsNothingIsNotToBlame) {
    semaphore gave_up{0};
    scripted_server up{[&](wire& w) {
        (void)w.read_message();
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
        timeval const patience{.tv_sec = 1, .tv_usec = 500'000};
        ::setsockopt(w.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        std::string const piece(64 * 1024, 'x');
        while (w.send(piece)) {
        }
        w.close();
        gave_up.add_permits(1);
    }};
    running r{with_admin + forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(status_of(w.read_head()), "200");
    if (auto told = gave_up.blocking_acquire()) told->forget();
    (void)w.read_to_end();
    EXPECT_EQ(answers(r, "2xx"), "0");
    EXPECT_EQ(failures(r), "0");
}

TEST(Blame, ABackendThatIsLateAfterAllOfABodyIsToBlame) {
    scripted_server up{[](wire& w) { (void)w.read_to_end(); }};
    running r{with_admin + forwarding_to(quoted(up), "timeouts = { response = '50ms' }\n")};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx");
    w.send("x");
    EXPECT_EQ(status_of(w.read_message()), "504");
    EXPECT_EQ(failures(r), "1");
}

TEST(Blame, AnAnswerIsNotEndedAsWholeIfTheRestOfTheRequestDoesNotCome) {
    semaphore began{0};
    scripted_server up{answering_early(began)};
    running r{with_admin + forwarding_to(quoted(up), "timeouts = { idle = '1s' }\n")};
    wire w = r.connect();
    w.send(chunked_post);
    std::string const answer = w.read_to_end();
    EXPECT_NE(answer.find("half"), std::string::npos) << answer;
    EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
    EXPECT_EQ(answers(r, "2xx"), "0");
    EXPECT_EQ(failures(r), "0");
}

TEST(Blame, AnAnswerIsNotEndedAsWholeIfTheRestOfTheRequestIsMalformed) {
    semaphore began{0};
    scripted_server up{answering_early(began)};
    running r{with_admin + forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send(chunked_post);
    if (auto one = began.blocking_acquire()) one->forget();
    std::string answer = w.read_until("half\r\n");
    w.send("no size\r\n");
    answer += w.read_to_end();
    EXPECT_NE(answer.find("half"), std::string::npos) << answer;
    EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
    EXPECT_EQ(answers(r, "2xx"), "0");
    EXPECT_EQ(failures(r), "0");
}

// A stream of events has nothing to say now and then.
TEST(Blame, APauseInAnAnswerEndsItAndIsNoFaultOfTheBackends) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send(chunked_ok + "4\r\nhalf\r\n");
        (void)w.read_to_end();
    }};
    running r{with_admin + forwarding_to(quoted(up), "timeouts = { response = '1s' }\n")};
    std::string const answer = r.ask("/");
    EXPECT_NE(answer.find("half"), std::string::npos) << answer;
    EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
    EXPECT_EQ(failures(r), "0");
}

// RFC 9110, 15: one above 599 is invalid, and taken for a 5xx by those who do not know it.
TEST(Blame, AStatusOfNoClassIsPassedOnAndCountedAsAnErrorOfTheServers) {
    scripted_server up{always("HTTP/1.1 999 No\r\nContent-Length: 2\r\n\r\nno")};
    running r{with_admin + forwarding_to(quoted(up))};
    for (int i = 0; i < 3; ++i) {
        std::string const answer = r.ask("/");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 999 No\r\n")) << answer;
        EXPECT_EQ(body_of(answer), "no");
    }
    EXPECT_EQ(answers(r, "5xx"), "3");
    EXPECT_EQ(failures(r), "0");
}

TEST(Blame, AnAnswerThatEndsWithTheConnectionIsNotWholeIfThatIsReset) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send("HTTP/1.0 200 OK\r\n\r\nhalf");
        w.reset();
    }};
    running r{with_admin + forwarding_to(quoted(up))};
    for (int i = 0; i < 20; ++i) {
        std::string const answer = r.ask("/");
        EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
    }
    EXPECT_EQ(failures(r), "20");
}

// It has no other end than that of its connection, which must not look like one then.
TEST(Blame, HalfAnAnswerToHttp10IsReset) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send(chunked_ok + "4\r\nhalf\r\n");
    }};
    running r{forwarding_to(quoted(up))};
    wire w = r.connect();
    w.send("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(w.read_until("half").ends_with("half"));
    char more = 0;
    EXPECT_EQ(::recv(w.fd(), &more, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
}

// It shows nothing of the backend, which another request may try at once.
TEST(Blame, ATrialWhoseClientGoesIsNoTrial) {
    std::atomic<int> connections{0};
    scripted_server up{[&](wire& w) {
        (void)w.read_message();
        if (connections++ != 0) (void)w.read_to_end();
    }};
    boost::asio::ip::tcp::endpoint const at{boost::asio::ip::address_v4::loopback(), up.port()};
    runtime rt{{.workers = 1}};
    http::client client{rt};
    http::proxy backend{client, {.backends = {{at}}, .health = {.first_pause = 1ms}}};
    http::server front{
        rt,
        {.listen = {{boost::asio::ip::tcp::endpoint{boost::asio::ip::address_v4::loopback(), 0}}}},
        [&](http::exchange* x) { return backend.answer(x); }};
    ASSERT_TRUE(front.start());
    auto const begun = clock::now();
    wire first = wire::to(front.addresses().front().port());
    first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(status_of(first.read_message()), "502");
    EXPECT_TRUE(backend.backends().set_aside(0, begun));
    std::this_thread::sleep_for(10ms);  // real time: its pause
    wire second = wire::to(front.addresses().front().port());
    second.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(second.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_TRUE(backend.backends().set_aside(0, begun)) << "it is on trial";
    second.reset();
    // real time: what is waited for is a worker.
    for (int i = 0; i < 2000 && backend.backends().set_aside(0, begun); ++i) {
        std::this_thread::sleep_for(5ms);
    }
    EXPECT_FALSE(backend.backends().set_aside(0, begun));
}

// A sanitizer opens pipes to look at memory, and takes it for bad where it cannot.
#ifndef RONDO_TEST_SANITIZED

TEST(Blame, WantOfDescriptorsIsNotTheBackends) {
    scripted_server up{always(ok)};
    running r{with_admin + forwarding_to(quoted(up), "uri = '/api'\n")};
    wire w = r.connect();
    auto const ask = [&w](std::string_view path) {
        w.send("GET " + std::string{path} + " HTTP/1.1\r\nHost: h\r\n\r\n");
        return w.read_message();
    };
    EXPECT_EQ(status_of(ask("/elsewhere")), "404");
    {
        few_descriptors const none{0};
        std::string const answer = ask("/api");
        EXPECT_EQ(status_of(answer), "503") << answer;
    }
    EXPECT_EQ(failures(r), "0");
    EXPECT_EQ(figure(r, "rondo_upstream_up"), "1");
    EXPECT_EQ(body_of(ask("/api")), "ok");
}

#endif

}  // namespace
}  // namespace rondo::gateway
