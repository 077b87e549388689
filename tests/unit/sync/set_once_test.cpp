// Set_once: one value for everyone who waits. What happens when setters and waiters meet is
// model-checked in tests/model/sync/once_model_test.cpp.
#include "rondo/sync/set_once.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/jumpy.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::census;
using test::counted;
using test::foreign;
using test::jumpy;
using test::manual_loop;

using bounded = std::expected<int const*, wait_error>;

task<int> get(set_once<int>& s) {
    int const* const got = co_await s.wait();
    co_return *got;
}

TEST(SetOnce, EveryoneWhoWaitsGetsTheValue) {
    manual_loop loop;
    set_once<int> s;
    std::vector<join_handle<int>> waiting;
    for (int i = 0; i < 100; ++i) waiting.push_back(spawn(loop, get(s)));
    loop.run_ready();
    EXPECT_TRUE(s.set(7));
    EXPECT_FALSE(waiting[0].ended()) << "nobody runs inside set()";
    loop.run_ready();
    for (auto& t : waiting) EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST(SetOnce, WhoComesLaterDoesNotWait) {
    manual_loop loop;
    set_once<int> s{7};
    auto t = spawn(loop, get(s));
    EXPECT_TRUE(loop.step());
    EXPECT_EQ(t.blocking_join().value(), 7);
    EXPECT_EQ(s.blocking_wait(), s.get());
}

TEST(SetOnce, IsEmptyUntilItIsSetAndThenDoesNotChange) {
    set_once<std::unique_ptr<int>> s;
    EXPECT_FALSE(s.initialized());
    EXPECT_EQ(s.get(), nullptr);
    EXPECT_TRUE(s.set(std::make_unique<int>(1)));
    EXPECT_TRUE(s.initialized());
    auto const refused = s.set(std::make_unique<int>(2));
    ASSERT_FALSE(refused);
    EXPECT_EQ(*refused.error(), 2) << "it comes back";
    EXPECT_EQ(**s.get(), 1);
}

TEST(SetOnce, WhoIsAloneMayTakeTheValueOut) {
    census lives;
    {
        set_once<counted> s;
        EXPECT_FALSE(s.take());
        EXPECT_TRUE(s.set(counted{lives, 1}));
        EXPECT_EQ(s.take()->number, 1);
        EXPECT_EQ(lives.alive(), 0);
        EXPECT_TRUE(s.set(counted{lives, 2}));
    }
    EXPECT_EQ(lives.alive(), 0);
}

TEST(SetOnce, AMoveThatThrowsSetsNothing) {
    census lives;
    set_once<jumpy> s;
    EXPECT_THROW((void)s.set(jumpy{lives, 1}), std::runtime_error);
    EXPECT_FALSE(s.initialized());
    EXPECT_TRUE(s.set(jumpy{lives, jumpy::never}));
}

TEST(SetOnce, AMoveThatThrowsTakesNothingOut) {
    census lives;
    {
        set_once<jumpy> s;
        EXPECT_TRUE(s.set(jumpy{lives, 2}));
        EXPECT_THROW((void)s.take(), std::runtime_error);
        EXPECT_TRUE(s.initialized());
        EXPECT_EQ(lives.alive(), 1);
    }
    EXPECT_EQ(lives.alive(), 0);
    {
        set_once<jumpy> s;
        EXPECT_TRUE(s.set(jumpy{lives, 3}));
        EXPECT_NO_THROW((void)s.take()) << "it is moved once, and then it is out";
    }
    EXPECT_EQ(lives.alive(), 0);
}

TEST(SetOnce, ATokenOrADeadlineEndsTheWaitWithAValue) {
    manual_loop loop;
    set_once<int> s;
    stop_source source;
    auto stopped = spawn(loop, get(s));
    auto by_token = spawn(loop, [](set_once<int>& on, stop_token t) -> task<bounded> {
        co_return co_await on.wait(t);
    }(s, source.token()));
    auto late = spawn(
        loop, [](set_once<int>& on) -> task<bounded> { co_return co_await on.wait_for(1s); }(s));
    auto in_time = spawn(loop, [](set_once<int>& on, time_point d) -> task<bounded> {
        co_return co_await on.wait_until(d);
    }(s, loop.now() + 2s));
    loop.advance(1s);
    source.request_stop();
    stopped.request_stop();
    EXPECT_TRUE(s.set(7));
    loop.run_ready();
    EXPECT_EQ(stopped.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(by_token.blocking_join().value().error(), wait_error::stopped);
    EXPECT_EQ(late.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_EQ(**in_time.blocking_join().value(), 7);
}

TEST(SetOnce, LosingAWhenAnyLosesNothing) {
    manual_loop loop;
    set_once<int> s;
    notify other;
    auto t = spawn(loop, [](set_once<int>& on, notify& o) -> task<std::size_t> {
        auto const first = co_await when_any(on.wait(), o.notified());
        co_return first.index();
    }(s, other));
    loop.run_ready();
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_TRUE(s.set(7));
}

TEST(SetOnce, ThreadsAndForeignCoroutinesWaitForItToo) {
    set_once<int> s;
    EXPECT_EQ(s.blocking_wait_for(1us).error(), wait_error::timed_out);
    EXPECT_EQ(s.blocking_wait_until(clock::now()).error(), wait_error::timed_out);
    int got = 0;
    auto const waits = [](set_once<int>& on, int& result) -> foreign {
        result = *co_await on.wait();
    };
    waits(s, got);
    std::thread thread{[&] {
        EXPECT_EQ(*s.blocking_wait(), 7);
        stop_source source;
        EXPECT_EQ(**s.blocking_wait(source.token()), 7);
    }};
    EXPECT_TRUE(s.set(7));
    thread.join();
    EXPECT_EQ(got, 7);
}

}  // namespace
}  // namespace rondo
