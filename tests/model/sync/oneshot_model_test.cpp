// A oneshot, explored: who has the value in the end, who is woken, who frees what the ends share.
// Values are blocks of memory, so that one lost is a leak and one had twice a double free; their
// content is a cell, so that one seen too early is a race.
#include <memory>
#include <optional>
#include <utility>

#include "rondo/sync/oneshot.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using oneshot::recv_error;
using oneshot::try_recv_error;

using parcel = std::unique_ptr<cell<int>>;
parcel pack(int n) { return std::make_unique<cell<int>>(n); }

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

// Kills oneshot_forget_who_waits.
TEST(OneshotModel, AWaitingReceiverGetsWhatIsSent) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread receives{[&rx] {
            auto const got = rx.blocking_recv();
            RONDO_CHECK_EXPECT(got && **got == 7);
        }};
        RONDO_CHECK_EXPECT(tx.send(pack(7)));
        receives.join();
    });
}

// Kills oneshot_sender_frees_without_acquiring.
TEST(OneshotModel, AReceiverThatGoesRightAfterItsValueLeavesNothingToTheSender) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread receives{[mine = std::move(rx)]() mutable {
            auto const got = mine.blocking_recv();
            RONDO_CHECK_EXPECT(got && **got == 7);
        }};
        RONDO_CHECK_EXPECT(tx.send(pack(7)));
        receives.join();
    });
}

// Kills oneshot_do_not_wake_the_receiver.
TEST(OneshotModel, ASenderThatGoesWakesTheReceiver) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread receives{[mine = std::move(rx)]() mutable {
            auto const got = mine.blocking_recv();
            RONDO_CHECK_EXPECT(!got && got.error() == recv_error::closed);
        }};
        {
            auto const gone = std::move(tx);
        }
        receives.join();
    });
}

// Kills oneshot_overlook_what_was_sent_before_the_close.
TEST(OneshotModel, OfASendAndAReceiverThatGoesOneHasTheValue) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread goes{[mine = std::move(rx)] {}};
        auto const sent = tx.send(pack(7));
        if (!sent) RONDO_CHECK_EXPECT(*sent.error() == 7);
        goes.join();
    });
}

// Kills oneshot_send_into_a_closed_channel.
TEST(OneshotModel, OfASendAndACloseOneComesFirstForBothEnds) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        cell<bool> received{false};
        thread closes{[&, mine = std::move(rx)]() mutable {
            mine.close();
            auto const got = mine.try_recv();
            if (!got) RONDO_CHECK_EXPECT(got.error() == try_recv_error::closed);
            if (got) RONDO_CHECK_EXPECT(**got == 7);
            received = got.has_value();
        }};
        auto const sent = tx.send(pack(7));
        closes.join();
        RONDO_CHECK_EXPECT(sent.has_value() == received);
    });
}

// Kills oneshot_wake_without_releasing.
TEST(OneshotModel, AStoppedRecvLeavesTheValueToTheNext) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        stop_source stop;
        thread receives{[&, mine = std::move(rx)]() mutable {
            auto got = mine.blocking_recv(stop.token());
            if (!got) {
                RONDO_CHECK_EXPECT(got.error() == recv_error::stopped);
                got = mine.blocking_recv();
            }
            RONDO_CHECK_EXPECT(got && **got == 7);
        }};
        thread stops{[&] { stop.request_stop(); }};
        RONDO_CHECK_EXPECT(tx.send(pack(7)));
        receives.join();
        stops.join();
    });
}

// Kills oneshot_leave_before_the_wake_up.
TEST(OneshotModel, AReceiverThatGivesUpAndGoesIsNotWokenLater) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread receives{[mine = std::move(rx)]() mutable {
            auto const got = mine.blocking_recv_until(soon);
            if (!got) RONDO_CHECK_EXPECT(got.error() == recv_error::timed_out);
        }};
        (void)tx.send(pack(7));
        receives.join();
    });
}

// Kills oneshot_receiver_frees_without_acquiring.
TEST(OneshotModel, BothEndsMayGoAtOnce) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread goes{[mine = std::move(rx)] {}};
        {
            auto const gone = std::move(tx);
        }
        goes.join();
    });
}

// Kills oneshot_wait_without_acquiring.
TEST(OneshotModel, ASenderThatWaitsForTheEndSeesWhatCameBeforeIt) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        cell<int> written{0};
        thread goes{[&, mine = std::move(rx)]() mutable {
            written = 7;
            auto const gone = std::move(mine);
        }};
        tx.blocking_closed();
        RONDO_CHECK_EXPECT(written == 7);
        goes.join();
    });
}

// Kills oneshot_close_without_releasing.
TEST(OneshotModel, WhoFindsItClosedSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        cell<int> written{0};
        thread closes{[&, mine = std::move(rx)]() mutable {
            written = 7;
            mine.close();
        }};
        if (tx.is_closed()) RONDO_CHECK_EXPECT(written == 7);
        closes.join();
    });
}

// Kills oneshot_sender_leaves_without_releasing.
TEST(OneshotModel, AStoppedWaitForTheEndLeavesTheSenderFitToSend) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        stop_source stop;
        thread sends{[&, mine = std::move(tx)]() mutable {
            auto const ended = mine.blocking_closed(stop.token());
            auto const sent = mine.send(pack(7));
            if (ended) RONDO_CHECK_EXPECT(!sent);
        }};
        thread stops{[&] { stop.request_stop(); }};
        {
            auto const gone = std::move(rx);
        }
        sends.join();
        stops.join();
    });
}

// Kills oneshot_close_without_telling_the_receiver.
TEST(OneshotModel, ACloseFromOutsideEndsAWaitingRecv) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        thread receives{[&rx] {
            auto const got = rx.blocking_recv();
            RONDO_CHECK_EXPECT(!got && got.error() == recv_error::closed);
        }};
        rx.close();
        receives.join();
        RONDO_CHECK_EXPECT(tx.is_closed());
    });
}

// Kills oneshot_send_too_late_to_one_who_waited.
TEST(OneshotModel, ACloseFromOutsideAndASendDoNotBothWin) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = oneshot::channel<parcel>();
        cell<bool> accepted{false};
        cell<bool> received{false};
        thread receives{[&] { received = rx.blocking_recv().has_value(); }};
        thread sends{[&] { accepted = tx.send(pack(7)).has_value(); }};
        rx.close();
        receives.join();
        sends.join();
        RONDO_CHECK_EXPECT(received.read() == accepted);
    });
}

}  // namespace
}  // namespace rondo
