// Operations of Asio in rondo tasks, with real threads: the context in one, the task in another, a
// stop from a third.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/asio/asio_executor.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::use_task;
using net::ip::tcp;
using namespace std::chrono_literals;

// An io_context with a thread of its own.
class io_thread {
  public:
    io_thread() : runner_{[this] { io.run(); }} {}
    ~io_thread() {
        work_.reset();
        runner_.join();
    }
    std::thread::id id() const noexcept { return runner_.get_id(); }

    net::io_context io;

  private:
    net::executor_work_guard<net::io_context::executor_type> work_{io.get_executor()};
    std::thread runner_;
};

constexpr std::size_t message_size = 64;
constexpr int messages = 50;

task<void> echo(tcp::socket peer) {
    std::array<char, message_size> text{};
    for (;;) {
        auto const n = co_await peer.async_read_some(net::buffer(text), use_task);
        if (!n) break;
        auto const written = co_await net::async_write(peer, net::buffer(text, *n), use_task);
        EXPECT_EQ(written, *n);
    }
}

task<int> talk(tcp::socket peer) {
    int heard = 0;
    for (int i = 0; i < messages; ++i) {
        std::string const said(message_size, static_cast<char>('a' + i % 26));
        (void)co_await net::async_write(peer, net::buffer(said), use_task);
        std::string answer(message_size, ' ');
        auto const n = co_await net::async_read(peer, net::buffer(answer), use_task(10s));
        if (n && answer == said) ++heard;
    }
    co_return heard;
}

task<int> serve_and_talk(tcp::acceptor& door, net::any_io_executor server,
                         net::any_io_executor client) {
    tcp::socket mine{client};
    auto [connected, theirs] = co_await when_all(
        mine.async_connect(door.local_endpoint(), use_task), door.async_accept(server, use_task));
    EXPECT_TRUE(connected.has_value());
    auto const [heard, nothing] =
        co_await when_all(talk(std::move(mine)), echo(std::move(theirs.value())));
    co_return heard;
}

TEST(UseTaskThreads, EchoBetweenALoopAndAContextInAnotherThread) {
    io_thread there;
    tcp::acceptor door{there.io, {net::ip::address_v4::loopback(), 0}};
    auto const e = there.io.get_executor();
    EXPECT_EQ(block_on(serve_and_talk(door, e, e)), messages);
}

TEST(UseTaskThreads, EchoOnAnExecutorOfTheContextItself) {
    net::io_context io;
    tcp::acceptor door{io, {net::ip::address_v4::loopback(), 0}};
    asio::asio_executor here{io.get_executor()};
    auto const e = io.get_executor();
    auto handle = spawn(here, serve_and_talk(door, e, e));
    auto work = net::make_work_guard(io);
    while (!handle.ended()) io.run_one();
    EXPECT_EQ(handle.blocking_join(), messages);
}

TEST(UseTaskThreads, EchoThroughStrandsOfAPool) {
    net::thread_pool pool{2};
    tcp::acceptor door{net::make_strand(pool), {net::ip::address_v4::loopback(), 0}};
    EXPECT_EQ(block_on(serve_and_talk(door, net::make_strand(pool), net::make_strand(pool))),
              messages);
}

TEST(UseTaskThreads, TheTaskGoesOnInItsOwnThread) {
    io_thread there;
    net::steady_timer t{there.io, net::steady_timer::time_point::min()};
    auto const where = block_on([](net::steady_timer& timer) -> task<std::thread::id> {
        (void)co_await timer.async_wait(use_task);
        co_return std::this_thread::get_id();
    }(t));
    EXPECT_EQ(where, std::this_thread::get_id());
}

task<std::expected<bool, wait_error>> end_of(join_handle<bool>& handle) {
    co_return co_await handle.join();
}

task<bool> wait_until(net::steady_timer& t, net::steady_timer::time_point when) {
    t.expires_at(when);
    auto const r = co_await t.async_wait(use_task);
    co_return r.has_value();
}

// The timer fires, or is cancelled by the stop, or both at once. It needs real time: that is what
// the operation is.
TEST(UseTaskThreads, AStopMeetsACompletionAndTheTaskEndsOnceOneWayOrTheOther) {
    constexpr int rounds = 1'000;
    io_thread there;
    run_loop loop;
    net::steady_timer t{there.io};
    std::atomic<int> stopped{0};
    std::atomic<join_handle<bool>*> current{nullptr};
    std::thread stopper{[&] {
        for (int i = 1; i <= rounds; ++i) {
            current.wait(nullptr);
            join_handle<bool>* const handle = current.exchange(nullptr);
            for (int spin = 0; spin < i % 64; ++spin) spin_pause();
            handle->request_stop();
            stopped.store(i);
            stopped.notify_one();
        }
    }};
    int completed = 0;
    for (int i = 1; i <= rounds; ++i) {
        auto const when = net::steady_timer::clock_type::now() +
                          (i % 3 == 0 ? 1h : std::chrono::microseconds{i * 7 % 200});
        join_handle<bool> handle = spawn(loop, wait_until(t, when));
        current.store(&handle);
        current.notify_one();
        auto const r = block_on(loop, end_of(handle));
        stopped.wait(i - 1);
        if (r) {
            EXPECT_TRUE(*r) << "an aborted wait unwinds";
            ++completed;
        } else {
            EXPECT_EQ(r.error(), wait_error::stopped);
        }
    }
    stopper.join();
    RecordProperty("completed", completed);
}

using letter = std::array<char, 8>;

// The letter belongs to the test, which looks at it later too.
task<void> race(tcp::socket& from, letter& text, net::steady_timer& t) {
    EXPECT_EQ(t.expires_after(std::chrono::microseconds{5}), 0U) << "a wait is pending";
    (void)co_await when_any(from.async_read_some(net::buffer(text), use_task),
                            t.async_wait(use_task));
}

// Those that were read: whether the read won, or lost with something in its hands.
std::size_t size_of(letter const& text) {
    return text.size() - static_cast<std::size_t>(std::ranges::count(text, '\0'));
}

TEST(UseTaskThreads, TheLoserOfARaceHasEndedWhenTheWinnerIsKnown) {
    constexpr std::size_t rounds = 500;
    io_thread there;
    tcp::acceptor door{there.io, {net::ip::address_v4::loopback(), 0}};
    tcp::socket here{there.io};
    tcp::socket writes{there.io};
    here.connect(door.local_endpoint());
    door.accept(writes);
    net::steady_timer t{there.io};
    run_loop loop;
    std::size_t written = 0;
    std::size_t read = 0;
    std::vector<letter> letters(rounds);  // one for each, so that a read that is left behind shows
    for (std::size_t i = 0; i < rounds; ++i) {
        if (i % 2 == 0) written += writes.write_some(net::buffer("12345678", 8));
        block_on(loop, race(here, letters[i], t));
        read += size_of(letters[i]);
    }
    writes.shutdown(tcp::socket::shutdown_send);
    boost::system::error_code end;
    std::vector<char> rest(written);
    std::size_t const unread = net::read(here, net::buffer(rest), end);
    EXPECT_EQ(read + unread, written);
    std::size_t read_in_the_end = 0;
    for (letter const& l : letters) read_in_the_end += size_of(l);
    EXPECT_EQ(read_in_the_end, read) << "no read goes on behind the back of its race";
    EXPECT_EQ(t.cancel(), 0U);
}

}  // namespace
}  // namespace rondo
