// Signals and channels of sync inside boost::asio::awaitable<>: one test for each, with something
// that has to wait.
#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <expected>
#include <utility>

#include "rondo/asio/run.hpp"
#include "rondo/asio/wait.hpp"
#include "rondo/sync/barrier.hpp"
#include "rondo/sync/broadcast.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/once_cell.hpp"
#include "rondo/sync/oneshot.hpp"
#include "rondo/sync/set_once.hpp"
#include "rondo/sync/watch.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

class AsioChannels : public testing::Test {
  protected:
    // Runs it as far as it goes without what it waits for.
    void start(net::awaitable<void> coroutine) {
        net::co_spawn(io, std::move(coroutine), net::detached);
        io.poll();
        EXPECT_EQ(got, 0);
    }
    // To its end.
    int result() {
        io.run();
        return got;
    }

    net::io_context io;
    int got = 0;
};

TEST_F(AsioChannels, ANotificationIsWaitedFor) {
    notify n;
    start([](notify& waits, int& out) -> net::awaitable<void> {
        co_await waits.notified();
        out = 7;
    }(n, got));
    n.notify_one();
    EXPECT_EQ(result(), 7);
}

TEST_F(AsioChannels, APlaceInLineIsTakenBeforeItIsAwaited) {
    notify n;
    start([](notify& waits, int& out) -> net::awaitable<void> {
        auto change = waits.notified();
        change.enable();
        co_await asio::run(change.wait());
        out = 7;
    }(n, got));
    n.notify_one();
    EXPECT_EQ(result(), 7);
}

TEST_F(AsioChannels, ABarrierIsPassedTogether) {
    barrier b{2};
    auto const pass = [](barrier& at, int& out) -> net::awaitable<void> {
        auto const passage = co_await at.arrive_and_wait();
        out += passage.is_leader() ? 10 : 1;
    };
    start(pass(b, got));
    net::co_spawn(io, pass(b, got), net::detached);
    EXPECT_EQ(result(), 11);
}

TEST_F(AsioChannels, AValueThatIsMadeOnceIsWaitedFor) {
    once_cell<int> cell;
    notify go;
    auto const make = [](notify& waits) -> task<int> {
        co_await waits.notified();
        co_return 7;
    };
    start([](once_cell<int>& c, notify& waits, auto how, int& out) -> net::awaitable<void> {
        int const* const value = co_await asio::run(c.get_or_init([&] { return how(waits); }));
        out = *value;
    }(cell, go, make, got));
    go.notify_one();
    EXPECT_EQ(result(), 7);
}

TEST_F(AsioChannels, AValueThatIsSetOnceIsWaitedFor) {
    set_once<int> cell;
    start([](set_once<int>& c, int& out) -> net::awaitable<void> {
        int const* const value = co_await c.wait();
        out = *value;
    }(cell, got));
    EXPECT_TRUE(cell.set(7));
    EXPECT_EQ(result(), 7);
}

TEST_F(AsioChannels, AOneshotIsReceived) {
    auto [tx, rx] = oneshot::channel<int>();
    start([](oneshot::receiver<int> from, int& out) -> net::awaitable<void> {
        auto const value = co_await from.recv();
        out = value.value_or(-1);
    }(std::move(rx), got));
    EXPECT_TRUE(std::move(tx).send(7));
    EXPECT_EQ(result(), 7);
}

TEST_F(AsioChannels, AChannelIsReceivedFromAndWaitsForRoom) {
    auto [tx, rx] = mpsc::channel<int>(1);
    EXPECT_TRUE(tx.try_send(3));
    start([](mpsc::sender<int> to, int& out) -> net::awaitable<void> {
        auto const sent = co_await to.send(4);
        out += sent ? 100 : -100;
    }(std::move(tx), got));
    net::co_spawn(
        io,
        [](mpsc::receiver<int> from, int& out) -> net::awaitable<void> {
            for (;;) {
                auto const value = co_await from.recv();
                if (!value) break;
                out += *value;
            }
        }(std::move(rx), got),
        net::detached);
    EXPECT_EQ(result(), 107);
}

TEST_F(AsioChannels, ABroadcastIsReceivedByAll) {
    auto [tx, first] = broadcast::channel<int>(4);
    auto second = tx.subscribe();
    auto const receive = [](broadcast::receiver<int> from, int& out) -> net::awaitable<void> {
        auto const value = co_await from.recv();
        out += value.value_or(-100);
    };
    start(receive(std::move(first), got));
    start(receive(std::move(second), got));
    EXPECT_TRUE(tx.send(7));
    EXPECT_EQ(result(), 14);
}

task<int> wait_for_more_than_one(watch::receiver<int>& from) {
    auto const found = co_await from.wait_for([](int n) { return n > 1; });
    co_return found ? **found : -1;
}

TEST_F(AsioChannels, TheLatestValueIsWatchedAndWaitedFor) {
    auto [tx, rx] = watch::channel<int>(0);
    start([](watch::receiver<int> from, int& out) -> net::awaitable<void> {
        auto const changed = co_await from.changed();
        EXPECT_TRUE(changed.has_value());
        out = co_await asio::run(wait_for_more_than_one(from));
    }(std::move(rx), got));
    EXPECT_TRUE(tx.send(1));
    io.poll();
    EXPECT_EQ(got, 0);
    EXPECT_TRUE(tx.send(7));
    io.poll_one();
    EXPECT_EQ(got, 0) << "it is found, and on its way";
    EXPECT_TRUE(tx.send(8)) << "nothing is locked meanwhile";
    EXPECT_EQ(result(), 7);
}

}  // namespace
}  // namespace rondo
