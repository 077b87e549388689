// Broadcast: every value to every receiver, lagging, the end, in every form of a wait. What happens
// in one instant is model-checked in tests/model/sync/broadcast_model_test.cpp.
#include "rondo/sync/broadcast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/broadcast_receiver.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"
#include "support/seed.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using broadcast::channel;
using broadcast::recv_error;
using broadcast::recv_failure;
using broadcast::try_recv_error;
using broadcast::try_recv_failure;
using test::manual_loop;

using received = std::expected<int, recv_error>;

constexpr try_recv_error empty{try_recv_failure::empty};
constexpr try_recv_error closed{try_recv_failure::closed};
constexpr try_recv_error lagged(std::uint64_t n) { return {try_recv_failure::lagged, n}; }

task<received> receive(broadcast::receiver<int>& rx) { co_return co_await rx.recv(); }

// --- values ----------------------------------------------------------------------------------

TEST(Broadcast, EveryReceiverGetsEveryValueInOrder) {
    auto [tx, rx] = channel<std::string>(4);
    auto other = tx.subscribe();
    EXPECT_EQ(tx.send("a"), 2U);
    EXPECT_EQ(tx.send("b"), 2U);
    EXPECT_EQ(rx.try_recv(), "a");
    EXPECT_EQ(rx.try_recv(), "b");
    EXPECT_EQ(rx.try_recv().error(), empty);
    EXPECT_EQ(other.try_recv(), "a");
    EXPECT_EQ(other.try_recv(), "b");
    EXPECT_EQ(other.try_recv().error(), empty);
}

TEST(Broadcast, ASubscriberGetsWhatIsSentFromThenOn) {
    auto [tx, rx] = channel<int>(4);
    EXPECT_EQ(tx.send(1), 1U);
    auto late = tx.subscribe();
    auto later = rx.resubscribe();
    EXPECT_EQ(late.try_recv().error(), empty);
    EXPECT_EQ(tx.send(2), 3U);
    EXPECT_EQ(late.try_recv(), 2);
    EXPECT_EQ(later.try_recv(), 2);
    EXPECT_EQ(rx.try_recv(), 1);
}

TEST(Broadcast, WaitingReceiversAreWokenBySendAndNotResumedInsideIt) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    auto other = tx.subscribe();
    auto one = spawn(loop, receive(rx));
    auto two = spawn(loop, receive(other));
    loop.run_ready();
    EXPECT_EQ(tx.send(7), 2U);
    EXPECT_FALSE(one.ended() || two.ended());
    loop.run_ready();
    EXPECT_EQ(one.blocking_join().value(), 7);
    EXPECT_EQ(two.blocking_join().value(), 7);
}

TEST(Broadcast, ManyWaitingReceiversAllGetIt) {
    manual_loop loop;
    broadcast::sender<int> const tx{1};
    std::vector<broadcast::receiver<int>> receivers;
    std::vector<join_handle<received>> waits;
    for (int i = 0; i < 100; ++i) receivers.push_back(tx.subscribe());
    for (auto& rx : receivers) waits.push_back(spawn(loop, receive(rx)));
    loop.run_ready();
    EXPECT_EQ(tx.send(7), 100U);
    loop.run_ready();
    for (auto& w : waits) EXPECT_EQ(w.blocking_join().value(), 7);
}

// --- lagging ---------------------------------------------------------------------------------

TEST(Broadcast, AReceiverWithinTheCapacityDoesNotLag) {
    for (std::size_t capacity : {1U, 2U, 3U, 5U, 8U}) {
        auto [tx, rx] = channel<std::size_t>(capacity);
        for (std::size_t round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < capacity; ++i) EXPECT_EQ(tx.send(i), 1U);
            for (std::size_t i = 0; i < capacity; ++i) EXPECT_EQ(rx.try_recv(), i);
        }
    }
}

TEST(Broadcast, ASlowReceiverLearnsHowManyItMissedAndGoesOnWithTheOldestLeft) {
    auto [tx, rx] = channel<int>(3);
    auto other = tx.subscribe();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.send(i), 2U);
    EXPECT_EQ(other.try_recv(), 0);
    EXPECT_EQ(tx.send(3), 2U);
    EXPECT_EQ(tx.send(4), 2U);
    EXPECT_EQ(rx.len(), 5U);
    EXPECT_EQ(rx.try_recv().error(), lagged(2));
    EXPECT_EQ(rx.len(), 3U);
    for (int i = 2; i < 5; ++i) EXPECT_EQ(rx.try_recv(), i);
    EXPECT_EQ(rx.try_recv().error(), empty);
    EXPECT_EQ(other.try_recv().error(), lagged(1)) << "each for itself";
    EXPECT_EQ(other.try_recv(), 2);
}

TEST(Broadcast, ItMayLagAgainBeforeItCouldReadAnything) {
    auto [tx, rx] = channel<int>(2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.send(i), 1U);
    EXPECT_EQ(rx.try_recv().error(), lagged(1));
    for (int i = 3; i < 6; ++i) EXPECT_EQ(tx.send(i), 1U);
    EXPECT_EQ(rx.try_recv().error(), lagged(3));
    EXPECT_EQ(rx.try_recv(), 4);
    EXPECT_EQ(rx.try_recv(), 5);
}

TEST(Broadcast, OneValueIsEnoughToKeep) {
    auto [tx, rx] = channel<int>(1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(tx.send(i), 1U);
    EXPECT_EQ(rx.blocking_recv().error(), (recv_error{recv_failure::lagged, 9}));
    EXPECT_EQ(rx.blocking_recv(), 9);
}

TEST(Broadcast, ALaggingReceiverStillGetsWhatIsLeftAfterTheEnd) {
    auto [tx, rx] = channel<int>(2);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(tx.send(i), 1U);
    {
        auto const gone = std::move(tx);
    }
    EXPECT_EQ(rx.try_recv().error(), lagged(3));
    EXPECT_EQ(rx.try_recv(), 3);
    EXPECT_EQ(rx.try_recv(), 4);
    EXPECT_EQ(rx.try_recv().error(), closed);
}

TEST(Broadcast, AResubscriptionOfALaggingReceiverDoesNotLag) {
    auto [tx, rx] = channel<int>(1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.send(i), 1U);
    auto fresh = rx.resubscribe();
    EXPECT_EQ(fresh.try_recv().error(), empty);
    EXPECT_EQ(rx.try_recv().error(), lagged(2));
}

// A lap that differs by as much as the word can hold looks like the same one.
TEST(Broadcast, AValueOfAnOldLapIsNotMistakenForTheNewOne) {
    struct node final : detail::broadcast_node {
        void drop() noexcept override {}
    };
    detail::broadcast_slot slot;
    std::uint64_t const lap = 3, laps = std::uint64_t{1} << 24;
    node first, second;
    first.position = lap * 10;
    second.position = (lap + laps) * 10;
    EXPECT_EQ(slot.replace(&first, lap, 1), nullptr);
    EXPECT_EQ(slot.replace(&second, lap + laps, 1), &first);
    bool sole = false;
    EXPECT_EQ(slot.pin({lap * 10, lap, 0}, sole), nullptr);
    EXPECT_EQ(slot.pin({(lap + laps) * 10, lap + laps, 0}, sole), &second);
    EXPECT_TRUE(sole);
    slot.release({(lap + laps) * 10, lap + laps, 0}, &second, true);
    EXPECT_EQ(slot.unread(), 0U);
}

// --- no receiver, no sender ------------------------------------------------------------------

TEST(Broadcast, AValueThatNobodyReceivesComesBackAndTheChannelOpensAgain) {
    broadcast::sender<std::string> const tx{2};
    EXPECT_EQ(tx.send("a").error(), "a");
    {
        auto rx = tx.subscribe();
        EXPECT_EQ(tx.send("b"), 1U);
        EXPECT_EQ(rx.try_recv(), "b");
    }
    EXPECT_EQ(tx.send("c").error(), "c");
    auto rx = tx.subscribe();
    EXPECT_EQ(tx.send("d"), 1U);
    EXPECT_EQ(rx.try_recv(), "d");
}

TEST(Broadcast, TheLastSenderThatGoesWakesTheReceivers) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    std::optional second{tx};
    {
        auto const gone = std::move(tx);
    }
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    EXPECT_FALSE(rx.is_closed());
    second.reset();
    EXPECT_FALSE(t.ended()) << "never inside a destructor";
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error{recv_failure::closed});
    EXPECT_TRUE(rx.is_closed());
    EXPECT_EQ(rx.try_recv().error(), closed);
    auto more = rx.resubscribe();
    EXPECT_EQ(more.try_recv().error(), closed);
}

TEST(Broadcast, WhatWasSentIsReceivedAlsoWhenTheSendersAreGone) {
    auto [tx, rx] = channel<int>(2);
    EXPECT_EQ(tx.send(7), 1U);
    {
        auto const gone = std::move(tx);
    }
    EXPECT_TRUE(rx.is_closed());
    EXPECT_EQ(rx.blocking_recv(), 7);
    EXPECT_EQ(rx.blocking_recv().error().why, recv_failure::closed);
}

TEST(Broadcast, ClosedWaitsUntilThereIsNoReceiver) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    std::optional other{tx.subscribe()};
    auto t = spawn(loop, [](broadcast::sender<int> s) -> task<void> { co_await s.closed(); }(tx));
    loop.run_ready();
    {
        auto const gone = std::move(rx);
    }
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    other.reset();
    EXPECT_FALSE(t.ended());
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    tx.blocking_closed();
    auto const again = tx.subscribe();
    EXPECT_EQ(tx.blocking_closed_for(0s).error(), wait_error::timed_out);
}

TEST(Broadcast, ClosedHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = channel<int>(1);
    auto t =
        spawn(loop, [](broadcast::sender<int>& s, stop_token k) -> task<std::vector<wait_error>> {
            std::vector<wait_error> why;
            environment const& env = co_await this_environment();
            auto r = co_await s.closed(k);
            if (!r) why.push_back(r.error());
            r = co_await s.closed_for(1ms);
            if (!r) why.push_back(r.error());
            r = co_await s.closed_until(env.timers().now() + 1ms);
            if (!r) why.push_back(r.error());
            co_return why;
        }(tx, stop.token()));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(),
              (std::vector{wait_error::stopped, wait_error::timed_out, wait_error::timed_out}));
    EXPECT_EQ(tx.blocking_closed(stop.token()).error(), wait_error::stopped);
    EXPECT_EQ(tx.blocking_closed_until(clock::now()).error(), wait_error::timed_out);
}

// --- recv in its forms -----------------------------------------------------------------------

TEST(Broadcast, RecvHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = channel<int>(8);
    auto t = spawn(
        loop, [](broadcast::receiver<int>& r, stop_token s) -> task<std::vector<recv_failure>> {
            std::vector<recv_failure> why;
            environment const& env = co_await this_environment();
            auto got = co_await r.recv(s);
            if (!got) why.push_back(got.error().why);
            got = co_await r.recv_for(1ms);
            if (!got) why.push_back(got.error().why);
            got = co_await r.recv_until(env.timers().now() + 1ms);
            if (!got) why.push_back(got.error().why);
            co_return why;
        }(rx, stop.token()));
    loop.advance(1s);
    EXPECT_EQ(
        t.blocking_join().value(),
        (std::vector{recv_failure::stopped, recv_failure::timed_out, recv_failure::timed_out}));
    EXPECT_EQ(rx.blocking_recv(stop.token()).error().why, recv_failure::stopped);
    EXPECT_EQ(rx.blocking_recv_for(0s).error().why, recv_failure::timed_out);
    EXPECT_EQ(rx.blocking_recv_until(clock::now()).error().why, recv_failure::timed_out);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.send(i), 1U);
    EXPECT_EQ(rx.blocking_recv(stop.token()), 0) << "completion beats stop";
    EXPECT_EQ(rx.blocking_recv_for(0s), 1);
    EXPECT_EQ(rx.blocking_recv_until(clock::now()), 2);
}

TEST(Broadcast, ARecvThatLosesAWhenAnyLeavesTheValueForTheNext) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    auto t = spawn(loop, [](broadcast::receiver<int>& r) -> task<received> {
        auto const first = co_await when_any(r.recv(), sleep_for(1ms));
        EXPECT_EQ(first.index(), 1U);
        co_return co_await r.recv();
    }(rx));
    loop.advance(1ms);
    EXPECT_EQ(tx.send(7), 1U);
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST(Broadcast, ARecvIsForWhatIsNextWhenItIsAwaitedNotWhenItWasMade) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(2);
    auto t = spawn(
        loop, [](broadcast::receiver<int>& r, broadcast::sender<int> const& s) -> task<received> {
            auto made_early = r.recv();
            EXPECT_TRUE(s.send(1));
            EXPECT_EQ(r.try_recv(), 1);
            co_return co_await std::move(made_early);
        }(rx, tx));
    loop.run_ready();
    ASSERT_FALSE(t.ended()) << "there is nothing yet, and the channel is open";
    EXPECT_TRUE(tx.send(2));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 2);
}

TEST(Broadcast, AReadyRecvDoesNotSuspendButTheBudgetIsSpent) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1000);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(tx.send(i), 1U);
    auto t = spawn(loop, [](broadcast::receiver<int>& r) -> task<int> {
        int sum = 0;
        for (int i = 0; i < 1000; ++i) {
            auto const got = co_await r.recv();
            sum += got.value();
        }
        co_return sum;
    }(rx));
    std::size_t turns = 0;
    while (loop.step()) ++turns;
    EXPECT_GT(turns, 1U) << "it gives way to others";
    EXPECT_EQ(t.blocking_join().value(), 999 * 500);
}

TEST(Broadcast, AForeignCoroutineMayReceive) {
    auto [tx, rx] = channel<int>(2);
    std::vector<int> got;
    [](broadcast::receiver<int>& r, std::vector<int>& g) -> test::foreign {
        for (;;) {
            auto const value = co_await r.recv();
            if (!value) break;
            g.push_back(*value);
        }
        g.push_back(-1);
    }(rx, got);
    EXPECT_EQ(tx.send(7), 1U);
    EXPECT_EQ(tx.send(8), 1U);
    {
        auto const gone = std::move(tx);
    }
    EXPECT_EQ(got, (std::vector{7, 8, -1}));
}

// --- observers -------------------------------------------------------------------------------

TEST(Broadcast, LenIsWhatSomeReceiverHasNotGotYet) {
    auto [tx, rx] = channel<int>(4);
    EXPECT_TRUE(tx.is_empty());
    EXPECT_TRUE(rx.is_empty());
    auto other = tx.subscribe();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.send(i), 2U);
    EXPECT_EQ(tx.len(), 3U);
    EXPECT_EQ(rx.try_recv(), 0);
    EXPECT_EQ(rx.try_recv(), 1);
    EXPECT_EQ(rx.len(), 1U);
    EXPECT_EQ(tx.len(), 3U);
    EXPECT_EQ(other.try_recv(), 0);
    EXPECT_EQ(tx.len(), 2U);
    for (int i = 3; i < 8; ++i) EXPECT_EQ(tx.send(i), 2U);
    EXPECT_EQ(tx.len(), 4U) << "no more than are kept";
    EXPECT_FALSE(tx.is_empty());
    {
        auto const one = std::move(rx), two = std::move(other);
    }
    EXPECT_TRUE(tx.is_empty());
}

TEST(Broadcast, LenIsRightWhateverTheOrderOfReceiving) {
    std::mt19937_64 random{test::seed(1)};
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int round = 0; round < 50; ++round) {
        std::size_t const capacity = 1 + below(8);
        broadcast::sender<int> const tx{capacity};
        std::vector<broadcast::receiver<int>> all;
        for (std::size_t i = 0; i < 3; ++i) all.push_back(tx.subscribe());
        for (int step = 0; step < 100; ++step) {
            if (below(3) == 0) {
                EXPECT_EQ(tx.send(step), 3U);
            } else {
                (void)all[below(3)].try_recv();
            }
            std::size_t most = 0;
            for (auto const& rx : all) most = std::max(most, std::min(rx.len(), capacity));
            ASSERT_EQ(tx.len(), most);
        }
    }
}

TEST(Broadcast, SendersAndReceiversAreCounted) {
    auto [tx, rx] = channel<int>(1);
    EXPECT_EQ(tx.receiver_count(), 1U);
    {
        auto const more = tx.subscribe();
        auto const even_more = more.resubscribe();
        EXPECT_EQ(tx.receiver_count(), 3U);
        EXPECT_TRUE(more.same_channel(rx));
        auto const copy = tx;
        auto const weak = copy.downgrade();
        auto const weak_copy = weak;
        EXPECT_EQ(tx.strong_count(), 2U);
        EXPECT_EQ(tx.weak_count(), 2U);
        EXPECT_EQ(weak.strong_count(), 2U);
        EXPECT_EQ(weak.weak_count(), 2U);
        EXPECT_EQ(rx.sender_strong_count(), 2U);
        EXPECT_EQ(rx.sender_weak_count(), 2U);
        EXPECT_TRUE(copy.same_channel(tx));
        EXPECT_TRUE(weak.upgrade()->same_channel(tx));
    }
    EXPECT_EQ(tx.receiver_count(), 1U);
    EXPECT_EQ(tx.strong_count(), 1U);
    EXPECT_EQ(tx.weak_count(), 0U);
    auto const [tx2, rx2] = channel<int>(1);
    EXPECT_FALSE(tx.same_channel(tx2));
    EXPECT_FALSE(rx.same_channel(rx2));
}

TEST(Broadcast, AWeakSenderDoesNotKeepTheChannelOpen) {
    auto [tx, rx] = channel<int>(1);
    auto weak = tx.downgrade();
    EXPECT_EQ(weak.upgrade()->send(7), 1U);
    {
        auto const gone = std::move(tx);
    }
    EXPECT_FALSE(weak.upgrade());
    EXPECT_EQ(rx.try_recv(), 7);
    EXPECT_EQ(rx.try_recv().error(), closed);
    auto const moved = std::move(weak);
    EXPECT_EQ(moved.strong_count(), 0U);
}

TEST(Broadcast, AssigningToAnEndLetsGoOfTheChannelItHad) {
    auto [tx_a, rx_a] = channel<int>(1);
    auto [tx_b, rx_b] = channel<int>(1);
    auto weak = tx_a.downgrade();
    tx_a = tx_b;
    EXPECT_EQ(rx_a.try_recv().error(), closed);
    weak = tx_b.downgrade();
    EXPECT_TRUE(weak.upgrade());
    EXPECT_EQ(tx_a.send(7), 1U);
    rx_a = std::move(rx_b);
    EXPECT_EQ(rx_a.try_recv(), 7);
    rx_a.swap(rx_b);
    EXPECT_EQ(rx_b.try_recv().error(), empty);
    EXPECT_EQ(tx_b.receiver_count(), 1U);
}

TEST(Broadcast, ThreadsReceiveWhatATaskSends) {
    constexpr int count = 2000;
    auto [tx, rx] = channel<int>(count);
    std::vector<int> sums(3);
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < sums.size(); ++t) {
        threads.emplace_back([&sum = sums[t], mine = rx.resubscribe()]() mutable {
            while (auto const got = mine.blocking_recv()) sum += *got;
        });
    }
    {
        auto const gone = std::move(rx);
    }
    block_on([](broadcast::sender<int> s) -> task<void> {
        for (int i = 0; i < count; ++i) {
            EXPECT_TRUE(s.send(i));
            if (i % 100 == 0) co_await yield();
        }
    }(std::move(tx)));
    threads.clear();
    EXPECT_EQ(sums, std::vector<int>(3, count * (count - 1) / 2));
}

// --- misuse ----------------------------------------------------------------------------------

TEST(BroadcastDeathTest, AChannelWithoutRoomIsRefusedAndAMovedHandleSaysSo) {
    EXPECT_DEATH((void)channel<int>(0), "keeps one value at least");
    auto [tx, rx] = channel<int>(1);
    auto const tx_elsewhere = std::move(tx);
    EXPECT_DEATH((void)tx.send(1), "was moved");
    auto const rx_elsewhere = std::move(rx);
    EXPECT_DEATH((void)rx.try_recv(), "was moved");
}

}  // namespace
}  // namespace rondo
