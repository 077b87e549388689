// The locks of sync inside boost::asio::awaitable<>, shared with tasks and threads.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rondo/asio/wait.hpp"
#include "rondo/sync/mutex.hpp"
#include "rondo/sync/rwlock.hpp"
#include "rondo/sync/semaphore.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
namespace net = boost::asio;

using names = std::vector<std::string>;

net::awaitable<void> sign(mutex<names>& m, std::string name) {
    auto const list = co_await m.lock();
    list->push_back(name);
    co_await net::post(net::use_awaitable);  // the lock is kept while others run
    list->push_back(name);
}

TEST(AsioSync, AMutexIsLockedInTurnsByAwaitables) {
    net::io_context context;
    mutex<names> m;
    net::co_spawn(context, sign(m, "a"), net::detached);
    net::co_spawn(context, sign(m, "b"), net::detached);
    context.run();
    EXPECT_EQ(m.get_mut(), (names{"a", "a", "b", "b"}));
}

TEST(AsioSync, AMutexIsSharedWithAThread) {
    constexpr int rounds = 200;
    net::io_context context;
    mutex<int> m{0};
    net::co_spawn(
        context,
        [](mutex<int>& n) -> net::awaitable<void> {
            for (int i = 0; i < rounds; ++i) {
                auto const held = co_await n.lock();
                ++*held;
            }
        }(m),
        net::detached);
    std::thread thread{[&] {
        for (int i = 0; i < rounds; ++i) ++*m.blocking_lock();
    }};
    context.run();
    thread.join();
    EXPECT_EQ(m.get_mut(), 2 * rounds);
}

TEST(AsioSync, ABoundedLockIsAValue) {
    net::io_context context;
    mutex<int> m{0};
    auto const held = m.try_lock();
    std::optional<wait_error> why;
    net::co_spawn(
        context,
        [](mutex<int>& n, std::optional<wait_error>& out) -> net::awaitable<void> {
            auto const late = co_await n.lock_for(0ns);
            out = late.error();
        }(m, why),
        net::detached);
    context.run();
    EXPECT_EQ(why, wait_error::timed_out);
}

TEST(AsioSync, ACancelledWriterLetsTheReadersBehindItGoAtOnce) {
    net::io_context context;
    net::cancellation_signal cancel;
    rwlock<int> lock{0};
    auto const reading = lock.try_read();
    bool cancelled = false;
    bool read = false;
    net::co_spawn(
        context,
        [](rwlock<int>& l) -> net::awaitable<void> { auto const w = co_await l.write(); }(lock),
        net::bind_cancellation_slot(
            cancel.slot(), [&](std::exception_ptr const& e) { cancelled = e != nullptr; }));
    net::co_spawn(
        context,
        [](rwlock<int>& l, bool& done) -> net::awaitable<void> {
            auto const r = co_await l.read();
            done = true;
        }(lock, read),
        net::detached);
    context.poll();
    EXPECT_FALSE(read);
    cancel.emit(net::cancellation_type::terminal);
    context.poll();
    EXPECT_TRUE(cancelled);
    EXPECT_TRUE(read);
}

TEST(AsioSync, AClosedSemaphoreIsAValueInEveryForm) {
    net::io_context context;
    semaphore s{0};
    std::vector<acquire_error> why;
    net::co_spawn(
        context,
        [](semaphore& t, std::vector<acquire_error>& out) -> net::awaitable<void> {
            auto const plain = co_await t.acquire();
            out.push_back(plain.error());
            auto const bounded = co_await t.acquire_for(1, 1h);
            out.push_back(bounded.error());
        }(s, why),
        net::detached);
    context.poll();
    s.close();
    context.run();
    EXPECT_EQ(why, (std::vector{acquire_error::closed, acquire_error::closed}));
}

}  // namespace
}  // namespace rondo
