// Connections to an upstream that end before a byte of a request was sent over them: what is sent
// again, and who is to blame.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/address_v4.hpp>
#include <chrono>
#include <cstdint>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>

#include "forwarding.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/proxy.hpp"
#include "rondo/http/server.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using test::scripted_server;
using test::wire;

std::string const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";

// A worker that is held up: meanwhile a connection ends, and then the body comes. For a second try
// there is another backend, at the same address.
class held_up {
  public:
    explicit held_up(http::client::endpoint const& behind)
        : backend_{client_, {.backends = {{behind}, {behind}}}},
          front_{rt_,
                 {.listen = {{http::client::endpoint{boost::asio::ip::address_v4::loopback(), 0}}}},
                 [this](http::exchange* x) { return answer(x); }} {
        if (!front_.start()) throw std::runtime_error("cannot listen");
    }
    wire connect() const { return wire::to(front_.addresses().front().port()); }
    std::uint64_t failures() const {
        std::uint64_t n = 0;
        for (auto const& f : backend_.measure()) n += f.failures;
        return n;
    }

    std::uint64_t connections() const {
        std::uint64_t n = 0;
        for (auto const& f : backend_.measure()) n += f.connections;
        return n;
    }

    std::binary_semaphore is_held{0};
    std::binary_semaphore go_on{0};

  private:
    task<void> answer(http::exchange* x) {
        return x->head().path == "/hold" ? hold(x) : backend_.answer(x);
    }
    task<void> hold(http::exchange* x) {
        is_held.release();
        go_on.acquire();
        (void)co_await x->send("ok");
    }

    runtime rt_{{.workers = 1}};
    http::client client_{rt_};
    http::proxy backend_;
    http::server front_;
};

// Two things come while the worker is held up, and are there when it looks: the body of a POST that
// has chosen a connection, and the end of that, perhaps with some last words. Whichever is heard of
// first, the connection has ended before anything was sent, and nobody is to blame.
struct ending {
    bool of_a_kept_one = true;
    bool before_the_body;
    std::string last_words;
};

// Until the other side's system has it, with all that was sent before; shutdown() may return
// earlier.
void await_arrival_of_end(wire const& w) {
    tcp_info info{};
    do {
        // real time: what is waited for is the system.
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        socklen_t size = sizeof info;
        ASSERT_EQ(::getsockopt(w.fd(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    } while (info.tcpi_state == TCP_FIN_WAIT1);
}

void expect_post_once(ending const& how) {
    std::atomic<int> connections{0};
    semaphore end_now{0};
    semaphore has_ended{0};
    std::string heard_behind_the_end = "nothing";
    std::string answer;
    {
        scripted_server up{[&](wire& w) {
            if (connections++ != 0) return always(ok)(w);
            if (how.of_a_kept_one) {
                (void)w.read_message();
                w.send(ok);
            }
            if (auto told = end_now.blocking_acquire()) told->forget();
            w.send(how.last_words);
            w.end_sending();
            await_arrival_of_end(w);
            has_ended.add_permits(1);
            heard_behind_the_end = w.read_to_end();
        }};
        held_up h{{boost::asio::ip::address_v4::loopback(), up.port()}};
        wire w = h.connect();
        wire other = h.connect();
        if (how.of_a_kept_one) {
            w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            EXPECT_EQ(body_of(w.read_message()), "ok");
        }
        w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
        EXPECT_EQ(w.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
        other.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
        h.is_held.acquire();
        if (!how.before_the_body) w.send("body");
        end_now.add_permits(1);
        if (auto told = has_ended.blocking_acquire()) told->forget();
        if (how.before_the_body) w.send("body");
        h.go_on.release();
        answer = w.read_message();
        EXPECT_EQ(h.failures(), 0U);
    }
    EXPECT_EQ(body_of(answer), "ok");
    EXPECT_EQ(connections, 2);
    EXPECT_EQ(heard_behind_the_end, "");
}

TEST(Proxy, SendsNothingOfAPostOverAConnectionThatItHasGivenUp) {
    expect_post_once({.before_the_body = true, .last_words = ""});
    expect_post_once({.before_the_body = true, .last_words = poison});
}

TEST(Proxy, SendsNothingOfAPostOverAConnectionOfWhoseEndItCouldHaveHeard) {
    expect_post_once({.before_the_body = false, .last_words = ""});
    expect_post_once({.before_the_body = false, .last_words = poison});
}

TEST(Proxy, SendsNothingOfAPostOverANewConnectionThatEndsBeforeItsBodyComes) {
    for (bool const before_the_body : {true, false}) {
        expect_post_once(
            {.of_a_kept_one = false, .before_the_body = before_the_body, .last_words = ""});
        expect_post_once(
            {.of_a_kept_one = false, .before_the_body = before_the_body, .last_words = poison});
    }
}

TEST(Proxy, BlamesABackendThatClosesBehindABodyThatWasLate) {
    scripted_server up{[](wire& w) { (void)w.read_message(); }};
    held_up h{{boost::asio::ip::address_v4::loopback(), up.port()}};
    wire w = h.connect();
    wire other = h.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(w.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
    other.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    h.is_held.acquire();  // then the other task has found no body
    w.send("body");
    h.go_on.release();
    EXPECT_EQ(status_of(w.read_message()), "502");
    EXPECT_EQ(h.failures(), 1U);
}

// The body is there, and would have been sent, but the connection is reset between the moment in
// which it is made and the turn of who made it. That is the backend's doing: nobody else had a say.
TEST(Proxy, BlamesABackendThatResetsANewConnectionBeforeABodyThatIsThere) {
    std::atomic<int> connections{0};
    semaphore is_made{0};
    semaphore reset_now{0};
    semaphore is_reset{0};
    scripted_server up{[&](wire& w) {
        if (connections++ != 0) return always(ok)(w);
        is_made.add_permits(1);
        if (auto told = reset_now.blocking_acquire()) told->forget();
        w.reset();
        is_reset.add_permits(1);
    }};
    held_up h{{boost::asio::ip::address_v4::loopback(), up.port()}};
    wire post = h.connect();
    wire before = h.connect();
    wire between = h.connect();
    wire first = h.connect();
    std::string const hold = "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n";
    first.send(hold);
    h.is_held.acquire();
    // The worker learns of these two at once, and has turns for them one after the other.
    before.send(hold);
    post.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
    h.go_on.release();
    h.is_held.acquire();
    // It learns of this one at once with the connection that the POST makes, and has a turn for it
    // before.
    between.send(hold);
    h.go_on.release();
    h.is_held.acquire();
    EXPECT_TRUE(is_made.blocking_acquire_for(1, std::chrono::seconds{5}));
    reset_now.add_permits(1);
    if (auto told = is_reset.blocking_acquire()) told->forget();
    h.go_on.release();
    EXPECT_EQ(body_of(post.read_message()), "ok");
    EXPECT_EQ(connections, 2);
    EXPECT_EQ(h.failures(), 1U);
    EXPECT_EQ(h.connections(), 2U) << "the first one was never made";
}

}  // namespace
}  // namespace rondo::gateway
