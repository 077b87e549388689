#include "rondo/http/client.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "rondo/core/stop.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/http/detail/buffer.hpp"
#include "rondo/sync/semaphore.hpp"
#include "support/free_port.hpp"
#include "wire.hpp"

namespace rondo::http {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::served;
using test::wire;

// An upstream that says what it is told to, whatever it is asked.
class scripted {
  public:
    explicit scripted(std::function<void(wire&, int)> each, int connections = 1)
        : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        if (::bind(fd_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd_, 16) != 0) {
            throw std::runtime_error{"cannot listen"};
        }
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
        port_ = ntohs(at.sin_port);
        runs_ = std::thread{[this, each = std::move(each), connections] {
            for (int i = 0; i < connections; ++i) {
                int const fd = ::accept(fd_, nullptr, nullptr);
                if (fd < 0) return;
                wire w = wire::of(fd);
                each(w, i);
            }
        }};
    }
    ~scripted() {
        ::shutdown(fd_, SHUT_RDWR);
        runs_.join();
        ::close(fd_);
    }
    scripted(scripted const&) = delete;
    scripted& operator=(scripted const&) = delete;
    boost::asio::ip::tcp::endpoint address() const { return test::loopback(port_); }

  private:
    int fd_;
    unsigned short port_ = 0;
    std::thread runs_;
};

struct fetched {
    int status = 0;
    bool reused = false;
    std::string body;
    std::string trailers;
    std::optional<failure> error;
};

task<fetched> fetch(client* c, client::endpoint to, std::string verb, std::string body) {
    fetched r;
    auto connected = co_await c->connect(to);
    if (!connected) {
        r.error = connected.error();
        co_return r;
    }
    call over{std::move(*connected)};
    r.reused = over.reused();
    over.head().line(verb, "/");
    over.head().add("host", "upstream");
    if (!body.empty()) {
        over.head().length(body.size());
        (void)co_await over.write(body);
    }
    (void)co_await over.finish();
    auto const head = co_await over.read_head();
    if (!head) {
        r.error = head.error();
        co_return r;
    }
    r.status = (*head)->status;
    for (;;) {
        auto const piece = co_await over.read();
        if (!piece) {
            r.error = piece.error();
            break;
        }
        if (piece->empty()) break;
        r.body += *piece;
    }
    for (field const& f : over.trailers()) r.trailers += std::string{f.name};
    co_return r;
}

class Client : public ::testing::Test {
  protected:
    fetched ask(client::endpoint to, std::string const& verb = "GET",
                std::string const& body = "") {
        return rt_.spawn_pinned_to(0, fetch(&client_, to, verb, body)).blocking_join().value();
    }
    // Of an upstream that answers with this, and closes.
    fetched ask_one_that_says(std::string const& answer, std::string const& verb = "GET") {
        scripted const up{[&answer](wire& w, int) {
            w.hear_until("\r\n\r\n");
            w.say(answer);
        }};
        return ask(up.address(), verb);
    }

    runtime rt_{{.workers = 2}};
    client client_{rt_, {.connect_timeout = 5s, .response_timeout = 5s}};
};

TEST_F(Client, AsksAndIsAnswered) {
    served s{[](exchange* x) -> task<void> {
        std::string all{x->head().verb};
        for (;;) {
            auto const piece = co_await x->read();
            if (!piece || piece->empty()) break;
            all += *piece;
        }
        (void)co_await x->send(all);
    }};
    fetched const r = ask(test::loopback(s.port()), "POST", "body");
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.body, "POSTbody");
    EXPECT_FALSE(r.error.has_value());
}

TEST_F(Client, UsesAConnectionAgain) {
    served s{[](exchange* x) -> task<void> { (void)co_await x->send("hello"); }};
    EXPECT_FALSE(ask(test::loopback(s.port())).reused);
    for (int i = 0; i < 3; ++i) {
        fetched const r = ask(test::loopback(s.port()));
        EXPECT_TRUE(r.reused);
        EXPECT_EQ(r.body, "hello");
    }
    EXPECT_EQ(s.server().measure().accepted, 1U);
}

TEST_F(Client, DoesNotUseAConnectionAgainThatHasSomethingLeft) {
    std::string const answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    scripted const up{[&answer](wire& w, int) {
                          w.hear_until("\r\n\r\n");
                          w.say(answer + answer);  // one more than was asked for
                          w.hear_all();
                      },
                      2};
    EXPECT_EQ(ask(up.address()).body, "a");
    EXPECT_FALSE(ask(up.address()).reused);
}

TEST_F(Client, ReadsEachKindOfBody) {
    EXPECT_EQ(ask_one_that_says("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc").body, "abc");
    EXPECT_EQ(ask_one_that_says("HTTP/1.1 200 OK\r\n\r\nabc").body, "abc");
    fetched const chunked = ask_one_that_says(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n");
    EXPECT_EQ(chunked.body, "abc");
    EXPECT_EQ(chunked.trailers, "X");
    EXPECT_EQ(ask_one_that_says("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD").body, "");
    EXPECT_EQ(ask_one_that_says("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n").status,
              304);
}

TEST_F(Client, ReadsABodyBehindAHeadThatFillsItsBlock) {
    constexpr std::size_t block = detail::buffer::usual;
    std::string const body(20000, 'b');
    for (std::size_t size : {block - 4, block - 1, block, block + 1}) {
        std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Fill: ";
        head.append(size - head.size() - 4, 'f');
        head += "\r\n\r\n";
        scripted const up{[&](wire& w, int) {
            w.hear_until("\r\n\r\n");
            w.say(head);
            w.say("4e20\r\n" + body + "\r\n");
            w.say("0\r\nX-Sum: " + std::string(4000, 't') + "\r\n\r\n");
        }};
        fetched const r = ask(up.address());
        EXPECT_EQ(r.body, body) << "a head of " << size;
        EXPECT_EQ(r.trailers, "X-Sum") << "a head of " << size;
    }
}

TEST_F(Client, SkipsInterimResponses) {
    fetched const r = ask_one_that_says(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.body, "a");
}

TEST_F(Client, RefusesHostileResponses) {
    std::string flood;
    for (int i = 0; i < 20; ++i) flood += "HTTP/1.1 100 Continue\r\n\r\n";
    std::string fields;
    for (int i = 0; i < 101; ++i) fields += "X: y\r\n";
    std::string const ok = "HTTP/1.1 200 OK\r\n";
    std::string const chunked = ok + "Transfer-Encoding: chunked\r\n";
    for (std::string const& answer : {
             flood,
             ok + fields + "\r\n",
             ok + "X: " + std::string(40000, 'y') + "\r\n\r\n",
             "\r\n" + ok + "\r\n",
             ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
             ok + "Content-Length: 1\nX: y\r\n\r\na",
             chunked + "\r\nzz\r\n",
             chunked + "\r\n4\r\nabcdX\r\n",
             chunked + "\r\nfffffffffffffffff\r\n",
             chunked + "\r\n0\r\nContent-Length: 4\r\n\r\n",
             chunked + "X : y\r\n\r\n0\r\n\r\n",
             "SSH-2.0-OpenSSH_9.2\r\n\r\n"s,
             "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
         }) {
        fetched const r = ask_one_that_says(answer);
        ASSERT_TRUE(r.error.has_value()) << answer;
        EXPECT_EQ(r.error->source, party::upstream) << answer;
        EXPECT_EQ(r.error->kind, failure_kind::malformed) << answer;
        EXPECT_FALSE(r.error->retry_safe);
    }
}

TEST_F(Client, TellsOfABodyThatIsCutOff) {
    for (char const* const answer :
         {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"}) {
        fetched const r = ask_one_that_says(answer);
        ASSERT_TRUE(r.error.has_value()) << answer;
        EXPECT_EQ(r.error->kind, failure_kind::closed);
        EXPECT_EQ(r.body, "ab");
    }
}

TEST_F(Client, TellsOfAnUpstreamThatClosesBeforeItAnswers) {
    fetched const silent = ask_one_that_says("");
    ASSERT_TRUE(silent.error.has_value());
    EXPECT_EQ(silent.error->kind, failure_kind::closed);
    EXPECT_FALSE(silent.error->retry_safe) << "it may have acted upon it";
    EXPECT_TRUE(ask_one_that_says("HTTP/1.1 20").error.has_value());
}

TEST_F(Client, MayRetryWhatAnIdleConnectionLost) {
    std::string const answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    for (std::string const& verb : {"GET"s, "POST"s}) {
        scripted const up{[&answer](wire& w, int) {
            w.hear_until("\r\n\r\n");
            w.say(answer);
            w.hear_until("\r\n\r\n");  // the second one, and closes
        }};
        EXPECT_EQ(ask(up.address()).body, "a");
        fetched const second = ask(up.address(), verb);
        EXPECT_TRUE(second.reused);
        ASSERT_TRUE(second.error.has_value());
        EXPECT_EQ(second.error->retry_safe, verb == "GET");
    }
}

TEST_F(Client, MayRetryWhereNobodyListens) {
    fetched const r = ask({boost::asio::ip::make_address("127.0.0.1"), test::free_port()});
    ASSERT_TRUE(r.error.has_value());
    EXPECT_EQ(r.error->kind, failure_kind::refused);
    EXPECT_TRUE(r.error->retry_safe);
}

// Over a connection that was kept, and is reset between the look at it and the first byte.
task<fetched> post_after(client* c, client::endpoint to, semaphore* reset_now,
                         semaphore* is_reset) {
    fetched r;
    auto connected = co_await c->connect(to);
    if (!connected) co_return r;
    call over{std::move(*connected)};
    r.reused = over.reused();
    reset_now->add_permits(1);
    auto const done = co_await is_reset->acquire();
    over.head().line("POST", "/");
    over.head().add("host", "upstream");
    auto const sent = co_await over.finish();
    if (!sent) r.error = sent.error();
    co_return r;
}

TEST_F(Client, SaysThatARequestOfWhichNothingWasSentMayBeSentAgain) {
    semaphore reset_now{0};
    semaphore is_reset{0};
    scripted const up{[&](wire& w, int) {
        w.hear_until("\r\n\r\n");
        w.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        auto const told = reset_now.blocking_acquire();
        linger const at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(w.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        w.close();
        is_reset.add_permits(1);
    }};
    EXPECT_EQ(ask(up.address()).status, 200);
    fetched const r =
        rt_.spawn_pinned_to(0, post_after(&client_, up.address(), &reset_now, &is_reset))
            .blocking_join()
            .value();
    EXPECT_TRUE(r.reused);
    ASSERT_TRUE(r.error.has_value());
    EXPECT_EQ(r.error->kind, failure_kind::closed);
    EXPECT_TRUE(r.error->retry_safe);
}

task<int> write_too_much_first(client* c, client::endpoint to) {
    auto connected = co_await c->connect(to);
    if (!connected) co_return 0;
    call over{std::move(*connected)};
    over.head().line("POST", "/");
    over.head().add("host", "upstream");
    over.head().length(5);
    auto const too_much = co_await over.write("too much");
    EXPECT_FALSE(too_much);
    auto const fits = co_await over.write("hello");
    EXPECT_TRUE(fits);
    (void)co_await over.finish();
    auto const head = co_await over.read_head();
    co_return head ? (*head)->status : 0;
}

// An upstream would take it for a request.
TEST_F(Client, SendsNoPieceWithoutTheHead) {
    std::string heard;
    scripted const up{[&heard](wire& w, int) {
        heard = w.hear(5);
        if (heard != "hello") {
            heard += w.hear_until("\r\n\r\n");
            heard += w.hear(5);
        }
        w.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }};
    auto asked = rt_.spawn_pinned_to(0, write_too_much_first(&client_, up.address()));
    EXPECT_EQ(asked.blocking_join().value(), 200);
    EXPECT_TRUE(heard.starts_with("POST / HTTP/1.1\r\n")) << heard;
    EXPECT_TRUE(heard.ends_with("\r\n\r\nhello")) << heard;
}

task<void> end_with(call* over, std::string const* trailer) {
    field const much{"x-much", *trailer};
    (void)co_await over->finish(std::span{&much, 1});
}

task<int> hear_the_answer(call* over, stop_source* enough) {
    auto const head = co_await over->read_head();
    enough->request_stop();
    co_return head ? (*head)->status : 0;
}

// A request whose last piece is too long to be sent at once, and is left off when it is answered.
task<int> leave_off(client* c, client::endpoint to, std::string const* trailer) {
    auto connected = co_await c->connect(to);
    if (!connected) co_return 0;
    call over{std::move(*connected)};
    over.head().line("POST", "/");
    over.head().add("host", "upstream");
    over.head().chunked();
    stop_source enough;
    auto const both = co_await when_all(with_stop(end_with(&over, trailer), enough.token()),
                                        hear_the_answer(&over, &enough));
    co_return std::get<0>(both) ? 0 : std::get<1>(both);
}

// The next request would come where the rest of this one is expected.
TEST_F(Client, UsesNoConnectionAgainOverWhichARequestWasLeftOff) {
    std::string const much(std::size_t{32} << 20, 't');
    semaphore left{0};
    scripted const up{[&left](wire& w, int connection) {
                          w.hear_until("\r\n\r\n");
                          w.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                          if (connection != 0) return;
                          auto const told = left.blocking_acquire();
                          w.hear_all();
                      },
                      2};
    auto leaving = rt_.spawn_pinned_to(0, leave_off(&client_, up.address(), &much));
    EXPECT_EQ(leaving.blocking_join().value(), 200);
    left.add_permits(1);
    fetched const next = ask(up.address());
    EXPECT_FALSE(next.reused);
    EXPECT_EQ(next.status, 200);
}

// Both connections are looked at by one task: what is closed by the time of one leaves the other.
TEST_F(Client, KeepsAConnectionForEverIfItIsToldTo) {
    client patient{rt_, {.response_timeout = 50ms, .idle_timeout = clock::duration::max()}};
    auto const fetch_by = [&](client::endpoint to) {
        return rt_.spawn_pinned_to(0, fetch(&patient, to, "GET", "")).blocking_join().value();
    };
    served s{[](exchange* x) -> task<void> { (void)co_await x->send("hello"); }};
    scripted const silent{[](wire& w, int) { w.hear_all(); }};
    // The short time is for the silent one, but holds for both: on a machine that is busy the other
    // may need a few tries.
    std::string heard;
    for (int i = 0; i < 100 && heard != "hello"; ++i) {
        heard = fetch_by(test::loopback(s.port())).body;
    }
    EXPECT_EQ(heard, "hello");
    EXPECT_TRUE(fetch_by(silent.address()).error.has_value());
    EXPECT_TRUE(fetch_by(test::loopback(s.port())).reused);
}

TEST_F(Client, DoesNotWaitForEverForAResponse) {
    client hasty{rt_, {.response_timeout = 50ms}};
    scripted const up{[](wire& w, int) { w.hear_all(); }};
    fetched const r =
        rt_.spawn_pinned_to(0, fetch(&hasty, up.address(), "GET", "")).blocking_join().value();
    ASSERT_TRUE(r.error.has_value());
    EXPECT_EQ(r.error->kind, failure_kind::timed_out);
    EXPECT_EQ(r.error->source, party::upstream);
}

task<void> forward_upgrade(exchange* x, client* c, client::endpoint to) {
    auto connected = co_await c->connect(to);
    if (!connected) co_return;
    call over{std::move(*connected)};
    over.head().line("GET", x->head().target);
    over.head().add("host", "a");
    over.head().add("connection", "upgrade");
    over.head().add("upgrade", x->head().upgrade);
    (void)co_await over.finish();
    auto const head = co_await over.read_head();
    if (!head || (*head)->status != 101) co_return;
    x->answer().add("upgrade", (*head)->upgrade);
    (void)co_await x->upgrade();
    co_await relay(x, &over);
}

TEST_F(Client, RelaysATunnelInBothDirections) {
    scripted const up{[](wire& w, int) {
        w.hear_until("\r\n\r\n");
        w.say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhi");
        w.say(w.hear_until("."));
        w.hear_all();
        w.say("bye");
    }};
    runtime both{{.workers = 1}};
    client c{both};
    server front{both, {.listen = {{test::loopback()}}}, [&](exchange* x) {
                     return forward_upgrade(x, &c, up.address());
                 }};
    ASSERT_TRUE(front.start().has_value());
    wire w{front.addresses().front().port()};
    w.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    EXPECT_EQ(test::status_in(w.hear_until("\r\n\r\n")), 101);
    EXPECT_EQ(w.hear(2), "hi");
    w.say("to and fro.");
    EXPECT_EQ(w.hear(11), "to and fro.");
    w.say_no_more();
    EXPECT_EQ(w.hear_all(), "bye");
    (void)front.blocking_stop(5s);
}

}  // namespace
}  // namespace rondo::http
