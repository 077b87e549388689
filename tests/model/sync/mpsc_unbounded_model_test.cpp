// An unbounded mpsc channel, explored. Blocks have two slots here and the first one only one that
// is used, so that two values reach the end of a block. Values are blocks of memory: one lost is a
// leak, one had twice a double free; their content is a cell: one seen too early is a race.
#include <memory>
#include <optional>
#include <utility>

#include "rondo/sync/mpsc.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using mpsc::recv_error;
using mpsc::try_recv_error;

using parcel = std::unique_ptr<cell<int>>;
parcel pack(int n) { return std::make_unique<cell<int>>(n); }

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

// Kills mpsc_fill_with_release_alone.
TEST(MpscUnboundedModel, AWaitingReceiverGetsWhatIsSent) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        thread receives{[&rx] {
            auto const got = rx.blocking_recv();
            RONDO_CHECK_EXPECT(got && **got == 7);
        }};
        RONDO_CHECK_EXPECT(tx.send(pack(7)));
        receives.join();
    });
}

// Kills mpsc_append_with_release_alone.
TEST(MpscUnboundedModel, ValuesArriveInOrderAcrossBlocksAndThenTheEnd) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<parcel>();
            thread sends{[mine = std::move(tx)] {
                for (int i = 0; i < 4; ++i) RONDO_CHECK_EXPECT(mine.send(pack(i)));
            }};
            for (int i = 0; i < 4; ++i) {
                auto const got = rx.blocking_recv();
                RONDO_CHECK_EXPECT(got && **got == i);
            }
            auto const end = rx.blocking_recv();
            RONDO_CHECK_EXPECT(!end && end.error() == recv_error::closed);
            sends.join();
        },
        1);
}

// Kills mpsc_open_without_looking_again.
TEST(MpscUnboundedModel, TwoSendersReachTheEndOfABlockTogether) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<int>();
        RONDO_CHECK_EXPECT(tx.send(0));  // the first block is full
        thread sends{[&tx] { RONDO_CHECK_EXPECT(tx.send(1)); }};
        RONDO_CHECK_EXPECT(tx.send(2));
        sends.join();
        RONDO_CHECK_EXPECT(rx.len() == 3);
        RONDO_CHECK_EXPECT(rx.try_recv() == 0);
        int const second = rx.try_recv().value();
        int const third = rx.try_recv().value();
        RONDO_CHECK_EXPECT(second + third == 3 && second != third);
        RONDO_CHECK_EXPECT(rx.try_recv().error() == try_recv_error::empty);
    });
}

// Kills mpsc_claim_again_without_acquiring.
TEST(MpscUnboundedModel, ASenderThatIsOvertakenByAWholeBlockFindsItsPlace) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<int>();
        thread fast{[&tx] {
            RONDO_CHECK_EXPECT(tx.send(1));
            RONDO_CHECK_EXPECT(tx.send(2));
        }};
        RONDO_CHECK_EXPECT(tx.send(4));
        fast.join();
        int sum = 0;
        while (auto const got = rx.try_recv()) sum += *got;
        RONDO_CHECK_EXPECT(sum == 7);
    });
}

// Kills mpsc_reuse_without_acquiring.
TEST(MpscUnboundedModel, ABlockThatWasReadServesAgain) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<int>();
            thread sends{[&tx] {
                for (int i = 0; i < 5; ++i) RONDO_CHECK_EXPECT(tx.send(i));
            }};
            for (int i = 0; i < 5; ++i) RONDO_CHECK_EXPECT(rx.blocking_recv() == i);
            sends.join();
        },
        1);
}

// Kills mpsc_keep_without_acquiring.
TEST(MpscUnboundedModel, ABlockThatWasBroughtInVainIsKeptOrFreed) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<int>();
            RONDO_CHECK_EXPECT(tx.send(0));  // the first block is full
            thread one{[&tx] { RONDO_CHECK_EXPECT(tx.send(1)); }};
            thread two{[&tx] { RONDO_CHECK_EXPECT(tx.send(2)); }};
            RONDO_CHECK_EXPECT(rx.blocking_recv() == 0);
            RONDO_CHECK_EXPECT(rx.blocking_recv().has_value());
            one.join();
            two.join();
        },
        1);
}

// Kills mpsc_go_without_a_word.
TEST(MpscUnboundedModel, TheLastValueOfTheLastSenderIsNotLost) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        thread sends{[mine = std::move(tx)] { RONDO_CHECK_EXPECT(mine.send(pack(7))); }};
        auto const got = rx.blocking_recv();
        RONDO_CHECK_EXPECT(got && **got == 7);
        RONDO_CHECK_EXPECT(rx.blocking_recv().error() == recv_error::closed);
        sends.join();
    });
}

// Kills mpsc_measure_before_the_senders_are_gone.
TEST(MpscUnboundedModel, TryRecvSaysClosedOnlyAfterTheLastValue) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<int>();
        thread sends{[mine = std::move(tx)] { RONDO_CHECK_EXPECT(mine.send(7)); }};
        auto const got = rx.try_recv();
        if (!got) RONDO_CHECK_EXPECT(got.error() == try_recv_error::empty);
        sends.join();
        if (!got) RONDO_CHECK_EXPECT(rx.try_recv() == 7);
        RONDO_CHECK_EXPECT(rx.try_recv().error() == try_recv_error::closed);
    });
}

// Kills mpsc_count_senders_with_acquire_alone.
TEST(MpscUnboundedModel, TwoSendersGoAndTheReceiverLearnsItOnce) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<parcel>();
            thread one{[mine = tx] { RONDO_CHECK_EXPECT(mine.send(pack(1))); }};
            thread two{[mine = std::move(tx)] {}};
            RONDO_CHECK_EXPECT(rx.blocking_recv().has_value());
            RONDO_CHECK_EXPECT(!rx.blocking_recv());
            one.join();
            two.join();
        },
        1);
}

// Kills mpsc_sleep_without_looking_again.
TEST(MpscUnboundedModel, AStoppedRecvLeavesTheValueToTheNext) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<parcel>();
            stop_source stop;
            thread receives{[&] {
                auto got = rx.blocking_recv(stop.token());
                if (!got) {
                    RONDO_CHECK_EXPECT(got.error() == recv_error::stopped);
                    got = rx.blocking_recv();
                }
                RONDO_CHECK_EXPECT(got && **got == 7);
            }};
            thread stops{[&] { stop.request_stop(); }};
            RONDO_CHECK_EXPECT(tx.send(pack(7)));
            receives.join();
            stops.join();
        },
        1);
}

// Kills mpsc_say_that_one_waits_with_release_alone.
TEST(MpscUnboundedModel, ARecvThatTimesOutComesBackForTheValue) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        thread sends{[&tx] { RONDO_CHECK_EXPECT(tx.send(pack(7))); }};
        auto got = rx.blocking_recv_until(soon);
        if (!got) {
            RONDO_CHECK_EXPECT(got.error() == recv_error::timed_out);
            got = rx.blocking_recv();
        }
        RONDO_CHECK_EXPECT(got && **got == 7);
        sends.join();
    });
}

// Kills mpsc_end_without_measuring.
TEST(MpscUnboundedModel, OfASendAndACloseOneComesFirst) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        cell<int> accepted{0};
        thread sends{[&] {
            for (int i = 0; i < 2; ++i) {
                auto const sent = tx.send(pack(i));
                if (sent) accepted = accepted + 1;
                if (!sent) RONDO_CHECK_EXPECT(*sent.error() == i);
            }
        }};
        rx.close();
        int received = 0;
        while (auto const got = rx.blocking_recv()) {
            RONDO_CHECK_EXPECT(**got == received);
            ++received;
        }
        sends.join();
        RONDO_CHECK_EXPECT(received == accepted);
        RONDO_CHECK_EXPECT(rx.try_recv().error() == try_recv_error::closed);
    });
}

// Kills mpsc_close_without_waking_the_receiver.
TEST(MpscUnboundedModel, ACloseFromOutsideEndsAWaitingRecv) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        thread receives{[&rx] { RONDO_CHECK_EXPECT(!rx.blocking_recv()); }};
        rx.close();
        receives.join();
        RONDO_CHECK_EXPECT(tx.is_closed());
    });
}

// The sender stays: what is sent to a receiver that goes must not wait in the list for its end.
// Kills mpsc_leave_the_value_to_one_who_is_gone.
TEST(MpscUnboundedModel, WhatIsSentToAReceiverThatGoesIsDestroyedAtOnce) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<std::shared_ptr<int>>();
        auto value = std::make_shared<int>(7);
        thread goes{[mine = std::move(rx)] {}};
        auto const back = tx.send(value);
        goes.join();
        RONDO_CHECK_EXPECT(value.use_count() == (back ? 1 : 2));
    });
}

// Kills mpsc_say_that_one_is_gone_with_release_alone.
TEST(MpscUnboundedModel, AReceiverThatGoesLeavesNothingBehindInAnyBlock) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<std::shared_ptr<int>>();
        auto value = std::make_shared<int>(7);
        RONDO_CHECK_EXPECT(tx.send(value));
        thread sends{[&] {
            (void)tx.send(value);
            (void)tx.send(value);
        }};
        {
            auto const gone = std::move(rx);
        }
        sends.join();
        RONDO_CHECK_EXPECT(value.use_count() == 1);
    });
}

// Kills mpsc_free_without_acquiring.
TEST(MpscUnboundedModel, EverybodyMayGoAtOnce) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<parcel>();
            auto weak = tx.downgrade();
            thread one{[mine = std::move(tx)] { (void)mine.send(pack(1)); }};
            thread two{[mine = std::move(weak)] {}};
            {
                auto const gone = std::move(rx);
            }
            one.join();
            two.join();
        },
        1);
}

// Kills mpsc_revive_a_dead_channel.
TEST(MpscUnboundedModel, AWeakSenderRevivesTheChannelOrFindsItClosed) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        thread sends{[weak = tx.downgrade()] {
            if (auto strong = weak.upgrade()) RONDO_CHECK_EXPECT(strong->send(pack(7)));
        }};
        {
            auto const gone = std::move(tx);
        }
        auto const got = rx.blocking_recv();
        if (got) RONDO_CHECK_EXPECT(**got == 7);
        if (got) RONDO_CHECK_EXPECT(!rx.blocking_recv());
        sends.join();
    });
}

// Another sender may be held up in the middle of its send, with its place before ours.
// Kills mpsc_say_empty_while_a_send_is_under_way.
TEST(MpscUnboundedModel, TryRecvDoesNotDenyWhatWasSentBeforeIt) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        thread slow{[&tx] { RONDO_CHECK_EXPECT(tx.send(pack(1))); }};
        RONDO_CHECK_EXPECT(tx.send(pack(2)));
        auto const got = rx.try_recv();
        RONDO_CHECK_EXPECT(got.has_value());
        slow.join();
    });
}

// Kills mpsc_find_it_closed_without_acquiring.
TEST(MpscUnboundedModel, ASenderThatWaitsForTheEndSeesWhatCameBeforeIt) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = mpsc::unbounded<parcel>();
        cell<int> written{0};
        thread goes{[&, mine = std::move(rx)]() mutable {
            written = 7;
            auto const gone = std::move(mine);
        }};
        tx.blocking_closed();
        RONDO_CHECK_EXPECT(written == 7);
        RONDO_CHECK_EXPECT(!tx.send(pack(1)));
        goes.join();
    });
}

// Kills mpsc_recycle_a_block_that_is_not_read.
TEST(MpscUnboundedModel, RecvManyTakesWhatIsThereInOrder) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = mpsc::unbounded<parcel>();
            thread sends{[mine = std::move(tx)] {
                for (int i = 0; i < 3; ++i) RONDO_CHECK_EXPECT(mine.send(pack(i)));
            }};
            std::vector<parcel> got;
            while (auto const n = rx.blocking_recv_many(got, 2)) {
                RONDO_CHECK_EXPECT(*n == 1 || *n == 2);
            }
            RONDO_CHECK_EXPECT(got.size() == 3);
            for (int i = 0; i < 3; ++i) RONDO_CHECK_EXPECT(*got[static_cast<std::size_t>(i)] == i);
            sends.join();
        },
        1);
}

}  // namespace
}  // namespace rondo
