// What goes on although a turn does not end, and what must not be lost on the way. Where a test
// would fail it hangs: each waits for something that another worker has to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gate.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::gate;

task<void> open_it(gate* g) {
    g->open();
    co_return;
}
task<void> sleep_and_open(gate* g) {
    co_await sleep_for(5ms);
    g->open();
}
// A turn that lasts until somebody else has done something.
task<void> hold_until(gate* begun, gate* until) {
    begun->open();
    until->wait();
    co_return;
}
task<void> nothing() { co_return; }

TEST(RuntimeTurns, ATimerFiresBesideALongTurn) {
    for (int round = 0; round < 10; ++round) {
        runtime rt{{.workers = 3}};
        gate begun;
        gate fired;
        auto sleeper = rt.spawn(sleep_and_open(&fired));
        auto busy = rt.spawn(hold_until(&begun, &fired));
        (void)busy.blocking_join();
        (void)sleeper.blocking_join();
    }
}

TEST(RuntimeTurns, ATimerThatIsAddedBeforeALongTurnFires) {
    runtime rt{{.workers = 2}};
    gate fired;
    auto both = [](runtime* r, gate* f) -> task<void> {
        auto sleeper = r->spawn(sleep_and_open(f));
        for (int i = 0; i < 10; ++i) co_await yield();  // the sleeper has its turn, here or there
        f->wait();
        (void)co_await sleeper.join();
    };
    (void)rt.spawn(both(&rt, &fired)).blocking_join();
}

TEST(RuntimeTurns, OfTwoTasksFromOutsideTheSecondRunsBesideTheFirst) {
    runtime rt{{.workers = 2}};
    for (int round = 0; round < 300; ++round) {
        gate begun;
        gate second;
        auto a = rt.spawn(hold_until(&begun, &second));
        auto b = rt.spawn(open_it(&second));
        (void)a.blocking_join();
        (void)b.blocking_join();
    }
}

// A handler wakes a job that goes next and lasts; the task that had given way is behind it.
TEST(RuntimeTurns, ATaskThatGaveWayIsNotKeptByWhatAHandlerWoke) {
    runtime rt{{.workers = 2}};
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> turns{0};
        std::atomic<bool> over{false};
        auto yielding = [](std::atomic<int>* count, std::atomic<bool>* end) -> task<void> {
            while (!end->load()) {
                co_await yield();
                count->fetch_add(1);
            }
        };
        struct long_job final : job {
            explicit long_job(std::function<void()> f)
                : job([](job& j) noexcept { static_cast<long_job&>(j).body(); }),
                  body(std::move(f)) {}
            std::function<void()> body;
        };
        gate done;
        long_job lasts{[&] {
            int const before = turns;
            while (turns == before) std::this_thread::yield();
            done.open();
        }};
        auto h = rt.spawn(yielding(&turns, &over));
        boost::asio::post(rt.context(0), [&] { rt.anywhere().wake(lasts); });
        done.wait();
        over = true;
        (void)h.blocking_join();
    }
}

TEST(RuntimeTurns, AHandlerThatPostsItselfKeepsNoTaskFromRunning) {
    std::atomic<bool> over{false};  // outlives the handlers
    runtime rt{{.workers = 1}};
    struct again {
        boost::asio::io_context* where;
        std::atomic<bool>* over;
        void operator()() const {
            if (!over->load()) boost::asio::post(*where, *this);
        }
    };
    boost::asio::post(rt.context(0), again{&rt.context(0), &over});
    gate ran;
    (void)rt.spawn_pinned_to(0, open_it(&ran)).blocking_join();
    over = true;
}

// How many turns each of so many tasks gets that share one worker.
std::vector<std::atomic<int>> turns_on_one_worker(std::size_t count, int fair) {
    runtime rt{{.workers = 2}};
    gate begun;
    gate over;
    auto other = rt.spawn(hold_until(&begun, &over));  // leaves one worker
    begun.wait();
    std::vector<std::atomic<int>> turns(count);
    std::atomic<int> left{static_cast<int>(count) * fair};
    std::atomic<bool> all_are_there{false};
    auto yielding = [](std::atomic<bool>* begin, std::atomic<int>* mine,
                       std::atomic<int>* turns_left) -> task<void> {
        while (!begin->load()) co_await yield();
        while (turns_left->fetch_sub(1) > 0) {
            mine->fetch_add(1);
            co_await yield();
        }
    };
    std::vector<join_handle<void>> handles;
    for (auto& mine : turns) handles.push_back(rt.spawn(yielding(&all_are_there, &mine, &left)));
    all_are_there = true;
    for (auto& h : handles) (void)h.blocking_join();
    over.open();
    (void)other.blocking_join();
    return turns;
}

// A thousand have room in the queue of a worker. More than that take turns all the same: also so
// many that it keeps few of them.
TEST(RuntimeTurns, ManyTasksOnOneWorkerGetAboutAsManyTurnsEach) {
    for (std::size_t const count : {1000U, 1500U, 4000U}) {
        constexpr int fair = 100;
        auto const turns = turns_on_one_worker(count, fair);
        auto const [least, most] = std::ranges::minmax_element(turns);
        EXPECT_GE(*least, fair / 4) << "of " << count;
        EXPECT_LE(*most, fair * 4) << "of " << count;
    }
}

// What a worker has spawned stays with it, as long as nobody else could take it; but when many wait
// outside, it keeps few.
TEST(RuntimeTurns, AWorkerKeepsAThousandTasksButFewerWhenOthersWaitOutside) {
    runtime rt{{.workers = 2}};
    gate begun;
    gate over;
    auto other = rt.spawn_pinned_to(1, hold_until(&begun, &over));
    begun.wait();
    auto spawn_many = [](runtime* r) -> task<void> {
        for (int i = 0; i < 1000; ++i) r->spawn(nothing()).detach();
        auto seen = r->measure();
        EXPECT_EQ(seen.workers[0].depth, 1000U);
        EXPECT_EQ(seen.outside, 0U);
        for (int i = 0; i < 3000; ++i) r->spawn(nothing()).detach();
        seen = r->measure();
        EXPECT_LE(seen.workers[0].depth, 256U);
        EXPECT_EQ(seen.workers[0].depth + seen.outside, 4000U);
        co_return;
    };
    (void)rt.spawn_pinned_to(0, spawn_many(&rt)).blocking_join();
    over.open();
    (void)other.blocking_join();
}

// Whoever joins goes on behind those that are queued, and finds them ended: it does not wait for
// one after the other.
TEST(RuntimeTurns, AHundredTasksAreJoinedInOneTurn) {
    runtime rt{{.workers = 1}};
    auto spawn_and_join = [](runtime* r) -> task<void> {
        std::vector<join_handle<void>> all;
        for (int i = 0; i < 100; ++i) all.push_back(r->spawn(nothing()));
        for (auto& one : all) (void)co_await one.join();
    };
    rt.block_on(spawn_and_join(&rt));
    EXPECT_EQ(rt.measure().workers.front().turns, 1 + 100 + 1U);
}

// --- a thread that is lent, and tasks that go on elsewhere ---

// Resumes in a thread of its own, as a foreign library may.
class elsewhere {
  public:
    class awaiter {
      public:
        explicit awaiter(elsewhere& e) noexcept : elsewhere_(e) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) const {
            elsewhere_.suspended_ = h;
            elsewhere_.handed_over_.open();
        }
        void await_resume() const noexcept {}

      private:
        elsewhere& elsewhere_;
    };

    awaiter operator co_await() noexcept { return awaiter{*this}; }

  private:
    gate handed_over_;
    std::coroutine_handle<> suspended_;
    std::jthread thread_{[this] {
        handed_over_.wait();
        suspended_.resume();
    }};
};

task<int> end_elsewhere(elsewhere* there) {
    co_await *there;
    co_return 7;
}

class RuntimeElsewhere : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Runtime, RuntimeElsewhere, testing::Values(0U, 2U),
                         [](auto const& of) { return std::to_string(of.param) + "Workers"; });

TEST_P(RuntimeElsewhere, BlockOnReturnsWhenTheTaskEndsInAnotherThread) {
    runtime rt{{.workers = GetParam()}};
    elsewhere there;
    EXPECT_EQ(rt.block_on(end_elsewhere(&there)), 7);
}

TEST_P(RuntimeElsewhere, ShutdownWaitsForATaskThatEndsInAnotherThread) {
    runtime rt{{.workers = GetParam()}};
    elsewhere there;
    rt.spawn(end_elsewhere(&there)).detach();
    EXPECT_EQ(rt.shutdown(1h).tasks, 0U);
}

TEST(RuntimeTurns, WithoutWorkersAnotherThreadMayShutDownWhileOneBlocks) {
    runtime rt{{.workers = 0}};
    gate begun;
    auto sleeper = [](gate* g) -> task<void> {
        g->open();
        co_await sleep_for(24h);
    };
    auto h = rt.spawn(sleeper(&begun));
    auto join = [](join_handle<void>* handle) -> task<bool> {
        auto const ended = co_await handle->join();
        co_return ended.has_value();
    };
    std::jthread const other{[&] {
        begun.wait();
        EXPECT_EQ(rt.shutdown(1h).tasks, 0U);
    }};
    EXPECT_FALSE(rt.block_on(join(&h)));
}

task<void> take_one(test::permits* p) { auto one = co_await p->acquire(); }

// The clock is looked at once more before the thread goes to sleep, and says that time is up: there
// is nothing to sleep for.
TEST(RuntimeTurns, WithoutWorkersShutdownReturnsAlthoughItsTimeWasUpInATurn) {
    test::permits p{0};
    runtime rt{{.workers = 0}};
    auto outlasts_it = [](test::permits* from) -> task<void> {
        // In real time: that is what a limit is.
        for (auto const begun = clock::now(); clock::now() < begun + 20ms;) continue;
        co_await shield(take_one(from));
    };
    rt.spawn(outlasts_it(&p)).detach();
    EXPECT_EQ(rt.shutdown(5ms).tasks, 1U);
    p.release();
}

// Goes on in a handler of the context.
class through_a_handler {
  public:
    explicit through_a_handler(boost::asio::io_context& where) noexcept : where_(where) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const {
        boost::asio::post(where_, [h] { h.resume(); });
    }
    void await_resume() const noexcept {}

  private:
    boost::asio::io_context& where_;
};

TEST_P(RuntimeElsewhere, TheEndComesAlthoughTheLastTaskEndsInAHandler) {
    auto end_in_a_handler = [](boost::asio::io_context* where) -> task<void> {
        co_await through_a_handler{*where};
    };
    for (int i = 0; i < 50; ++i) {
        runtime rt{{.workers = GetParam()}};
        rt.spawn(end_in_a_handler(&rt.context(0))).detach();
    }
}

// Who blocks has what it wanted as soon as the tasks were asked to stop, and leaves; then the
// thread that shuts down has to run them.
TEST(RuntimeTurns, WithoutWorkersAShutdownGoesOnWhenTheThreadThatBlocksIsLeaving) {
    for (int round = 0; round < 50; ++round) {
        runtime rt{{.workers = 0}};
        gate begun;
        gate asked;
        auto tells = [](gate* g) -> task<void> {
            environment const env = co_await this_environment();
            stop_callback const told{env.stop, [g] { g->open(); }};
            co_await sleep_for(24h);
        };
        rt.spawn(tells(&asked)).detach();
        std::jthread const other{[&] {
            begun.wait();
            EXPECT_EQ(rt.shutdown(1h).tasks, 0U);
        }};
        rt.block_on(hold_until(&begun, &asked));
    }
}

TEST(RuntimeTurns, WithoutWorkersAShutdownRunsWhatIsBlockedOnMeanwhile) {
    test::permits p{0};
    runtime rt{{.workers = 0}};
    gate asked;
    auto tells = [](gate* g, test::permits* from) -> task<void> {
        g->open();
        co_await shield(take_one(from));
    };
    auto releases = [](test::permits* to) -> task<void> {
        to->release();
        co_return;
    };
    rt.spawn(tells(&asked, &p)).detach();
    std::jthread const other{[&] { EXPECT_EQ(rt.shutdown(1h).tasks, 0U); }};
    asked.wait();  // in a turn: the other thread is lent
    rt.block_on(releases(&p));
}

// --- the end ---

TEST(RuntimeTurns, AJobThatIsPostedToAWorkerBeforeTheEndRuns) {
    for (int round = 0; round < 300; ++round) {
        std::atomic<int> runs{0};
        struct counts final : job {
            explicit counts(std::atomic<int>* n) noexcept
                : job([](job& j) noexcept { static_cast<counts&>(j).count->fetch_add(1); }),
                  count(n) {}
            std::atomic<int>* count;
        } counted{&runs};
        {
            runtime rt{{.workers = 2}};
            rt.worker(0).post(counted);
        }
        ASSERT_EQ(runs, 1);
    }
}

TEST(RuntimeTurns, ABlockingFunctionMaySpawnUntilTheEnd) {
    gate begun;
    gate ending;
    auto rt = std::make_unique<runtime>(runtime::options{.workers = 2});
    auto blocked = rt->spawn_blocking([&, r = rt.get()] {
        begun.open();
        ending.wait();
        r->spawn(nothing()).detach();
    });
    begun.wait();
    {
        auto const nobody_waits = std::move(blocked);
    }
    std::jthread const opens{[&] { ending.open(); }};
    rt.reset();
}

TEST(RuntimeTurns, BlockingFunctionsThatHaveNotBegunAreDropped) {
    std::atomic<int> ran{0};
    gate begun;
    gate over;
    {
        runtime rt{{.workers = 1, .blocking_threads = 1}};
        auto first = rt.spawn_blocking([&] {
            begun.open();
            over.wait();
        });
        begun.wait();
        // The thread is busy until this one is dropped.
        std::shared_ptr<void> opens{&over, [](void* g) { static_cast<gate*>(g)->open(); }};
        auto second = rt.spawn_blocking([&ran, held = std::move(opens)] { ++ran; });
    }
    EXPECT_EQ(ran, 0);
}

TEST(RuntimeTurns, ShutdownWithoutALimitWaits) {
    runtime rt{{.workers = 1}};
    rt.spawn(nothing()).detach();
    EXPECT_EQ(rt.shutdown(std::chrono::milliseconds::max()).tasks, 0U);
}

}  // namespace
}  // namespace rondo
