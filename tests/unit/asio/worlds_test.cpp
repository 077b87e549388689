// One object, four worlds: a task, an asio::awaitable, another coroutine type and a plain thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <coroutine>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rondo/asio/wait.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

namespace net = boost::asio;

using test::permits;

// A coroutine of another make: no executor, no environment.
struct foreign {
    struct promise_type {
        foreign get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

enum class world { thread, task, foreign, awaitable };

class turns {
  public:
    void note(world w) {
        std::lock_guard const guard{mutex_};
        served_.push_back(w);
    }
    std::vector<world> served() {
        std::lock_guard const guard{mutex_};
        return served_;
    }

  private:
    std::mutex mutex_;
    std::vector<world> served_;
};

task<void> in_a_task(permits& p, turns& t) {
    auto got = co_await p.acquire();
    got.forget();
    t.note(world::task);
}

foreign in_a_foreign_coroutine(permits& p, turns& t) {
    auto got = co_await p.acquire();
    got.forget();
    t.note(world::foreign);
}

net::awaitable<void> in_an_awaitable(permits& p, turns& t) {
    auto got = co_await p.acquire();
    got.forget();
    t.note(world::awaitable);
}

// Enters the other worlds in the given order behind a thread, then releases one by one.
void serve_in_turn(std::array<world, 3> const& order) {
    permits p{0};
    turns t;
    run_loop loop;
    net::io_context io;
    auto const work = net::make_work_guard(io);  // it is polled before it has any

    std::thread thread{[&] {
        p.blocking_acquire().forget();
        t.note(world::thread);
    }};
    while (!p.awaited()) std::this_thread::yield();
    for (world const w : order) {
        if (w == world::task) spawn(loop, in_a_task(p, t)).detach();
        if (w == world::foreign) in_a_foreign_coroutine(p, t);
        if (w == world::awaitable) net::co_spawn(io, in_an_awaitable(p, t), net::detached);
        loop.run_ready();
        io.poll();
    }
    EXPECT_TRUE(t.served().empty());

    p.release();
    thread.join();
    std::vector<world> expected{world::thread};
    EXPECT_EQ(t.served(), expected);
    for (world const w : order) {
        p.release();
        loop.run_ready();
        io.poll();
        expected.push_back(w);
        EXPECT_EQ(t.served(), expected);
    }
    EXPECT_FALSE(p.awaited());
    EXPECT_EQ(p.available(), 0U);
}

TEST(Worlds, ForeignCoroutineAsioAwaitableAndPlainThreadAllWaitOnTheSameObject) {
    std::array order{world::task, world::foreign, world::awaitable};
    do {
        serve_in_turn(order);
    } while (std::ranges::next_permutation(order).found);
}

task<void> task_rounds(permits& p, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        auto const got = co_await p.acquire();
    }
}

foreign foreign_rounds(permits& p, int rounds, std::atomic<bool>& ended) {
    for (int i = 0; i < rounds; ++i) {
        auto const got = co_await p.acquire();
    }
    ended.store(true, std::memory_order_release);
}

net::awaitable<void> awaitable_rounds(permits& p, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        auto const got = co_await p.acquire();
    }
}

TEST(Worlds, PermitCirculatesBetweenThemAllAndIsNotLost) {
    constexpr int rounds = 2'000;
    permits p{0};
    net::io_context io;
    std::atomic<bool> foreign_ended{false};
    for (int i = 0; i < 2; ++i) net::co_spawn(io, awaitable_rounds(p, rounds), net::detached);
    std::thread asio_thread{[&] { io.run(); }};
    std::thread task_thread{[&] { block_on(task_rounds(p, rounds)); }};
    std::thread plain{[&] {
        for (int i = 0; i < rounds; ++i) {
            auto const got = p.blocking_acquire();
        }
    }};
    foreign_rounds(p, rounds, foreign_ended);
    p.release();  // now that it waits too
    asio_thread.join();
    task_thread.join();
    plain.join();
    // The foreign coroutine runs in whichever thread released what it got, so it has ended too.
    EXPECT_TRUE(foreign_ended.load(std::memory_order_acquire));
    EXPECT_EQ(p.available(), 1U);
}

}  // namespace
}  // namespace rondo
