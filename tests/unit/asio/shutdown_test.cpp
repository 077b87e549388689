// A context that is destroyed while something waits in it.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "rondo/asio/wait.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using asio::granted;
using test::permits;

net::awaitable<void> take(permits& p, std::shared_ptr<int> alive) {
    auto const got = co_await p.acquire();
    ++*alive;
}

net::awaitable<void> take_twice(permits& p, std::shared_ptr<int> alive) {
    auto const first = co_await p.acquire();
    auto const second = co_await p.acquire();
    ++*alive;
}

class AsioShutdown : public testing::Test {
  protected:
    void end_context() { io.reset(); }

    permits p{0};
    std::shared_ptr<int> alive = std::make_shared<int>(0);
    std::optional<net::io_context> io{std::in_place};
};

TEST_F(AsioShutdown, WaitingCoroutinesLeaveTheQueueAndAreDestroyed) {
    for (int i = 0; i < 3; ++i) net::co_spawn(*io, take(p, alive), net::detached);
    io->poll();
    EXPECT_TRUE(p.awaited());
    end_context();
    EXPECT_FALSE(p.awaited());
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(*alive, 0);
}

TEST_F(AsioShutdown, GrantThatWasNotDeliveredIsHandedOn) {
    net::co_spawn(*io, take(p, alive), net::detached);
    io->poll();
    p.release();
    end_context();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(p.available(), 1U);
}

TEST_F(AsioShutdown, ReadyOperationThatWasNotDeliveredIsHandedOn) {
    p.release();
    p.acquire()(net::bind_executor(
        *io, [a = alive](std::exception_ptr const&, granted<permits::permit>) { ++*a; }));
    EXPECT_EQ(p.available(), 0U);
    end_context();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(p.available(), 1U);
}

// Permits of which ready() takes one for good.
struct for_good : permits::acquire_op {
    explicit for_good(permits& p) noexcept : acquire_op(p, 1) {}
    bool ready() noexcept {
        good = true;
        return acquire_op::ready();
    }
    bool ready_revocably() noexcept { return acquire_op::ready(); }
    void hand_on() noexcept {
        if (!good) acquire_op::hand_on();
    }

    bool good = false;
};

TEST_F(AsioShutdown, OperationThatMayNotBeDeliveredIsReadyRevocably) {
    p.release();
    wait<for_good>{for_good{p}}(net::bind_executor(
        *io, [a = alive](std::exception_ptr const&, granted<permits::permit>) { ++*a; }));
    end_context();
    EXPECT_EQ(p.available(), 1U);
}

TEST_F(AsioShutdown, GrantIsHandedOnToAThreadThatWaits) {
    net::co_spawn(*io, take(p, alive), net::detached);
    io->poll();
    p.release();
    std::thread follower{[this] { (void)p.blocking_acquire(); }};
    while (!p.awaited()) std::this_thread::yield();
    end_context();
    follower.join();
    EXPECT_EQ(p.available(), 1U);
}

TEST_F(AsioShutdown, WhatADestroyedCoroutineHeldGoesThroughTheOthersAndBack) {
    p.release();
    for (int i = 0; i < 3; ++i) net::co_spawn(*io, take_twice(p, alive), net::detached);
    io->poll();
    EXPECT_EQ(p.available(), 0U);
    end_context();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(p.available(), 1U);
}

TEST_F(AsioShutdown, WithdrawnWaitThatWasNotDeliveredJustGoes) {
    stop_source stop;
    p.acquire(1, stop.token())(
        net::bind_executor(*io, [a = alive](std::exception_ptr const&, auto const&) { ++*a; }));
    stop.request_stop();
    end_context();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(p.available(), 0U);
}

TEST_F(AsioShutdown, SignalThatIsGoneBeforeTheContextIsNotTouched) {
    {
        auto signal = std::make_unique<net::cancellation_signal>();
        p.acquire()(net::bind_cancellation_slot(
            signal->slot(), net::bind_executor(*io, [a = alive](std::exception_ptr const&,
                                                                auto const&) { ++*a; })));
    }
    end_context();
    EXPECT_EQ(alive.use_count(), 1);
}

// The thread that releases has granted two waits and is on its way to wake the second, which is
// one of the context's: the context may not be gone before it has.
TEST_F(AsioShutdown, WaitsForAWakeUpThatIsUnderWay) {
    std::atomic<bool> under_way{false};
    permits::acquire_op slow_to_wake{p, 1};
    slow_to_wake.wake_with({[](void* flag) noexcept {
                                static_cast<std::atomic<bool>*>(flag)->store(true);
                                for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
                            },
                            &under_way});
    ASSERT_FALSE(slow_to_wake.enter());
    net::co_spawn(*io, take(p, alive), net::detached);
    io->poll();
    std::thread releaser{[this] { p.release(2); }};
    while (!under_way.load()) std::this_thread::yield();
    end_context();
    releaser.join();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(p.available(), 1U);  // what the coroutine would have had
}

// Says that its context shuts down; what is older has its turn after it.
class last_sign final : public net::execution_context::service {
  public:
    inline static net::execution_context::id id;
    explicit last_sign(net::execution_context& context) : service(context) {}

    std::atomic<bool>* given = nullptr;

  private:
    void shutdown() noexcept override { given->store(true); }
};

// Notes which thread destroys it.
struct last_seen_by {
    explicit last_seen_by(std::thread::id& to) : thread(&to) {}
    ~last_seen_by() { *thread = std::this_thread::get_id(); }
    std::thread::id* thread;
};

// The context has its first strand after its first wait, and ends before a thread wakes who waits
// on that strand: the handler is not destroyed in there.
TEST_F(AsioShutdown, StrandTakesAWakeUpThatIsUnderWay) {
    p.acquire()(net::bind_executor(
        *io, [](std::exception_ptr const&, granted<permits::permit> got) { got->forget(); }));
    p.release();
    io->poll();

    struct {
        std::atomic<bool> under_way{false};
        std::atomic<bool> ending{false};
    } moments;
    permits::acquire_op slow_to_wake{p, 1};
    slow_to_wake.wake_with({[](void* passed) noexcept {
                                auto& at = *static_cast<decltype(moments)*>(passed);
                                at.under_way.store(true);
                                while (!at.ending.load()) std::this_thread::yield();
                            },
                            &moments});
    ASSERT_FALSE(slow_to_wake.enter());
    net::use_service<last_sign>(*io).given = &moments.ending;
    std::thread::id destroyed_by;
    p.acquire()(net::bind_executor(net::make_strand(*io),
                                   [seen = std::make_unique<last_seen_by>(destroyed_by)](
                                       std::exception_ptr const&, auto const&) {}));
    std::thread releaser{[this] { p.release(2); }};
    while (!moments.under_way.load()) std::this_thread::yield();
    end_context();
    releaser.join();
    EXPECT_EQ(destroyed_by, std::this_thread::get_id());
    EXPECT_EQ(p.available(), 1U);
}

// A thread releases all the time while contexts come and go: no wake-up may reach a context that is
// no more, and every permit is there in the end.
TEST_F(AsioShutdown, MayCoincideWithReleases) {
    constexpr std::size_t enough = 300;
    std::atomic<bool> done{false};
    std::atomic<std::size_t> released{0};
    std::thread releaser{[&] {
        while (!done.load(std::memory_order_relaxed)) {
            if (!p.awaited()) continue;
            p.release();
            released.fetch_add(1, std::memory_order_relaxed);
        }
    }};
    for (int i = 0; released.load(std::memory_order_relaxed) < enough; ++i) {
        net::io_context brief;
        for (int k = 0; k < 8; ++k) {
            p.acquire()(net::bind_executor(
                brief, [a = alive](std::exception_ptr const&, granted<permits::permit> got) {
                    if (got) got->forget();
                    ++*a;
                }));
        }
        std::this_thread::yield();
        if (i % 2 == 0) brief.poll();
    }
    done.store(true, std::memory_order_relaxed);
    releaser.join();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(p.available() + static_cast<std::size_t>(*alive), released.load());
}

}  // namespace
}  // namespace rondo
