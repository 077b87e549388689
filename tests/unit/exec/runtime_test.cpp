// How a runtime runs tasks: where, in whose turn, and what becomes of results and exceptions.
#include "rondo/exec/runtime.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gate.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::gate;
using test::permits;

task<int> give(int n) { co_return n; }
task<void> fail(char const* why) {
    co_await yield();
    throw std::runtime_error{why};
}
task<void> join_all(std::vector<join_handle<void>>* handles) {
    for (auto& h : *handles) (void)co_await h.join();
}
task<void> raise(std::atomic<bool>* flag) {
    flag->store(true);
    co_return;
}
task<std::thread::id> where_it_runs() { co_return std::this_thread::get_id(); }
task<executor*> which_executor() {
    co_await yield();
    co_return executor::current();
}

// With and without threads of its own.
class EveryRuntime : public testing::TestWithParam<std::size_t> {
  protected:
    runtime rt_{{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Runtime, EveryRuntime, testing::Values(0U, 1U, 3U),
                         [](auto const& of) { return std::to_string(of.param) + "Workers"; });

TEST_P(EveryRuntime, BlockOnReturnsWhatTheTaskReturns) { EXPECT_EQ(rt_.block_on(give(42)), 42); }

TEST_P(EveryRuntime, BlockOnThrowsWhatTheTaskThrows) {
    EXPECT_THROW(rt_.block_on(fail("no")), std::runtime_error);
}

TEST_P(EveryRuntime, ATaskSpawnsAndJoins) {
    auto sum = [](runtime* rt) -> task<int> {
        auto a = rt->spawn(give(1));
        auto b = rt->spawn(give(2));
        auto const left = co_await a.join();
        auto const right = co_await b.join();
        co_return left.value() + right.value();
    };
    EXPECT_EQ(rt_.block_on(sum(&rt_)), 3);
}

TEST_P(EveryRuntime, AnExceptionTravelsToTheJoiner) {
    auto join = [](runtime* rt) -> task<std::string> {
        auto h = rt->spawn(fail("for the joiner"));
        try {
            (void)co_await h.join();
        } catch (std::runtime_error const& e) {
            co_return e.what();
        }
        co_return "";
    };
    EXPECT_EQ(rt_.block_on(join(&rt_)), "for the joiner");
}

task<void> sleep_and_note(time_point from, int ms, std::vector<int>* into) {
    co_await sleep_until(from + std::chrono::milliseconds{ms});
    into->push_back(ms);
}
// They begin in one turn and count from the same moment: a thread that loses its processor between
// two of them changes nothing. (In real time: the runtime has no other clock.)
task<void> sleep_side_by_side(std::vector<int>* into) {
    time_point const from = clock::now();
    co_await when_all(sleep_and_note(from, 150, into), sleep_and_note(from, 5, into),
                      sleep_and_note(from, 15, into));
}

TEST_P(EveryRuntime, SleepsEndInTheOrderOfTheirDeadlines) {
    std::vector<int> order;  // plain: all are pinned to one worker
    std::vector<join_handle<void>> handles;
    handles.push_back(rt_.spawn_pinned_to(0, sleep_side_by_side(&order)));
    rt_.block_on(join_all(&handles));
    EXPECT_EQ(order, (std::vector{5, 15, 150}));
}

TEST_P(EveryRuntime, AThousandTasksThatWaitForEachOtherAllEnd) {
    auto relay = [](permits* from, permits* to) -> task<void> {
        for (int i = 0; i < 20; ++i) {
            auto p = co_await from->acquire();
            p.forget();
            to->release();
        }
    };
    std::vector<std::unique_ptr<permits>> places;
    for (int i = 0; i < 1000; ++i) places.push_back(std::make_unique<permits>(0));
    std::vector<join_handle<void>> handles;
    for (std::size_t i = 0; i < 1000; ++i) {
        handles.push_back(rt_.spawn(relay(places[i].get(), places[(i + 1) % 1000].get())));
    }
    places[0]->release();
    rt_.block_on(join_all(&handles));
    EXPECT_EQ(places[0]->available(), 1U) << "the permit is back where it began";
}

// --- fairness on one worker ---

task<void> always_ready(permits* p, std::atomic<bool>* over) {
    while (!over->load()) {
        auto one = co_await p->acquire();  // never waits
    }
}

TEST_P(EveryRuntime, ATaskThatIsAlwaysReadyLetsAnotherRun) {
    permits p{1};
    std::atomic<bool> over{false};
    std::vector<join_handle<void>> handles;
    handles.push_back(rt_.spawn_pinned_to(0, always_ready(&p, &over)));
    handles.push_back(rt_.spawn_pinned_to(0, raise(&over)));
    rt_.block_on(join_all(&handles));
}

TEST_P(EveryRuntime, ATimerFiresBesideATaskThatIsAlwaysReady) {
    permits p{1};
    std::atomic<bool> over{false};
    auto later_on = [](std::atomic<bool>* flag) -> task<void> {
        co_await sleep_for(2ms);
        flag->store(true);
    };
    std::vector<join_handle<void>> handles;
    handles.push_back(rt_.spawn_pinned_to(0, always_ready(&p, &over)));
    handles.push_back(rt_.spawn_pinned_to(0, later_on(&over)));
    rt_.block_on(join_all(&handles));
}

TEST_P(EveryRuntime, WhatComesFromOutsideRunsBesideTasksThatYieldForEver) {
    std::atomic<bool> over{false};
    auto yielding = [](std::atomic<bool>* flag) -> task<void> {
        while (!flag->load()) co_await yield();
    };
    std::vector<join_handle<void>> handles;
    handles.push_back(rt_.spawn(yielding(&over)));
    std::jthread const outside{[&] { rt_.spawn(raise(&over)).detach(); }};
    rt_.block_on(join_all(&handles));
}

// Two tasks that wake each other in turns go next each time, but not for ever.
task<void> half_of_a_pair(permits* from, permits* to, std::atomic<bool>* over) {
    while (!over->load()) {
        auto p = co_await from->acquire();
        p.forget();
        to->release();
    }
    to->release();
}
task<void> yield_and_raise(std::atomic<bool>* flag) {
    for (int i = 0; i < 3; ++i) co_await yield();
    flag->store(true);
}

TEST_P(EveryRuntime, APairThatWakesEachOtherLetsAThirdRun) {
    permits left{1};
    permits right{0};
    std::atomic<bool> over{false};
    std::vector<join_handle<void>> handles;
    handles.push_back(rt_.spawn(half_of_a_pair(&left, &right, &over)));
    handles.push_back(rt_.spawn(half_of_a_pair(&right, &left, &over)));
    handles.push_back(rt_.spawn(yield_and_raise(&over)));
    rt_.block_on(join_all(&handles));
}

TEST(Runtime, APairThatWakesEachOtherLetsAThirdRunThatNobodyElseCanTake) {
    runtime rt{{.workers = 2}};
    gate end_of_turn;
    gate begun;
    auto long_turn = [](gate* begins, gate* ends) -> task<void> {
        begins->open();
        ends->wait();
        co_return;
    };
    auto other_worker = rt.spawn(long_turn(&begun, &end_of_turn));
    begun.wait();
    permits left{1};
    permits right{0};
    std::atomic<bool> over{false};
    std::vector<join_handle<void>> handles;
    handles.push_back(rt.spawn(half_of_a_pair(&left, &right, &over)));
    handles.push_back(rt.spawn(half_of_a_pair(&right, &left, &over)));
    handles.push_back(rt.spawn(yield_and_raise(&over)));
    rt.block_on(join_all(&handles));
    end_of_turn.open();
    (void)other_worker.blocking_join();
}

// --- places ---

TEST(Runtime, ATaskSeesItsExecutor) {
    runtime rt{{.workers = 2}};
    EXPECT_EQ(rt.block_on(which_executor()), &rt.anywhere());
    auto pinned = [](runtime* r) -> task<executor*> {
        auto h = r->spawn_pinned_to(1, which_executor());
        auto const e = co_await h.join();
        co_return e.value();
    };
    EXPECT_EQ(rt.block_on(pinned(&rt)), &rt.worker(1));
}

TEST(Runtime, APinnedTaskStaysWithItsWorker) {
    runtime rt{{.workers = 3}};
    permits p{0};
    auto pinned = [](permits* from) -> task<std::size_t> {
        std::set<std::thread::id> seen;
        for (int i = 0; i < 100; ++i) {
            seen.insert(std::this_thread::get_id());
            auto one = co_await from->acquire();  // released by another thread
            one.forget();
            co_await yield();
        }
        co_return seen.size();
    };
    auto h = rt.spawn_pinned(pinned(&p));
    for (int i = 0; i < 100; ++i) p.release();
    EXPECT_EQ(h.blocking_join().value(), 1U);
}

TEST(Runtime, PinnedTasksFromOutsideGoToOneWorkerAfterTheOther) {
    runtime rt{{.workers = 2}};
    std::set<std::thread::id> seen;
    for (int i = 0; i < 2; ++i)
        seen.insert(rt.spawn_pinned(where_it_runs()).blocking_join().value());
    EXPECT_EQ(seen.size(), 2U);
}

TEST(Runtime, APinnedTaskOfAWorkerStaysThere) {
    runtime rt{{.workers = 3}};
    auto outer = [](runtime* r) -> task<bool> {
        auto const here = std::this_thread::get_id();
        auto h = r->spawn_pinned(where_it_runs());
        auto const there = co_await h.join();
        co_return there.value() == here;
    };
    EXPECT_TRUE(rt.spawn_pinned(outer(&rt)).blocking_join().value());
}

// A turn that does not end delays neither what waits in its worker's queue nor what comes later.
TEST(Runtime, ALongTurnDelaysNobodyElse) {
    runtime rt{{.workers = 2}};
    gate over;
    gate begun;
    auto long_turn = [](runtime* r, gate* begins, gate* ends,
                        std::vector<join_handle<int>>* into) -> task<void> {
        for (int i = 0; i < 50; ++i) into->push_back(r->spawn(give(i)));
        begins->open();
        ends->wait();  // blocks its worker, as no task should
        co_return;
    };
    std::vector<join_handle<int>> handles;
    auto h = rt.spawn(long_turn(&rt, &begun, &over, &handles));
    begun.wait();
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(handles[static_cast<std::size_t>(i)].blocking_join().value(), i);
    }
    over.open();
    (void)h.blocking_join();
}

TEST(Runtime, WithoutWorkersEverythingRunsInTheThreadThatBlocks) {
    runtime rt{{.workers = 0}};
    auto here = std::this_thread::get_id();
    auto both = [](runtime* r) -> task<bool> {
        auto a = r->spawn(where_it_runs());
        auto b = r->spawn_pinned(where_it_runs());
        auto const x = co_await a.join();
        auto const y = co_await b.join();
        co_return x.value() == y.value() && x.value() == std::this_thread::get_id();
    };
    EXPECT_TRUE(rt.block_on(both(&rt)));
    EXPECT_EQ(rt.block_on(where_it_runs()), here);
    EXPECT_EQ(rt.workers(), 1U);
}

TEST(Runtime, WithoutWorkersATaskGoesOnInTheNextBlockOn) {
    runtime rt{{.workers = 0}};
    permits p{0};
    int steps = 0;
    auto slow = [](permits* from, int* counted) -> task<void> {
        ++*counted;
        auto one = co_await from->acquire();
        ++*counted;
    };
    auto h = rt.spawn(slow(&p, &steps));
    EXPECT_EQ(steps, 0);
    auto some_turns = []() -> task<void> {
        for (int i = 0; i < 3; ++i) co_await yield();
    };
    rt.block_on(some_turns());
    EXPECT_EQ(steps, 1);
    p.release();
    rt.block_on(some_turns());
    EXPECT_EQ(steps, 2);
    EXPECT_TRUE(h.ended());
}

TEST(Runtime, WorkersAreNamed) {
    runtime rt{{.workers = 1, .name = "herald"}};
    auto name = []() -> task<std::string> {
        std::array<char, 16> n{};
        pthread_getname_np(pthread_self(), n.data(), n.size());
        co_return std::string{n.data()};
    };
    EXPECT_EQ(rt.block_on(name()), "herald-0");
}

// --- exceptions ---

TEST(Runtime, AnExceptionThatNobodyJoinsGoesToTheHook) {
    gate told;
    std::string what;
    {
        runtime rt{{.workers = 2, .on_unobserved = [&](std::exception_ptr e) {
                        try {
                            std::rethrow_exception(std::move(e));
                        } catch (std::exception const& x) {
                            what = x.what();
                        }
                        told.open();
                        throw 1;  // costs nothing but itself
                    }}};
        rt.spawn(fail("nobody")).detach();
        told.wait();
        EXPECT_EQ(rt.block_on(give(1)), 1) << "the worker goes on";
    }
    EXPECT_EQ(what, "nobody");
}

// --- blocking functions ---

TEST_P(EveryRuntime, ABlockingFunctionRunsInAThreadThatMayBlock) {
    gate g;
    auto waits = [](runtime* rt, gate* until) -> task<bool> {
        auto const here = std::this_thread::get_id();
        auto blocked = rt->spawn_blocking([until] {
            until->wait();
            return std::this_thread::get_id();
        });
        until->open();  // this worker is not the one that waits
        auto const there = co_await blocked.get();
        co_return there.value() != here;
    };
    EXPECT_TRUE(rt_.block_on(waits(&rt_, &g)));
}

TEST_P(EveryRuntime, WhatABlockingFunctionThrowsArrives) {
    auto waits = [](runtime* rt) -> task<std::string> {
        auto blocked = rt->spawn_blocking([]() -> int { throw std::runtime_error{"blocked"}; });
        try {
            (void)co_await blocked.get();
        } catch (std::runtime_error const& e) {
            co_return e.what();
        }
        co_return "";
    };
    EXPECT_EQ(rt_.block_on(waits(&rt_)), "blocked");
}

// --- numbers ---

TEST(Runtime, MeasuresWhatIsAliveAndWhatRan) {
    runtime rt{{.workers = 2}};
    permits p{0};
    auto waits = [](permits* from) -> task<void> { auto one = co_await from->acquire(); };
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 10; ++i) handles.push_back(rt.spawn(waits(&p)));
    EXPECT_EQ(rt.measure().tasks, 10U);
    p.release();
    for (auto& h : handles) (void)h.blocking_join();
    runtime::metrics const m = rt.measure();
    EXPECT_EQ(m.tasks, 0U);
    ASSERT_EQ(m.workers.size(), 2U);
    // A first turn each, and a second for each that had to wait.
    EXPECT_GE(m.workers[0].turns + m.workers[1].turns, 10U);
    EXPECT_LE(m.workers[0].turns + m.workers[1].turns, 20U);
}

// Those that are pinned are in no queue that others steal from.
TEST_P(EveryRuntime, CountsWhatIsPinnedAndWaitsForATurn) {
    auto spawn_some = [](runtime* rt) -> task<std::size_t> {
        std::vector<join_handle<int>> all;
        for (int i = 0; i < 10; ++i) all.push_back(rt->spawn_pinned(give(i)));
        std::size_t sum = 0;
        for (auto const& w : rt->measure().workers) sum += w.depth;
        for (auto& h : all) (void)co_await h.join();
        co_return sum;
    };
    EXPECT_EQ(rt_.block_on(spawn_some(&rt_)), 10U);
    for (auto const& w : rt_.measure().workers) EXPECT_EQ(w.depth, 0U);
}

TEST(Runtime, CountsWhatCameFromOutsideForAWorkerThatIsHeld) {
    runtime rt{{.workers = 2}};
    gate begun;
    gate over;
    auto hold = [](gate* b, gate* o) -> task<void> {
        b->open();
        o->wait();
        co_return;
    };
    auto holds = rt.spawn_pinned_to(1, hold(&begun, &over));
    begun.wait();
    std::vector<join_handle<int>> behind;
    for (int i = 0; i < 3; ++i) behind.push_back(rt.spawn_pinned_to(1, give(i)));
    EXPECT_EQ(rt.measure().workers[1].depth, 3U);
    over.open();
    for (auto& h : behind) (void)h.blocking_join();
    (void)holds.blocking_join();
    EXPECT_EQ(rt.measure().workers[1].depth, 0U);
}

TEST(Runtime, CountsWhatOneWorkerHasForItself) {
    runtime rt{{.workers = 1}};
    auto spawn_some = [](runtime* r) -> task<std::size_t> {
        std::vector<join_handle<int>> all;
        for (int i = 0; i < 10; ++i) all.push_back(r->spawn(give(i)));
        std::size_t const waiting = r->measure().workers[0].depth;
        for (auto& h : all) (void)co_await h.join();
        co_return waiting;
    };
    EXPECT_EQ(rt.block_on(spawn_some(&rt)), 10U);
}

// --- stress ---

TEST(RuntimeStress, TasksThatSpawnTasks) {
    runtime rt{{.workers = 4}};
    std::atomic<int> leaves{0};
    struct tree {
        static task<void> grow(runtime* rt, int depth, std::atomic<int>* leaves) {
            if (depth == 0) {
                leaves->fetch_add(1);
                co_return;
            }
            std::vector<join_handle<void>> children;
            for (int i = 0; i < 4; ++i) children.push_back(rt->spawn(grow(rt, depth - 1, leaves)));
            for (auto& c : children) (void)co_await c.join();
        }
    };
    rt.block_on(tree::grow(&rt, 6, &leaves));
    EXPECT_EQ(leaves, 4096);
}

TEST(RuntimeStress, OutsideThreadsSpawnAndWake) {
    runtime rt{{.workers = 3}};
    permits p{0};
    std::atomic<int> served{0};
    auto waits = [](permits* from, std::atomic<int>* count) -> task<void> {
        auto one = co_await from->acquire();
        one.forget();
        count->fetch_add(1);
    };
    {
        std::vector<std::jthread> outside;
        for (int t = 0; t < 3; ++t) {
            outside.emplace_back([&] {
                for (int i = 0; i < 500; ++i) {
                    rt.spawn(waits(&p, &served)).detach();
                    p.release();
                }
            });
        }
    }
    auto drained = [](std::atomic<int>* count) -> task<void> {
        while (count->load() != 1500) co_await yield();
    };
    rt.block_on(drained(&served));
}

TEST(RuntimeStress, ManyTimersDueTogetherAllFire) {
    struct counts final : timer {
        counts() noexcept
            : timer([](timer& t) noexcept { static_cast<counts&>(t).fired->count(); }) {}
        test::countdown* fired = nullptr;
    };
    constexpr int count = 100'000;
    test::countdown all{count};
    std::vector<counts> timers(count);
    runtime rt{{.workers = 2}};
    // In real time: far enough ahead for most of them to be there before.
    time_point const until = clock::now() + 200ms;
    for (counts& t : timers) {
        t.fired = &all;
        rt.anywhere().timers().add(t, until);
    }
    all.wait();
    EXPECT_GE(clock::now(), until);
}

TEST(RuntimeStress, ManyTasksSleepUntilTheSameTime) {
    runtime rt{{.workers = 2}};
    constexpr int count = 100'000;
    std::atomic<int> fired{0};
    auto sleeper = [](time_point until, std::atomic<int>* f) -> task<void> {
        co_await sleep_until(until);
        f->fetch_add(1);
    };
    time_point const until = clock::now() + 20ms;
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < count; ++i) handles.push_back(rt.spawn(sleeper(until, &fired)));
    rt.block_on(join_all(&handles));
    EXPECT_GE(clock::now(), until);
    EXPECT_EQ(fired, count);
}

TEST(RuntimeStress, RuntimesComeAndGo) {
    for (int i = 0; i < 50; ++i) {
        runtime rt{{.workers = 3}};
        auto h = rt.spawn(give(i));
        if (i % 2 == 0) {
            EXPECT_EQ(h.blocking_join().value(), i);
        }
    }
}

}  // namespace
}  // namespace rondo
