// The unbounded mpsc channel: what senders and the receiver see of each other, in every form of a
// wait. What happens in one instant is model-checked in
// tests/model/sync/mpsc_unbounded_model_test.cpp.
#include "rondo/sync/mpsc_unbounded.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/mpsc_receiver.hpp"
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using mpsc::recv_error;
using mpsc::try_recv_error;
using mpsc::unbounded;
using test::census;
using test::counted;
using test::manual_loop;

using received = std::expected<int, recv_error>;

task<received> receive(mpsc::unbounded_receiver<int>& rx) { co_return co_await rx.recv(); }

// --- order -----------------------------------------------------------------------------------

TEST(MpscUnbounded, ValuesArriveInTheOrderInWhichTheyWereSentOverManyBlocks) {
    auto [tx, rx] = unbounded<int>();
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 1000; ++i) EXPECT_TRUE(tx.send(i));
        EXPECT_EQ(rx.len(), 1000U);
        for (int i = 0; i < 1000; ++i) ASSERT_EQ(rx.try_recv(), i);
        EXPECT_TRUE(rx.is_empty());
    }
}

TEST(MpscUnbounded, SentAndReceivedInTurnTheyGoRoundInTheirBlocks) {
    auto [tx, rx] = unbounded<int>();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(tx.send(i));
        ASSERT_EQ(rx.try_recv(), i);
    }
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::empty);
}

TEST(MpscUnbounded, CopiesOfASenderSendToTheSameChannel) {
    auto [tx, rx] = unbounded<std::string>();
    auto const other = tx;
    EXPECT_TRUE(tx.send("a"));
    EXPECT_TRUE(other.send("b"));
    EXPECT_EQ(rx.try_recv(), "a");
    EXPECT_EQ(rx.try_recv(), "b");
    EXPECT_TRUE(tx.same_channel(other));
    auto [tx2, rx2] = unbounded<std::string>();
    EXPECT_FALSE(tx.same_channel(tx2));
}

// --- recv ------------------------------------------------------------------------------------

TEST(MpscUnbounded, AWaitingReceiverIsWokenByASendAndNotResumedInsideIt) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    EXPECT_TRUE(tx.send(7));
    EXPECT_FALSE(t.ended());
    EXPECT_TRUE(tx.send(8));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
    EXPECT_EQ(rx.try_recv(), 8);
}

TEST(MpscUnbounded, AReadyRecvDoesNotSuspendButTheBudgetIsSpent) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(tx.send(i));
    auto t = spawn(loop, [](mpsc::unbounded_receiver<int>& r) -> task<int> {
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
    EXPECT_LT(turns, 20U);
    EXPECT_EQ(t.blocking_join().value(), 999 * 500);
}

TEST(MpscUnbounded, RecvHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = unbounded<int>();
    auto t = spawn(
        loop, [](mpsc::unbounded_receiver<int>& r, stop_token s) -> task<std::vector<recv_error>> {
            std::vector<recv_error> why;
            environment const& env = co_await this_environment();
            auto got = co_await r.recv(s);
            if (!got) why.push_back(got.error());
            got = co_await r.recv_for(1ms);
            if (!got) why.push_back(got.error());
            got = co_await r.recv_until(env.timers().now() + 1ms);
            if (!got) why.push_back(got.error());
            co_return why;
        }(rx, stop.token()));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(),
              (std::vector{recv_error::stopped, recv_error::timed_out, recv_error::timed_out}));

    EXPECT_EQ(rx.blocking_recv(stop.token()).error(), recv_error::stopped);
    EXPECT_EQ(rx.blocking_recv_for(0s).error(), recv_error::timed_out);
    EXPECT_EQ(rx.blocking_recv_until(clock::now()).error(), recv_error::timed_out);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(tx.send(i));
    EXPECT_EQ(rx.blocking_recv(), 0);
    EXPECT_EQ(rx.blocking_recv(stop.token()), 1) << "completion beats stop";
    EXPECT_EQ(rx.blocking_recv_for(0s), 2);
    EXPECT_EQ(rx.blocking_recv_until(clock::now()), 3);
}

TEST(MpscUnbounded, ARecvThatLosesAWhenAnyLeavesTheValueForTheNext) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    auto t = spawn(loop, [](mpsc::unbounded_receiver<int>& r) -> task<received> {
        auto const first = co_await when_any(r.recv(), sleep_for(1ms));
        EXPECT_EQ(first.index(), 1U);
        co_return co_await r.recv();
    }(rx));
    loop.advance(1ms);
    EXPECT_TRUE(tx.send(7));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST(MpscUnbounded, AForeignCoroutineMayReceiveAndWaitForTheEnd) {
    auto [tx, rx] = unbounded<int>();
    std::vector<int> got;
    [](mpsc::unbounded_receiver<int>& r, std::vector<int>& g) -> test::foreign {
        for (;;) {
            auto const value = co_await r.recv();
            if (!value) break;
            g.push_back(*value);
        }
        g.push_back(-1);
    }(rx, got);
    EXPECT_TRUE(tx.send(7));
    EXPECT_TRUE(tx.send(8));
    bool ended = false;
    [](mpsc::unbounded_sender<int> s, bool& e) -> test::foreign {
        co_await s.closed();
        e = true;
    }(tx, ended);
    EXPECT_FALSE(ended);
    rx.close();
    EXPECT_TRUE(ended);
    EXPECT_EQ(got, (std::vector{7, 8, -1}));
}

// --- recv_many -------------------------------------------------------------------------------

TEST(MpscUnbounded, RecvManyAppendsWhatIsThereUpToTheLimit) {
    auto [tx, rx] = unbounded<int>();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(tx.send(i));
    std::vector<int> got{-1};
    EXPECT_EQ(rx.blocking_recv_many(got, 0), 0U);
    EXPECT_EQ(rx.blocking_recv_many(got, 70), 70U);
    EXPECT_EQ(rx.len(), 30U);
    EXPECT_EQ(rx.blocking_recv_many(got, 70), 30U);
    std::vector<int> expected(101);
    std::iota(expected.begin(), expected.end(), -1);
    EXPECT_EQ(got, expected);
    {
        auto const gone = std::move(tx);
    }
    EXPECT_EQ(rx.blocking_recv_many(got, 1).error(), recv_error::closed);
    EXPECT_EQ(rx.blocking_recv_many(got, 0), 0U) << "asks for nothing and gets it";
}

TEST(MpscUnbounded, RecvManyWaitsForTheFirst) {
    manual_loop loop;
    auto [tx, rx] = unbounded<std::unique_ptr<int>>();
    std::vector<std::unique_ptr<int>> got;
    auto t = spawn(
        loop,
        [](mpsc::unbounded_receiver<std::unique_ptr<int>>& r,
           std::vector<std::unique_ptr<int>>& g) -> task<std::expected<std::size_t, recv_error>> {
            co_return co_await r.recv_many(g, 10);
        }(rx, got));
    loop.run_ready();
    EXPECT_TRUE(tx.send(std::make_unique<int>(1)));
    EXPECT_TRUE(tx.send(std::make_unique<int>(2)));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 2U);
    EXPECT_EQ(*got.at(1), 2);
}

TEST(MpscUnbounded, RecvManyHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = unbounded<int>();
    std::vector<int> to;
    auto t = spawn(loop,
                   [](mpsc::unbounded_receiver<int>& r, std::vector<int>& g,
                      stop_token s) -> task<std::vector<recv_error>> {
                       std::vector<recv_error> why;
                       environment const& env = co_await this_environment();
                       auto got = co_await r.recv_many(g, 2, s);
                       if (!got) why.push_back(got.error());
                       got = co_await r.recv_many_for(g, 2, 1ms);
                       if (!got) why.push_back(got.error());
                       got = co_await r.recv_many_until(g, 2, env.timers().now() + 1ms);
                       if (!got) why.push_back(got.error());
                       co_return why;
                   }(rx, to, stop.token()));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(),
              (std::vector{recv_error::stopped, recv_error::timed_out, recv_error::timed_out}));
    EXPECT_EQ(rx.blocking_recv_many(to, 2, stop.token()).error(), recv_error::stopped);
    EXPECT_EQ(rx.blocking_recv_many_for(to, 2, 0s).error(), recv_error::timed_out);
    EXPECT_EQ(rx.blocking_recv_many_until(to, 2, clock::now()).error(), recv_error::timed_out);
    EXPECT_TRUE(to.empty());
}

// --- the end ---------------------------------------------------------------------------------

TEST(MpscUnbounded, WhatWasSentIsReceivedAlsoWhenTheSendersAreGone) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    EXPECT_TRUE(tx.send(7));
    EXPECT_FALSE(rx.is_closed());
    {
        auto const gone = std::move(tx);
    }
    EXPECT_TRUE(rx.is_closed());
    EXPECT_EQ(rx.len(), 1U);
    EXPECT_EQ(rx.try_recv(), 7);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
    EXPECT_EQ(rx.blocking_recv().error(), recv_error::closed);
}

TEST(MpscUnbounded, TheLastSenderThatGoesWakesTheReceiver) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    std::optional second{tx};
    {
        auto const gone = std::move(tx);
    }
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    second.reset();
    EXPECT_FALSE(t.ended()) << "never inside a destructor";
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
}

TEST(MpscUnbounded, CloseLetsNothingInAndWhatIsInComesOut) {
    auto [tx, rx] = unbounded<std::string>();
    EXPECT_TRUE(tx.send("in time"));
    EXPECT_FALSE(tx.is_closed());
    rx.close();
    rx.close();
    EXPECT_TRUE(tx.is_closed());
    EXPECT_TRUE(rx.is_closed());
    EXPECT_EQ(tx.send("late").error(), "late");
    EXPECT_EQ(rx.len(), 1U);
    EXPECT_EQ(rx.try_recv(), "in time");
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
}

TEST(MpscUnbounded, CloseEndsARecvThatWaits) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    rx.close();
    EXPECT_FALSE(t.ended());
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
}

TEST(MpscUnbounded, ValuesComeBackWhenTheReceiverIsGone) {
    census among;
    {
        auto [tx, rx] = unbounded<counted>();
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(tx.send(counted{among, i}));
        EXPECT_EQ(rx.try_recv()->number, 0);
        EXPECT_EQ(among.alive(), 99);
        {
            auto const gone = std::move(rx);
        }
        EXPECT_EQ(among.alive(), 0) << "destroyed with the receiver, not with the last sender";
        auto const back = tx.send(counted{among, 7});
        EXPECT_EQ(back.error().number, 7);
    }
    EXPECT_EQ(among.alive(), 0);
}

TEST(MpscUnbounded, ClosedWaitsForTheReceiverToGo) {
    manual_loop loop;
    auto [tx, rx] = unbounded<int>();
    auto t =
        spawn(loop, [](mpsc::unbounded_sender<int> s) -> task<void> { co_await s.closed(); }(tx));
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    {
        auto const gone = std::move(rx);
    }
    EXPECT_FALSE(t.ended());
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    tx.blocking_closed();
}

TEST(MpscUnbounded, ClosedHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = unbounded<int>();
    auto t = spawn(
        loop, [](mpsc::unbounded_sender<int>& s, stop_token k) -> task<std::vector<wait_error>> {
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
    EXPECT_EQ(tx.blocking_closed_for(0s).error(), wait_error::timed_out);
    EXPECT_EQ(tx.blocking_closed_until(clock::now()).error(), wait_error::timed_out);
    rx.close();
    EXPECT_TRUE(tx.blocking_closed(stop.token()));
    EXPECT_TRUE(tx.blocking_closed_for(0s));
    EXPECT_TRUE(tx.blocking_closed_until(clock::now()));
}

// --- handles ---------------------------------------------------------------------------------

TEST(MpscUnbounded, AWeakSenderDoesNotKeepTheChannelOpen) {
    auto [tx, rx] = unbounded<int>();
    auto weak = tx.downgrade();
    {
        auto const strong = weak.upgrade();
        ASSERT_TRUE(strong);
        EXPECT_TRUE(strong->send(7));
        EXPECT_TRUE(strong->same_channel(tx));
    }
    {
        auto const gone = std::move(tx);
    }
    EXPECT_FALSE(weak.upgrade());
    EXPECT_TRUE(rx.is_closed());
    EXPECT_EQ(rx.try_recv(), 7);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
    auto outlives = weak;
    {
        auto const gone = std::move(rx);
    }
    EXPECT_FALSE(outlives.upgrade());
    EXPECT_EQ(outlives.strong_count(), 0U);
}

TEST(MpscUnbounded, SendersAreCounted) {
    auto [tx, rx] = unbounded<int>();
    EXPECT_EQ(tx.strong_count(), 1U);
    EXPECT_EQ(tx.weak_count(), 0U);
    {
        auto const copy = tx;
        auto const weak = copy.downgrade();
        auto weak_copy = weak;
        auto const weak_moved = std::move(weak_copy);
        EXPECT_EQ(weak.strong_count(), 2U);
        EXPECT_EQ(weak.weak_count(), 2U);
        EXPECT_EQ(tx.strong_count(), 2U);
        EXPECT_EQ(rx.sender_strong_count(), 2U);
        EXPECT_EQ(rx.sender_weak_count(), 2U);
        EXPECT_EQ(tx.weak_count(), 2U);
    }
    EXPECT_EQ(rx.sender_strong_count(), 1U);
    EXPECT_EQ(rx.sender_weak_count(), 0U);
}

TEST(MpscUnbounded, AssigningToAnEndLetsGoOfTheChannelItHad) {
    auto [tx_a, rx_a] = unbounded<int>();
    auto [tx_b, rx_b] = unbounded<int>();
    auto weak = tx_a.downgrade();
    tx_a = tx_b;
    EXPECT_EQ(rx_a.try_recv().error(), try_recv_error::closed);
    EXPECT_FALSE(weak.upgrade());
    weak = tx_b.downgrade();
    EXPECT_TRUE(weak.upgrade());
    EXPECT_TRUE(tx_a.send(7));
    rx_a = std::move(rx_b);
    EXPECT_EQ(rx_a.try_recv(), 7);
    rx_a.swap(rx_b);
    EXPECT_EQ(rx_b.try_recv().error(), try_recv_error::empty);
}

// --- values that use their channel -----------------------------------------------------------

// Calls a function when it is destroyed, unless it was moved from.
class on_end {
  public:
    explicit on_end(std::function<void()> f) : function_(std::move(f)) {}
    on_end(on_end&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
    ~on_end() {
        if (function_) function_();
    }

  private:
    std::function<void()> function_;
};

TEST(MpscUnbounded, AValueMayUseItsChannelWhileTheReceiversEndDestroysIt) {
    auto [tx, rx] = unbounded<on_end>();
    int refused = 0;
    auto const send_again = [&, &to = tx] {
        if (!to.send(on_end{nullptr})) ++refused;
        EXPECT_TRUE(to.is_closed());
        auto const copy = to;
    };
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(tx.send(on_end{send_again}));
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(refused, 40);
}

TEST(MpscUnbounded, AValueMayHoldTheLastSenderOfItsChannel) {
    struct chain {
        std::unique_ptr<mpsc::unbounded_sender<chain>> link;
    };
    auto [tx, rx] = unbounded<chain>();
    auto const weak = tx.downgrade();
    EXPECT_TRUE(tx.send(chain{std::make_unique<mpsc::unbounded_sender<chain>>(tx)}));
    {
        auto const gone = std::move(tx);
    }
    EXPECT_FALSE(rx.is_closed());
    {
        auto const gone = std::move(rx);
    }
    EXPECT_FALSE(weak.upgrade());
}

TEST(MpscUnbounded, AValueMaySendFromItsDestructorWhileTheReceiverLives) {
    auto [tx, rx] = unbounded<on_end>();
    int sent = 0;
    EXPECT_TRUE(tx.send(on_end{[&, &to = tx] {
        if (to.send(on_end{nullptr})) ++sent;
    }}));
    {
        auto const got = rx.try_recv();
        EXPECT_EQ(rx.try_recv().error(), try_recv_error::empty);
    }
    EXPECT_EQ(sent, 1);
    EXPECT_EQ(rx.len(), 1U);
}

// --- threads ---------------------------------------------------------------------------------

TEST(MpscUnbounded, ThreadsSendToATask) {
    constexpr int each = 1000;
    auto [tx, rx] = unbounded<int>();
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([mine = tx] {
            for (int i = 0; i < each; ++i) EXPECT_TRUE(mine.send(i));
        });
    }
    {
        auto const gone = std::move(tx);
    }
    int const sum = block_on([](mpsc::unbounded_receiver<int>& r) -> task<int> {
        int total = 0;
        for (;;) {
            auto const got = co_await r.recv();
            if (!got) co_return total;
            total += *got;
        }
    }(rx));
    EXPECT_EQ(sum, 3 * (each - 1) * each / 2);
}

// --- misuse ----------------------------------------------------------------------------------

TEST(MpscUnboundedDeathTest, AMovedHandleSaysSo) {
    auto [tx, rx] = unbounded<int>();
    auto const weak = tx.downgrade();
    auto const tx_elsewhere = std::move(tx);
    EXPECT_DEATH((void)tx.send(1), "was moved");
    auto const rx_elsewhere = std::move(rx);
    EXPECT_DEATH((void)rx.try_recv(), "was moved");
}

}  // namespace
}  // namespace rondo
