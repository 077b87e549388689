// Operations of Asio in a rondo task: what they give and where they run. Stepped by hand.
#include "rondo/asio/use_task.hpp"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <expected>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "desk.hpp"
#include "rondo/asio/asio_executor.hpp"
#include "rondo/asio/context_owner.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::use_task;
using boost::system::error_code;
using net::ip::tcp;
using test::desk;
using test::manual_loop;
using test::permits;
using test::UseTask;
using namespace std::chrono_literals;

// --- results ---

template <class Desk, class Result>
task<void> ask(Desk& d, std::optional<Result>& result) {
    result = co_await d.async_ask(use_task);
}

// What asking a desk gives, when it answers that.
template <class Result, class... Args, class... Given>
Result answer_of(net::io_context& io, manual_loop& loop, desk<Args...>& d, Given... given) {
    std::optional<Result> result;
    auto handle = spawn(loop, ask(d, result));
    loop.run_ready();
    io.restart();
    io.poll();
    d.answer(given...);
    io.restart();
    io.poll();
    EXPECT_FALSE(result) << "the task does not run in the handler";
    loop.run_ready();
    handle.blocking_join();
    return std::move(result).value();
}

TEST_F(UseTask, AnErrorCodeBecomesAnExpected) {
    using size_or_error = std::expected<std::size_t, error_code>;
    desk<error_code, std::size_t> d{io};
    EXPECT_EQ(answer_of<size_or_error>(io, loop, d, error_code{}, std::size_t{7}), 7U);
    EXPECT_EQ(answer_of<size_or_error>(io, loop, d, error_code{net::error::eof}, std::size_t{7}),
              std::unexpected{error_code{net::error::eof}});

    using text_and_number = std::tuple<std::string, int>;
    desk<error_code, std::string, int> several{io};
    auto const got = answer_of<std::expected<text_and_number, error_code>>(
        io, loop, several, error_code{}, std::string{"seven"}, 7);
    EXPECT_EQ(got.value(), text_and_number("seven", 7));

    desk<error_code> none{io};
    EXPECT_TRUE((answer_of<std::expected<void, error_code>>(io, loop, none, error_code{})));
}

TEST_F(UseTask, WithoutAnErrorTheResultIsTheValue) {
    desk<int> one{io};
    EXPECT_EQ(answer_of<int>(io, loop, one, 7), 7);
    desk<int, std::string> two{io};
    EXPECT_EQ((answer_of<std::tuple<int, std::string>>(io, loop, two, 7, std::string{"seven"})),
              std::tuple(7, "seven"));
    desk<std::exception_ptr, int> either{io};
    EXPECT_EQ(answer_of<int>(io, loop, either, std::exception_ptr{}, 7), 7);
}

// As a value of JSON: a list of such is one of them.
struct tree {
    tree() = default;
    tree(std::initializer_list<tree> all) : branches(all) {}
    std::vector<tree> branches;
};

TEST_F(UseTask, AResultIsNotTakenForAListOfItself) {
    desk<tree> d{io};
    EXPECT_EQ(answer_of<tree>(io, loop, d, tree{tree{}, tree{}}).branches.size(), 2U);
    desk<error_code, tree> either{io};
    auto const got = answer_of<std::expected<tree, error_code>>(io, loop, either, error_code{},
                                                                tree{tree{}, tree{}});
    EXPECT_EQ(got.value().branches.size(), 2U);
}

task<void> ask_for_nothing(desk<>& d, int& answers) {
    co_await d.async_ask(use_task);
    ++answers;
}

TEST_F(UseTask, AnOperationMayHaveNoResult) {
    desk<> d{io};
    int answers = 0;
    auto handle = spawn(loop, ask_for_nothing(d, answers));
    run_both();
    d.answer();
    run_both();
    EXPECT_EQ(answers, 1);
}

TEST_F(UseTask, AnExceptionIsThrownWhereItIsAwaited) {
    desk<std::exception_ptr, int> d{io};
    std::optional<int> result;
    auto handle = spawn(loop, ask(d, result));
    run_both();
    d.answer(std::make_exception_ptr(std::runtime_error{"as expected"}), 0);
    run_both();
    EXPECT_THROW((void)handle.blocking_join(), std::runtime_error);
}

struct throwing_initiation {
    using executor_type = net::io_context::executor_type;
    executor_type get_executor() const noexcept { return where; }
    template <class Handler>
    void operator()(Handler) const {
        throw std::runtime_error{"cannot begin"};
    }
    executor_type where;
};

task<void> begin_and_fail(net::io_context& io) {
    auto operation = net::async_initiate<asio::use_task_t const&, void(error_code)>(
        throwing_initiation{io.get_executor()}, use_task);
    (void)co_await std::move(operation);
}

TEST_F(UseTask, WhatTheInitiationThrowsIsThrownWhereItIsAwaited) {
    auto handle = spawn(loop, begin_and_fail(io));
    run_both();
    EXPECT_THROW((void)handle.blocking_join(), std::runtime_error);
}

// --- where it starts ---

TEST_F(UseTask, StartsAtTheContextOfTheObjectNotWhereTheTaskRuns) {
    desk<error_code> d{io};
    std::optional<std::expected<void, error_code>> result;
    auto handle = spawn(loop, ask(d, result));
    loop.run_ready();
    EXPECT_FALSE(d.asked());
    run_io();
    EXPECT_TRUE(d.asked());
    d.answer(error_code{});
    run_both();
    EXPECT_TRUE(result.value());
}

// Asio's adapters wrap what starts the operation in something that knows no place.
task<void> ask_through_adapters(desk<error_code, int>& d, std::vector<int>& got) {
    {
        auto [error, n] = co_await d.async_ask(net::as_tuple(use_task));
        got.push_back(n);
    }
    {
        auto const result = co_await d.async_ask(net::append(use_task, 9));
        got.push_back(std::get<0>(*result));
    }
}

TEST_F(UseTask, StartsAtTheContextOfTheObjectThroughAdaptersToo) {
    desk<error_code, int> d{io};
    std::vector<int> got;
    auto handle = spawn(loop, ask_through_adapters(d, got));
    for (int i = 0; i < 2; ++i) {
        loop.run_ready();
        EXPECT_FALSE(d.asked()) << i;
        run_io();
        ASSERT_TRUE(d.asked()) << i;
        d.answer(error_code{}, i);
        run_io();
    }
    loop.run_ready();
    EXPECT_EQ(got, (std::vector{0, 1}));
}

TEST_F(UseTask, StartsAtOnceInATaskThatRunsThere) {
    auto const work = net::make_work_guard(io);
    asio::asio_executor there{io.get_executor()};
    desk<error_code> d{io};
    std::optional<std::expected<void, error_code>> result;
    auto handle = spawn(there, ask(d, result));
    EXPECT_EQ(io.run_one(), 1U);
    EXPECT_TRUE(d.asked());
    d.answer(error_code{});
    EXPECT_EQ(io.run_one(), 1U);
    EXPECT_FALSE(result) << "it completes in a turn of its own";
    EXPECT_EQ(io.run_one(), 1U);
    EXPECT_TRUE(result.value());
}

TEST_F(UseTask, StartsAtOnceInAThreadThatOwnsTheContext) {
    asio::context_owner const mine{io};
    desk<error_code> d{io};
    std::optional<std::expected<void, error_code>> result;
    auto handle = spawn(loop, ask(d, result));
    loop.run_ready();
    EXPECT_TRUE(d.asked());
    net::io_context other;
    {
        asio::context_owner const also{other};
        EXPECT_EQ(asio::context_owner::current(), &other);
    }
    EXPECT_EQ(asio::context_owner::current(), &io);
    d.answer(error_code{});
    run_both();
    EXPECT_TRUE(result.value());
}

task<void> sleep_on(net::steady_timer& t, bool& slept) {
    std::expected<void, error_code> const end = co_await t.async_wait(use_task);
    slept = end.has_value();
}

TEST_F(UseTask, GoesThroughAStrandOfTheContext) {
    net::steady_timer t{net::make_strand(io), net::steady_timer::time_point::min()};
    bool slept = false;
    auto handle = spawn(loop, sleep_on(t, slept));
    run_to_the_end_of(handle);
    EXPECT_TRUE(slept);
}

// An operation that does not say where it belongs.
task<int> ask_nobody_in_particular(std::move_only_function<void(int)>& handler) {
    auto keep = [&handler](auto h) { handler = std::move(h); };
    auto operation = net::async_initiate<asio::use_task_t const&, void(int)>(keep, use_task);
    int const n = co_await std::move(operation);
    co_return n;
}

TEST_F(UseTask, AnOperationWithoutAPlaceStartsWhereTheTaskRunsAndAStopWaitsForIt) {
    std::move_only_function<void(int)> handler;
    auto handle = spawn(loop, ask_nobody_in_particular(handler));
    loop.run_ready();
    ASSERT_TRUE(handler);
    handle.request_stop();
    loop.run_ready();
    EXPECT_FALSE(handle.ended());
    handler(7);
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join(), 7);
}

// --- what a task sees of it ---

TEST_F(UseTask, AnOperationThatDropsItsHandlerHasAborted) {
    desk<error_code> d{io};
    std::optional<std::expected<void, error_code>> result;
    auto handle = spawn(loop, ask(d, result));
    run_both();
    d.forget();
    run_both();
    EXPECT_EQ(result.value(), std::unexpected{error_code{net::error::operation_aborted}});

    desk<int> without_error{io};
    std::optional<int> number;
    auto other = spawn(loop, ask(without_error, number));
    run_both();
    without_error.forget();
    run_both();
    EXPECT_THROW((void)other.blocking_join(), boost::system::system_error);
}

task<void> ask_and_count(desk<error_code>& d, permits& p, int& counted) {
    (void)co_await d.async_ask(use_task);
    for (int i = 0; i < detail::flow::turn_budget; ++i) {
        (co_await p.acquire()).forget();
        ++counted;
    }
}

TEST_F(UseTask, ACompletedOperationSpendsFromTheTurn) {
    permits p{detail::flow::turn_budget};
    desk<error_code> d{io};
    int counted = 0;
    auto handle = spawn(loop, ask_and_count(d, p, counted));
    run_both();
    d.answer(error_code{});
    run_io();
    EXPECT_TRUE(loop.step());
    EXPECT_EQ(counted, detail::flow::turn_budget - 1);
    loop.run_ready();
    EXPECT_EQ(counted, detail::flow::turn_budget);
}

TEST_F(UseTask, ATraceKnowsIt) {
    run_loop own;
    desk<error_code> d{io};
    std::optional<std::expected<void, error_code>> result;
    auto handle = spawn(own, ask(d, result));
    own.run_ready();
    EXPECT_EQ(own.dump().at(0).doing, task_trace::activity::in_io);
    run_io();
    d.answer(error_code{});
    run_io();
    own.run_ready();
    EXPECT_TRUE(result.value());
}

// --- sockets ---

struct connection {
    explicit connection(net::io_context& io) : here(io), there(io) {
        tcp::acceptor a{io, {net::ip::address_v4::loopback(), 0}};
        here.connect(a.local_endpoint());
        a.accept(there);
    }
    tcp::socket here;
    tcp::socket there;
};

task<std::string> read_line(tcp::socket& from) {
    std::array<char, 4> text{};
    auto const n = co_await net::async_read(from, net::buffer(text), use_task);
    co_return n ? std::string(text.data(), *n) : n.error().message();
}

task<void> say(tcp::socket& to, std::string text) {
    auto const n = co_await net::async_write(to, net::buffer(text), use_task);
    EXPECT_EQ(n, text.size());
}

TEST_F(UseTask, ReadsWhatAnotherTaskWrites) {
    connection c{io};
    auto reads = spawn(loop, read_line(c.here));
    run_both();
    auto writes_half = spawn(loop, say(c.there, "ab"));
    run_both();
    EXPECT_FALSE(reads.ended());
    auto writes_rest = spawn(loop, say(c.there, "cd"));
    run_to_the_end_of(reads);
    EXPECT_EQ(reads.blocking_join(), "abcd");
}

TEST_F(UseTask, AStopCancelsAComposedOperationInTheMiddle) {
    connection c{io};
    auto reads = spawn(loop, read_line(c.here));
    run_both();
    auto writes_half = spawn(loop, say(c.there, "ab"));
    run_both();
    reads.request_stop();
    run_to_the_end_of(reads);
    EXPECT_EQ(reads.blocking_join(), std::unexpected{wait_error::stopped});
}

TEST_F(UseTask, TheEndOfAStreamIsAnError) {
    connection c{io};
    auto reads = spawn(loop, read_line(c.here));
    run_both();
    c.there.close();
    run_to_the_end_of(reads);
    EXPECT_EQ(reads.blocking_join(), error_code{net::error::eof}.message());
}

task<error_code> read_at_once(tcp::socket& from, time_point deadline) {
    std::array<char, 4> text{};
    auto const n = co_await from.async_read_some(net::buffer(text), use_task(deadline));
    co_return n ? error_code{} : n.error();
}

TEST_F(UseTask, WhatIsThereIsReadEvenIfTheDeadlineHasPassed) {
    connection c{io};
    (void)c.there.write_some(net::buffer("abc", 3));
    while (c.here.available() == 0) std::this_thread::yield();
    auto reads = spawn(loop, read_at_once(c.here, loop.now()));
    run_to_the_end_of(reads);
    EXPECT_EQ(reads.blocking_join(), error_code{});
    auto reads_again = spawn(loop, read_at_once(c.here, loop.now()));
    run_to_the_end_of(reads_again);
    EXPECT_EQ(reads_again.blocking_join(), error_code{net::error::timed_out});
}

}  // namespace
}  // namespace rondo
