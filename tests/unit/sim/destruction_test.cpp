#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "after.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/sim/seeds.hpp"
#include "rondo/sim/world.hpp"
#include "support/permits.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::executor;
using rondo::task;
using rondo::test::after;
using rondo::test::permits;
namespace sim = rondo::sim;

struct program {
    permits gate{0};
    std::vector<executor*> unwound_on;
    rondo::time_point cleaned_up{};

    struct witness {
        explicit witness(program& p) noexcept : noted_in(p) {}
        ~witness() { noted_in.unwound_on.push_back(executor::current()); }
        witness(witness const&) = delete;
        witness& operator=(witness const&) = delete;
        program& noted_in;
    };

    task<void> wait_at_the_gate() {
        witness const here{*this};
        permits::permit const p = co_await gate.acquire();
    }
    task<void> sleep_long() {
        witness const here{*this};
        co_await after(1000h);
    }
    task<void> two_levels_up() {
        witness const here{*this};
        co_await wait_at_the_gate();
    }
    task<void> clean_up() {
        co_await after(5s);
        rondo::environment const& env = co_await rondo::this_environment();
        cleaned_up = env.timers().now();
    }
    task<void> shielded_clean_up() {
        witness const here{*this};
        co_await rondo::shield(clean_up());
        permits::permit const p = co_await gate.acquire();
    }
    task<void> shielded_for_ever() {
        permits::permit const p = co_await rondo::shield(gate.acquire());
    }
    task<void> shielded_ticks() {
        for (;;) co_await rondo::shield(after(1s));
    }
};

class DestructionDeathTest : public testing::Test {
  protected:
    // Other tests of this process have started threads.
    DestructionDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST(Destruction, StopsAndUnwindsWhatIsAliveOnTheWorldsExecutor) {
    for (std::uint64_t const seed : sim::seeds(50)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        program p;
        executor* where = nullptr;
        {
            sim::world w{{.seed = seed}};
            where = &w;
            w.spawn(p.wait_at_the_gate()).detach();
            w.spawn(p.sleep_long()).detach();
            w.spawn(p.two_levels_up()).detach();
            EXPECT_EQ(w.run_for(1s), sim::outcome::paused);
        }
        EXPECT_EQ(p.unwound_on, std::vector<executor*>(4, where));
    }
}

TEST(Destruction, TasksThatNeverHadATurnAreRunToTheirFirstWait) {
    program p;
    {
        sim::world w;
        w.spawn(p.sleep_long()).detach();
    }
    EXPECT_EQ(p.unwound_on.size(), 1U);
}

TEST(Destruction, WaitsForAShieldedCleanUpInVirtualTime) {
    program p;
    {
        sim::world w;
        w.spawn(p.shielded_clean_up()).detach();
        EXPECT_EQ(w.run_ready(), sim::outcome::paused);
    }
    EXPECT_EQ(p.cleaned_up, rondo::time_point{5s});
    EXPECT_EQ(p.unwound_on.size(), 1U);
}

TEST(Destruction, AStopRequestUnwindsOnTheWorldAtTheNextTurn) {
    program p;
    sim::world w;
    rondo::join_handle<void> handle = w.spawn(p.two_levels_up());
    EXPECT_EQ(w.run(), sim::outcome::stuck);
    handle.request_stop();
    EXPECT_TRUE(p.unwound_on.empty()) << "never inside request_stop";
    EXPECT_EQ(w.run(), sim::outcome::finished);
    EXPECT_EQ(p.unwound_on, std::vector<executor*>(2, &w));
}

TEST_F(DestructionDeathTest, ATaskThatStopCannotReachIsAnError) {
    EXPECT_DEATH(
        {
            program p;
            sim::world w{{.seed = 77}};
            w.spawn(p.shielded_for_ever()).detach();
        },
        "seed 77.*1 live tasks.*stuck(.|\n)*shielded_for_ever(.|\n)*ends when it is stopped");
}

TEST_F(DestructionDeathTest, ATaskThatIgnoresStopWithTimersIsAnError) {
    EXPECT_DEATH(
        {
            program p;
            sim::world w{{.max_turns = 1000}};
            w.spawn(p.shielded_ticks()).detach();
        },
        "comes to an end once it is stopped");
}

TEST_F(DestructionDeathTest, APostFromAnotherThreadIsAnError) {
    EXPECT_DEATH(
        {
            program p;
            sim::world w;
            w.spawn(p.wait_at_the_gate()).detach();
            (void)w.run();
            std::thread{[&] { p.gate.release(); }}.join();
        },
        "only by the thread that made it");
}

TEST_F(DestructionDeathTest, ARunInsideARunIsAnError) {
    struct nested {
        sim::world w;
        task<void> run_it() {
            (void)w.run();
            co_return;
        }
    };
    EXPECT_DEATH(
        {
            nested n;
            EXPECT_TRUE(n.w.block_on(n.run_it()));
        },
        "not run by what runs in it");
}

}  // namespace
