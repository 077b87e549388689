// A wait as an asynchronous operation: what it gives, where its handler runs, in every form.
#include "rondo/asio/wait.hpp"

#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <concepts>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "rondo/asio/granted.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::granted;
using test::permits;
using permit = permits::permit;
using maybe_permit = std::expected<permit, wait_error>;

static_assert(net::async_operation<wait<permits::acquire_op>>);
static_assert(net::async_operation<bounded_wait<permits::acquire_op>>);
static_assert(std::same_as<net::completion_signature_of_t<wait<permits::acquire_op>>,
                           void(std::exception_ptr, granted<permit>)>);

void until_awaited(permits& p) {
    while (!p.awaited()) std::this_thread::yield();
}

net::awaitable<void> take(permits& p, std::optional<std::thread::id>& where) {
    auto const taken = co_await p.acquire();
    static_assert(std::same_as<decltype(taken), permit const>);
    where = std::this_thread::get_id();
}

TEST(AsioWait, GivesTheResultItself) {
    permits p{1};
    net::io_context io;
    std::optional<std::thread::id> where;
    net::co_spawn(io, take(p, where), net::detached);
    io.run();
    EXPECT_TRUE(where);
    EXPECT_EQ(p.available(), 1U);
}

TEST(AsioWait, ResumesOnItsExecutorWhenAnotherThreadGrants) {
    permits p{0};
    net::io_context io;
    std::optional<std::thread::id> where;
    net::co_spawn(io, take(p, where), net::detached);
    std::thread runner{[&] { io.run(); }};
    std::thread::id const runs_it = runner.get_id();
    until_awaited(p);
    p.release();
    runner.join();
    EXPECT_EQ(where, runs_it);
    EXPECT_EQ(p.available(), 1U);
}

TEST(AsioWait, ResumesOnTheStrandItIsBoundTo) {
    permits p{0};
    net::thread_pool pool{2};
    auto strand = net::make_strand(pool);
    bool on_strand = false;
    p.acquire()(net::bind_executor(strand, [&](std::exception_ptr const&, granted<permit>) {
        on_strand = strand.running_in_this_thread();
    }));
    p.release();
    pool.join();
    EXPECT_TRUE(on_strand);
}

TEST(AsioWait, HandlerRunsNeitherInTheInitiationNorInTheGrant) {
    permits p{1};
    net::io_context io;
    int called = 0;
    auto count = net::bind_executor(io, [&](std::exception_ptr const&, granted<permit> g) {
        g->forget();
        ++called;
    });
    p.acquire()(count);
    EXPECT_EQ(called, 0);
    p.acquire()(count);
    io.poll();
    EXPECT_EQ(called, 1);

    net::post(io, [&] {
        p.release();  // on the very executor, and still not in place
        EXPECT_EQ(called, 1);
    });
    io.run();
    EXPECT_EQ(called, 2);
}

TEST(AsioWait, IsOutstandingWork) {
    permits p{0};
    net::io_context io;
    std::optional<std::thread::id> where;
    net::co_spawn(io, take(p, where), net::detached);
    io.poll();
    EXPECT_FALSE(io.stopped());
    p.release();
    io.poll();
    EXPECT_TRUE(io.stopped());
    EXPECT_TRUE(where);
}

net::awaitable<void> take_until(permits& p, time_point deadline, std::optional<wait_error>& error) {
    maybe_permit const taken = co_await p.acquire_until(1, deadline);
    if (!taken) error = taken.error();
}

TEST(AsioWait, DeadlineThatHasPassedIsAValue) {
    permits p{0};
    net::io_context io;
    std::optional<wait_error> error;
    net::co_spawn(io, take_until(p, clock::now(), error), net::detached);
    io.run();
    EXPECT_EQ(error, wait_error::timed_out);
    EXPECT_FALSE(p.awaited());
}

TEST(AsioWait, DeadlineIsKeptByTheDefaultTimers) {
    permits p{0};
    net::io_context io;
    std::optional<wait_error> error;
    // real time: these timers have no other clock
    time_point const deadline = clock::now() + std::chrono::milliseconds{2};
    net::co_spawn(io, take_until(p, deadline, error), net::detached);
    io.run();
    EXPECT_EQ(error, wait_error::timed_out);
    EXPECT_GE(clock::now(), deadline);
}

TEST(AsioWait, CompletionBeatsTheDeadline) {
    permits p{1};
    net::io_context io;
    std::optional<wait_error> error;
    net::co_spawn(io, take_until(p, time_point::min(), error), net::detached);
    io.run();
    EXPECT_FALSE(error);
}

TEST(AsioWait, StopTokenEndsABoundedWait) {
    permits p{0};
    net::io_context io;
    stop_source stop;
    std::optional<wait_error> error;
    p.acquire(1, stop.token())(net::bind_executor(
        io, [&](std::exception_ptr const& failure, granted<maybe_permit> result) {
            EXPECT_FALSE(failure);
            error = result->error();
        }));
    std::thread requester{[&] { stop.request_stop(); }};
    io.run();
    requester.join();
    EXPECT_EQ(error, wait_error::stopped);
}

net::awaitable<void> take_in_other_forms(permits& p, int& taken) {
    {
        permit const got = co_await p.acquire()(net::use_awaitable);
        ++taken;
    }
    {
        auto deferred = p.acquire()(net::deferred);
        permit const got = co_await std::move(deferred);
        ++taken;
    }
    {
        auto const [failure, got] = co_await p.acquire()(net::as_tuple(net::use_awaitable));
        if (!failure && got) ++taken;
    }
    {
        wait moved = p.acquire();
        permit const got = co_await std::move(moved);
        ++taken;
    }
}

TEST(AsioWait, TakesEveryCompletionToken) {
    permits p{1};
    net::io_context io;
    int taken = 0;
    net::co_spawn(io, take_in_other_forms(p, taken), net::detached);
    io.run();
    EXPECT_EQ(taken, 4);

    std::future<granted<permit>> future = p.acquire()(net::use_future);
    EXPECT_TRUE(future.get().has_value());
    EXPECT_EQ(p.available(), 1U);
}

task<int> failing() {
    throw std::runtime_error{"from the task"};
    co_return 0;
}

net::awaitable<void> join_failing(join_handle<int>& h, std::string& what) {
    try {
        (void)co_await h.join();
    } catch (std::runtime_error const& e) {
        what = e.what();
    }
}

TEST(AsioWait, ExceptionOfTheOperationIsThrownWhereItIsAwaited) {
    run_loop loop;
    net::io_context io;
    auto handle = spawn(loop, failing());
    std::string what;
    net::co_spawn(io, join_failing(handle, what), net::detached);
    io.poll();
    loop.run_ready();
    io.run();
    EXPECT_EQ(what, "from the task");
}

// A queue whose operations have no result.
class gate : wait_queue {
  public:
    class pass_op : public waiter {
      public:
        explicit pass_op(gate& g) noexcept : waiter(g), gate_(g) {}
        bool ready() noexcept {
            std::lock_guard const guard{gate_.lock()};
            return gate_.open_;
        }
        void take() noexcept {}
        void hand_on() noexcept {}

      private:
        gate& gate_;
    };

    wait<pass_op> pass() noexcept { return wait{pass_op{*this}}; }
    void open() noexcept {
        serve([this] { open_ = true; });
    }

  private:
    bool grant(waiter&) noexcept override { return open_; }
    bool open_ = false;
};

net::awaitable<void> pass(gate& g, int& passed) {
    co_await g.pass();
    ++passed;
    co_await g.pass()(net::use_awaitable);
    ++passed;
}

TEST(AsioWait, OperationWithoutResultGivesNone) {
    gate g;
    net::io_context io;
    int passed = 0;
    net::co_spawn(io, pass(g, passed), net::detached);
    net::co_spawn(io, pass(g, passed), net::detached);
    io.poll();
    EXPECT_EQ(passed, 0);
    g.open();
    io.run();
    EXPECT_EQ(passed, 4);
}

}  // namespace
}  // namespace rondo
