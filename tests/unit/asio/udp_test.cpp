#include "rondo/asio/udp.hpp"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "rondo/asio/asio_executor.hpp"
#include "rondo/core/spawn.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::bind_error;
using rondo::datagram;
using rondo::datagram_socket;
using rondo::endpoint;
using rondo::localhost;
using rondo::receive_error;
using rondo::task;
using rondo::asio::udp_network;

std::span<std::byte const> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }
std::string text(datagram const& d) {
    return {reinterpret_cast<char const*>(d.bytes.data()), d.bytes.size()};
}

// A context with a thread of its own.
class Udp : public testing::Test {
  protected:
    ~Udp() override {
        work.reset();
        runner.join();
    }
    std::unique_ptr<datagram_socket> bound() { return network.bind({localhost, 0}).value(); }

    boost::asio::io_context io;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
        io.get_executor()};
    std::jthread runner{[this] { io.run(); }};
    udp_network network{io.get_executor()};
};

TEST_F(Udp, AThreadReceivesWhatWasSentAndKnowsFromWhom) {
    auto const a = bound();
    auto const b = bound();
    EXPECT_NE(a->local().port, 0);
    a->send_to(b->local(), bytes("hello"));
    std::expected<datagram, receive_error> const d = b->blocking_receive_for(10s);
    ASSERT_TRUE(d);
    EXPECT_EQ(text(*d), "hello");
    EXPECT_EQ(d->from, a->local());
    EXPECT_EQ(a->counts().sent, 1U);
    EXPECT_EQ(b->counts().arrived, 1U);
}

TEST_F(Udp, ATaskAnswersAndGoesOnWhenItsPeerIsGone) {
    struct echo {
        static task<int> serve(datagram_socket* s) {
            int answered = 0;
            for (;;) {
                auto d = co_await s->receive();
                if (!d) co_return answered;
                s->send_to(d->from, d->bytes);
                ++answered;
            }
        }
    };
    rondo::asio::asio_executor where{io.get_executor()};
    auto const server = bound();
    auto served = rondo::spawn(where, echo::serve(server.get()));
    {
        auto const gone = bound();
        gone->send_to(server->local(), bytes("nobody waits for the answer"));
    }
    auto const client = bound();
    client->send_to(server->local(), bytes("are you there?"));
    auto const answer = client->blocking_receive_for(10s);
    ASSERT_TRUE(answer);
    EXPECT_EQ(text(*answer), "are you there?");
    server->close();
    EXPECT_EQ(served.blocking_join().value(), 2);
}

TEST_F(Udp, BindSaysWhyItFails) {
    auto const a = bound();
    EXPECT_EQ(network.bind(a->local()).error(), bind_error::in_use);
    EXPECT_EQ(network.bind({0x08080808, 0}).error(), bind_error::not_here);
}

TEST_F(Udp, AfterCloseNothingIsSentOrReceived) {
    auto const a = bound();
    a->close();
    a->send_to(a->local(), bytes("x"));
    EXPECT_EQ(a->counts().not_sent, 1U);
    EXPECT_EQ(a->blocking_receive().error(), receive_error::closed);
}

TEST_F(Udp, TheLargestDatagramArrivesWhole) {
    auto const a = bound();
    std::string const large(datagram_socket::longest, 'x');
    a->send_to(a->local(), bytes(large));
    auto const d = a->blocking_receive_for(10s);
    ASSERT_TRUE(d);
    EXPECT_EQ(text(*d), large);
}

TEST(UdpOfAContextThatIsNotRun, ASocketMayGoWhileItsReceiveIsPending) {
    boost::asio::io_context io;
    auto const s = udp_network{io.get_executor()}.bind({localhost, 0}).value();
    s->send_to(s->local(), bytes("x"));
    EXPECT_EQ(s->try_receive().error(), rondo::try_receive_error::empty);
}

}  // namespace
