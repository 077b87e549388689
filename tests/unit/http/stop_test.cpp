// The end of a server: what is answered, what is closed, what is cut off.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "rondo/core/this_task.hpp"
#include "rondo/sync/notify.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;
using test::body_in;
using test::served;
using test::wire;

std::string const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

bool refuses_connections(unsigned short port) {
    int const fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool const refused = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0;
    ::close(fd);
    return refused;
}

task<void> hello(exchange* x) { (void)co_await x->send("hello"); }

TEST(ServerStop, ClosesIdleConnections) {
    served s{hello};
    wire used = s.dial();
    used.say(get);
    EXPECT_EQ(body_in(used.hear_message()), "hello");
    wire fresh = s.dial();
    EXPECT_EQ(s.server().blocking_stop(30s), 0U);
    EXPECT_EQ(used.hear_all(), "");
    EXPECT_EQ(fresh.hear_all(), "");
    EXPECT_EQ(s.server().measure().connections, 0U);
}

TEST(ServerStop, AnswersARequestThatIsUnderWay) {
    notify begun;
    notify go_on;
    served s{[&](exchange* x) {
        return [](exchange* on, notify* b, notify* g) -> task<void> {
            b->notify_one();
            co_await g->notified();
            (void)co_await on->send("at last");
        }(x, &begun, &go_on);
    }};
    wire w = s.dial();
    w.say(get);
    begun.blocking_notified();
    std::atomic<bool> stopped{false};
    std::thread stopper{[&] {
        EXPECT_EQ(s.server().blocking_stop(30s), 0U);
        stopped = true;
    }};
    // Nobody is let in any more, though the request is not answered yet.
    while (!refuses_connections(s.port())) std::this_thread::yield();
    EXPECT_FALSE(stopped.load());
    go_on.notify_one();
    std::string const answer = w.hear_all();
    EXPECT_EQ(body_in(answer), "at last");
    EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos);
    stopper.join();
}

TEST(ServerStop, AnswersARequestWhoseFirstByteWasRead) {
    served s{hello, {.head_timeout = 20s}};
    wire w = s.dial();
    w.say(get + "GET / HT");
    EXPECT_EQ(body_in(w.hear_message()), "hello");
    std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(30s), 0U); }};
    w.say("TP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(body_in(w.hear_all()), "hello");
    stopper.join();
}

// Some clients send one behind a body (RFC 9112, 2.2), and nothing may follow it.
TEST(ServerStop, TakesNoEndOfALineForARequest) {
    for (std::string const end : {"\r\n", "\r"}) {
        served s{hello, {.head_timeout = 1h}};
        wire w = s.dial();
        w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody" + end);
        EXPECT_EQ(body_in(w.hear_message()), "hello");
        EXPECT_EQ(s.server().blocking_stop(20s), 0U);
        EXPECT_EQ(w.hear_all(), "");
        EXPECT_EQ(s.server().measure().refused, 0U);
    }
}

// Requests that are answered one by one, when they are told to.
class held {
  public:
    handler serve() {
        return [this](exchange* x) { return answer(x, this); };
    }

    notify begun;
    notify go_on;

  private:
    static task<void> answer(exchange* x, held* h) {
        h->begun.notify_one();
        co_await h->go_on.notified();
        for (;;) {
            auto const piece = co_await x->read();
            if (!piece || piece->empty()) break;
        }
        (void)co_await x->send("hello");
    }
};

TEST(ServerStop, AnswersThePipelinedRequestsThatWereRead) {
    held h;
    served s{h.serve(), {}, 1};
    wire idle = s.dial();
    wire w = s.dial();
    w.say(get + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd" + get);
    h.begun.blocking_notified();
    std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(30s), 0U); }};
    EXPECT_EQ(idle.hear_all(), "");  // then all connections of its worker were told
    for (int i = 0; i < 3; ++i) {
        h.go_on.notify_one();
        std::string const answer = w.hear_message();
        EXPECT_EQ(body_in(answer), "hello");
        EXPECT_EQ(answer.find("connection: close\r\n") != std::string::npos, i == 2);
    }
    EXPECT_EQ(w.hear_all(), "");
    stopper.join();
}

// Or it might never end, as there would always be another one.
TEST(ServerStop, AnswersNoRequestThatCameWithTheRestOfAnother) {
    struct parts {
        std::string begun;
        std::string rest;
    };
    for (parts const& second :
         {parts{"GET / HT", "TP/1.1\r\nHost: a\r\n\r\n"},
          parts{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab", "cd"}}) {
        held h;
        served s{h.serve(), {}, 1};
        wire idle = s.dial();
        wire w = s.dial();
        w.say(get + second.begun);
        h.begun.blocking_notified();
        std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(30s), 0U); }};
        EXPECT_EQ(idle.hear_all(), "");  // then all connections of its worker were told
        w.say(second.rest + get);
        h.go_on.notify_one();
        EXPECT_EQ(body_in(w.hear_message()), "hello");
        h.go_on.notify_one();
        std::string const last = w.hear_all();
        EXPECT_EQ(body_in(last), "hello");
        EXPECT_NE(last.find("connection: close\r\n"), std::string::npos);
        stopper.join();
    }
}

// Real time: that it ends is what is asked.
TEST(ServerStop, GivesARequestThatWasBegunNoMoreThanTheTimeOfAHeader) {
    notify begun;
    notify go_on;
    served s{[&](exchange* x) {
                 return [](exchange* on, notify* b, notify* g) -> task<void> {
                     (void)co_await on->flush();  // it does not say that the connection ends
                     b->notify_one();
                     co_await g->notified();
                     (void)co_await on->finish();
                 }(x, &begun, &go_on);
             },
             {},
             1};
    wire idle = s.dial();
    wire w = s.dial();
    w.say(get);
    begun.blocking_notified();
    s.rt().block_on(s.server().adjust({.head_timeout = 50ms}));
    w.say("GET / HT");
    std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(60s), 0U); }};
    EXPECT_EQ(idle.hear_all(), "");  // then all connections of its worker were told
    go_on.notify_one();
    w.hear_until("0\r\n\r\n");
    EXPECT_EQ(test::status_in(w.hear_all()), 408);
    w.close();
    stopper.join();
}

// What is closed while something is unread is reset, and what was sent is lost.
TEST(ServerStop, LosesNoAnswerToARequestWhoseBodyNobodyRead) {
    notify begun;
    notify go_on;
    notify sent;
    std::string const large(1'000'000, 'a');  // more than the client's system takes unasked
    served s{[&](exchange* x) {
        return
            [](exchange* on, std::string_view body, notify* b, notify* g, notify* e) -> task<void> {
                b->notify_one();
                co_await g->notified();
                (void)co_await on->send(body);
                e->notify_one();
            }(x, large, &begun, &go_on, &sent);
    }};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n");
    begun.blocking_notified();
    w.say("some");
    std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(30s), 0U); }};
    while (!refuses_connections(s.port())) std::this_thread::yield();
    go_on.notify_one();
    sent.blocking_notified();
    std::string const answer = w.hear_all();
    EXPECT_EQ(body_in(answer).size(), large.size());
    w.close();
    stopper.join();
}

TEST(ServerStop, CutsOffWhatIsLeftWhenTheGraceIsOver) {
    notify begun;
    served s{[&](exchange* x) {
        return [](exchange* on, notify* b) -> task<void> {
            b->notify_one();
            co_await sleep_for(1h);
            (void)co_await on->send("too late");
        }(x, &begun);
    }};
    wire w = s.dial();
    w.say(get);
    begun.blocking_notified();
    EXPECT_EQ(s.server().blocking_stop(10ms), 1U);
    EXPECT_EQ(w.hear_all(), "");
}

// An end of the connection would be the end of the answer.
TEST(ServerStop, ResetsWhatIsLeftOfAnAnswerToHttp10) {
    notify begun;
    served s{[&](exchange* x) {
        return [](exchange* on, notify* b) -> task<void> {
            (void)co_await on->write("half");
            b->notify_one();
            co_await sleep_for(1h);
        }(x, &begun);
    }};
    wire w = s.dial();
    w.say("GET / HTTP/1.0\r\n\r\n");
    begun.blocking_notified();
    EXPECT_EQ(s.server().blocking_stop(10ms), 1U);
    EXPECT_TRUE(w.hear_until("half").ends_with("half"));
    char more = 0;
    EXPECT_EQ(::recv(w.fd(), &more, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
}

// Its connection is still read from, for a while, as its body was not.
TEST(ServerStop, CountsNoRequestThatWasAnswered) {
    served s{hello};
    wire w = s.dial();
    w.say("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nab");
    EXPECT_EQ(body_in(w.hear_message()), "hello");
    EXPECT_EQ(s.server().blocking_stop(0s), 0U);
}

TEST(ServerStop, GivesATunnelTheGrace) {
    served s{[](exchange* x) -> task<void> {
        x->answer().add("upgrade", "echo");
        (void)co_await x->upgrade();
        for (;;) {
            auto const piece = co_await x->read();
            if (!piece || piece->empty()) break;
            (void)co_await x->write(*piece);
        }
    }};
    wire w = s.dial();
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    EXPECT_EQ(test::status_in(w.hear_until("\r\n\r\n")), 101);
    std::thread stopper{[&] { EXPECT_EQ(s.server().blocking_stop(30s), 0U); }};
    for (int i = 0; i < 10; ++i) {
        w.say("still here");
        EXPECT_EQ(w.hear(10), "still here");
    }
    w.say_no_more();
    EXPECT_EQ(w.hear_all(), "");
    stopper.join();
}

// Each client sends a request when it has the answer to the one before. The stop comes in between:
// what follows a request is its whole answer, or nothing at all.
TEST(ServerStop, UnderLoadNoAnswerIsCut) {
    for (int round = 0; round < 5; ++round) {
        served s{hello};
        std::atomic<int> answered{0};
        std::atomic<int> cut{0};
        std::vector<std::thread> clients;
        for (int i = 0; i < 8; ++i) {
            clients.emplace_back([&answered, &cut, w = s.dial()]() mutable {
                for (;;) {
                    w.say(get);
                    std::string const answer = w.hear_message();
                    if (answer.empty()) break;
                    if (body_in(answer) == "hello") {
                        ++answered;
                    } else {
                        ++cut;
                    }
                }
            });
        }
        while (answered.load() < 100) std::this_thread::yield();
        EXPECT_EQ(s.server().blocking_stop(30s), 0U);
        for (std::thread& c : clients) c.join();
        EXPECT_EQ(cut.load(), 0);
        EXPECT_EQ(s.server().measure().requests, static_cast<std::uint64_t>(answered.load()))
            << "who was heard was answered";
    }
}

TEST(ServerStop, ADestroyedServerStopsByItself) {
    runtime rt{{.workers = 2}};
    server s{rt, {.listen = {{test::loopback()}}}, hello};
    ASSERT_TRUE(s.start().has_value());
    wire w{s.addresses().front().port()};
    w.say(get);
    EXPECT_EQ(body_in(w.hear_message()), "hello");
}

TEST(ServerStop, SurvivesARuntimeThatIsShutDownFirst) {
    runtime rt{{.workers = 2}};
    server s{rt, {.listen = {{test::loopback()}}}, hello};
    ASSERT_TRUE(s.start().has_value());
    wire w{s.addresses().front().port()};
    w.say(get);
    EXPECT_EQ(body_in(w.hear_message()), "hello");
    EXPECT_EQ(rt.shutdown(30s).tasks, 0U);
    EXPECT_EQ(w.hear_all(), "");
}

}  // namespace
}  // namespace rondo::http
