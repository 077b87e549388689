// Without workers: the end of a runtime while threads of its own still need its tasks. Where a test
// would fail it hangs: a thread waits for a task that nobody runs.
#include <gtest/gtest.h>

#include <chrono>
#include <expected>
#include <memory>
#include <thread>
#include <utility>

#include "gate.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::gate;

task<int> answer() { co_return 42; }

// A blocking function that has begun, and goes on when the destructor drops what has not.
class RuntimeLentAtItsEnd : public testing::Test {
  protected:
    template <class F>
    auto in_the_end(F f) {
        auto result = rt_->spawn_blocking([this, f = std::move(f)] {
            begun_.open();
            ending_.wait();
            return f();
        });
        begun_.wait();
        std::shared_ptr<void> opens{&ending_, [](void* g) { static_cast<gate*>(g)->open(); }};
        (void)rt_->spawn_blocking([held = std::move(opens)] {});
        rt_.reset();
        return result.blocking_get();
    }

    gate begun_;
    gate ending_;
    std::unique_ptr<runtime> rt_ =
        std::make_unique<runtime>(runtime::options{.workers = 0, .blocking_threads = 1});
    runtime& running_ = *rt_;
};

TEST_F(RuntimeLentAtItsEnd, ABlockingFunctionMayJoinATask) {
    auto const got = in_the_end([this] { return *running_.spawn(answer()).blocking_join(); });
    EXPECT_EQ(got, 42);
}

TEST_F(RuntimeLentAtItsEnd, ABlockingFunctionMayJoinATaskThatIsStopped) {
    auto sleeper = []() -> task<int> {
        co_await sleep_for(24h);
        co_return 0;
    };
    auto const got =
        in_the_end([&] { return running_.spawn(sleeper()).blocking_join().has_value(); });
    EXPECT_EQ(got, false);
}

TEST_F(RuntimeLentAtItsEnd, ABlockingFunctionMayBlockOnTasks) {
    auto const got = in_the_end([this] {
        int sum = 0;
        for (int i = 0; i < 3; ++i) sum += running_.block_on(answer());
        return sum;
    });
    EXPECT_EQ(got, 3 * 42);
}

TEST(RuntimeLentDeathTest, ABlockingFunctionDoesNotEndItsRuntime) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto ends_itself = [] {
        auto rt = std::make_unique<runtime>(runtime::options{.workers = 0});
        runtime* const r = rt.get();
        (void)r->spawn_blocking([&rt] { rt.reset(); }).blocking_get();
    };
    EXPECT_DEATH(ends_itself(), "a pool is not ended by one of its own jobs");
}

// The task that is waited for waits for a thread that blocks on another one.
TEST(RuntimeLent, AShutdownLetsOneThroughThatBlocksOnATask) {
    runtime rt{{.workers = 0}};
    gate asked;
    auto asks = [](runtime* r, gate* g) -> task<int> {
        environment const env = co_await this_environment();
        stop_callback const told{env.stop, [g] { g->open(); }};
        auto blocks = r->spawn_blocking([r, g] {
            g->wait();
            return r->block_on(answer());
        });
        auto const got = co_await shield(blocks.get());
        co_return got.value_or(0);
    };
    auto asking = rt.spawn(asks(&rt, &asked));
    EXPECT_EQ(rt.shutdown(1h).tasks, 0U);
    EXPECT_EQ(asking.blocking_join(), 42);
}

}  // namespace
}  // namespace rondo
