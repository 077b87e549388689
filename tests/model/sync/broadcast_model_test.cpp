// A broadcast channel, explored: who gets which value, who copies and who takes it, and who frees
// it when it is pushed out in the middle of a copy. Values count their lives: every scenario ends
// with none.
#include <memory>
#include <optional>
#include <utility>

#include "rondo/sync/broadcast.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using broadcast::recv_failure;
using broadcast::try_recv_failure;
using check::thread;

// A value with a block of memory: lost, it is a leak; had twice, a double free; its number is a
// cell: seen too early, or destroyed while it is read, a race.
class parcel {
  public:
    explicit parcel(int n) : number_(std::make_unique<cell<int>>(n)) {}
    parcel(parcel const& other) : parcel(other.number()) {}
    parcel(parcel&&) noexcept = default;
    parcel& operator=(parcel&&) noexcept = default;
    int number() const { return number_->read(); }

  private:
    std::unique_ptr<cell<int>> number_;
};

// Kills broadcast_look_at_the_tail_without_acquiring.
TEST(BroadcastModel, AWaitingReceiverGetsWhatIsSent) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        thread receives{[&rx] {
            auto const got = rx.blocking_recv();
            RONDO_CHECK_EXPECT(got && got->number() == 7);
        }};
        RONDO_CHECK_EXPECT(tx.send(parcel{7}) == 1U);
        receives.join();
        RONDO_CHECK_EXPECT(tx.is_empty());
    });
}

// Kills broadcast_take_without_acquiring.
TEST(BroadcastModel, TwoReceiversGetTheSameValueAndTheLastTakesIt) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<parcel>(1);
            auto other = tx.subscribe();
            thread one{[&rx] { RONDO_CHECK_EXPECT(rx.blocking_recv()->number() == 7); }};
            thread two{[&other] { RONDO_CHECK_EXPECT(other.blocking_recv()->number() == 7); }};
            RONDO_CHECK_EXPECT(tx.send(parcel{7}) == 2U);
            one.join();
            two.join();
            RONDO_CHECK_EXPECT(tx.is_empty());
        },
        1);
}

// Kills broadcast_drop_without_acquiring.
TEST(BroadcastModel, TwoReceiversReadAtOnceWhatIsThere) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        auto other = tx.subscribe();
        RONDO_CHECK_EXPECT(tx.send(parcel{7}) == 2U);
        thread one{[&rx] { RONDO_CHECK_EXPECT(rx.try_recv()->number() == 7); }};
        RONDO_CHECK_EXPECT(other.try_recv()->number() == 7);
        one.join();
        RONDO_CHECK_EXPECT(tx.is_empty());
    });
}

// Kills broadcast_put_in_the_node_first.
TEST(BroadcastModel, AValueIsPushedOutWhileItIsRead) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        auto other = tx.subscribe();
        RONDO_CHECK_EXPECT(tx.send(parcel{1}) == 2U);
        thread reads{[&rx] {
            auto const got = rx.try_recv();
            if (got) RONDO_CHECK_EXPECT(got->number() == 1);
            if (!got) RONDO_CHECK_EXPECT(got.error().why == try_recv_failure::lagged);
            if (!got) RONDO_CHECK_EXPECT(got.error().missed == 1);
            RONDO_CHECK_EXPECT(rx.blocking_recv()->number() == 2);
        }};
        RONDO_CHECK_EXPECT(tx.send(parcel{2}) == 2U);
        reads.join();
    });
}

// Kills broadcast_leave_a_node_to_nobody.
TEST(BroadcastModel, AValueIsPushedOutWhileTwoReadIt) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<parcel>(1);
            auto other = tx.subscribe();
            RONDO_CHECK_EXPECT(tx.send(parcel{1}) == 2U);
            thread one{[&rx] {
                auto const got = rx.try_recv();
                RONDO_CHECK_EXPECT(got ? got->number() == 1 : got.error().missed == 1);
            }};
            thread two{[&other] {
                auto const got = other.try_recv();
                RONDO_CHECK_EXPECT(got ? got->number() == 1 : got.error().missed == 1);
            }};
            RONDO_CHECK_EXPECT(tx.send(parcel{2}) == 2U);
            one.join();
            two.join();
        },
        1);
}

// It is the only one to read it, so it takes the value itself.
// Kills broadcast_free_what_is_read.
TEST(BroadcastModel, AValueIsPushedOutWhileItIsTaken) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        RONDO_CHECK_EXPECT(tx.send(parcel{1}) == 1U);
        thread takes{[&rx] {
            auto const got = rx.try_recv();
            if (got) RONDO_CHECK_EXPECT(got->number() == 1);
            if (!got) RONDO_CHECK_EXPECT(got.error().missed == 1 || got.error().missed == 2);
        }};
        RONDO_CHECK_EXPECT(tx.send(parcel{2}) == 1U);
        RONDO_CHECK_EXPECT(tx.send(parcel{3}) == 1U);
        takes.join();
    });
}

// Kills broadcast_skip_without_the_lock.
TEST(BroadcastModel, ASlowReceiverLearnsHowManyItMissedAndGoesOn) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<int>(2);
            thread sends{[&tx] {
                for (int i = 0; i < 4; ++i) RONDO_CHECK_EXPECT(tx.send(i) == 1U);
            }};
            int next = 0;
            while (next < 4) {
                auto const got = rx.try_recv();
                if (got) {
                    RONDO_CHECK_EXPECT(*got == next);
                    ++next;
                } else if (got.error().why == try_recv_failure::lagged) {
                    RONDO_CHECK_EXPECT(got.error().missed > 0);
                    next += static_cast<int>(got.error().missed);
                    RONDO_CHECK_EXPECT(next <= 3);
                } else {
                    check::spin_pause();
                }
            }
            sends.join();
        },
        1);
}

// A lap has two bits here: the fifth value looks like the first.
// Kills broadcast_look_at_a_lap_that_was_long_ago.
TEST(BroadcastModel, AReceiverThatIsWholeRoundsOfLapsBehindKnowsThatItLags) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        for (int n = 1; n <= 4; ++n) RONDO_CHECK_EXPECT(tx.send(parcel{n}) == 1U);
        thread sends{[&tx] { RONDO_CHECK_EXPECT(tx.send(parcel{5}) == 1U); }};
        auto const behind = rx.try_recv();
        RONDO_CHECK_EXPECT(!behind && behind.error().why == try_recv_failure::lagged);
        std::uint64_t const missed = behind.error().missed;
        RONDO_CHECK_EXPECT(missed == 3 || missed == 4);
        sends.join();
    });
}

// Kills broadcast_stay_in_one_place.
TEST(BroadcastModel, TwoSendersFindOneOrderForAll) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<int>(2);
            auto other = rx.resubscribe();
            thread sends{[&tx] { RONDO_CHECK_EXPECT(tx.send(1) == 2U); }};
            RONDO_CHECK_EXPECT(tx.send(2) == 2U);
            sends.join();
            int const first = *rx.try_recv();
            int const second = *rx.try_recv();
            RONDO_CHECK_EXPECT(first + second == 3);
            RONDO_CHECK_EXPECT(other.try_recv() == first && other.try_recv() == second);
        },
        1);
}

// Kills broadcast_go_and_keep_the_claims.
TEST(BroadcastModel, AReceiverThatGoesTakesItsClaimsWithIt) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<parcel>(2);
            auto other = tx.subscribe();
            RONDO_CHECK_EXPECT(tx.send(parcel{1}) == 2U);
            thread goes{[mine = std::move(other)] {}};
            auto const reached = tx.send(parcel{2});
            RONDO_CHECK_EXPECT(reached == 1U || reached == 2U);
            RONDO_CHECK_EXPECT(rx.try_recv()->number() == 1);
            RONDO_CHECK_EXPECT(rx.try_recv()->number() == 2);
            goes.join();
            RONDO_CHECK_EXPECT(tx.is_empty());
        },
        1);
}

// Kills broadcast_send_to_nobody.
TEST(BroadcastModel, AReceiverThatGoesAndASendThatPushesOutMeet) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        RONDO_CHECK_EXPECT(tx.send(parcel{1}) == 1U);
        thread goes{[mine = std::move(rx)] {}};
        auto const sent = tx.send(parcel{2});
        if (!sent) RONDO_CHECK_EXPECT(sent.error().number() == 2);
        goes.join();
        RONDO_CHECK_EXPECT(tx.receiver_count() == 0);
    });
}

// Kills broadcast_publish_without_releasing.
TEST(BroadcastModel, TheLastValueOfTheLastSenderIsNotLost) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        thread sends{[mine = std::move(tx)] { RONDO_CHECK_EXPECT(mine.send(parcel{7}) == 1U); }};
        RONDO_CHECK_EXPECT(rx.blocking_recv()->number() == 7);
        RONDO_CHECK_EXPECT(rx.blocking_recv().error().why == recv_failure::closed);
        sends.join();
    });
}

// Kills broadcast_look_for_values_before_the_end.
TEST(BroadcastModel, TryRecvSaysClosedOnlyAfterTheLastValue) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<int>(1);
        thread sends{[mine = std::move(tx)] { RONDO_CHECK_EXPECT(mine.send(7) == 1U); }};
        auto const got = rx.try_recv();
        if (!got) RONDO_CHECK_EXPECT(got.error().why == try_recv_failure::empty);
        sends.join();
        if (!got) RONDO_CHECK_EXPECT(rx.try_recv() == 7);
        RONDO_CHECK_EXPECT(rx.try_recv().error().why == try_recv_failure::closed);
    });
}

// Kills broadcast_look_at_the_tail_without_acquiring.
TEST(BroadcastModel, AStoppedRecvLeavesTheValueToTheNext) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<parcel>(1);
            stop_source stop;
            thread receives{[&] {
                auto got = rx.blocking_recv(stop.token());
                if (!got) {
                    RONDO_CHECK_EXPECT(got.error().why == recv_failure::stopped);
                    got = rx.blocking_recv();
                }
                RONDO_CHECK_EXPECT(got && got->number() == 7);
            }};
            thread stops{[&] { stop.request_stop(); }};
            RONDO_CHECK_EXPECT(tx.send(parcel{7}) == 1U);
            receives.join();
            stops.join();
        },
        1);
}

// Kills broadcast_subscribe_without_the_lock.
TEST(BroadcastModel, ASubscriberGetsAllOrNothingOfASend) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        cell<std::size_t> reached{std::size_t{0}};
        thread sends{[&] { reached = *tx.send(parcel{7}); }};
        auto late = tx.subscribe();
        sends.join();
        RONDO_CHECK_EXPECT(late.try_recv().has_value() == (reached == 2U));
    });
}

// Kills broadcast_go_without_a_word.
TEST(BroadcastModel, ClosedWaitsForTheLastReceiver) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        cell<int> written{0};
        thread goes{[&, mine = std::move(rx)]() mutable {
            written = 7;
            auto const gone = std::move(mine);
        }};
        tx.blocking_closed();
        RONDO_CHECK_EXPECT(written == 7);
        goes.join();
        RONDO_CHECK_EXPECT(!tx.send(parcel{1}));
    });
}

// Kills broadcast_revive_a_dead_channel.
TEST(BroadcastModel, AWeakSenderRevivesTheChannelOrFindsItClosed) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<parcel>(1);
        thread sends{[weak = tx.downgrade()] {
            if (auto strong = weak.upgrade()) RONDO_CHECK_EXPECT(strong->send(parcel{7}) == 1U);
        }};
        {
            auto const gone = std::move(tx);
        }
        auto const got = rx.blocking_recv();
        if (got) RONDO_CHECK_EXPECT(got->number() == 7);
        if (got) RONDO_CHECK_EXPECT(!rx.blocking_recv());
        sends.join();
    });
}

// Kills broadcast_close_before_the_others_have_sent.
TEST(BroadcastModel, TwoSendersGoAndTheReceiverLearnsItOnce) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = broadcast::channel<int>(1);
        thread goes{[mine = tx] {}};
        {
            auto const gone = std::move(tx);
        }
        RONDO_CHECK_EXPECT(rx.blocking_recv().error().why == recv_failure::closed);
        {
            auto const gone = std::move(rx);
        }
        goes.join();
    });
}

// Kills broadcast_free_without_acquiring.
TEST(BroadcastModel, EverybodyMayGoAtOnce) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = broadcast::channel<parcel>(1);
            auto other = tx.subscribe();
            thread one{[mine = std::move(other)] {}};
            thread two{[mine = std::move(tx)] { (void)mine.send(parcel{1}); }};
            {
                auto const gone = std::move(rx);
            }
            one.join();
            two.join();
        },
        1);
}

}  // namespace
}  // namespace rondo
