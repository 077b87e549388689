// The gateway over TLS: what it does there in other ways than without, and how it ends.
#include "rondo/tls.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "forwarding.hpp"
#include "held_upstream.hpp"
#include "running.hpp"
#include "support/child_process.hpp"
#include "tls_wire.hpp"

namespace rondo::gateway {
namespace {

using test::scratch_directory;
using test::scripted_server;
using test::wire;

std::string const tls = "tls = { certificate = 'site.pem', key = 'site.key' }\n";

class Tls : public testing::Test {
  protected:
    void SetUp() override { issue_certificate(in, "site"); }

    // Forwards to it over TLS.
    running forwarding(std::string const& to, std::string_view before = {}) const {
        return running{std::string{before} + forwarding_to(to, tls), in.path()};
    }

    scratch_directory in;
};

TEST_F(Tls, PassesLargeBodiesBothWays) {
    std::string const body(2'000'000, 'b');
    scripted_server up{[&](wire& w) {
        while (true) {
            std::string const asked = w.read_message();
            if (asked.empty()) return;
            w.send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + body_of(asked));
        }
    }};
    running const r = forwarding(quoted(up));
    tls_wire w{r.port()};
    for (int i = 0; i < 2; ++i) {
        w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
        w.send(body);
        EXPECT_EQ(body_of(w.read_message()), body);
    }
}

TEST_F(Tls, SendsALargeFileWhole) {
    std::string const content(3'000'001, 'f');
    in.write("www/large", content);
    running const r{"[[server]]\nlisten = '127.0.0.1:0'\nserve = 'www'\n" + tls, in.path()};
    tls_wire w{r.port()};
    EXPECT_EQ(body_of(w.ask("/large")), content);
    EXPECT_EQ(body_of(w.ask("/large")), content);
}

TEST_F(Tls, SaysWhereAnAnswerEndsThatEndsWithTheConnection) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send("HTTP/1.0 200 OK\r\n\r\nall of it");
    }};
    running const r = forwarding(quoted(up));
    tls_wire w{r.port()};
    w.send("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    EXPECT_EQ(body_of(w.read_to_end()), "all of it");
    EXPECT_TRUE(w.was_closed());
}

TEST_F(Tls, DoesNotSayThatHalfAnAnswerIsAll) {
    scripted_server up{[](wire& w) {
        (void)w.read_message();
        w.send("HTTP/1.0 200 OK\r\n\r\nhalf of it");
        w.reset();
    }};
    running const r = forwarding(quoted(up));
    tls_wire w{r.port()};
    w.send("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    (void)w.read_to_end();
    EXPECT_FALSE(w.was_closed());
}

TEST_F(Tls, AnswersARequestWhoseBodyNobodyWantsAndSaysThatItEnds) {
    in.write("www/index.html", "page");
    running const r{"[[server]]\nlisten = '127.0.0.1:0'\nserve = 'www'\n" + tls, in.path()};
    tls_wire w{r.port()};
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    w.send(std::string(600'000, 'x'));
    EXPECT_EQ(status_of(w.read_to_end()), "405");
    EXPECT_TRUE(w.was_closed());
}

// The one to ask is gone when a gateway is started by another program, or loads its configuration
// again: it would wait for ever. So who has the right one on stdin is not asked either.
TEST_F(Tls, AsksNobodyForThePassphraseOfAKey) {
    std::string const at = (in.path() / "site").string();
    test::child_process locker{{"openssl", "pkey", "-in", at + ".key", "-aes256", "-passout",
                                "pass:secret", "-out", at + ".locked"}};
    ASSERT_EQ(locker.wait(), 0) << locker.said();
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], "secret\n", 7), 7);
    int const before = ::dup(STDIN_FILENO);
    ::dup2(ends[0], STDIN_FILENO);
    certificate const locked{.chain = at + ".pem", .key = at + ".locked", .at = {3, 7}};
    auto const loaded = tls_certificates::load({locked});
    ::dup2(before, STDIN_FILENO);
    for (int const fd : {before, ends[0], ends[1]}) ::close(fd);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().at(0).advice.find("without a passphrase"), std::string::npos);
}

TEST_F(Tls, TunnelsAnUpgrade) {
    scripted_server up{[](wire& w) {
        (void)w.read_head();
        w.send("HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi");
        w.send("<" + w.read_until("!") + ">");
    }};
    running const r = forwarding(quoted(up));
    tls_wire w{r.port()};
    w.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    EXPECT_EQ(status_of(w.read_until("\r\n\r\n")), "101");
    EXPECT_EQ(w.read(2), "hi");
    w.send("hello!");
    EXPECT_EQ(w.read_to_end(), "<hello!>");
    EXPECT_TRUE(w.was_closed());
}

TEST_F(Tls, AnswersWhatIsUnderWayWhenItEndsAndClosesWhoIsIdle) {
    held_upstream up;
    running r = forwarding("'" + up.address() + "'");
    tls_wire idle{r.port()};
    tls_wire busy{r.port()};
    busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    std::thread stopper{[&] { EXPECT_EQ(r.stop(), 0U); }};
    EXPECT_EQ(idle.read_to_end(), "");
    EXPECT_TRUE(idle.was_closed());
    up.let_go(1);
    EXPECT_EQ(body_of(busy.read_to_end()), "ok");
    EXPECT_TRUE(busy.was_closed());
    stopper.join();
}

TEST_F(Tls, WhoIsGoneLeavesTheLine) {
    held_upstream up;
    running r = forwarding("'" + up.address() + "'",
                           "[admission]\nmax_in_flight = 1\n[admin]\nlisten = '127.0.0.1:0'\n");
    tls_wire first{r.port()};
    first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    auto const waits = [&r](std::string const& n) {
        std::string const page = body_of(r.ask_admin("/metrics"));
        return page.find("\nrondo_admission_queued " + n + "\n") != std::string::npos;
    };
    tls_wire second{r.port()};
    second.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (!waits("1")) std::this_thread::yield();
    second.close();
    while (!waits("0")) std::this_thread::yield();
    up.let_go(1);
    EXPECT_EQ(body_of(first.read_message()), "ok");
}

// OpenSSL takes a key of another kind for that of a second certificate, which never comes: then no
// handshake would succeed.
TEST_F(Tls, TakesNoKeyOfAnotherKindThanTheCertificate) {
    ASSERT_EQ(std::system(("openssl genrsa -out " + (in.path() / "rsa.key").string() +
                           " 2048 2>/dev/null && openssl ecparam -genkey -name prime256v1 -noout "
                           "-out " +
                           (in.path() / "ec.key").string())
                              .c_str()),
              0);
    for (char const* const other : {"rsa.key", "ec.key"}) {
        auto const loaded =
            tls_certificates::load({{in.path() / "site.pem", in.path() / "site.key", {}}});
        EXPECT_TRUE(loaded.has_value());
        auto const wrong =
            tls_certificates::load({{in.path() / "site.pem", in.path() / other, {}}});
        ASSERT_FALSE(wrong.has_value()) << other;
        EXPECT_NE(wrong.error().at(0).problem.find(other), std::string::npos)
            << wrong.error().at(0).problem;
    }
}

}  // namespace
}  // namespace rondo::gateway
