// Channels allocate nothing in order to wait, and use the memory of values again, counted.
//
// Each test does something a few times, so that frames are there and threads have started, then
// many times more, and compares the count before and after.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/broadcast.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/oneshot.hpp"
#include "support/counted_new.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::allocation_count;

constexpr int warm_up = 200;
constexpr int rounds = 1000;

// Under sanitizers each recycled block is a block of its own.
bool memory_is_recycled() { return this_thread_frame_stats().recycling; }

// Two tasks that send to each other, so that every receive waits. `receive` and `send` make the
// wait.
template <class Rx, class Tx, class Receive, class Send>
task<long> echo(Rx& from, Tx& to, Receive receive, Send send) {
    long before = 0;
    allocation_count const c;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        auto waiting = receive(from);
        auto const got = co_await std::move(waiting);
        EXPECT_TRUE(got.has_value());
        auto sending = send(to);
        auto const sent = co_await std::move(sending);
        EXPECT_TRUE(sent.has_value());
    }
    co_return c.count() - before;
}

template <class Receive, class Send>
void expect_no_allocation_between(Receive receive, Send send) {
    run_loop loop;
    auto [tx_a, rx_a] = mpsc::channel<int>(1);
    auto [tx_b, rx_b] = mpsc::channel<int>(1);
    EXPECT_TRUE(tx_a.try_send(0));
    auto first = spawn(loop, echo(rx_a, tx_b, receive, send));
    auto second = spawn(loop, echo(rx_b, tx_a, receive, send));
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value(), 0);
    std::ignore = second.blocking_join();
}

TEST(ChannelAllocation, TasksThatSendAndReceiveThroughABoundedChannelAllocateNothing) {
    expect_no_allocation_between([](auto& rx) { return rx.recv(); },
                                 [](auto& tx) { return tx.send(1); });
}

TEST(ChannelAllocation, WithATokenAndADeadlineNeither) {
    stop_source source;
    stop_token const token = source.token();
    expect_no_allocation_between([=](auto& rx) { return rx.recv_for(1h, token); },
                                 [=](auto& tx) { return tx.send_for(1, 1h, token); });
}

// The sender is always ahead, so that it waits for room, and goes on until nobody receives.
TEST(ChannelAllocation, ASenderThatWaitsForRoomAllocatesNothing) {
    run_loop loop;
    auto [tx, rx] = mpsc::channel<int>(1);
    spawn(loop,
          [](mpsc::sender<int> s) -> task<void> {
              for (bool wanted = true; wanted;) {
                  auto const sent = co_await s.send(1);
                  wanted = sent.has_value();
              }
          }(std::move(tx)))
        .detach();
    auto receives = spawn(loop, [](mpsc::receiver<int> r) -> task<long> {
        long before = 0;
        allocation_count const c;
        for (int i = 0; i < warm_up + rounds; ++i) {
            if (i == warm_up) before = c.count();
            (void)co_await r.recv();
        }
        co_return c.count() - before;
    }(std::move(rx)));
    loop.run_ready();
    EXPECT_EQ(receives.blocking_join().value(), 0);
}

TEST(ChannelAllocation, AnUnboundedChannelUsesItsBlocksAgain) {
    auto [tx, rx] = mpsc::unbounded<int>();
    long before = 0;
    allocation_count const c;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        EXPECT_TRUE(tx.send(i));
        EXPECT_EQ(rx.try_recv(), i);
    }
    EXPECT_EQ(c.count() - before, 0);
}

TEST(ChannelAllocation, WaitsThatAreGivenUpAllocateNothing) {
    run_loop loop;
    auto [tx, rx] = mpsc::channel<int>(1);
    EXPECT_TRUE(tx.try_send(0));
    auto [unused, empty] = mpsc::unbounded<int>();
    auto [never, silent] = broadcast::channel<int>(1);
    auto [open, unanswered] = oneshot::channel<int>();
    stop_source stopped;
    stopped.request_stop();
    auto t = spawn(
        loop,
        [](auto& full, auto& none, auto& quiet, auto& answer, stop_token token) -> task<long> {
            allocation_count const c;
            for (int i = 0; i < rounds; ++i) {
                auto const unsent = co_await full.send(1, token);
                auto const late = co_await full.reserve_for(0ns);
                auto const nothing = co_await none.recv_for(0ns);
                auto const no_news = co_await quiet.recv(token);
                auto const no_answer = co_await answer.recv(token);
                EXPECT_FALSE(unsent || late || nothing || no_news || no_answer);
            }
            co_return c.count();
        }(tx, empty, silent, unanswered, stopped.token()));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 0);
}

TEST(ChannelAllocation, ThreadsThatSendToEachOtherAllocateNothing) {
    auto [there_tx, there_rx] = mpsc::unbounded<int>();
    auto [back_tx, back_rx] = mpsc::channel<int>(1);
    std::thread other{[from = std::move(there_rx), to = std::move(back_tx)]() mutable {
        for (int i = 0; i < warm_up + rounds; ++i) {
            EXPECT_EQ(from.blocking_recv(), i);
            EXPECT_TRUE(to.blocking_send(i));
        }
    }};
    allocation_count const c;
    long before = 0;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        EXPECT_TRUE(there_tx.send(i));
        EXPECT_EQ(back_rx.blocking_recv_for(1h), i);
    }
    EXPECT_EQ(c.count() - before, 0);
    other.join();
}

TEST(ChannelAllocation, InSteadyStateOneshotsAndBroadcastValuesReuseMemory) {
    if (!memory_is_recycled()) return;
    auto [tx, rx] = broadcast::channel<int>(4);
    long before = 0;
    allocation_count const c;
    for (int i = 0; i < warm_up + rounds; ++i) {
        if (i == warm_up) before = c.count();
        auto [one, other] = oneshot::channel<int>();
        EXPECT_TRUE(one.send(i));
        EXPECT_EQ(other.try_recv(), i);
        EXPECT_EQ(tx.send(i), 1U);
        EXPECT_EQ(rx.try_recv(), i);
    }
    EXPECT_EQ(c.count() - before, 0);
}

}  // namespace
}  // namespace rondo
