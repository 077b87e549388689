// What meets at the queue of a socket: a delivery, a receive, a stop, a close.
#include <optional>

#include "rondo/core/datagram.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

class hand_fed final : public datagram_socket {
  public:
    hand_fed() : datagram_socket({localhost, 7}, 1) {}
    ~hand_fed() override { close(); }
    void send_to(endpoint, std::span<std::byte const>) noexcept override {}
    void feed() { deliver({{localhost, 9}, {}}); }

  private:
    void closed() noexcept override {}
};

// lose_what_arrives_for_a_receiver
TEST(DatagramModel, WhoWaitsGetsWhatArrives) {
    EXPECT_HOLDS([] {
        hand_fed s;
        thread network{[&] { s.feed(); }};
        RONDO_CHECK_EXPECT(s.blocking_receive().has_value());
        network.join();
        RONDO_CHECK_EXPECT(s.counts().arrived == 1);
    });
}

// take_from_an_empty_queue
TEST(DatagramModel, AStoppedReceiveTakesNothing) {
    EXPECT_HOLDS(
        [] {
            hand_fed s;
            stop_source asked;
            thread network{[&] { s.feed(); }};
            thread stopper{[&] { asked.request_stop(); }};
            bool const received = s.blocking_receive(asked.token()).has_value();
            network.join();
            stopper.join();
            RONDO_CHECK_EXPECT(received != s.try_receive().has_value());
        },
        1);
}

// leave_receivers_waiting_after_close
TEST(DatagramModel, CloseEndsWhoWaitsAndDropsWhatComesAfterIt) {
    EXPECT_HOLDS(
        [] {
            hand_fed s;
            thread network{[&] { s.feed(); }};
            thread closer{[&] { s.close(); }};
            auto const d = s.blocking_receive();
            RONDO_CHECK_EXPECT(d.has_value() || d.error() == receive_error::closed);
            network.join();
            closer.join();
            RONDO_CHECK_EXPECT(s.try_receive().error() == try_receive_error::closed);
        },
        1);
}

}  // namespace
}  // namespace rondo
