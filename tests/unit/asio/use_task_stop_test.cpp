// How an operation of Asio in a task ends when it is not by itself: stop, deadlines, tokens, and
// the end of its context. Stepped by hand.
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <utility>

#include "desk.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::use_task;
using boost::system::error_code;
using test::desk;
using test::manual_loop;
using namespace std::chrono_literals;

// Counts tasks that are alive.
class guest {
  public:
    explicit guest(int& count) noexcept : count_(&count) { ++*count_; }
    guest(guest&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    guest& operator=(guest&&) = delete;
    ~guest() {
        if (count_ != nullptr) --*count_;
    }

  private:
    int* count_;
};

task<error_code> ask_as_guest(desk<error_code>& d, guest) {
    std::expected<void, error_code> const r = co_await d.async_ask(use_task);
    co_return r ? error_code{} : r.error();
}

class UseTaskStop : public test::UseTask {
  protected:
    auto begin() {
        auto handle = spawn(loop, ask_as_guest(d, guest{guests}));
        run_both();
        EXPECT_TRUE(d.asked());
        return handle;
    }

    int guests = 0;
    desk<error_code> d{io};
};

TEST_F(UseTaskStop, TheTaskUnwindsOnItsExecutorWhenTheOperationHasEnded) {
    auto handle = begin();
    handle.request_stop();
    EXPECT_FALSE(d.told_to_cancel()) << "not in the request: the context is elsewhere";
    loop.run_ready();
    EXPECT_EQ(guests, 1) << "the operation is still under way";
    run_io();
    EXPECT_TRUE(d.told_to_cancel());
    EXPECT_FALSE(d.asked());
    EXPECT_EQ(guests, 1) << "not on the context";
    loop.run_ready();
    EXPECT_EQ(guests, 0);
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

TEST_F(UseTaskStop, ReachesAnOperationThroughAnAdapter) {
    auto asks = [](desk<error_code>* at) -> task<error_code> {
        auto [error] = co_await at->async_ask(net::as_tuple(use_task));
        co_return error;
    };
    auto handle = spawn(loop, asks(&d));
    run_both();
    handle.request_stop();
    run_both();
    EXPECT_TRUE(d.told_to_cancel());
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

TEST_F(UseTaskStop, ACompletionBeatsIt) {
    auto handle = begin();
    d.answer(error_code{});
    run_io();
    handle.request_stop();
    run_both();
    EXPECT_EQ(handle.blocking_join(), error_code{});
    EXPECT_FALSE(d.told_to_cancel());
}

TEST_F(UseTaskStop, ACompletionOnItsWayBeatsIt) {
    auto handle = begin();
    d.answer(error_code{});  // before the request at the context
    handle.request_stop();
    run_both();
    EXPECT_EQ(handle.blocking_join(), error_code{});
}

TEST_F(UseTaskStop, AnotherErrorIsACompletion) {
    desk<error_code> stubborn{io, false};
    auto handle = spawn(loop, ask_as_guest(stubborn, guest{guests}));
    run_both();
    handle.request_stop();
    run_both();
    EXPECT_TRUE(stubborn.told_to_cancel());
    EXPECT_FALSE(handle.ended()) << "it does not end before the operation does";
    stubborn.answer(error_code{net::error::connection_reset});
    run_both();
    EXPECT_EQ(handle.blocking_join(), error_code{net::error::connection_reset});
}

TEST_F(UseTaskStop, ThatOvertakesTheStartStartsNothing) {
    auto handle = spawn(loop, ask_as_guest(d, guest{guests}));
    loop.run_ready();
    handle.request_stop();
    run_both();
    EXPECT_EQ(d.times_asked(), 0);
    EXPECT_EQ(guests, 0);
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

using net::local::stream_protocol;

task<std::size_t> say(stream_protocol::socket& to) {
    auto const n = co_await to.async_write_some(net::buffer("abcd", 4), use_task);
    co_return n.value();
}

TEST_F(UseTaskStop, ThatOvertakesTheStartOfAWriteSendsNothing) {
    stream_protocol::socket here{io};
    stream_protocol::socket peer{io};
    net::local::connect_pair(here, peer);
    auto handle = spawn(loop, say(here));
    loop.run_ready();
    handle.request_stop();
    run_both();
    EXPECT_EQ(peer.available(), 0U);
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

TEST_F(UseTaskStop, ThatCameBeforeTheAwaitStartsNothing) {
    auto handle = spawn(loop, ask_as_guest(d, guest{guests}));
    handle.request_stop();
    loop.run_ready();
    EXPECT_EQ(guests, 0);
    run_io();
    EXPECT_FALSE(d.asked());
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

task<error_code> ask_behind_a_shield(desk<error_code>& d, guest g) {
    co_return co_await shield(ask_as_guest(d, std::move(g)));
}

TEST_F(UseTaskStop, DoesNotReachThroughAShield) {
    auto handle = spawn(loop, ask_behind_a_shield(d, guest{guests}));
    run_both();
    handle.request_stop();
    run_both();
    EXPECT_FALSE(d.told_to_cancel());
    d.answer(error_code{});
    run_both();
    EXPECT_EQ(handle.blocking_join(), error_code{});
}

task<std::size_t> first_of(desk<error_code>& a, net::steady_timer& b) {
    auto const r = co_await when_any(a.async_ask(use_task), b.async_wait(use_task));
    co_return r.index();
}

TEST_F(UseTaskStop, TheLoserOfAWhenAnyIsCancelledAndHasEnded) {
    net::steady_timer t{io, net::steady_timer::time_point::max()};
    auto handle = spawn(loop, first_of(d, t));
    run_both();
    EXPECT_TRUE(d.asked());
    d.answer(error_code{});
    run_both();
    EXPECT_EQ(handle.blocking_join(), 0U);
    EXPECT_EQ(t.cancel(), 0U) << "nothing of it is pending any more";
}

// --- bounds ---

template <class... Bounds>
task<error_code> ask_within(desk<error_code>& d, Bounds... bounds) {
    auto const r = co_await d.async_ask(use_task(bounds...));
    co_return r ? error_code{} : r.error();
}

TEST_F(UseTaskStop, ADeadlineGivesTimedOut) {
    auto by_moment = spawn(loop, ask_within(d, loop.now() + 10ms));
    run_both();
    loop.advance(9ms);
    run_both();
    EXPECT_FALSE(d.told_to_cancel());
    loop.advance(1ms);
    run_both();
    EXPECT_EQ(by_moment.blocking_join(), error_code{net::error::timed_out});

    auto by_duration = spawn(loop, ask_within(d, 10ms));
    run_both();
    loop.advance(10ms);
    run_both();
    EXPECT_EQ(by_duration.blocking_join(), error_code{net::error::timed_out});
}

TEST_F(UseTaskStop, ACompletionBeatsADeadline) {
    auto handle = spawn(loop, ask_within(d, 10ms));
    run_both();
    d.answer(error_code{});
    loop.pass(10ms);
    run_both();
    EXPECT_EQ(handle.blocking_join(), error_code{});
}

TEST_F(UseTaskStop, ATokenGivesOperationAborted) {
    stop_source source;
    auto handle = spawn(loop, ask_within(d, 1h, source.token()));
    run_both();
    source.request_stop();
    run_both();
    EXPECT_EQ(handle.blocking_join(), error_code{net::error::operation_aborted});
}

// One that is asked for a value is started all the same: what completes at once gives its result.
TEST_F(UseTaskStop, ATokenThatOvertakesTheStartCancelsWhatIsStarted) {
    stop_source source;
    auto handle = spawn(loop, ask_within(d, source.token()));
    loop.run_ready();
    source.request_stop();
    run_both();
    EXPECT_EQ(d.times_asked(), 1);
    EXPECT_TRUE(d.told_to_cancel());
    ASSERT_TRUE(handle.ended());
    EXPECT_EQ(handle.blocking_join(), error_code{net::error::operation_aborted});
}

TEST_F(UseTaskStop, TheEnvironmentStillUnwindsABoundedOperation) {
    stop_source source;
    auto handle = spawn(loop, ask_within(d, source.token()));
    run_both();
    handle.request_stop();
    source.request_stop();  // too late to be the reason
    run_both();
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

task<bool> ask_with_timeout(desk<error_code>& d) {
    auto const r = co_await with_timeout(d.async_ask(use_task), 10ms);
    co_return r.has_value();
}

TEST_F(UseTaskStop, WithTimeoutWaitsForTheRealEndToo) {
    auto handle = spawn(loop, ask_with_timeout(d));
    run_both();
    loop.advance(10ms);
    EXPECT_FALSE(handle.ended());
    run_both();
    EXPECT_EQ(handle.blocking_join(), false);
}

// --- the end of a context ---

task<error_code> wait_for(std::unique_ptr<net::steady_timer>& t) {
    std::expected<void, error_code> const r = co_await t->async_wait(use_task);
    co_return r ? error_code{} : r.error();
}

class UseTaskShutdown : public testing::Test {
  protected:
    UseTaskShutdown() { t->expires_at(net::steady_timer::time_point::max()); }
    void destroy_context() {
        t.reset();  // before its context, as always in Asio
        io.reset();
    }

    std::unique_ptr<net::io_context> io = std::make_unique<net::io_context>();
    std::unique_ptr<net::steady_timer> t = std::make_unique<net::steady_timer>(*io);
    manual_loop loop;
};

TEST_F(UseTaskShutdown, APendingOperationEndsAndItsTaskGoesOn) {
    auto handle = spawn(loop, wait_for(t));
    loop.run_ready();
    io->poll();
    destroy_context();
    EXPECT_FALSE(handle.ended()) << "its executor is elsewhere";
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join(), error_code{net::error::operation_aborted});
}

TEST_F(UseTaskShutdown, AnOperationThatWasNeverStartedEndsToo) {
    auto handle = spawn(loop, wait_for(t));
    loop.run_ready();
    destroy_context();
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join(), error_code{net::error::operation_aborted});
}

TEST_F(UseTaskShutdown, ARequestToCancelThatNeverArrivedIsNotMissed) {
    auto handle = spawn(loop, wait_for(t));
    loop.run_ready();
    io->poll();
    handle.request_stop();
    destroy_context();
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join(), std::unexpected{wait_error::stopped});
}

}  // namespace
}  // namespace rondo
