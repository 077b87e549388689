// Pauses of one side: what they end, what they do not, and who is blamed for what follows.
// Real time: it is about how long somebody says nothing.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

#include "forwarding.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using namespace std::chrono_literals;
using test::scripted_server;
using test::wire;

std::string const upgrade =
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
std::string const agreed =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";

// Neither side does anything when the other one's end comes.
TEST(Pause, ATunnelThatIsSilentEndsOnBothSides) {
    for (std::string_view const shorter : {"response", "idle"}) {
        semaphore ended{0};
        semaphore go{0};
        scripted_server up{[&](wire& w) {
            (void)w.read_head();
            w.send(agreed);
            (void)w.read_to_end();
            ended.add_permits(1);
            if (auto told = go.blocking_acquire()) told->forget();
        }};
        running r{
            forwarding_to(quoted(up), "timeouts = { " + std::string{shorter} + " = '1s' }\n")};
        wire w = r.connect();
        w.send(upgrade);
        EXPECT_EQ(status_of(w.read_head()), "101");
        auto const begun = clock::now();
        (void)w.read_to_end();
        EXPECT_LT(clock::now() - begun, 15s) << "the client was not told, with " << shorter;
        EXPECT_TRUE(ended.blocking_acquire_for(1, 15s)) << "nor the backend, with " << shorter;
        go.add_permits(1);
    }
}

// It has begun to answer, and wants no more of the body before it has said all.
TEST(Pause, AnAnswerIsNotCutOffWhileItComesThoughNothingOfTheBodyIsTaken) {
    std::string const body(std::size_t{32} << 20, 'b');
    semaphore go{0};
    scripted_server up{[&](wire& w) {
        (void)w.read_head();
        w.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 10; ++i) {
            std::this_thread::sleep_for(300ms);
            w.send("5\r\npiece\r\n");
        }
        w.send("0\r\n\r\n");
        if (auto told = go.blocking_acquire()) told->forget();
    }};
    running r{forwarding_to(quoted(up), "timeouts = { response = '2s' }\n")};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n");
    std::thread sender{[&] { (void)w.send(body); }};
    (void)w.read_head();
    std::string const answer = w.read_until("0\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("piece\r\n0\r\n\r\n")) << answer;
    ::shutdown(w.fd(), SHUT_RDWR);
    sender.join();
    go.add_permits(1);
}

// It reads when it has said all, as many do.
TEST(Pause, AnAnswerIsNotCutOffWhileTheClientSendsThoughItTakesNothing) {
    std::string const much(std::size_t{32} << 20, 'm');
    scripted_server up{[&](wire& w) {
        (void)w.read_head();
        w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(much.size()) + "\r\n\r\n");
        w.send(much);
        (void)w.read_to_end();
    }};
    running r{forwarding_to(quoted(up), "timeouts = { idle = '2s' }\n")};
    wire w = r.connect();
    w.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 16\r\n\r\nb");
    for (int i = 0; i < 15; ++i) {
        std::this_thread::sleep_for(200ms);
        w.send("b");
    }
    (void)w.read_head();
    EXPECT_EQ(w.read(much.size()).size(), much.size());
}

}  // namespace
}  // namespace rondo::gateway
