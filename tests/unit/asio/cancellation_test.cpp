// Cancellation slots: what a signal ends, what it comes too late for, and that nothing is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <cstddef>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "rondo/asio/wait.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::granted;
using test::permits;
using permit = permits::permit;
using maybe_permit = std::expected<permit, wait_error>;

// What became of a plain wait.
struct verdict {
    bool granted = false;
    boost::system::error_code error;
};

auto note(verdict& v) {
    return [&v](std::exception_ptr failure, granted<permit> const& got) {
        v.granted = got.has_value();
        try {
            if (failure) std::rethrow_exception(std::move(failure));
        } catch (boost::system::system_error const& e) {
            v.error = e.code();
        }
    };
}

class AsioCancellation : public testing::Test {
  protected:
    // A handler that runs in io and listens to the signal.
    template <class Handler>
    auto here(Handler handler) {
        return net::bind_cancellation_slot(signal.slot(), net::bind_executor(io, handler));
    }

    permits p{0};
    net::io_context io;
    net::cancellation_signal signal;
    verdict seen;
};

TEST_F(AsioCancellation, EveryTypeAbortsAPlainWait) {
    for (auto type : {net::cancellation_type::terminal, net::cancellation_type::partial,
                      net::cancellation_type::total, net::cancellation_type::all}) {
        seen = {};
        p.acquire()(here(note(seen)));
        signal.emit(type);
        EXPECT_FALSE(p.awaited());
        io.restart();
        io.run();
        EXPECT_FALSE(seen.granted);
        EXPECT_EQ(seen.error, net::error::operation_aborted);
    }
}

TEST_F(AsioCancellation, BoundedWaitSaysStopped) {
    std::optional<wait_error> error;
    p.acquire_until(1, time_point::max())(
        here([&](std::exception_ptr const& failure, granted<maybe_permit> result) {
            EXPECT_FALSE(failure);
            error = result->error();
        }));
    signal.emit(net::cancellation_type::terminal);
    io.run();
    EXPECT_EQ(error, wait_error::stopped);
}

TEST_F(AsioCancellation, GrantBeforeTheSignalIsDelivered) {
    p.acquire()(here(note(seen)));
    p.release();
    signal.emit(net::cancellation_type::terminal);
    io.run();
    EXPECT_TRUE(seen.granted);
    EXPECT_FALSE(seen.error);
    EXPECT_EQ(p.available(), 1U);
}

TEST_F(AsioCancellation, ReleaseAfterTheSignalIsKept) {
    p.acquire()(here(note(seen)));
    signal.emit(net::cancellation_type::terminal);
    p.release();
    io.run();
    EXPECT_FALSE(seen.granted);
    EXPECT_EQ(p.available(), 1U);
}

TEST_F(AsioCancellation, SlotIsFreeAgainWhenTheHandlerRuns) {
    p.acquire()(here([this](std::exception_ptr const&, granted<permit>) {
        EXPECT_FALSE(signal.slot().has_handler());
    }));
    EXPECT_TRUE(signal.slot().has_handler());
    p.release();
    io.run();
    signal.emit(net::cancellation_type::terminal);  // reaches nobody
}

TEST_F(AsioCancellation, LeavingTheHeadOfTheLineLetsFollowersGo) {
    verdict follower;
    p.acquire(3)(here(note(seen)));
    p.acquire(1)(net::bind_executor(io, note(follower)));
    p.release(2);  // accrues to the first, who needs three
    io.poll();
    EXPECT_FALSE(follower.granted);
    signal.emit(net::cancellation_type::total);
    io.run();
    EXPECT_TRUE(follower.granted);
    EXPECT_EQ(p.available(), 2U);
}

net::awaitable<void> hold(permits& p, boost::system::error_code& error) {
    try {
        auto const got = co_await p.acquire();
        (void)co_await p.acquire();
    } catch (boost::system::system_error const& e) {
        error = e.code();
    }
}

TEST_F(AsioCancellation, ReachesACoroutineThroughItsSpawn) {
    p.release();
    boost::system::error_code error;
    net::co_spawn(io, hold(p, error), net::bind_cancellation_slot(signal.slot(), net::detached));
    io.poll();
    EXPECT_TRUE(p.awaited());
    signal.emit(net::cancellation_type::terminal);
    io.run();
    EXPECT_EQ(error, net::error::operation_aborted);
    EXPECT_EQ(p.available(), 1U);
}

net::awaitable<permit> take(permits& p) { co_return co_await p.acquire(); }

net::awaitable<void> first_of(permits& a, permits& b, std::optional<std::size_t>& winner) {
    using namespace net::experimental::awaitable_operators;
    auto const got = co_await (take(a) || take(b));
    winner = got.index();
}

TEST_F(AsioCancellation, LoserOfAnOrLeavesItsQueue) {
    permits other{0};
    std::optional<std::size_t> winner;
    net::co_spawn(io, first_of(p, other, winner), net::detached);
    io.poll();
    EXPECT_TRUE(p.awaited());
    EXPECT_TRUE(other.awaited());
    other.release();
    io.run();
    EXPECT_EQ(winner, 1U);
    EXPECT_FALSE(p.awaited());
    EXPECT_EQ(p.available(), 0U);
    EXPECT_EQ(other.available(), 1U);
}

void until(std::atomic<int> const& counter, int value) {
    while (counter.load(std::memory_order_acquire) < value) std::this_thread::yield();
}

// One thread releases while the context's thread cancels: each round ends one way or the other,
// and the permit is always still there.
TEST_F(AsioCancellation, PermitGrantedInTheInstantOfTheSignalIsNotLost) {
    constexpr int rounds = 500;
    std::atomic<int> entered{0};
    std::atomic<int> aimed{0};
    std::thread releaser{[&] {
        for (int i = 1; i <= rounds; ++i) {
            until(entered, i);
            aimed.store(i, std::memory_order_release);
            if (i % 2 == 0) std::this_thread::yield();  // so that either may be first
            p.release();
        }
    }};
    int granted_rounds = 0;
    for (int i = 1; i <= rounds; ++i) {
        seen = {};
        p.acquire()(here(note(seen)));
        entered.store(i, std::memory_order_release);
        until(aimed, i);
        for (int spin = 0; spin < i % 8; ++spin) spin_pause();
        signal.emit(net::cancellation_type::terminal);
        io.restart();
        io.run();
        EXPECT_NE(seen.granted, seen.error == net::error::operation_aborted);
        granted_rounds += seen.granted ? 1 : 0;
        p.blocking_acquire().forget();  // whoever had it, it comes back
    }
    releaser.join();
    EXPECT_EQ(p.available(), 0U);
    RecordProperty("granted", granted_rounds);
}

}  // namespace
}  // namespace rondo
