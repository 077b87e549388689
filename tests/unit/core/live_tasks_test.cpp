#include "rondo/core/live_tasks.hpp"

#include <gtest/gtest.h>

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
    void ended(live_task& t) noexcept override { alive.remove(t); }

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

}  // namespace
}  // namespace rondo
