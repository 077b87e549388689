#include "rondo/core/datagram.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/when_any.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using received = std::expected<datagram, receive_error>;

std::vector<std::byte> bytes(std::string_view text) {
    auto const view = std::as_bytes(std::span{text});
    return {view.begin(), view.end()};
}
std::string text(datagram const& d) {
    return {reinterpret_cast<char const*>(d.bytes.data()), d.bytes.size()};
}

// A socket whose network is the test.
class hand_fed final : public datagram_socket {
  public:
    explicit hand_fed(std::size_t length = 4) : datagram_socket({localhost, 7}, length) {}
    ~hand_fed() override { close(); }

    void send_to(endpoint, std::span<std::byte const>) noexcept override {
        count_sent(!is_closed());
    }
    void feed(std::string_view what) { deliver({{localhost, 9}, bytes(what)}); }

    int let_go = 0;

  private:
    void closed() noexcept override { ++let_go; }
};

task<void> receive_into(datagram_socket* s, std::vector<std::string>* to) {
    for (;;) {
        received const d = co_await s->receive();
        if (!d) co_return;
        to->push_back(text(*d));
    }
}

task<received> receive_within(datagram_socket* s, clock::duration patience) {
    co_return co_await s->receive_for(patience);
}

TEST(Datagram, EndpointsAreWrittenWithDots) {
    EXPECT_EQ(to_text({localhost, 4000}), "127.0.0.1:4000");
    EXPECT_EQ(to_text({0xffffffff, 65535}), "255.255.255.255:65535");
}

TEST(Datagram, ArrivesWithItsSenderInTheOrderOfArrival) {
    manual_loop loop;
    hand_fed s;
    std::vector<std::string> got;
    auto const h = spawn(loop, receive_into(&s, &got));
    loop.run_ready();
    s.feed("one");
    s.feed("two");
    loop.run_ready();
    EXPECT_EQ(got, (std::vector<std::string>{"one", "two"}));
    s.feed("three");
    std::expected<datagram, try_receive_error> none = s.try_receive();
    loop.run_ready();
    EXPECT_FALSE(none);
    s.close();
    loop.run_ready();
    EXPECT_TRUE(h.ended());
}

TEST(Datagram, WhatDoesNotFitIntoTheQueueIsDroppedAndCounted) {
    hand_fed s{2};
    for (char const* what : {"a", "b", "c", "d"}) s.feed(what);
    EXPECT_EQ(text(s.try_receive().value()), "a");
    s.feed("e");
    EXPECT_EQ(text(s.try_receive().value()), "b");
    EXPECT_EQ(text(s.try_receive().value()), "e");
    EXPECT_EQ(s.try_receive().error(), try_receive_error::empty);
    EXPECT_EQ(s.counts().arrived, 3U);
    EXPECT_EQ(s.counts().overflowed, 2U);
}

TEST(Datagram, CloseEndsReceivesDropsTheQueueAndLetsGoOfTheNetworkOnce) {
    manual_loop loop;
    hand_fed s;
    auto waiting = spawn(loop, receive_within(&s, 1h));
    loop.run_ready();
    s.close();
    s.close();
    loop.run_ready();
    EXPECT_EQ(waiting.blocking_join().value().error(), receive_error::closed);
    s.feed("late");
    EXPECT_EQ(s.try_receive().error(), try_receive_error::closed);
    EXPECT_EQ(s.blocking_receive().error(), receive_error::closed);
    s.send_to({}, {});
    EXPECT_EQ(s.counts().not_sent, 1U);
    EXPECT_EQ(s.counts().arrived, 0U);
    EXPECT_EQ(s.let_go, 1);
}

TEST(Datagram, ReceiveEndsWithItsDeadlineOrItsToken) {
    manual_loop loop;
    hand_fed s;
    auto late = spawn(loop, receive_within(&s, 10ms));
    loop.advance(10ms);
    EXPECT_EQ(late.blocking_join().value().error(), receive_error::timed_out);

    stop_source asked;
    asked.request_stop();
    EXPECT_EQ(s.blocking_receive(asked.token()).error(), receive_error::stopped);
    EXPECT_EQ(s.blocking_receive_for(1ms).error(), receive_error::timed_out);
    EXPECT_EQ(s.blocking_receive_until(clock::now()).error(), receive_error::timed_out);
}

TEST(Datagram, AReceiveThatLosesAWhenAnyLeavesItsDatagramFirstInTheQueue) {
    manual_loop loop;
    hand_fed s;
    std::vector<std::string> got;
    struct script {
        static task<void> run(hand_fed* socket, std::vector<std::string>* to) {
            auto won = co_await when_any(socket->receive(), socket->receive());
            received const& first = won.index() == 0 ? std::get<0>(won) : std::get<1>(won);
            to->push_back(text(*first));
            received const next = co_await socket->receive();
            to->push_back(text(*next));
        }
    };
    auto const h = spawn(loop, script::run(&s, &got));
    loop.run_ready();
    s.feed("one");
    s.feed("two");
    s.feed("three");
    loop.run_ready();
    ASSERT_TRUE(h.ended());
    EXPECT_EQ(got, (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(text(s.try_receive().value()), "three");
}

TEST(Datagram, AThreadReceivesWhatAnotherDelivers) {
    hand_fed s;
    std::jthread const network{[&s] { s.feed("hello"); }};
    EXPECT_EQ(text(s.blocking_receive().value()), "hello");
}

}  // namespace
}  // namespace rondo
