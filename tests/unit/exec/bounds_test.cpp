// What happens when there is no room: try, wait, refuse.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "gate.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/exec/thread_pool.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using test::gate;
using test::manual_loop;

// A pool whose workers are busy until the gate is opened.
class Busy : public testing::Test {
  protected:
    void start(std::size_t workers, std::size_t capacity, dispatch how = dispatch::stealing) {
        pool_.emplace(thread_pool::options{.workers = workers, .how = how, .capacity = capacity});
        test::countdown begun{static_cast<int>(workers)};
        for (std::size_t i = 0; i < workers; ++i) {
            ASSERT_TRUE(pool_->try_execute([&] {
                begun.count();
                go_.wait();
            }));
        }
        begun.wait();
    }
    void TearDown() override { go_.open(); }

    gate go_;
    std::atomic<int> ran_{0};
    std::optional<thread_pool> pool_;
};

TEST_F(Busy, TryRefusesWhenItIsFullAndGivesTheJobBack) {
    start(2, 3);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool_->try_execute([this] { ++ran_; }));
    auto refused = pool_->try_execute([this, owned = std::make_unique<int>(7)] { ran_ += *owned; });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, refusal::full);
    EXPECT_EQ(pool_->depth(), 3U);
    std::move(refused.error().job)();
    EXPECT_EQ(ran_, 7);
    go_.open();
    pool_.reset();
    EXPECT_EQ(ran_, 10);
}

TEST_F(Busy, EachPrivateQueueHasItsPartOfTheBound) {
    start(2, 4, dispatch::per_worker);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool_->try_execute([this] { ++ran_; }));
    EXPECT_FALSE(pool_->try_execute([] {}));
    EXPECT_FALSE(pool_->try_execute([] {}));
    EXPECT_EQ(pool_->depth(), 4U);
}

TEST_F(Busy, ARefusedSubmitSaysSo) {
    start(1, 1);
    auto accepted = pool_->submit([] { return 1; });
    auto refused = pool_->submit([] { return 2; });
    ASSERT_TRUE(refused.ended());
    EXPECT_EQ(refused.blocking_get().error(), job_error::full);
    go_.open();
    EXPECT_EQ(accepted.blocking_get(), 1);
}

TEST_F(Busy, AJobThatSubmitsIsBoundToo) {
    gate done;
    int accepted = 0;
    thread_pool pool{{.workers = 1, .capacity = 2}};
    ASSERT_TRUE(pool.try_execute([&] {
        while (pool.try_execute([] {})) ++accepted;
        done.open();
    }));
    done.wait();
    EXPECT_EQ(accepted, 4);  // two in its own queue, two in the pool's
}

TEST_F(Busy, AThreadWaitsForRoom) {
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([this] { ++ran_; }));
    gate about_to;
    std::thread other{[&] {
        about_to.open();
        EXPECT_TRUE(pool_->blocking_execute([this] { ++ran_; }));
    }};
    about_to.wait();
    go_.open();
    other.join();
    pool_.reset();
    EXPECT_EQ(ran_, 2);
}

TEST_F(Busy, ATaskWaitsForRoomAndGoesOnAtHome) {
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([] {}));
    bool done = false;
    auto const submits = [](thread_pool& pool, std::atomic<int>& ran, bool& said) -> task<void> {
        auto job = [&ran] { ++ran; };
        auto const accepted = co_await pool.execute(job);
        EXPECT_TRUE(accepted);
        said = true;
    };
    run_loop loop;
    auto handle = spawn(loop, submits(*pool_, ran_, done));
    loop.run_ready();
    EXPECT_FALSE(done);
    go_.open();
    auto const joins = [](join_handle<void>& h) -> task<void> { (void)co_await h.join(); };
    block_on(loop, joins(handle));
    EXPECT_TRUE(done);
    pool_.reset();
    EXPECT_EQ(ran_, 1);
}

TEST_F(Busy, AStoppedTaskLeavesTheQueueAndItsJobNeverRuns) {
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([] {}));
    auto const submits = [](thread_pool& pool, std::atomic<int>& ran) -> task<void> {
        auto job = [&ran] { ++ran; };
        (void)co_await pool.execute(job);
    };
    manual_loop loop;
    auto handle = spawn(loop, submits(*pool_, ran_));
    loop.run_ready();
    handle.request_stop();
    loop.run_ready();
    EXPECT_TRUE(handle.ended());
    go_.open();
    pool_.reset();
    EXPECT_EQ(ran_, 0);
}

// What another wait was granted goes on to the next; this job is a worker's by then.
TEST_F(Busy, AJobThatWasLetInRunsAlsoWhenItsExecuteLosesARaceInTheSameInstant) {
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([] {}));
    test::permits other{0};
    gate ran;
    manual_loop loop;
    auto race = spawn(loop, when_any(other.acquire(), pool_->execute([&ran] { ran.open(); })));
    loop.run_ready();
    other.release();
    go_.open();
    ran.wait();
    loop.run_ready();
    EXPECT_EQ(race.blocking_join()->index(), 0U);
}

TEST_F(Busy, AThreadThatGivesUpGetsItsJobBack) {
    using namespace std::chrono_literals;
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([] {}));
    auto const job = [this] { ++ran_; };
    stop_source stop;
    stop.request_stop();

    auto stopped = pool_->blocking_execute(job, stop.token());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().why, refusal::stopped);
    auto late = pool_->blocking_execute_until(job, clock::now());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().why, refusal::timed_out);
    auto slow = pool_->blocking_execute_for(job, 1us);
    ASSERT_FALSE(slow);
    EXPECT_EQ(slow.error().why, refusal::timed_out);
    EXPECT_EQ(ran_, 0);
    slow.error().job();
    EXPECT_EQ(ran_, 1);
    go_.open();
    pool_.reset();
    EXPECT_EQ(ran_, 1);
}

TEST_F(Busy, ATaskThatGivesUpGetsItsJobBack) {
    using namespace std::chrono_literals;
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([] {}));
    std::vector<refusal> why;
    auto const submits = [](thread_pool& pool, manual_loop& loop, stop_token token,
                            std::vector<refusal>& said) -> task<void> {
        auto job = [] {};
        auto const by_token = co_await pool.execute(job, token);
        said.push_back(by_token.error().why);
        time_point const deadline = loop.timers().now() + 1s;
        auto const by_deadline = co_await pool.execute_until(job, deadline);
        said.push_back(by_deadline.error().why);
        auto const by_duration = co_await pool.execute_for(job, 1s);
        said.push_back(by_duration.error().why);
    };
    manual_loop loop;
    stop_source stop;
    auto handle = spawn(loop, submits(*pool_, loop, stop.token(), why));
    loop.run_ready();
    stop.request_stop();
    loop.run_ready();
    loop.advance(1s);
    loop.advance(1s);
    EXPECT_TRUE(handle.ended());
    using enum refusal;
    EXPECT_EQ(why, (std::vector{stopped, timed_out, timed_out}));
}

// One that cannot be moved so often.
struct fragile {
    explicit fragile(int& runs, int moves) : ran(&runs), moves_left(moves) {}
    fragile(fragile&& other) : ran(other.ran), moves_left(other.moves_left - 1) {
        if (moves_left < 0) throw std::runtime_error{"broken"};
    }
    void operator()() const { ++*ran; }
    int* ran;
    int moves_left;
};

TEST_F(Busy, AClosureThatThrowsWhenMovedIsNotAccepted) {
    int ran = 0;
    start(1, 1);
    EXPECT_THROW((void)pool_->try_execute(fragile{ran, 0}), std::runtime_error);
    EXPECT_EQ(pool_->depth(), 0U);
    ASSERT_TRUE(pool_->try_execute([] {}));
    EXPECT_THROW((void)pool_->try_execute(fragile{ran, 1}), std::runtime_error);  // on its way back
    EXPECT_THROW((void)pool_->blocking_execute_until(fragile{ran, 1}, clock::now()),
                 std::runtime_error);
    go_.open();
    pool_.reset();
    EXPECT_EQ(ran, 0);
}

TEST(ThreadPool, RoomBeatsADeadlineThatHasPassed) {
    std::atomic<int> ran{0};
    {
        thread_pool pool{{.workers = 1}};
        EXPECT_TRUE(pool.blocking_execute_until([&] { ++ran; }, clock::now()));
    }
    EXPECT_EQ(ran, 1);
}

TEST_F(Busy, ThoseWhoWaitForRoomAreServedInTheirOrder) {
    start(1, 1);
    ASSERT_TRUE(pool_->try_execute([] {}));
    std::vector<int> order;  // plain: one worker
    auto const submits = [](thread_pool& pool, std::vector<int>& list, int i) -> task<void> {
        auto job = [&list, i] { list.push_back(i); };
        (void)co_await pool.execute(job);
    };
    run_loop loop;
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 5; ++i) handles.push_back(spawn(loop, submits(*pool_, order, i)));
    loop.run_ready();
    EXPECT_FALSE(pool_->try_execute([] {}));  // nobody overtakes
    go_.open();
    auto const joins = [](std::vector<join_handle<void>>& all) -> task<void> {
        for (auto& h : all) (void)co_await h.join();
    };
    block_on(loop, joins(handles));
    pool_.reset();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(ThreadPoolDeathTest, AWorkerDoesNotWaitForRoomInItsOwnPool) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            thread_pool pool{{.workers = 1}};
            (void)pool.submit([&] { (void)pool.blocking_execute([] {}); }).blocking_get();
        },
        "a worker waits for room that it should make");
}

// More jobs than the ring of pointers has places.
TEST(ThreadPool, ABoundBeyondTheRingHolds) {
    constexpr std::size_t many = 70'000;
    gate begun, go;
    std::size_t ran = 0;  // plain: one worker
    gate end;
    thread_pool pool{{.workers = 1, .capacity = many}};
    ASSERT_TRUE(pool.try_execute([&] {
        begun.open();
        go.wait();
    }));
    begun.wait();
    for (std::size_t i = 0; i < many; ++i) {
        ASSERT_TRUE(pool.try_execute([&ran, i] { ran += ran == i ? 1 : 0; }));
    }
    EXPECT_FALSE(pool.try_execute([] {}));
    go.open();
    ASSERT_TRUE(pool.blocking_execute([&] { end.open(); }));
    end.wait();
    EXPECT_EQ(ran, many);
}

}  // namespace
}  // namespace rondo
