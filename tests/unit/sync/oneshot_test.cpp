// Oneshot: what each end sees of the other, in every form of a wait. What happens when the ends
// meet in one instant is model-checked in tests/model/sync/oneshot_model_test.cpp.
#include "rondo/sync/oneshot.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
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
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using oneshot::channel;
using oneshot::recv_error;
using oneshot::try_recv_error;
using test::census;
using test::counted;
using test::manual_loop;

template <class T>
using received = std::expected<T, recv_error>;

task<received<int>> receive(oneshot::receiver<int>& rx) { co_return co_await rx.recv(); }

// --- a value ---------------------------------------------------------------------------------

TEST(Oneshot, AValueThatWasSentIsReceivedWithoutWaiting) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    EXPECT_TRUE(tx.send(7));
    EXPECT_TRUE(tx.spent());
    auto t = spawn(loop, receive(rx));
    EXPECT_TRUE(loop.step());
    EXPECT_TRUE(t.ended()) << "in its first turn";
    EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST(Oneshot, AWaitingReceiverIsWokenByTheSendAndNotResumedInsideIt) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    EXPECT_TRUE(tx.send(7));
    EXPECT_FALSE(t.ended());
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST(Oneshot, CarriesWhatOnlyMovesAndWhatIsOveraligned) {
    struct alignas(64) wide {
        std::uint64_t number;
    };
    auto [tx, rx] = channel<std::unique_ptr<wide>>();
    EXPECT_TRUE(tx.send(std::make_unique<wide>(7U)));
    EXPECT_EQ(rx.try_recv().value()->number, 7U);
    auto [tx_wide, rx_wide] = channel<wide>();
    EXPECT_TRUE(tx_wide.send(wide{8}));
    EXPECT_EQ(rx_wide.try_recv()->number, 8U);
}

TEST(Oneshot, EndsMayBeMovedAlsoWhileTheyAreWaitedAt) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    auto rx_elsewhere = std::move(rx);
    auto tx_elsewhere = std::move(tx);
    EXPECT_TRUE(tx.spent());
    EXPECT_TRUE(tx_elsewhere.send(7));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
    EXPECT_TRUE(rx_elsewhere.is_terminated());
}

TEST(Oneshot, AssigningToAnEndLetsGoOfTheChannelItHad) {
    auto [tx_a, rx_a] = channel<int>();
    auto [tx_b, rx_b] = channel<int>();
    tx_a = std::move(tx_b);
    EXPECT_EQ(rx_a.try_recv().error(), try_recv_error::closed);
    EXPECT_TRUE(tx_a.send(7));
    EXPECT_EQ(rx_b.try_recv(), 7);

    auto [tx_c, rx_c] = channel<int>();
    auto [tx_d, rx_d] = channel<int>();
    rx_c = std::move(rx_d);
    EXPECT_TRUE(tx_c.is_closed());
    EXPECT_FALSE(tx_d.is_closed());
    rx_c.swap(rx_a);
    EXPECT_TRUE(tx_d.send(8));
    EXPECT_EQ(rx_a.try_recv(), 8);
}

// --- the sender goes -------------------------------------------------------------------------

TEST(Oneshot, ASenderThatGoesWithoutSendingAnswersClosed) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    std::optional gone{std::move(tx)};
    EXPECT_FALSE(rx.is_terminated());
    gone.reset();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
    EXPECT_EQ(rx.blocking_recv().error(), recv_error::closed);
    EXPECT_TRUE(rx.is_terminated());
}

TEST(Oneshot, AfterTheValueWasReceivedThereIsNone) {
    auto [tx, rx] = channel<int>();
    EXPECT_TRUE(tx.send(7));
    EXPECT_FALSE(rx.is_terminated());
    EXPECT_EQ(rx.blocking_recv(), 7);
    EXPECT_TRUE(rx.is_empty());
    EXPECT_TRUE(rx.is_terminated());
    EXPECT_EQ(rx.blocking_recv().error(), recv_error::closed);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
}

// --- the receiver goes -----------------------------------------------------------------------

TEST(Oneshot, AValueThatNobodyCanReceiveComesBack) {
    census among;
    {
        auto [tx, rx] = channel<counted>();
        {
            auto const gone = std::move(rx);
        }
        EXPECT_TRUE(tx.is_closed());
        auto const back = tx.send(counted{among, 7});
        ASSERT_FALSE(back);
        EXPECT_EQ(back.error().number, 7);
        EXPECT_EQ(among.alive(), 1);
        EXPECT_TRUE(tx.spent());
    }
    EXPECT_EQ(among.alive(), 0);
}

TEST(Oneshot, AValueThatWasNotReceivedIsDestroyedWithTheReceiver) {
    census among;
    auto [tx, rx] = channel<counted>();
    EXPECT_TRUE(tx.send(counted{among, 7}));
    EXPECT_EQ(among.alive(), 1);
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(among.alive(), 0);
}

TEST(Oneshot, AValueThatWasReceivedIsTheReceiversAlone) {
    census among;
    {
        auto [tx, rx] = channel<counted>();
        EXPECT_TRUE(tx.send(counted{among, 7}));
        auto const got = rx.try_recv();
        EXPECT_EQ(got->number, 7);
        EXPECT_EQ(among.alive(), 1);
    }
    EXPECT_EQ(among.alive(), 0);
}

TEST(Oneshot, CloseLetsNothingInAndWhatIsInComesOut) {
    auto [tx, rx] = channel<std::string>();
    rx.close();
    rx.close();
    EXPECT_TRUE(tx.is_closed());
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
    EXPECT_EQ(tx.send("late").error(), "late");

    auto [tx2, rx2] = channel<std::string>();
    EXPECT_TRUE(tx2.send("in time"));
    rx2.close();
    EXPECT_FALSE(rx2.is_empty());
    EXPECT_EQ(rx2.try_recv(), "in time");
    EXPECT_EQ(rx2.try_recv().error(), try_recv_error::closed);
}

TEST(Oneshot, CloseEndsARecvThatWaits) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    rx.close();
    EXPECT_FALSE(t.ended()) << "never inside close()";
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
    EXPECT_EQ(tx.send(7).error(), 7);
}

TEST(Oneshot, TryRecvTellsNotYetFromNeverMore) {
    auto [tx, rx] = channel<int>();
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::empty);
    EXPECT_TRUE(rx.is_empty());
    EXPECT_TRUE(tx.send(7));
    EXPECT_FALSE(rx.is_empty());
    EXPECT_EQ(rx.try_recv(), 7);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
}

// Dropped by the receiver's destructor, it drops the sender of another channel, whose receiver
// waits.
TEST(Oneshot, AValueMayBeTheEndOfAnotherChannel) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto [tx_outer, rx_outer] = channel<oneshot::sender<int>>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    EXPECT_TRUE(tx_outer.send(std::move(tx)));
    {
        auto const gone = std::move(rx_outer);
    }
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
}

// --- closed() --------------------------------------------------------------------------------

TEST(Oneshot, ClosedWaitsForTheReceiverToGo) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, [](oneshot::sender<int>& s) -> task<void> { co_await s.closed(); }(tx));
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    EXPECT_FALSE(tx.is_closed());
    {
        auto const gone = std::move(rx);
    }
    EXPECT_FALSE(t.ended());
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    EXPECT_TRUE(tx.is_closed());
    tx.blocking_closed();  // at once
}

TEST(Oneshot, ClosedAndRecvMayWaitAtOnce) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto closes =
        spawn(loop, [](oneshot::sender<int>& s) -> task<void> { co_await s.closed(); }(tx));
    auto receives = spawn(loop, receive(rx));
    loop.run_ready();
    closes.request_stop();
    loop.run_ready();
    EXPECT_TRUE(tx.send(7));
    loop.run_ready();
    EXPECT_EQ(receives.blocking_join().value(), 7);
}

task<std::vector<wait_error>> bounded_closed(oneshot::sender<int>& tx, stop_token token) {
    std::vector<wait_error> why;
    auto r = co_await tx.closed(token);
    if (!r) why.push_back(r.error());
    r = co_await tx.closed_for(1ms);
    if (!r) why.push_back(r.error());
    environment const& env = co_await this_environment();
    r = co_await tx.closed_until(env.timers().now() + 1ms);
    if (!r) why.push_back(r.error());
    co_return why;
}

TEST(Oneshot, ClosedHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, bounded_closed(tx, stop.token()));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(),
              (std::vector{wait_error::stopped, wait_error::timed_out, wait_error::timed_out}));

    EXPECT_EQ(tx.blocking_closed(stop.token()).error(), wait_error::stopped);
    EXPECT_EQ(tx.blocking_closed_for(0s).error(), wait_error::timed_out);
    EXPECT_EQ(tx.blocking_closed_until(clock::now()).error(), wait_error::timed_out);
    rx.close();
    EXPECT_TRUE(tx.blocking_closed(stop.token())) << "completion beats stop";
    EXPECT_TRUE(tx.blocking_closed_for(0s));
    EXPECT_TRUE(tx.blocking_closed_until(clock::now()));
}

// --- recv() in its forms ---------------------------------------------------------------------

TEST(Oneshot, RecvHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = channel<int>();
    auto t =
        spawn(loop, [](oneshot::receiver<int>& r, stop_token s) -> task<std::vector<recv_error>> {
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
    EXPECT_TRUE(tx.send(7));
    EXPECT_EQ(rx.blocking_recv(stop.token()), 7) << "completion beats stop";
}

TEST(Oneshot, ARecvThatLosesAWhenAnyLeavesTheValueForTheNext) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, [](oneshot::receiver<int>& r) -> task<received<int>> {
        auto const first = co_await when_any(r.recv(), sleep_for(1ms));
        EXPECT_EQ(first.index(), 1U);
        co_return co_await r.recv();
    }(rx));
    loop.advance(1ms);
    EXPECT_TRUE(tx.send(7));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST(Oneshot, ARecvThatIsStoppedTogetherWithTheSendKeepsTheValueInTheChannel) {
    manual_loop loop;
    auto [tx, rx] = channel<int>();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    t.request_stop();
    EXPECT_TRUE(tx.send(7));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(rx.try_recv(), 7);
}

TEST(Oneshot, AThreadWaitsForATaskAndATaskForAThread) {
    auto [tx, rx] = channel<int>();
    auto [tx_back, rx_back] = channel<int>();
    std::thread thread{[&] {
        auto const got = rx.blocking_recv();
        EXPECT_TRUE(tx_back.send(got.value() + 1));
    }};
    int const answer =
        block_on([](oneshot::sender<int>& to, oneshot::receiver<int>& from) -> task<int> {
            EXPECT_TRUE(to.send(7));
            auto const got = co_await from.recv();
            co_return got.value();
        }(tx, rx_back));
    EXPECT_EQ(answer, 8);
    thread.join();
}

TEST(Oneshot, AForeignCoroutineMayWaitAtBothEnds) {
    auto [tx, rx] = channel<int>();
    std::optional<int> got;
    bool closed = false;
    [](oneshot::receiver<int>& r, std::optional<int>& g) -> test::foreign {
        auto const value = co_await r.recv();
        g = value.value();
    }(rx, got);
    EXPECT_FALSE(got);
    EXPECT_TRUE(tx.send(7));
    EXPECT_EQ(got, 7);

    auto [tx2, rx2] = channel<int>();
    [](oneshot::sender<int>& s, bool& c) -> test::foreign {
        co_await s.closed();
        c = true;
    }(tx2, closed);
    rx2.close();
    EXPECT_TRUE(closed);
}

// --- misuse ----------------------------------------------------------------------------------

TEST(OneshotDeathTest, ASpentSenderSaysSo) {
    auto [tx, rx] = channel<int>();
    EXPECT_TRUE(tx.send(7));
    EXPECT_DEATH((void)tx.send(8), "a sender sends once");
    EXPECT_DEATH((void)tx.is_closed(), "has sent or was moved");
    auto const elsewhere = std::move(rx);
    EXPECT_DEATH((void)rx.try_recv(), "was moved");
}

struct throws_when_moved {
    throws_when_moved() = default;
    throws_when_moved(throws_when_moved&&) noexcept(false) {}
};
static_assert(!detail::is_message<throws_when_moved>);
static_assert(!detail::is_message<int&> && !detail::is_message<int const>);
static_assert(detail::is_message<std::unique_ptr<int>>);

}  // namespace
}  // namespace rondo
