// stop_now(): what has not started is dropped, and nobody is left waiting for it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "rondo/exec/thread_pool.hpp"

namespace rondo {
namespace {

using test::gate;

class StopNow : public testing::TestWithParam<dispatch> {};
INSTANTIATE_TEST_SUITE_P(Every, StopNow,
                         testing::Values(dispatch::per_worker, dispatch::shared,
                                         dispatch::stealing));

TEST_P(StopNow, DropsWhatHasNotStartedAndSaysHowMany) {
    gate begun, dropped;
    std::atomic<int> ran{0};
    auto captured = std::make_shared<int>(0);
    thread_pool pool{{.workers = 1, .how = GetParam()}};
    auto running = pool.submit([&] {
        begun.open();
        dropped.wait();
        return 1;
    });
    begun.wait();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.try_execute([&, captured] { ++ran; }));
    auto lost = pool.submit([] { return 2; });
    std::thread waits{[&] {
        EXPECT_EQ(lost.blocking_get().error(), job_error::dropped);
        dropped.open();  // a job that waits for one that is dropped
    }};
    EXPECT_EQ(pool.stop_now(), 101U);
    waits.join();
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_EQ(running.blocking_get(), 1);
    EXPECT_EQ(pool.depth(), 0U);
}

TEST_P(StopNow, RefusesFromThenOn) {
    thread_pool pool{{.workers = 2, .how = GetParam()}};
    EXPECT_EQ(pool.stop_now(), 0U);
    EXPECT_EQ(pool.try_execute([] {}).error().why, refusal::closed);
    EXPECT_EQ(pool.blocking_execute([] {}).error().why, refusal::closed);
    EXPECT_EQ(pool.submit([] {}).blocking_get().error(), job_error::closed);
    EXPECT_EQ(pool.stop_now(), 0U);
}

TEST_P(StopNow, TellsThoseWhoWaitForRoom) {
    gate begun, told;
    thread_pool pool{{.workers = 1, .how = GetParam(), .capacity = 1}};
    ASSERT_TRUE(pool.try_execute([&] {
        begun.open();
        told.wait();
    }));
    begun.wait();
    ASSERT_TRUE(pool.try_execute([] {}));
    std::thread waits{[&] {
        EXPECT_EQ(pool.blocking_execute([] {}).error().why, refusal::closed);
        told.open();
    }};
    EXPECT_EQ(pool.stop_now(), 1U);
    waits.join();
}

TEST_P(StopNow, EveryJobOfConcurrentSubmittersIsRunDroppedOrRefused) {
    std::atomic<std::size_t> ran{0}, refused{0};
    constexpr std::size_t submitters = 3, each = 3000;
    gate half_way;
    thread_pool pool{{.workers = 2, .how = GetParam(), .capacity = 64}};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < submitters; ++t) {
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < each; ++i) {
                if (i == each / 2) half_way.open();
                if (!pool.blocking_execute([&] { ++ran; })) ++refused;
            }
        });
    }
    half_way.wait();
    std::size_t const dropped = pool.stop_now();
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(ran + refused + dropped, submitters * each);
    EXPECT_EQ(pool.count().run, ran);
}

// While one takes the posted job out of the queue, to put it back behind those that it drops, the
// other must not end the workers.
TEST_P(StopNow, MayBeCalledByTwoAtOnce) {
    struct counts final : job {
        counts() noexcept
            : job([](job& j) noexcept { static_cast<counts&>(j).runs.fetch_add(1); }) {}
        std::atomic<int> runs{0};
    } posted;
    gate begun, over;
    std::atomic<bool> other_is_back{false};
    std::jthread other;
    thread_pool pool{{.workers = 1, .how = GetParam()}};
    ASSERT_TRUE(pool.try_execute([&] {
        begun.open();
        over.wait();
    }));
    begun.wait();
    pool.post(posted);
    auto const meet = [&](void*) {
        over.open();
        other = std::jthread{[&] {
            pool.stop_now();
            other_is_back = true;
        }};
        // The other one may not come back before this one does: that is not waited for.
        for (int i = 0; i < 10000 && !other_is_back; ++i) std::this_thread::yield();
    };
    std::shared_ptr<void> in_the_middle{nullptr, meet};
    ASSERT_TRUE(pool.try_execute([held = std::move(in_the_middle)] {}));
    EXPECT_EQ(pool.stop_now(), 1U);
    other.join();
    EXPECT_EQ(posted.runs, 1);
}

// What a worker's jobs submitted to its own queue is dropped as well, and not by that worker: it
// may be waiting for one of them.
TEST(StopNowStealing, DropsWhatAWorkerHasForItself) {
    gate submitted;
    thread_pool pool{{.workers = 1}};
    ASSERT_TRUE(pool.try_execute([&] {
        auto first = pool.submit([] {});
        for (int i = 0; i < 300; ++i) EXPECT_TRUE(pool.try_execute([] {}));
        submitted.open();
        EXPECT_EQ(first.blocking_get().error(), job_error::dropped);
    }));
    submitted.wait();
    EXPECT_EQ(pool.stop_now(), 301U);
}

}  // namespace
}  // namespace rondo
