// The dispatcher on a loop that is stepped by hand: limits, order, failures, deadlines, ends.
#include "rondo/fair/dispatcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"
#include "support/sanitized.hpp"

#ifndef RONDO_TEST_SANITIZED

namespace {

constexpr long unlimited = -1;
constinit thread_local long blocks_left = unlimited;  // before there is no memory

}  // namespace

// (Not inlined: g++ then takes the two for a pair that does not match.)
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (blocks_left == 0) throw std::bad_alloc{};
    if (blocks_left != unlimited) --blocks_left;
    void* const memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#endif

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

using numbers = scheduler<int, std::string>;
using runs = dispatcher<int, std::string>;

config<std::string> on(manual_loop& loop) {
    config<std::string> c;
    c.time = &loop.timers();
    c.quantum = 1;
    return c;
}

// Work that takes 10 ms, and notes what it was.
runs::work note_in(std::vector<int>& done) {
    return [&done](numbers::task t) -> rondo::task<void> {
        int const n = t.payload;
        co_await sleep_for(10ms);
        done.push_back(n);
    };
}

TEST(FairDispatcher, RunsTasksInTurnAndNoMoreAtATimeThanItMay) {
    manual_loop loop;
    numbers q{on(loop)};
    std::vector<int> done;
    runs d{q, loop, 2, note_in(done)};
    for (int i : {1, 2, 3}) EXPECT_TRUE(q.enqueue("a", i));
    EXPECT_TRUE(q.enqueue("b", 4));
    loop.run_ready();
    EXPECT_EQ(d.in_flight(), 2U);
    loop.advance(10ms);
    EXPECT_EQ(done.size(), 2U);
    loop.advance(10ms);
    EXPECT_EQ(d.in_flight(), 0U);
    EXPECT_EQ(done.size(), 4U);
    EXPECT_LE(std::ranges::find(done, 4) - done.begin(), 2);  // b did not wait for all of a
    auto ended = spawn(loop, d.drain());
    loop.run_ready();
    EXPECT_TRUE(ended.ended());
    EXPECT_EQ(d.completed(), 4U);
}

TEST(FairDispatcher, ATaskThatFailsEndsAlone) {
    manual_loop loop;
    numbers q{on(loop)};
    int ran = 0;
    runs d{q, loop, 1, [&ran](numbers::task t) -> rondo::task<void> {
               ++ran;
               if (t.payload == 1) throw std::runtime_error{"no receiver"};
               co_return;
           }};
    for (int i : {0, 1, 2}) EXPECT_TRUE(q.enqueue("a", i));
    loop.run_ready();
    EXPECT_EQ(ran, 3);
    EXPECT_EQ(d.failed(), 1U);
    EXPECT_EQ(d.completed(), 2U);
    EXPECT_EQ(loop.unobserved().size(), 1U);
    auto ended = spawn(loop, d.drain());
    loop.run_ready();
    EXPECT_TRUE(ended.ended());
}

TEST(FairDispatcher, ADrainRunsWhatWasAcceptedFirst) {
    manual_loop loop;
    numbers q{on(loop)};
    std::vector<int> done;
    runs d{q, loop, 1, note_in(done)};
    for (int i : {1, 2, 3}) EXPECT_TRUE(q.enqueue("a", i));
    auto ended = spawn(loop, d.drain());
    loop.run_ready();
    EXPECT_FALSE(q.enqueue("a", 4));
    EXPECT_FALSE(ended.ended());
    loop.advance(30ms);
    EXPECT_TRUE(ended.ended());
    EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(FairDispatcher, ADrainThatWasGivenUpCanBeRepeated) {
    manual_loop loop;
    numbers q{on(loop)};
    runs d{q, loop, 2, [](numbers::task t) -> rondo::task<void> {
               clock::duration const takes = t.payload == 1 ? clock::duration{1ms} : 1h;
               co_await sleep_for(takes);
           }};
    for (int i : {1, 2}) EXPECT_TRUE(q.enqueue("a", i));
    auto patient = spawn(loop, with_timeout(d.drain(), 1s));
    loop.run_ready();
    loop.advance(1s);
    EXPECT_FALSE(patient.blocking_join().value()) << "it was given up";
    EXPECT_EQ(d.completed(), 1U) << "one lane has ended, the other works";
    d.request_stop();
    auto again = spawn(loop, d.drain());
    loop.run_ready();
    EXPECT_TRUE(again.ended());
    auto once_more = spawn(loop, d.drain());
    loop.run_ready();
    EXPECT_TRUE(once_more.ended());
}

TEST(FairDispatcher, AStopReturnsWhatIsQueuedAndStopsWhatRuns) {
    manual_loop loop;
    std::vector<int> returned;
    numbers q{on(loop), [&](disposition, numbers::task t) { returned.push_back(t.payload); }};
    std::vector<int> done;
    runs d{q, loop, 1, note_in(done)};
    for (int i : {1, 2, 3}) EXPECT_TRUE(q.enqueue("a", i));
    loop.run_ready();
    d.request_stop();
    auto ended = spawn(loop, d.drain());
    loop.run_ready();
    EXPECT_TRUE(ended.ended());
    EXPECT_TRUE(done.empty());
    EXPECT_EQ(returned, (std::vector{2, 3}));
}

TEST(FairDispatcher, ADeadlineThatPassesWhileAllAreBusyIsNoticedThen) {
    manual_loop loop;
    std::vector<std::pair<int, time_point>> expired;
    numbers q{on(loop), [&](disposition how, numbers::task t) {
                  EXPECT_EQ(how, disposition::expired);
                  expired.emplace_back(t.payload, loop.now());
              }};
    std::vector<int> done;
    time_point const begin = loop.now();
    runs d{q, loop, 1, note_in(done)};
    EXPECT_TRUE(q.enqueue("a", 1));
    loop.run_ready();
    EXPECT_TRUE(q.enqueue("a", 2, {.deadline = begin + 8ms}));
    loop.run_ready();
    EXPECT_TRUE(q.enqueue("a", 3, {.deadline = begin + 4ms}));  // earlier than the one it knows
    loop.advance(9ms);
    EXPECT_EQ(expired, (std::vector{std::pair{3, begin + 4ms + 1ns}, {2, begin + 8ms + 1ns}}));
    auto ended = spawn(loop, d.drain());
    loop.advance(1ms);
    EXPECT_TRUE(ended.ended());
}

#ifndef RONDO_TEST_SANITIZED  // sanitizers have an operator new of their own

TEST(FairDispatcher, OneForWhichThereIsNoMemoryLeavesNothingBehindThatRuns) {
    manual_loop loop;
    numbers q{on(loop)};
    std::vector<int> done;
    int failures = 0;
    for (long blocks = 0; blocks < 60; ++blocks) {
        try {
            blocks_left = blocks;
            runs d{q, loop, 3'000, note_in(done)};
            blocks_left = unlimited;
            FAIL() << "so few blocks are enough for so many lanes";
        } catch (std::bad_alloc const&) {
            ++failures;
        }
        blocks_left = unlimited;
        EXPECT_TRUE(q.enqueue("a", 1));
        loop.run_ready();
        ASSERT_EQ(q.try_dequeue()->payload, 1) << blocks;
    }
    EXPECT_EQ(failures, 60);
    EXPECT_TRUE(done.empty());
}

#endif

TEST(FairDispatcher, AThreadMayDrainIt) {
    run_loop loop;
    numbers q;
    std::vector<int> done;
    runs d{q, loop, 3, [&done](numbers::task t) -> rondo::task<void> {
               done.push_back(t.payload);
               co_return;
           }};
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(q.enqueue("a", i));
    std::jthread const other{[&] {
        d.blocking_drain();
        loop.finish();
    }};
    loop.run();
    EXPECT_EQ(done.size(), 100U);
}

}  // namespace
}  // namespace rondo::fair
