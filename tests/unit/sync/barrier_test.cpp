// Barrier: who passes when, and what a withdrawn arrival leaves behind. What happens when the last
// arrival and a stop meet is model-checked in tests/model/sync/barrier_model_test.cpp.
#include "rondo/sync/barrier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::foreign;
using test::manual_loop;
using test::owned_foreign;

using outcome = std::expected<barrier_passage, wait_error>;

task<bool> pass(barrier& b) {
    auto const passage = co_await b.arrive_and_wait();
    co_return passage.is_leader();
}

TEST(Barrier, NobodyPassesBeforeAllHaveArrived) {
    manual_loop loop;
    barrier b{3};
    auto one = spawn(loop, pass(b)), two = spawn(loop, pass(b));
    loop.run_ready();
    EXPECT_FALSE(one.ended() || two.ended());
    auto three = spawn(loop, pass(b));
    EXPECT_TRUE(loop.step());
    EXPECT_TRUE(three.ended()) << "the last one does not wait";
    EXPECT_FALSE(one.ended()) << "and resumes nobody";
    loop.run_ready();
    EXPECT_TRUE(one.ended() && two.ended());
}

TEST(Barrier, TheLastToArriveLeadsEachGeneration) {
    manual_loop loop;
    barrier b{3};
    for (int generation = 0; generation < 3; ++generation) {
        auto one = spawn(loop, pass(b)), two = spawn(loop, pass(b)), three = spawn(loop, pass(b));
        loop.run_ready();
        EXPECT_FALSE(one.blocking_join().value());
        EXPECT_FALSE(two.blocking_join().value());
        EXPECT_TRUE(three.blocking_join().value());
    }
}

TEST(Barrier, OfOneOrNoneNobodyWaits) {
    for (std::size_t parties : {0U, 1U}) {
        barrier b{parties};
        EXPECT_EQ(b.parties(), 1U);
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(b.blocking_arrive_and_wait().is_leader());
    }
}

TEST(Barrier, LetsManyPass) {
    manual_loop loop;
    barrier b{200};
    std::vector<join_handle<bool>> parties;
    for (int i = 0; i < 200; ++i) parties.push_back(spawn(loop, pass(b)));
    loop.run_ready();
    EXPECT_EQ(std::count_if(parties.begin(), parties.end(),
                            [](auto& t) { return t.blocking_join().value(); }),
              1);
}

TEST(Barrier, TryArrivesOnlyAsTheLast) {
    manual_loop loop;
    barrier b{2};
    EXPECT_FALSE(b.try_arrive_and_wait());
    EXPECT_FALSE(b.try_arrive_and_wait()) << "the first try was no arrival";
    auto one = spawn(loop, pass(b));
    loop.run_ready();
    auto const passage = b.try_arrive_and_wait();
    ASSERT_TRUE(passage);
    EXPECT_TRUE(passage->is_leader());
    loop.run_ready();
    EXPECT_FALSE(one.blocking_join().value());
}

// --- withdrawn arrivals ----------------------------------------------------------------------

TEST(Barrier, AStoppedArrivalIsWithdrawn) {
    manual_loop loop;
    barrier b{2};
    auto gone = spawn(loop, pass(b));
    loop.run_ready();
    gone.request_stop();
    auto one = spawn(loop, pass(b));
    loop.run_ready();
    EXPECT_EQ(gone.blocking_join().error(), wait_error::stopped);
    EXPECT_FALSE(one.ended()) << "it waits for another one";
    auto two = spawn(loop, pass(b));
    loop.run_ready();
    EXPECT_TRUE(one.ended() && two.ended());
}

TEST(Barrier, ATokenOrADeadlineWithdrawsAndSaysSo) {
    manual_loop loop;
    barrier b{2};
    stop_source source;
    auto by_token = spawn(loop, [](barrier& at, stop_token t) -> task<outcome> {
        co_return co_await at.arrive_and_wait(t);
    }(b, source.token()));
    loop.run_ready();
    source.request_stop();
    auto in_time = spawn(loop, [](barrier& at) -> task<outcome> {
        co_return co_await at.arrive_and_wait_for(1s);
    }(b));
    loop.advance(1s);
    auto until = spawn(loop, [](barrier& at, time_point d) -> task<outcome> {
        co_return co_await at.arrive_and_wait_until(d);
    }(b, loop.now() + 1s));
    auto last = spawn(loop, pass(b));
    loop.run_ready();
    EXPECT_EQ(by_token.blocking_join().value().error(), wait_error::stopped);
    EXPECT_EQ(in_time.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_FALSE(until.blocking_join().value()->is_leader());
    EXPECT_TRUE(last.blocking_join().value());
}

TEST(Barrier, TheLastOnePassesHoweverLittleTimeItHas) {
    manual_loop loop;
    barrier b{2};
    auto one = spawn(loop, pass(b));
    loop.run_ready();
    EXPECT_TRUE(b.blocking_arrive_and_wait_for(0ns).has_value());
    loop.run_ready();
    EXPECT_TRUE(one.ended());
}

TEST(Barrier, WhoHasPassedIsNotStoppedAnyMore) {
    manual_loop loop;
    barrier b{2};
    auto one = spawn(loop, pass(b));
    loop.run_ready();
    EXPECT_TRUE(b.try_arrive_and_wait());
    one.request_stop();
    loop.run_ready();
    EXPECT_TRUE(one.blocking_join().has_value());
}

TEST(Barrier, LosingAWhenAnyWithdraws) {
    manual_loop loop;
    barrier b{2};
    notify bell;
    auto t = spawn(loop, [](barrier& at, notify& n) -> task<std::size_t> {
        auto const first = co_await when_any(at.arrive_and_wait(), n.notified());
        co_return first.index();
    }(b, bell));
    loop.run_ready();
    bell.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_FALSE(b.try_arrive_and_wait());
}

// The first to be resumed destroys the last, which is still in line: the batch has not come to it.
TEST(Barrier, ADestroyedCoroutineThatHadPassedIsNotMissingFromTheNextGeneration) {
    constexpr std::size_t parties = 41;
    barrier b{parties};
    std::vector<std::optional<owned_foreign>> others(parties - 1);
    auto const destroys = [](barrier& at, std::optional<owned_foreign>& last) -> owned_foreign {
        (void)co_await at.arrive_and_wait();
        last.reset();
    };
    auto const passes = [](barrier& at) -> owned_foreign { (void)co_await at.arrive_and_wait(); };
    others.front().emplace(destroys(b, others.back()));
    for (std::size_t i = 1; i < others.size(); ++i) others[i].emplace(passes(b));
    EXPECT_TRUE(b.try_arrive_and_wait());
    EXPECT_FALSE(others.back().has_value());
    for (auto& other : others) other.emplace(passes(b));
    EXPECT_TRUE(b.try_arrive_and_wait()) << "all of the next generation were counted";
    for (auto& other : others) EXPECT_TRUE(other->ended());
}

// --- other worlds ----------------------------------------------------------------------------

TEST(Barrier, ThreadsPassTogetherAgainAndAgain) {
    constexpr int parties = 4, rounds = 50;
    barrier b{parties};
    std::atomic<int> arrived{0}, leaders{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < parties; ++i) {
        threads.emplace_back([&] {
            for (int round = 1; round <= rounds; ++round) {
                ++arrived;
                if (b.blocking_arrive_and_wait().is_leader()) ++leaders;
                EXPECT_GE(arrived, round * parties);
                (void)b.blocking_arrive_and_wait();
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(leaders, rounds);
}

TEST(Barrier, ThreadsMayGiveUp) {
    barrier b{2};
    stop_source source;
    source.request_stop();
    EXPECT_EQ(b.blocking_arrive_and_wait(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(b.blocking_arrive_and_wait_until(clock::now()).error(), wait_error::timed_out);
    EXPECT_EQ(b.blocking_arrive_and_wait_for(1us).error(), wait_error::timed_out);
    EXPECT_FALSE(b.try_arrive_and_wait());
}

TEST(Barrier, AThreadAForeignCoroutineAndATaskPassTogether) {
    manual_loop loop;
    barrier b{3};
    bool passed = false;
    auto const foreigner = [](barrier& at, bool& done) -> foreign {
        (void)co_await at.arrive_and_wait();
        done = true;
    };
    foreigner(b, passed);
    auto t = spawn(loop, pass(b));
    loop.run_ready();
    std::thread thread{[&] { EXPECT_TRUE(b.blocking_arrive_and_wait().is_leader()); }};
    thread.join();
    loop.run_ready();
    EXPECT_TRUE(passed && t.ended());
}

}  // namespace
}  // namespace rondo
