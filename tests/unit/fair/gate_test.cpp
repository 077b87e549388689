// The gate: who passes, who waits, in which order, and how a wait ends.
#include "rondo/fair/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gate_visits.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/fair/detail/admission_word.hpp"
#include "rondo/fair/gate_limits.hpp"
#include "rondo/fair/gate_permit.hpp"
#include "support/counted_new.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;

TEST(Gate, PassesWhileThereArePlaces) {
    door g{places(2)};
    auto one = g.try_acquire(1);
    auto two = g.try_acquire(1);
    ASSERT_TRUE(one && two);
    EXPECT_EQ(g.try_acquire(2).error(), try_gate_error::no_permit);
    EXPECT_EQ(g.stats().in_flight, 2U);
    one->release();
    EXPECT_EQ(g.stats().in_flight, 1U);
    EXPECT_TRUE(g.try_acquire(2));
    gate_stats const s = g.stats();
    EXPECT_EQ(s.passed, 3U);
    EXPECT_EQ(s.admitted(), 3U);
    EXPECT_EQ(s.queued, 0U);
    EXPECT_EQ(s.max_in_flight, 2U);
}

TEST(Gate, PassingAllocatesNothingAndRemembersNobody) {
    door g{places(2)};
    test::allocation_count const during;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(g.try_acquire(i));
    EXPECT_EQ(during.count(), 0);
    EXPECT_EQ(g.stats().tenants_known, 0U);
}

TEST_F(GateTest, TryingInVainMakesNoTenant) {
    int asked = 0;
    gate_config<int> c = at_the_loop(places(1));
    c.entitlement_of = [&](int) {
        ++asked;
        return entitlement{};
    };
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    EXPECT_EQ(g.try_acquire(1).error(), try_gate_error::no_permit);
    EXPECT_EQ(asked, 0);
    auto waits = line(g, 2, 1);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(g.try_acquire(1).error(), try_gate_error::no_permit);
    g.close();
    EXPECT_EQ(g.try_acquire(1).error(), try_gate_error::closed);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(g.stats().rejected_closed, 0U);
    loop.run_ready();
}

TEST(Gate, APermitIsGivenBackOnceWhoeverHasIt) {
    door g{places(1)};
    auto one = g.try_acquire(1);
    ASSERT_TRUE(one);
    gate_permit moved = std::move(*one);
    one->release();
    EXPECT_EQ(g.stats().in_flight, 1U);
    moved.release();
    moved.release();
    EXPECT_EQ(g.stats().in_flight, 0U);
    moved = *g.try_acquire(1);
    moved = *[&] {
        moved.release();
        return g.try_acquire(2);
    }();
    EXPECT_EQ(g.stats().in_flight, 1U);
}

TEST_F(GateTest, WhoWaitsHasThePlaceThatIsGivenBack) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit v{2, {}, {}};
    enter(g, v).detach();
    EXPECT_TRUE(v.waits());
    EXPECT_EQ(g.stats().queued, 1U);
    loop.advance(3ms);
    held->release();
    EXPECT_EQ(g.try_acquire(3).error(), try_gate_error::no_permit);  // it is v's by now
    loop.run_ready();
    ASSERT_TRUE(v.in());
    EXPECT_EQ((*v.got)->waited(), 3ms);
    EXPECT_EQ(g.stats().dequeued, 1U);
    EXPECT_EQ(g.stats().queue_time.max(), 3'000'000U);
}

TEST_F(GateTest, NobodyOvertakesTheLine) {
    door g{at_the_loop(places(2))};
    auto one = g.try_acquire(1);
    auto two = g.try_acquire(1);
    visit waits{1, {}, {}};
    enter(g, waits).detach();
    EXPECT_FALSE(g.try_acquire(7));
    one->release();
    EXPECT_FALSE(g.try_acquire(7));
    loop.run_ready();
    EXPECT_TRUE(waits.in());
    two->release();
    EXPECT_TRUE(g.try_acquire(7));  // the line is gone
}

TEST_F(GateTest, OneAtomicOperationIsEnoughAgainWhenTheLineIsGone) {
    door g{at_the_loop(places(1))};
    {
        auto held = g.try_acquire(1);
        auto waited = line(g, 2, 1);
        held->release();
        loop.run_ready();
        ASSERT_TRUE(waited[0].in());
    }
    std::size_t const known = g.stats().tenants_known;
    EXPECT_TRUE(g.try_acquire(3));
    EXPECT_EQ(g.stats().tenants_known, known);  // nobody has looked who it is
}

TEST_F(GateTest, TenantsTakeTurnsByWeight) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    c.tenants = {{1, {.weight = 3}}, {2, {.weight = 1}}};
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    auto heavy = line(g, 1, 60);
    auto light = line(g, 2, 60);
    held->release();
    for (int i = 0; i < 40; ++i) {
        loop.run_ready();
        for (auto* const all : {&heavy, &light}) {
            for (visit& v : *all) {
                if (v.in()) (*v.got)->release();
            }
        }
    }
    loop.run_ready();
    ASSERT_GE(order.size(), 40U);
    EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 40, 1)), 30, 3);
    g.close();
    loop.run_ready();
}

TEST_F(GateTest, ATenantThatComesIsLetInBeforeTheBacklogOfOthers) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(9);
    auto noisy = line(g, 1, 50);
    held->release();
    loop.run_ready();
    visit quiet{2, {}, {}};
    enter(g, quiet).detach();
    (*noisy[0].got)->release();
    loop.run_ready();
    EXPECT_TRUE(quiet.in());
    g.close();
    loop.run_ready();
}

#ifndef RONDO_TEST_SANITIZED  // sanitizers have an operator new of their own

TEST_F(GateTest, TermsForWhichThereIsNoMemoryChangeNothing) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(9);
    auto waits = line(g, 1, 2);
    auto others = line(g, 2, 1);
    gate_terms<int> t;
    t.max_in_flight = 2;
    t.tenants = {{1, {.weight = 2}}};
    int failures = 0;
    for (bool done = false; !done; failures += done ? 0 : 1) {
        auto fresh = t;
        test::granted_before_it = failures;
        test::next_allocation_fails = true;
        try {
            g.reconfigure(std::move(fresh));
            done = true;
        } catch (std::bad_alloc const&) {
            EXPECT_EQ(g.stats().max_in_flight, 1U) << failures;
        }
        test::next_allocation_fails = false;
    }
    EXPECT_GE(failures, 2);
    EXPECT_EQ(g.stats().max_in_flight, 2U);
    loop.run_ready();
    EXPECT_TRUE(waits[0].in());
    g.close();
    loop.run_ready();
}

#endif

// --- refusals --------------------------------------------------------------------------------

TEST_F(GateTest, EndsAWaitWhenItsTimeIsUpNotWhenItsTurnComes) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit v{1, {}, {}};
    enter(g, v, 1, 10ms).detach();
    time_point const came = loop.now();
    loop.advance(1h);
    ASSERT_FALSE(v.waits());
    EXPECT_EQ(v.why(), gate_error::timed_out);
    EXPECT_EQ(v.at, came + 10ms);
    EXPECT_EQ(g.stats().expired, 1U);
    held->release();
    EXPECT_TRUE(g.try_acquire(2));
}

TEST_F(GateTest, MaxWaitIsForWhoSaysNothing) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_wait = 7ms;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    std::optional<gate_error> why;
    auto waits = [](door* from, std::optional<gate_error>* to) -> task<void> {
        auto const got = co_await from->acquire(1);
        if (!got) *to = got.error();
    };
    spawn(loop, waits(&g, &why)).detach();
    loop.advance(6ms);
    EXPECT_FALSE(why);
    loop.advance(1ms);
    EXPECT_EQ(why, gate_error::timed_out);
}

TEST_F(GateTest, AStoppedCallerLeavesTheLine) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    stop_source stop;
    std::optional<gate_error> why;
    auto waits = [](door* from, stop_token s, std::optional<gate_error>* to) -> task<void> {
        auto const got = co_await from->acquire(1, 1, s);
        if (!got) *to = got.error();
    };
    spawn(loop, waits(&g, stop.token(), &why)).detach();
    loop.run_ready();
    EXPECT_EQ(g.stats().queued, 1U);
    stop.request_stop();
    loop.run_ready();
    EXPECT_EQ(why, gate_error::stopped);
    EXPECT_EQ(g.stats().queued, 0U);
    EXPECT_EQ(g.stats().cancelled, 1U);
}

// Their places in line are free, so nobody counts them as queued, though they have yet to resume.
TEST_F(GateTest, WhoHasLeftTheLineIsCountedThen) {
    gate_config<int> c = at_the_loop(places(1));
    c.max_queued = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(1);
    auto waits = [](door* from, stop_token s) -> task<void> {
        (void)co_await from->acquire(1, 1, s);
    };
    std::array<stop_source, 3> sources;
    std::uint64_t left = 0;
    for (stop_source& asked : sources) {
        ++left;
        spawn(loop, waits(&g, asked.token())).detach();
        loop.run_ready();
        EXPECT_EQ(g.stats().queued, 1U);
        asked.request_stop();
        EXPECT_EQ(g.stats().queued, 0U);
        EXPECT_EQ(g.stats().cancelled, left);
    }
    visit v{1, {}, {}};
    enter(g, v, 1, 10ms).detach();
    loop.pass(11ms);
    EXPECT_EQ(g.stats().expired, 1U);
    EXPECT_EQ(g.stats().queued, 0U);
    loop.run_ready();
    EXPECT_EQ(g.stats().enqueued, 4U);
    EXPECT_EQ(g.stats().expired, 1U);
    EXPECT_EQ(g.stats().cancelled, 3U);
}

TEST_F(GateTest, ATaskThatUnwindsWhileItWaitsLeavesTheLine) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit v{2, {}, {}};
    {
        auto handle = enter(g, v);
        handle.request_stop();
        loop.run_ready();
    }
    EXPECT_TRUE(v.waits());
    EXPECT_EQ(g.stats().queued, 0U);
    held->release();
    EXPECT_TRUE(g.try_acquire(3));
}

TEST_F(GateTest, APermitThatWasGrantedBeforeAStopIsTaken) {
    door g{at_the_loop(places(1))};
    auto held = g.try_acquire(1);
    visit gone{2, {}, {}};
    visit next{3, {}, {}};
    auto handle = enter(g, gone);
    enter(g, next).detach();
    held->release();        // gone has it, and has not run yet
    handle.request_stop();  // completion beats stop: it still has it
    loop.run_ready();
    EXPECT_TRUE(gone.in());
    EXPECT_TRUE(next.waits());
    (*gone.got)->release();
    loop.run_ready();
    EXPECT_TRUE(next.in());
}

// A coroutine that may be destroyed while it waits.
struct fragile {
    struct promise_type {
        fragile get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> frame;
};

fragile wait_at(door& g, int who, std::uint64_t cost) { (void)co_await g.acquire(who, cost); }

TEST_F(GateTest, APermitThatNobodyIsLeftToTakeGoesToTheNextAndIsPaidBack) {
    gate_config<int> c = at_the_loop(places(1));
    c.quantum = 1;
    door g{std::move(c)};
    auto held = g.try_acquire(9);
    test::manual_loop elsewhere;  // it is not run
    fragile gone{};
    {
        executor::scope const here{&elsewhere};  // where it would resume
        gone = wait_at(g, 1, 10);
    }
    auto next = line(g, 1, 1, 10);
    auto others = line(g, 2, 30);
    held->release();
    for (std::size_t before = 0, i = 0; i == 0 || order.size() > before; ++i) {
        before = order.size();
        loop.run_ready();
        for (visit& v : others) {
            if (v.in()) (*v.got)->release();
        }
    }
    ASSERT_LE(order.size(), 11U);
    EXPECT_EQ(g.stats().in_flight, 1U);  // the one that is gone has it, and has not run
    gone.frame.destroy();
    EXPECT_EQ(g.stats().in_flight, 1U);
    come_and_go({&others, &next}, order.size() + 3);
    EXPECT_TRUE(next[0].in()) << "what the first one had paid is for the second";
    g.close();
    loop.run_ready();
}

// --- the word --------------------------------------------------------------------------------

TEST(AdmissionWord, WhoPassesAfterTheCountIsFullGoesThroughTheLock) {
    using detail::admission_word;
    admission_word word{2, admission_word::most_passed - 1};
    ASSERT_TRUE(word.try_pass());
    EXPECT_EQ(word.look().passed, admission_word::most_passed);
    EXPECT_FALSE(word.try_pass());
    EXPECT_TRUE(word.try_leave());
    EXPECT_FALSE(word.try_pass());
    admission_word::view const was = word.form_line();
    EXPECT_EQ(was.places, 2U);
    EXPECT_EQ(was.passed, admission_word::most_passed);
    word.dissolve(was.places);
    EXPECT_TRUE(word.try_pass());
    EXPECT_EQ(word.look().passed, 1U);
}

TEST(Gate, PlainThreadsWaitTheirTurn) {
    gate<std::string> g{[] {
        gate_config<std::string> c;
        c.max_in_flight = 2;
        return c;
    }()};
    int inside = 0;
    int most = 0;
    std::mutex lock;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, name = std::to_string(t % 2)] {
            for (int i = 0; i < 200; ++i) {
                auto const permit = g.blocking_acquire(name);
                ASSERT_TRUE(permit);
                {
                    std::lock_guard const guard{lock};
                    most = std::max(most, ++inside);
                }
                std::this_thread::yield();
                std::lock_guard const guard{lock};
                --inside;
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_LE(most, 2);
    EXPECT_EQ(g.stats().admitted(), 800U);
    EXPECT_EQ(g.stats().in_flight, 0U);
}

}  // namespace
}  // namespace rondo::fair
