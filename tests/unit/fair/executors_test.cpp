// The dispatcher on executors of every kind: workers, a pool, a simulated world.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/exec/thread_pool.hpp"
#include "rondo/fair/dispatcher.hpp"
#include "rondo/fair/scheduler.hpp"
#include "rondo/sim/world.hpp"
#include "rondo/sync/notify.hpp"
#include "support/manual_loop.hpp"
#include "support/seed.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;

config<std::uint64_t> at(executor& place) {
    config<std::uint64_t> c;
    c.time = &place.timers();
    return c;
}

// One that works until another, which waits behind it, has expired: so somebody has to notice that
// while nothing else happens.
class expiry {
  public:
    expiry(executor& on, config<std::uint64_t> c)
        : queue_{std::move(c), [this](disposition, scheduler<int>::task) { heard_.notify_one(); }},
          dispatcher_{queue_, on, 1,
                      [this](scheduler<int>::task) { return wait_until_it_is_heard(); }} {
        EXPECT_TRUE(queue_.enqueue(1, 1));
        EXPECT_TRUE(queue_.enqueue(1, 2, {.deadline = queue_.now() + 2ms}));
    }

    rondo::task<void> end() { return dispatcher_.drain(); }
    void blocking_end() { dispatcher_.blocking_drain(); }
    void expect_one_of_each() {
        EXPECT_EQ(dispatcher_.completed(), 1U);
        EXPECT_EQ(queue_.stats().expired, 1U);
    }

  private:
    rondo::task<void> wait_until_it_is_heard() { co_await heard_.notified(); }

    notify heard_;
    scheduler<int> queue_;
    dispatcher<int> dispatcher_;
};

// (In real time: it is the clock of workers and pools.)
TEST(FairExecutors, ARuntimeRunsTasksAndFindsDeadlines) {
    runtime rt{{.workers = 2}};
    expiry e{rt.anywhere(), {}};
    e.blocking_end();
    e.expect_one_of_each();
}

TEST(FairExecutors, APoolRunsTasksAndFindsDeadlines) {
    thread_pool pool{{.workers = 2}};
    expiry e{pool, {}};
    e.blocking_end();
    e.expect_one_of_each();
}

TEST(FairExecutors, ASimulatedWorldRunsTasksAndFindsDeadlines) {
    sim::world w{{.seed = test::seed(1)}};
    time_point const begin = w.now();
    expiry e{w, at(w)};
    EXPECT_TRUE(w.block_on(e.end()));
    EXPECT_EQ(w.now() - begin, 2ms + 1ns);
    e.expect_one_of_each();
}

TEST(FairExecutors, ARuntimeRunsEachTaskOnce) {
    runtime rt{{.workers = 2}};
    scheduler<int> q;
    std::vector<int> seen(1'000);
    dispatcher<int> d{q, rt.anywhere(), 4, [&seen](scheduler<int>::task t) -> rondo::task<void> {
                          int& mine = seen[static_cast<std::size_t>(t.payload)];
                          co_await yield();
                          ++mine;
                      }};
    for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(q.enqueue(static_cast<std::uint64_t>(i % 7), i));
    d.blocking_drain();
    EXPECT_EQ(seen, std::vector(1'000, 1));
}

TEST(FairExecutorsDeathTest, AClockThatIsNotTheExecutorsIsAProgrammersError) {
    auto const mix = [] {
        test::manual_loop loop;
        scheduler<int> q;  // the steady clock
        dispatcher<int> const d{q, loop, 1,
                                [](scheduler<int>::task) -> rondo::task<void> { co_return; }};
    };
    EXPECT_DEATH(mix(), "a scheduler has the clock of its dispatcher's executor");
}

}  // namespace
}  // namespace rondo::fair
