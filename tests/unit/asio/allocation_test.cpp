// Whose memory a wait uses, and how much.
#include <gtest/gtest.h>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "rondo/asio/wait.hpp"
#include "rondo/core/frame_allocator.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::granted;
using test::permits;
using permit = permits::permit;

struct account {
    std::size_t allocated = 0;
    std::size_t in_use = 0;
};

template <class T>
struct counted {
    using value_type = T;

    explicit counted(account& a) noexcept : to(&a) {}
    template <class U>
    counted(counted<U> const& other) noexcept : to(other.to) {}

    T* allocate(std::size_t n) {
        ++to->allocated;
        ++to->in_use;
        return std::allocator<T>{}.allocate(n);
    }
    void deallocate(T* memory, std::size_t n) noexcept {
        --to->in_use;
        std::allocator<T>{}.deallocate(memory, n);
    }
    friend bool operator==(counted const&, counted const&) = default;

    account* to;
};

TEST(AsioAllocation, OperationUsesTheAssociatedAllocatorAndIsFreedBeforeTheHandlerRuns) {
    permits p{0};
    net::io_context io;
    account memory;
    int called = 0;
    p.acquire()(
        net::bind_allocator(counted<void>{memory},
                            net::bind_executor(io, [&](std::exception_ptr const&, granted<permit>) {
                                EXPECT_EQ(memory.in_use, 0U);
                                ++called;
                            })));
    EXPECT_EQ(memory.in_use, 1U);
    p.release();
    io.run();
    EXPECT_EQ(called, 1);
    EXPECT_EQ(memory.allocated, 1U);
}

using single_context = net::io_context::executor_type;

net::awaitable<void, single_context> take_many(permits& p, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
        auto got = co_await p.acquire();
        got.forget();
    }
}

net::awaitable<void, single_context> count_blocks(permits& p, std::size_t waits,
                                                  std::uint64_t& from_the_heap) {
    co_await take_many(p, 10);
    std::uint64_t const before = this_thread_frame_stats().system_allocations;
    co_await take_many(p, waits);
    from_the_heap = this_thread_frame_stats().system_allocations - before;
}

// Gives one permit after the other from inside the context, as long as somebody waits for one.
class giver {
  public:
    giver(net::io_context& io, permits& p) noexcept : io_(&io), p_(&p) {}
    void operator()() {
        if (!p_->awaited()) return;
        p_->release();
        net::post(*io_, *this);
    }

  private:
    net::io_context* io_;
    permits* p_;
};

TEST(AsioAllocation, WithoutAnAllocatorOperationsAreRecycled) {
    constexpr std::size_t waits = 1'000;
    permits p{0};
    net::io_context io;
    std::uint64_t from_the_heap = 0;
    net::co_spawn(io.get_executor(), count_blocks(p, waits, from_the_heap), net::detached);
    net::post(io, giver{io, p});
    io.run();
    // Sanitizers get every block from the heap, so that they see its end.
    EXPECT_EQ(from_the_heap, this_thread_frame_stats().recycling ? 0 : waits);
}

}  // namespace
}  // namespace rondo
