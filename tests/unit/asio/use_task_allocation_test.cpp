// Counts what reaches the heap while tasks are in I/O, in all threads: nothing, once Asio and
// the frame allocator have what they recycle.
#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "desk.hpp"
#include "rondo/asio/context_owner.hpp"
#include "rondo/asio/use_task.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/spawn.hpp"
#include "support/counted_new.hpp"

#ifndef RONDO_TEST_SANITIZED

// Where Asio gets what it recycles.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
    if (std::exchange(rondo::test::next_allocation_fails, false)) return nullptr;
    rondo::test::allocations.fetch_add(1, std::memory_order_relaxed);
    return memalign(alignment, size);
}

#endif

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::use_task;
using boost::system::error_code;
using net::ip::tcp;

constexpr std::size_t first_rounds = 100;  // until all is there that is recycled
constexpr std::size_t rounds = 1'100;

// How many there were since the first rounds were over.
class meter {
  public:
    void begin(std::size_t round) noexcept {
        if (round == first_rounds) since_ = test::allocation_count{};
    }
    long count() const { return since_.count(); }

  private:
    test::allocation_count since_;
};

template <class Socket>
struct connection {
    explicit connection(net::io_context& io) : here(io), there(io) {
        tcp::acceptor a{io, {net::ip::address_v4::loopback(), 0}};
        here.connect(a.local_endpoint());
        a.accept(there);
    }
    Socket here;
    Socket there;
};

using plain = connection<tcp::socket>;
using on_one_context = connection<net::basic_stream_socket<tcp, net::io_context::executor_type>>;

// Through a socket, there and back.
template <class Socket>
task<long> use(connection<Socket>& c) {
    std::array<char, 16> text{};
    meter heap;
    for (std::size_t i = 0; i < rounds; ++i) {
        heap.begin(i);
        (void)co_await c.here.async_write_some(net::buffer(text), use_task);
        (void)co_await c.there.async_read_some(net::buffer(text), use_task);
        (void)co_await c.there.async_write_some(net::buffer(text), use_task);
        (void)co_await c.here.async_read_some(net::buffer(text), use_task);
    }
    co_return heap.count();
}

// The same with operations that Asio composes.
template <class Socket>
struct composed : connection<Socket> {
    using connection<Socket>::connection;
};
template <class Socket>
task<long> use(composed<Socket>& c) {
    std::array<char, 16> text{};
    meter heap;
    for (std::size_t i = 0; i < rounds; ++i) {
        heap.begin(i);
        (void)co_await net::async_write(c.here, net::buffer(text), use_task);
        (void)co_await net::async_read(c.there, net::buffer(text), use_task);
    }
    co_return heap.count();
}
task<long> use(net::steady_timer& t) {
    meter heap;
    for (std::size_t i = 0; i < rounds; ++i) {
        heap.begin(i);
        t.expires_at(net::steady_timer::time_point::min());
        (void)co_await t.async_wait(use_task);
    }
    co_return heap.count();
}

// In the thread of the context, which is polled between turns: what a worker of a runtime does.
template <class Through>
long allocations_at_the_context() {
    net::io_context io{1};
    asio::context_owner const mine{io};
    Through through{io};
    auto const work = net::make_work_guard(io);
    run_loop here;
    auto handle = spawn(here, use(through));
    while (!handle.ended()) {
        here.run_ready();
        io.poll_one();
    }
    return handle.blocking_join().value();
}

// In another thread: each operation goes there and comes back.
template <class Through>
long allocations_from_a_loop(bool can_be_stopped) {
    net::io_context io{1};
    Through through{io};
    auto work = net::make_work_guard(io);
    std::thread there{[&io] { io.run(); }};
    run_loop loop;
    long n = 0;
    if (can_be_stopped) {
        auto handle = spawn(loop, use(through));
        n = block_on(loop, [](auto& h) -> task<long> {
            auto const r = co_await h.join();
            co_return r.value();
        }(handle));
    } else {
        n = block_on(loop, use(through));
    }
    work.reset();
    there.join();
    return n;
}

// Sanitizers get every block from the heap, so that they see its end.
void expect_none(long allocations) {
    if (this_thread_frame_stats().recycling) {
        EXPECT_EQ(allocations, 0);
    }
}

TEST(UseTaskAllocation, NoneAtTheContext) {
    expect_none(allocations_at_the_context<plain>());
    expect_none(allocations_at_the_context<on_one_context>());
    expect_none(allocations_at_the_context<net::steady_timer>());
}

// Those that Asio composes have a slot of their own, which Asio recycles within a call of run().
TEST(UseTaskAllocation, NoneFromAnotherThread) {
    expect_none(allocations_from_a_loop<plain>(true));
    expect_none(allocations_from_a_loop<composed<tcp::socket>>(true));
    expect_none(allocations_from_a_loop<on_one_context>(true));
    expect_none(allocations_from_a_loop<net::steady_timer>(true));
}

TEST(UseTaskAllocation, NoneInATaskThatNobodyCanStop) {
    expect_none(allocations_from_a_loop<plain>(false));
    expect_none(allocations_from_a_loop<composed<tcp::socket>>(false));
    expect_none(allocations_from_a_loop<net::steady_timer>(false));
}

#ifndef RONDO_TEST_SANITIZED

task<void> ask(test::desk<boost::system::error_code>& d) { (void)co_await d.async_ask(use_task); }

class UseTaskWithoutMemory : public test::UseTask {};

TEST_F(UseTaskWithoutMemory, ThrowsInsteadOfWaitingForWhatWasNotStarted) {
    test::desk<boost::system::error_code> d{io};
    auto handle = spawn(loop, ask(d));
    loop.run_ready();
    // A new thread has no signal that is free.
    std::thread{[this] {
        test::next_allocation_fails = true;
        run_io();
        EXPECT_FALSE(std::exchange(test::next_allocation_fails, false)) << "nothing was asked for";
    }}.join();
    EXPECT_EQ(d.times_asked(), 0);
    loop.run_ready();
    ASSERT_TRUE(handle.ended());
    EXPECT_THROW((void)handle.blocking_join(), std::bad_alloc);
}

// Never asks whether it is to be cancelled.
class deaf {
  public:
    explicit deaf(net::io_context& io) : io_(io) {}

    struct initiation {
        using executor_type = net::io_context::executor_type;
        executor_type get_executor() const noexcept { return to->io_.get_executor(); }
        void operator()(auto handler) const { to->handler_ = std::move(handler); }
        deaf* to;
    };
    template <class Token>
    auto async_ask(Token&& token) {
        return net::async_initiate<Token, void(error_code)>(initiation{this}, token);
    }
    void answer() { std::exchange(handler_, nullptr)({}); }

  private:
    net::io_context& io_;
    std::move_only_function<void(error_code)> handler_;
};

task<bool> ask(deaf& d) { co_return (co_await d.async_ask(use_task)).has_value(); }

TEST_F(UseTaskWithoutMemory, EndsAnOperationThatDidNotUseItsSlot) {
    deaf d{io};
    auto handle = spawn(loop, ask(d));
    loop.run_ready();
    // In a new thread no slot has memory from an earlier use.
    std::thread{[this, &d] {
        run_io();
        net::post(io, [&d] {
            test::next_allocation_fails = true;
            d.answer();
            test::next_allocation_fails = false;
        });
        run_io();
    }}.join();
    loop.run_ready();
    ASSERT_TRUE(handle.ended());
    EXPECT_TRUE(handle.blocking_join().value());
}

#endif

}  // namespace
}  // namespace rondo
