#include "rondo/core/live_tasks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>

#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using test::permits;

// A loop that knows what runs on it.
class knowing_loop final : public executor {
  public:
    void post(job& j) noexcept override { loop_.post(j); }
    timer_service& timers() noexcept override { return loop_.timers(); }
    void began(live_task& t) noexcept override { alive.add(t); }
    void ended(live_task& t) noexcept override { live_tasks::remove(t); }

    void run_ready() { loop_.run_ready(); }

    live_tasks alive;

  private:
    run_loop loop_;
};

task<void> wait_for_one(permits& p) { auto const got = co_await p.acquire(); }

TEST(LiveTasks, AnExecutorIsToldOfEachTaskFromSpawnToEnd) {
    knowing_loop loop;
    permits p{0};
    auto a = spawn(loop, wait_for_one(p));
    auto b = spawn(loop, wait_for_one(p));
    EXPECT_EQ(loop.alive.size(), 2U) << "before they had a turn";
    loop.run_ready();
    EXPECT_EQ(loop.alive.size(), 2U);
    b.request_stop();
    loop.run_ready();
    EXPECT_EQ(loop.alive.size(), 1U);
    p.release();
    loop.run_ready();
    EXPECT_TRUE(loop.alive.empty());
}

TEST(LiveTasks, AllOfThemCanBeStopped) {
    knowing_loop loop;
    permits p{0};
    for (int i = 0; i < 3; ++i) spawn(loop, wait_for_one(p)).detach();
    loop.run_ready();
    loop.alive.stop_all();
    EXPECT_EQ(loop.alive.size(), 3U) << "they unwind on their executor, not in the request";
    loop.run_ready();
    EXPECT_TRUE(loop.alive.empty());
    EXPECT_FALSE(p.awaited());
}

TEST(LiveTasks, ATaskIsTakenOutOfTheListThatItIsIn) {
    // Two lists in turn, as a runtime with one list for each worker has them.
    class two_lists final : public executor {
      public:
        void post(job& j) noexcept override { loop_.post(j); }
        timer_service& timers() noexcept override { return loop_.timers(); }
        void began(live_task& t) noexcept override { (first_next ? first : second).add(t); }
        void ended(live_task& t) noexcept override { live_tasks::remove(t); }

        run_loop loop_;
        live_tasks first, second;
        bool first_next = true;
    };
    two_lists where;
    permits p{0};
    auto a = spawn(where, wait_for_one(p));
    where.first_next = false;
    auto b = spawn(where, wait_for_one(p));
    where.loop_.run_ready();
    b.request_stop();
    where.loop_.run_ready();
    EXPECT_EQ(where.first.size(), 1U);
    EXPECT_TRUE(where.second.empty());
    p.release();
    where.loop_.run_ready();
    EXPECT_TRUE(where.first.empty());
}

TEST(LiveTasks, EachIsKnownByTheCoroutineThatWasSpawned) {
    knowing_loop loop;
    permits p{0};
    for (int i = 0; i < 3; ++i) spawn(loop, wait_for_one(p)).detach();
    auto const named = [&loop] {
        std::size_t n = 0;
        loop.alive.for_each([&n](live_task const& t) {
            if (std::string_view{t.origin().function_name()}.contains("wait_for_one")) ++n;
        });
        return n;
    };
    EXPECT_EQ(named(), 3U);
    loop.alive.stop_all();
    EXPECT_EQ(named(), 3U) << "those that were asked to stop are still there";
    loop.run_ready();
    EXPECT_EQ(named(), 0U);
}

}  // namespace
}  // namespace rondo
