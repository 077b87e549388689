// The bounded mpsc channel: room, permits, the end, in every form of a wait. What it shares with
// the unbounded one is tested there; what happens in one instant, in
// tests/model/sync/mpsc_model_test.cpp.
#include "rondo/sync/mpsc.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
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
#include "rondo/sync/mpsc_bounded.hpp"
#include "rondo/sync/mpsc_permit.hpp"
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using mpsc::channel;
using mpsc::recv_error;
using mpsc::reserve_error;
using mpsc::send_error;
using mpsc::try_recv_error;
using mpsc::try_reserve_error;
using test::census;
using test::counted;
using test::manual_loop;

using numbers = std::vector<int>;

// Sends and says when it is done.
task<bool> send_noted(mpsc::sender<int> tx, int n, numbers& done) {
    auto const sent = co_await tx.send(n);
    done.push_back(n);
    co_return sent.has_value();
}

task<std::expected<int, recv_error>> receive(mpsc::receiver<int>& rx) {
    co_return co_await rx.recv();
}

// --- room ------------------------------------------------------------------------------------

TEST(Mpsc, ASendWaitsWhileTheChannelIsFull) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(2);
    numbers done;
    for (int i = 0; i < 4; ++i) spawn(loop, send_noted(tx, i, done)).detach();
    loop.run_ready();
    EXPECT_EQ(done, (numbers{0, 1}));
    EXPECT_EQ(rx.len(), 2U);
    EXPECT_EQ(rx.try_recv(), 0);
    EXPECT_EQ(done.size(), 2U) << "never inside recv";
    loop.run_ready();
    EXPECT_EQ(done, (numbers{0, 1, 2}));
    EXPECT_EQ(rx.try_recv(), 1);
    EXPECT_EQ(rx.try_recv(), 2);
    loop.run_ready();
    EXPECT_EQ(rx.try_recv(), 3) << "they got their room in turns";
}

TEST(Mpsc, CapacityIsTheRoomThatIsLeft) {
    auto [tx, rx] = channel<int>(3);
    EXPECT_EQ(tx.max_capacity(), 3U);
    EXPECT_EQ(rx.max_capacity(), 3U);
    EXPECT_EQ(tx.capacity(), 3U);
    EXPECT_TRUE(tx.try_send(1));
    auto const room = tx.try_reserve();
    EXPECT_EQ(tx.capacity(), 1U);
    EXPECT_EQ(rx.capacity(), 1U);
    EXPECT_EQ(rx.len(), 1U) << "a permit is not a value";
    EXPECT_EQ(rx.try_recv(), 1);
    EXPECT_EQ(rx.capacity(), 2U);
}

TEST(Mpsc, TrySendSaysFullOrClosedAndGivesTheValueBack) {
    auto [tx, rx] = channel<std::string>(1);
    EXPECT_TRUE(tx.try_send("a"));
    auto back = tx.try_send("b");
    EXPECT_EQ(back.error().why, send_error::full);
    EXPECT_EQ(back.error().value, "b");
    EXPECT_EQ(rx.try_recv(), "a");
    EXPECT_TRUE(tx.try_send("c"));
    rx.close();
    back = tx.try_send("d");
    EXPECT_EQ(back.error().why, send_error::closed);
    EXPECT_EQ(back.error().value, "d");
}

TEST(Mpsc, TrySendDoesNotOvertakeWhoWaits) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    EXPECT_TRUE(tx.try_send(0));
    numbers done;
    spawn(loop, send_noted(tx, 1, done)).detach();
    loop.run_ready();
    EXPECT_EQ(rx.try_recv(), 0);
    EXPECT_EQ(tx.try_send(2).error().why, send_error::full) << "the room is the waiter's";
    loop.run_ready();
    EXPECT_EQ(rx.try_recv(), 1);
}

TEST(Mpsc, AStoppedSenderAtTheHeadLetsFollowersThatFitGoAtOnce) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(2);
    EXPECT_TRUE(tx.try_send(0));
    numbers done;
    auto head = spawn(loop, [](mpsc::sender<int>& s) -> task<bool> {
        auto const r = co_await s.reserve_many(2);
        co_return r.has_value();
    }(tx));
    spawn(loop, send_noted(tx, 1, done)).detach();
    loop.run_ready();
    EXPECT_TRUE(done.empty()) << "the room accrues to the head";
    head.request_stop();
    loop.run_ready();
    EXPECT_EQ(done, numbers{1});
}

TEST(Mpsc, ManyMoreValuesThanRoomGoThrough) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(3);
    spawn(loop,
          [](mpsc::sender<int> s) -> task<void> {
              for (int i = 0; i < 1000; ++i) (void)co_await s.send(i);
          }(std::move(tx)))
        .detach();
    auto sum = spawn(loop, [](mpsc::receiver<int>& r) -> task<int> {
        int total = 0;
        for (;;) {
            auto const got = co_await r.recv();
            if (!got) co_return total;
            total += *got;
        }
    }(rx));
    loop.run_ready();
    EXPECT_EQ(sum.blocking_join().value(), 999 * 500);
    EXPECT_EQ(rx.capacity(), 3U);
}

// --- send and reserve in their forms ---------------------------------------------------------

TEST(Mpsc, ASendThatIsStoppedOrTimesOutGivesItsValueBack) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = channel<std::string>(1);
    EXPECT_TRUE(tx.try_send("full"));
    using outcomes = std::vector<std::pair<send_error, std::string>>;
    auto t = spawn(loop, [](mpsc::sender<std::string>& s, stop_token k) -> task<outcomes> {
        outcomes all;
        environment const& env = co_await this_environment();
        auto r = co_await s.send("a", k);
        if (!r) all.emplace_back(r.error().why, r.error().value);
        r = co_await s.send_for("b", 1ms);
        if (!r) all.emplace_back(r.error().why, r.error().value);
        r = co_await s.send_until("c", env.timers().now() + 1ms);
        if (!r) all.emplace_back(r.error().why, r.error().value);
        co_return all;
    }(tx, stop.token()));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(), (outcomes{{send_error::stopped, "a"},
                                                   {send_error::timed_out, "b"},
                                                   {send_error::timed_out, "c"}}));
    EXPECT_EQ(tx.blocking_send("d", stop.token()).error().value, "d");
    EXPECT_EQ(tx.blocking_send_for("e", 0s).error().why, send_error::timed_out);
    EXPECT_EQ(tx.blocking_send_until("f", clock::now()).error().value, "f");
    EXPECT_EQ(rx.try_recv(), "full");
    EXPECT_TRUE(tx.blocking_send("g", stop.token())) << "completion beats stop";
    EXPECT_EQ(rx.try_recv(), "g");
    EXPECT_TRUE(tx.blocking_send("h"));
    EXPECT_EQ(rx.try_recv(), "h");
    EXPECT_TRUE(tx.blocking_send_for("i", 0s));
    EXPECT_EQ(rx.try_recv(), "i");
    EXPECT_TRUE(tx.blocking_send_until("j", clock::now()));
    EXPECT_EQ(rx.len(), 1U);
}

TEST(Mpsc, ASendThatLosesAWhenAnyHasNotSent) {
    manual_loop loop;
    census among;
    auto [tx, rx] = channel<counted>(1);
    EXPECT_TRUE(tx.try_send(counted{among, 1}));
    auto t = spawn(loop, [](mpsc::sender<counted>& s, census& c) -> task<std::size_t> {
        auto const r = co_await when_any(s.send(counted{c, 2}), sleep_for(1ms));
        co_return r.index();
    }(tx, among));
    loop.advance(1ms);
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_EQ(among.alive(), 1) << "the value went with the wait";
    EXPECT_EQ(rx.try_recv()->number, 1);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::empty);
    EXPECT_EQ(tx.capacity(), 1U);
}

// --- the end ---------------------------------------------------------------------------------

TEST(Mpsc, CloseRefusesWhoWaitsAndGivesTheirValuesBack) {
    manual_loop loop;
    auto [tx, rx] = channel<std::string>(1);
    EXPECT_TRUE(tx.try_send("in time"));
    auto waits = spawn(
        loop,
        [](mpsc::sender<std::string>& s) -> task<std::expected<void, mpsc::unsent<std::string>>> {
            co_return co_await s.send("late");
        }(tx));
    auto reserves =
        spawn(loop, [](mpsc::sender<std::string>& s) -> task<std::optional<reserve_error>> {
            auto const r = co_await s.reserve_owned();
            if (r) co_return std::nullopt;
            co_return r.error();
        }(tx));
    loop.run_ready();
    rx.close();
    EXPECT_TRUE(tx.is_closed());
    EXPECT_TRUE(rx.is_closed());
    loop.run_ready();
    auto const sent = waits.blocking_join().value();
    EXPECT_EQ(sent.error().why, send_error::closed);
    EXPECT_EQ(sent.error().value, "late");
    EXPECT_EQ(reserves.blocking_join().value(), reserve_error::closed);
    EXPECT_EQ(tx.try_reserve().error(), try_reserve_error::closed);
    EXPECT_EQ(tx.try_reserve_owned().error(), try_reserve_error::closed);
    EXPECT_EQ(rx.try_recv(), "in time");
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
}

TEST(Mpsc, WhatIsLeftIsDestroyedWithTheReceiver) {
    census among;
    auto [tx, rx] = channel<counted>(100);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(tx.try_send(counted{among, i}));
    EXPECT_EQ(among.alive(), 100);
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(among.alive(), 0);
    EXPECT_EQ(tx.try_send(counted{among, 0}).error().why, send_error::closed);
}

TEST(Mpsc, TheLastSenderThatGoesWakesTheReceiver) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    auto const weak = tx.downgrade();
    {
        auto const gone = std::move(tx);
    }
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
    EXPECT_FALSE(weak.upgrade());
}

TEST(Mpsc, ClosedWaitsForTheReceiverToGo) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    auto t = spawn(loop, [](mpsc::sender<int> s) -> task<void> { co_await s.closed(); }(tx));
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    rx.close();
    loop.run_ready();
    EXPECT_TRUE(t.ended());
}

// --- recv_many -------------------------------------------------------------------------------

TEST(Mpsc, RecvManyGivesTheRoomOfAllBack) {
    auto [tx, rx] = channel<int>(4);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(tx.try_send(i));
    numbers got;
    EXPECT_EQ(rx.blocking_recv_many(got, 3), 3U);
    EXPECT_EQ(got, (numbers{0, 1, 2}));
    EXPECT_EQ(tx.capacity(), 3U);
}

// --- values that use their channel -----------------------------------------------------------

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

TEST(Mpsc, AValueMayUseItsChannelWhileTheReceiversEndDestroysIt) {
    auto [tx, rx] = channel<on_end>(40);
    int refused = 0;
    for (int i = 0; i < 40; ++i) {
        EXPECT_TRUE(tx.try_send(on_end{[&, &to = tx] {
            auto const back = to.try_send(on_end{nullptr});
            if (!back && back.error().why == send_error::closed) ++refused;
        }}));
    }
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(refused, 40);
}

// --- other worlds ----------------------------------------------------------------------------

TEST(Mpsc, ThreadsAndATaskShareASmallChannel) {
    constexpr int each = 1000;
    auto [tx, rx] = channel<int>(2);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([mine = tx] {
            for (int i = 0; i < each; ++i) EXPECT_TRUE(mine.blocking_send(i));
        });
    }
    {
        auto const gone = std::move(tx);
    }
    int const sum = block_on([](mpsc::receiver<int>& r) -> task<int> {
        int total = 0;
        for (;;) {
            auto const got = co_await r.recv();
            if (!got) co_return total;
            total += *got;
        }
    }(rx));
    EXPECT_EQ(sum, 3 * (each - 1) * each / 2);
    EXPECT_EQ(rx.capacity(), 2U);
}

TEST(Mpsc, AForeignCoroutineMaySend) {
    auto [tx, rx] = channel<int>(1);
    EXPECT_TRUE(tx.try_send(1));
    bool sent = false;
    [](mpsc::sender<int> s, bool& done) -> test::foreign {
        auto const r = co_await s.send(2);
        done = r.has_value();
    }(tx, sent);
    EXPECT_FALSE(sent);
    EXPECT_EQ(rx.try_recv(), 1);
    EXPECT_TRUE(sent);
    EXPECT_EQ(rx.try_recv(), 2);
}

TEST(MpscDeathTest, AChannelWithoutRoomIsRefused) {
    EXPECT_DEATH((void)channel<int>(0), "room for one value at least");
}

}  // namespace
}  // namespace rondo
