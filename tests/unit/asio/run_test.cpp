// Tasks inside Asio: run() as an operation, and asio_executor below spawn().
#include "rondo/asio/run.hpp"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "rondo/asio/asio_executor.hpp"
#include "rondo/asio/wait.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::granted;
using test::permits;

task<std::thread::id> take(permits& p, std::shared_ptr<int> alive) {
    auto const got = co_await p.acquire();
    ++*alive;
    co_return std::this_thread::get_id();
}

class AsioRun : public testing::Test {
  protected:
    permits p{0};
    net::io_context io;
    std::shared_ptr<int> alive = std::make_shared<int>(0);
};

net::awaitable<void> await_take(permits& p, std::shared_ptr<int> alive,
                                std::optional<std::thread::id>& where) {
    where = co_await asio::run(take(p, std::move(alive)));
    EXPECT_EQ(executor::current(), nullptr);
}

TEST_F(AsioRun, TaskRunsOnTheExecutorOfTheCoroutineThatAwaitsIt) {
    std::optional<std::thread::id> where;
    net::co_spawn(io, await_take(p, alive, where), net::detached);
    std::thread runner{[this] { io.run(); }};
    std::thread::id const runs_it = runner.get_id();
    while (!p.awaited()) std::this_thread::yield();
    p.release();
    runner.join();
    EXPECT_EQ(where, runs_it);
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_F(AsioRun, WaitingTaskIsOutstandingWork) {
    std::optional<std::thread::id> where;
    net::co_spawn(io, await_take(p, alive, where), net::detached);
    io.poll();
    EXPECT_TRUE(p.awaited());
    EXPECT_FALSE(io.stopped());
    p.release();
    io.poll();
    EXPECT_TRUE(io.stopped());
    EXPECT_TRUE(where);
}

task<void> failing() {
    co_await yield();
    throw std::runtime_error{"from the task"};
}

net::awaitable<void> await_failing(std::string& what) {
    try {
        co_await asio::run(failing());
    } catch (std::runtime_error const& e) {
        what = e.what();
    }
}

TEST_F(AsioRun, ExceptionIsThrownWhereItIsAwaited) {
    std::string what;
    net::co_spawn(io, await_failing(what), net::detached);
    io.run();
    EXPECT_EQ(what, "from the task");
}

TEST_F(AsioRun, CancellationUnwindsTheTask) {
    net::cancellation_signal signal;
    boost::system::error_code error;
    asio::run(take(p, alive))(net::bind_cancellation_slot(
        signal.slot(), net::bind_executor(io, [&](std::exception_ptr failure, auto const& result) {
            EXPECT_FALSE(result);
            EXPECT_EQ(alive.use_count(), 1);
            try {
                std::rethrow_exception(std::move(failure));
            } catch (boost::system::system_error const& e) {
                error = e.code();
            }
        })));
    io.poll();
    EXPECT_TRUE(p.awaited());
    signal.emit(net::cancellation_type::terminal);
    EXPECT_FALSE(p.awaited());
    EXPECT_EQ(alive.use_count(), 2);  // it unwinds on its executor, not in the signal
    io.run();
    EXPECT_EQ(error, net::error::operation_aborted);
    EXPECT_EQ(*alive, 0);
}

TEST_F(AsioRun, CompletionBeatsCancellation) {
    net::cancellation_signal signal;
    bool completed = false;
    asio::run(take(p, alive))(net::bind_cancellation_slot(
        signal.slot(),
        net::bind_executor(io, [&](std::exception_ptr const& failure, auto const& result) {
            completed = !failure && result.has_value();
        })));
    io.poll();
    p.release();
    signal.emit(net::cancellation_type::terminal);
    io.run();
    EXPECT_TRUE(completed);
    EXPECT_EQ(p.available(), 1U);
}

task<int> count_on(int& counter) {
    for (int i = 0; i < 1'000; ++i) {
        ++counter;
        co_await yield();
    }
    co_return counter;
}

task<int> count_in_two_branches(int& counter) {
    auto const [a, b] = co_await when_all(count_on(counter), count_on(counter));
    co_return a > b ? a : b;
}

TEST_F(AsioRun, ThroughAStrandTheBranchesOfATaskExcludeEachOther) {
    net::thread_pool pool{2};
    int counter = 0;
    std::optional<int> result;
    asio::run(count_in_two_branches(counter))(net::bind_executor(
        net::make_strand(pool), [&](std::exception_ptr const&, granted<int> r) { result = r; }));
    pool.join();
    EXPECT_EQ(result, 2'000);
}

net::awaitable<void> await_end(join_handle<std::thread::id>& handle,
                               std::optional<std::thread::id>& where) {
    auto const ended = co_await handle.join();
    where = ended.value();
}

TEST_F(AsioRun, SpawnedTaskIsJoinedFromAnAwaitable) {
    asio::asio_executor executor{io.get_executor()};
    auto handle = spawn(executor, take(p, alive));
    std::optional<std::thread::id> where;
    net::co_spawn(io, await_end(handle, where), net::detached);
    io.poll();
    p.release();
    io.run();
    EXPECT_EQ(where, std::this_thread::get_id());
}

task<void> fail() {
    co_await yield();
    throw std::runtime_error{"nobody joins this"};
}

TEST_F(AsioRun, AnExecutorMayHearOfTheExceptionsOfTasksThatNobodyJoins) {
    std::string heard;
    asio::asio_executor<> where{io.get_executor(), [&heard](std::exception_ptr const& exception) {
                                    try {
                                        std::rethrow_exception(exception);
                                    } catch (std::runtime_error const& e) {
                                        heard = e.what();
                                    }
                                }};
    spawn(where, fail()).detach();
    io.run();
    EXPECT_EQ(heard, "nobody joins this");
}

TEST_F(AsioRun, AFunctionThatThrowsWhatItHearsEndsNothing) {
    int heard = 0;
    asio::asio_executor<> where{io.get_executor(), [&heard](std::exception_ptr const& exception) {
                                    ++heard;
                                    std::rethrow_exception(exception);
                                }};
    spawn(where, fail()).detach();
    spawn(where, fail()).detach();
    io.run();
    EXPECT_EQ(heard, 2);
}

}  // namespace
}  // namespace rondo
