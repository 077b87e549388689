// spawn and join_handle: who gets the result, who frees the task, who hears of an exception.
#include "rondo/core/spawn.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;

static_assert(!std::is_copy_constructible_v<join_handle<int>>);
static_assert(std::is_nothrow_move_constructible_v<join_handle<int>>);

task<int> answer() { co_return 42; }

task<int> fail() {
    throw std::runtime_error{"failed"};
    co_return 0;
}

task<int> take_and_answer(permits& p) {
    auto const got = co_await p.acquire();
    co_return 42;
}

TEST(Spawn, StartsOnTheExecutorAndNeverInsideTheCall) {
    manual_loop loop;
    bool started = false;
    auto t = spawn(loop, [](bool& s) -> task<executor*> {
        s = true;
        co_return executor::current();
    }(started));
    EXPECT_FALSE(started);
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), &loop);
}

TEST(Spawn, ATaskJoinsATask) {
    manual_loop loop;
    permits p{0};
    auto below = spawn(loop, take_and_answer(p));
    auto above = spawn(loop, [](join_handle<int>& h) -> task<int> {
        std::expected<int, wait_error> const r = co_await h.join();
        co_return r.value() + 1;
    }(below));
    loop.run_ready();
    EXPECT_FALSE(below.ended());
    p.release();
    loop.run_ready();
    EXPECT_TRUE(below.ended());
    EXPECT_EQ(above.blocking_join().value(), 43);
}

TEST(Spawn, AThreadJoinsATask) {
    run_loop loop;
    auto t = spawn(loop, []() -> task<std::unique_ptr<int>> {
        co_await yield();
        co_return std::make_unique<int>(42);
    }());
    std::thread runs{[&] { loop.run(); }};
    EXPECT_EQ(*t.blocking_join().value(), 42);
    loop.finish();
    runs.join();
}

TEST(Spawn, ParametersAreDestroyedBeforeAnyoneJoins) {
    manual_loop loop;
    auto const shared = std::make_shared<int>(1);
    auto t = spawn(loop, [](std::shared_ptr<int> p) -> task<int> { co_return *p; }(shared));
    EXPECT_EQ(shared.use_count(), 2);
    loop.run_ready();
    EXPECT_EQ(shared.use_count(), 1);
    EXPECT_EQ(t.blocking_join().value(), 1);
}

TEST(Spawn, TheJoinerGetsTheExceptionAndNobodyElseHearsOfIt) {
    manual_loop loop;
    auto t = spawn(loop, fail());
    loop.run_ready();
    EXPECT_THROW(std::ignore = t.blocking_join(), std::runtime_error);
    t.detach();
    EXPECT_TRUE(loop.unobserved().empty());
}

TEST(Spawn, AnExceptionOfADetachedTaskGoesToTheExecutor) {
    manual_loop loop;
    spawn(loop, fail()).detach();
    loop.run_ready();
    ASSERT_EQ(loop.unobserved().size(), 1U);
    EXPECT_THROW(std::rethrow_exception(loop.unobserved().front()), std::runtime_error);
}

TEST(Spawn, AnExceptionThatNobodyJoinedForGoesToTheExecutorWithTheHandle) {
    manual_loop loop;
    {
        auto const t = spawn(loop, fail());
        loop.run_ready();
        EXPECT_TRUE(loop.unobserved().empty()) << "somebody may still join";
    }
    EXPECT_EQ(loop.unobserved().size(), 1U);
}

TEST(Spawn, AJoinOutlivesItsHandle) {
    EXPECT_EQ(block_on([]() -> task<int> {
                  environment const& env = co_await this_environment();
                  auto join = with_timeout(
                      spawn(*env.where, []() -> task<int> { co_return 7; }()).join(), 1h);
                  auto const joined = co_await std::move(join);
                  co_return joined.value().value();
              }()),
              7);
}

TEST(SpawnDeathTest, TheResultIsTakenByOneJoiner) {
    manual_loop loop;
    auto t = spawn(loop, []() -> task<std::string> { co_return "once"; }());
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), "once");
    EXPECT_DEATH((void)t.blocking_join(), "taken by one joiner");
}

TEST(SpawnDeathTest, AHandleThatWasMovedHasNoTask) {
    manual_loop loop;
    auto t = spawn(loop, []() -> task<void> { co_return; }());
    auto const moved = std::move(t);
    EXPECT_DEATH(t.request_stop(), "detached or moved");
    loop.run_ready();
}

TEST(Spawn, AnExecutorThatSaysNothingElsePrintsIt) {
    run_loop loop;
    testing::internal::CaptureStderr();
    spawn(loop, fail()).detach();
    spawn(loop,
          []() -> task<void> {
              throw 1;
              co_return;
          }())
        .detach();
    loop.run_ready();
    std::string const printed = testing::internal::GetCapturedStderr();
    EXPECT_NE(printed.find("nobody joined ended with: failed"), std::string::npos);
    EXPECT_NE(printed.find("unknown exception"), std::string::npos);
}

TEST(Spawn, ADetachedTaskRunsOnAndFreesItself) {
    manual_loop loop;
    permits p{0};
    auto const shared = std::make_shared<int>(1);
    spawn(loop,
          [](permits& q, std::shared_ptr<int> s) -> task<void> {
              auto const got = co_await q.acquire();
              ++*s;
          }(p, shared))
        .detach();
    loop.run_ready();
    p.release();
    loop.run_ready();
    EXPECT_EQ(*shared, 2);
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(Spawn, RequestStopEndsItAndTheJoinerIsTold) {
    manual_loop loop;
    permits p{0};
    auto t = spawn(loop, take_and_answer(p));
    loop.run_ready();
    t.request_stop();
    t.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
}

TEST(Spawn, AParentTokenIsFollowed) {
    manual_loop loop;
    permits p{0};
    stop_source parent;
    auto a = spawn(loop, take_and_answer(p), parent.token());
    auto b = spawn(loop, take_and_answer(p), parent.token());
    loop.run_ready();
    a.request_stop();
    loop.run_ready();
    EXPECT_TRUE(a.ended());
    EXPECT_FALSE(b.ended()) << "its own request does not reach its sibling";
    parent.request_stop();
    auto c = spawn(loop, take_and_answer(p), parent.token());
    loop.run_ready();
    EXPECT_EQ(b.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(c.blocking_join().error(), wait_error::stopped);
}

TEST(Spawn, AParentTokenMayGoOnceTheTaskHasEnded) {
    manual_loop loop;
    auto parent = std::make_unique<stop_source>();
    auto t = spawn(loop, answer(), parent->token());
    loop.run_ready();
    parent.reset();
    t.request_stop();
    EXPECT_EQ(t.blocking_join().value(), 42);
}

TEST(Spawn, AJoinWithADeadlineOrATokenLeavesTheTaskAlone) {
    manual_loop loop;
    permits p{0};
    stop_source source;
    auto below = spawn(loop, take_and_answer(p));
    auto above = spawn(loop, [](manual_loop& w, auto& h, stop_token token) -> task<int> {
        auto const late = co_await h.join_until(w.now() + 1s);
        EXPECT_EQ(late.error(), wait_error::timed_out);
        auto const stopped = co_await h.join(token);
        EXPECT_EQ(stopped.error(), wait_error::stopped);
        auto const joined = co_await h.join_until(w.now() + 1s);
        co_return joined.value().value();
    }(loop, below, source.token()));
    loop.advance(1s);
    source.request_stop();
    p.release();
    loop.run_ready();
    EXPECT_EQ(above.blocking_join().value(), 42);
}

TEST(Spawn, JoinsOfThreadsMayBeBoundedToo) {
    manual_loop loop;
    permits p{0};
    auto handle = spawn(loop, take_and_answer(p));
    loop.run_ready();
    stop_source source;
    source.request_stop();
    EXPECT_EQ(handle.blocking_join(source.token()), std::unexpected{wait_error::stopped});
    EXPECT_EQ(handle.blocking_join_for(0s), std::unexpected{wait_error::timed_out});
    EXPECT_EQ(handle.blocking_join_until(clock::now()), std::unexpected{wait_error::timed_out});
    auto for_a_while = spawn(loop, [](join_handle<int>& h) -> task<bool> {
        auto const joined = co_await h.join_for(10ms);
        co_return joined.has_value();
    }(handle));
    loop.advance(10ms);
    EXPECT_FALSE(for_a_while.blocking_join().value());
    EXPECT_FALSE(handle.try_join());
    p.release();
    loop.run_ready();
    EXPECT_EQ(handle.try_join().value(), 42);
}

TEST(Spawn, ABoundedJoinTellsAStoppedTaskFromAStoppedJoin) {
    manual_loop loop;
    permits p{0};
    auto below = spawn(loop, take_and_answer(p));
    auto above = spawn(loop, [](manual_loop& w, auto& h) -> task<bool> {
        auto const joined = co_await h.join_until(w.now() + 1s);
        EXPECT_TRUE(joined.has_value()) << "the join itself was in time";
        co_return joined->has_value();
    }(loop, below));
    loop.run_ready();
    below.request_stop();
    loop.run_ready();
    EXPECT_FALSE(above.blocking_join().value());
}

TEST(JoinHandle, MovesAndDetaches) {
    manual_loop loop;
    auto a = spawn(loop, answer());
    auto b = std::move(a);
    EXPECT_FALSE(a.joinable());  // NOLINT(bugprone-use-after-move): what is tested
    EXPECT_TRUE(b.joinable());
    b = spawn(loop, answer());  // detaches the first
    loop.run_ready();
    EXPECT_EQ(b.blocking_join().value(), 42);
    b.detach();
    EXPECT_FALSE(b.joinable());
    b.detach();
}

TEST(Spawn, ATaskMaySpawnOnAnotherLoopAndJoinItFromItsOwn) {
    run_loop there;
    std::thread runs{[&] { there.run(); }};
    std::thread::id const other = runs.get_id();
    auto const program = [](run_loop& elsewhere) -> task<std::thread::id> {
        auto const home = std::this_thread::get_id();
        auto t = spawn(elsewhere, []() -> task<std::thread::id> {
            co_await yield();
            co_return std::this_thread::get_id();
        }());
        auto const r = co_await t.join();
        EXPECT_EQ(std::this_thread::get_id(), home);
        co_return r.value();
    };
    EXPECT_EQ(block_on(program(there)), other);
    there.finish();
    runs.join();
}

TEST(Spawn, AnOverAlignedResultIsAligned) {
    struct alignas(256) wide {
        explicit wide(int v) : value(v) {}
        wide(wide&& other) noexcept : value(other.value) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % 256, 0U);
        }
        int value;
    };
    run_loop loop;
    auto handle = spawn(loop, []() -> task<wide> { co_return wide{7}; }());
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join()->value, 7);
}

}  // namespace
}  // namespace rondo
