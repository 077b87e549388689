// Actors on real threads: many tellers, blocking forms, ends that race with messages.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "rondo/actor/actor.hpp"
#include "rondo/exec/runtime.hpp"
#include "unit/actor/actors.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using actor::ask_error;
using actor::tell_error;
using test::add;
using test::counter;
using test::fail;
using test::total;
using wait_until = test::pause;

TEST(ActorThreads, NothingThatManyTellIsLostOrDoubled) {
    constexpr int tellers = 4;
    constexpr int messages = 500;
    runtime pool{{.workers = 2}};
    auto [numbers, life] = actor::spawn<counter>(pool.anywhere(), {.mailbox = 8});
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < tellers; ++t) {
            threads.emplace_back([&numbers] {
                for (int i = 0; i < messages; ++i) EXPECT_TRUE(numbers.blocking_tell(add{1}));
            });
        }
    }
    EXPECT_EQ(numbers.blocking_ask(total{}), tellers * messages);
    life.drain();
    EXPECT_EQ(life.blocking_join()->received, tellers * messages + 1U);
}

TEST(ActorThreads, ABlockingTellHasALimit) {
    runtime pool{{.workers = 1}};
    notify go;
    auto [numbers, life] = actor::spawn<counter>(pool.anywhere(), {.mailbox = 1});
    EXPECT_TRUE(numbers.blocking_tell(wait_until{&go}));
    EXPECT_TRUE(numbers.blocking_tell(add{1}));  // when the first one was taken
    auto const late = numbers.blocking_tell_for(add{2}, 1ms);
    auto const too_late = numbers.blocking_tell_until(add{3}, clock::now());
    go.notify_one();
    ASSERT_FALSE(late || too_late);
    EXPECT_EQ(late.error().why, tell_error::timed_out);
    EXPECT_EQ(late.error().value.n, 2);
    EXPECT_EQ(too_late.error().value.n, 3);
    EXPECT_EQ(numbers.blocking_ask_until(total{}, time_point::max()), 1);
    life.drain();
    EXPECT_TRUE(life.blocking_join());
}

TEST(ActorThreads, ABlockingAskHasALimit) {
    runtime pool{{.workers = 1}};
    notify go;
    auto [numbers, life] = actor::spawn<counter>(pool.anywhere());
    EXPECT_TRUE(numbers.blocking_tell(wait_until{&go}));
    EXPECT_EQ(numbers.blocking_ask_for(total{}, 1ms).error(), ask_error::timed_out);
    go.notify_one();
    EXPECT_EQ(numbers.blocking_ask(total{}), 0);
    life.drain();
    EXPECT_TRUE(life.blocking_join());
}

// What was accepted before the drain is received, whatever the moment.
TEST(ActorThreads, ADrainThatRacesWithTellersLosesNothingThatWasAccepted) {
    runtime pool{{.workers = 2}};
    for (int round = 0; round < 50; ++round) {
        auto [numbers, life] = actor::spawn<counter>(pool.anywhere(), {.mailbox = 4});
        std::atomic<std::uint64_t> accepted{0};
        {
            std::jthread const teller{[&numbers, &accepted] {
                while (numbers.blocking_tell(add{1})) ++accepted;
            }};
            for (int i = 0; i < round; ++i) std::this_thread::yield();
            life.drain();
        }
        EXPECT_EQ(life.blocking_join()->received, accepted.load());
    }
}

// Whoever asks hears something, whatever the moment.
TEST(ActorThreads, AnAskThatRacesWithAStopEnds) {
    runtime pool{{.workers = 2}};
    for (int round = 0; round < 50; ++round) {
        auto [numbers, life] = actor::spawn<counter>(pool.anywhere(), {.mailbox = 2});
        std::jthread const asker{[&numbers] {
            while (numbers.blocking_ask(add{1})) {
            }
        }};
        for (int i = 0; i < round; ++i) std::this_thread::yield();
        life.request_stop();
        EXPECT_FALSE(life.blocking_join());
    }
}

// Under thread sanitizer: the mailbox belongs to the actor, which receives meanwhile.
TEST(ActorThreads, ItsProgressIsSeenWhileItReceives) {
    static constexpr std::size_t room = 4;
    constexpr int messages = 2000;
    runtime pool{{.workers = 1}};
    auto [numbers, life] = actor::spawn<counter>(pool.anywhere(), {.mailbox = room});
    {
        std::jthread const watcher{[&its = life](std::stop_token const& end) {
            while (!end.stop_requested()) EXPECT_LE(its.progress()->waiting, room);
        }};
        for (int i = 0; i < messages; ++i) EXPECT_TRUE(numbers.blocking_tell(add{1}));
    }
    EXPECT_EQ(numbers.blocking_ask(total{}), messages);
    EXPECT_EQ(life.progress()->waiting, 0U);
    life.drain();
    EXPECT_TRUE(life.blocking_join());
}

// Says in which thread it goes.
class traced {
  public:
    explicit traced(std::atomic<int>& elsewhere) noexcept : elsewhere_(elsewhere) {}
    ~traced() {
        if (executor::current() == nullptr) ++elsewhere_;
    }
    traced(traced const&) = delete;
    traced& operator=(traced const&) = delete;

  private:
    std::atomic<int>& elsewhere_;
};
struct parcel {
    std::unique_ptr<traced> content;
};
class sleeper {
  public:
    using accepts = actor::messages<parcel>;
    task<void> receive(parcel) { co_await sleep_for(24h); }
};

// Who looks at it, again and again, would often be the last to know the mailbox.
TEST(ActorThreads, WhatItLeavesBehindGoesOnItsExecutorAlsoWhileOthersLook) {
    std::atomic<int> elsewhere{0};
    runtime pool{{.workers = 1}};
    for (int round = 0; round < 300; ++round) {
        auto [address, life] = actor::spawn<sleeper>(pool.anywhere());
        std::jthread const watcher{[&its = life](std::stop_token const& end) {
            while (!end.stop_requested()) (void)its.progress();
        }};
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(address.blocking_tell(parcel{std::make_unique<traced>(elsewhere)}));
        }
        life.request_stop();
        EXPECT_FALSE(life.blocking_join());
        EXPECT_TRUE(address.is_closed()) << "it has ended";
    }
    EXPECT_EQ(elsewhere, 0);
}

TEST(ActorThreads, FailuresUnderLoadAreOnlyTheirOwn) {
    runtime pool{{.workers = 2}};
    actor::supervisor both{pool.anywhere()};
    std::atomic<int> failures{0};
    actor::options const tough{
        .restarts = {.at_most = 1000},
        .failed = [&failures](std::exception_ptr const&, actor::after_failure) { ++failures; }};
    auto sick = both.start<counter>("sick", tough);
    auto well = both.start<counter>("well");
    for (int i = 0; i < 500; ++i) {
        EXPECT_TRUE(sick.blocking_tell(fail{}));
        EXPECT_TRUE(well.blocking_tell(add{1}));
    }
    EXPECT_EQ(well.blocking_ask(total{}), 500);
    both.drain();
    for (auto const& end : both.blocking_join()) EXPECT_EQ(end.why, actor::end_of_life::drained);
    EXPECT_EQ(failures.load(), 500);
}

}  // namespace
}  // namespace rondo
