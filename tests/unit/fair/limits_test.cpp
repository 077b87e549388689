// Room and time: limits, every policy of backpressure, producers that wait, deadlines, and what the
// counters say of it all.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

using numbers = scheduler<int, std::string>;
using report = std::pair<disposition, int>;

config<std::string> room_for(std::size_t in_all, std::size_t each, backpressure when_full) {
    config<std::string> c;
    c.max_global = in_all;
    c.max_per_tenant = each;
    c.when_full = when_full;
    return c;
}

// A scheduler that notes what was not delivered.
struct noted {
    explicit noted(config<std::string> c)
        : queue(std::move(c), [this](disposition how, numbers::task const& t) {
              told.emplace_back(how, t.payload);
          }) {}

    std::vector<int> drain() {
        std::vector<int> all;
        while (auto const next = queue.try_dequeue()) all.push_back(next->payload);
        return all;
    }

    std::vector<report> told;
    numbers queue;
};

// --- limits ----------------------------------------------------------------------------------

TEST(FairLimits, RejectGivesTheTaskBackAndSaysWhichLimit) {
    noted s{room_for(3, 2, backpressure::reject)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    EXPECT_TRUE(s.queue.enqueue("a", 2));
    auto const own = s.queue.enqueue("a", 3);
    ASSERT_FALSE(own);
    EXPECT_EQ(own.error().why, enqueue_error::rejected_tenant);
    EXPECT_EQ(own.error().payload, 3);
    EXPECT_TRUE(s.queue.enqueue("b", 4));
    auto const all = s.queue.enqueue("b", 5);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().why, enqueue_error::rejected_global);
    EXPECT_EQ(s.drain(), (std::vector{1, 4, 2}));
    EXPECT_TRUE(s.told.empty());
}

TEST(FairLimits, ARejectedTenantLeavesNothingBehind) {
    noted s{room_for(1, 1, backpressure::reject)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(s.queue.enqueue(std::to_string(i), i));
    EXPECT_EQ(s.queue.stats().tenants_known, 1U);
}

TEST(FairLimits, DropOldestMakesRoomAmongTheTenantsOwnOfLowestPriority) {
    noted s{room_for(4, 3, backpressure::drop_oldest)};
    EXPECT_TRUE(s.queue.enqueue("a", 1, {.priority = priority::high}));
    EXPECT_TRUE(s.queue.enqueue("a", 2));
    EXPECT_TRUE(s.queue.enqueue("a", 3));
    EXPECT_TRUE(s.queue.enqueue("a", 4));
    EXPECT_EQ(s.told, (std::vector{report{disposition::dropped, 2}}));
    EXPECT_TRUE(s.queue.enqueue("b", 5));
    EXPECT_TRUE(s.queue.enqueue("b", 6));  // no room in all: its own goes
    EXPECT_EQ(s.told.back(), (report{disposition::dropped, 5}));
    EXPECT_EQ(s.queue.enqueue("c", 7).error().why, enqueue_error::rejected_global);
}

TEST(FairLimits, DropNewestMakesRoomAmongTheTenantsOwnOfLowestPriority) {
    noted s{room_for(10, 3, backpressure::drop_newest)};
    for (int i = 1; i <= 4; ++i) EXPECT_TRUE(s.queue.enqueue("a", i));
    EXPECT_EQ(s.told, (std::vector{report{disposition::dropped, 3}}));
    EXPECT_EQ(s.drain(), (std::vector{1, 2, 4}));
}

TEST(FairLimits, EvictLongestTakesTheNewestOfLowestPriorityOfWhoHasTheMostForItsWeight) {
    config<std::string> c = room_for(6, 10, backpressure::evict_longest);
    c.tenants = {{"heavy", {.weight = 10}}};
    noted s{std::move(c)};
    EXPECT_TRUE(s.queue.enqueue("heavy", 1, {.cost = 50}));  // 5 for its weight
    EXPECT_TRUE(s.queue.enqueue("hog", 2, {.cost = 3, .priority = priority::low}));
    EXPECT_TRUE(s.queue.enqueue("hog", 3, {.cost = 3, .priority = priority::low}));
    EXPECT_TRUE(s.queue.enqueue("hog", 4, {.cost = 1, .priority = priority::high}));
    EXPECT_TRUE(s.queue.enqueue("small", 5));
    EXPECT_TRUE(s.queue.enqueue("small", 6));
    EXPECT_TRUE(s.queue.enqueue("quiet", 7));
    EXPECT_EQ(s.told, (std::vector{report{disposition::evicted, 3}}));
    EXPECT_TRUE(s.queue.enqueue("quiet", 8));  // the hog has 4 left, the heavy one 5
    EXPECT_EQ(s.told.back(), (report{disposition::evicted, 1}));
}

TEST(FairLimits, OfTwoThatHaveTheMostTheOneThatIsActiveForLongerIsEvicted) {
    noted s{room_for(4, 10, backpressure::evict_longest)};
    for (int i : {1, 2}) EXPECT_TRUE(s.queue.enqueue("first", i));
    for (int i : {3, 4}) EXPECT_TRUE(s.queue.enqueue("second", i));
    EXPECT_TRUE(s.queue.enqueue("third", 5));
    EXPECT_EQ(s.told.back().second, 2);
    EXPECT_TRUE(s.queue.enqueue("third", 6));
    EXPECT_EQ(s.told.back().second, 4);
}

TEST(FairLimits, EvictLongestFollowsWhatHasBeenServedSince) {
    noted s{room_for(8, 10, backpressure::evict_longest)};
    for (int i : {1, 2, 3, 4, 5}) EXPECT_TRUE(s.queue.enqueue("a", i));
    for (int i : {6, 7, 8}) EXPECT_TRUE(s.queue.enqueue("b", i));
    std::vector<int> served;
    while (s.queue.stats().tenants_active == 2) served.push_back(s.queue.try_dequeue()->payload);
    // One of them is empty; whoever is left has the most, whatever it had once.
    int next = 100;
    while (s.told.empty()) EXPECT_TRUE(s.queue.enqueue("c", next++));
    EXPECT_EQ(s.told.back(), (report{disposition::evicted, next - 2}));
}

TEST(FairLimits, ATenantMayHaveAPolicyOfItsOwn) {
    config<std::string> c = room_for(10, 1, backpressure::reject);
    c.tenants = {{"latest", {.when_full = backpressure::drop_oldest}}};
    noted s{std::move(c)};
    EXPECT_TRUE(s.queue.enqueue("latest", 1));
    EXPECT_TRUE(s.queue.enqueue("latest", 2));
    EXPECT_TRUE(s.queue.enqueue("other", 3));
    EXPECT_FALSE(s.queue.enqueue("other", 4));
    EXPECT_EQ(s.drain(), (std::vector{2, 3}));
}

// --- producers that wait ---------------------------------------------------------------------

rondo::task<enqueue_result<int>> produce(numbers& s, std::string tenant, int n) {
    co_return co_await s.enqueue_wait(std::move(tenant), n);
}

TEST(FairLimits, AProducerWaitsForRoomInAll) {
    manual_loop loop;
    noted s{room_for(1, 10, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    EXPECT_FALSE(s.queue.enqueue("a", 9));  // does not wait
    auto waits = spawn(loop, produce(s.queue, "a", 2));
    loop.run_ready();
    EXPECT_FALSE(waits.ended());
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);
    EXPECT_FALSE(s.queue.enqueue("b", 3));  // does not overtake
    loop.run_ready();
    EXPECT_TRUE(waits.blocking_join()->has_value());
    EXPECT_EQ(s.queue.try_dequeue()->payload, 2);
}

TEST(FairLimits, AProducerWhoseTenantIsFullHoldsUpNobodyElse) {
    manual_loop loop;
    noted s{room_for(10, 1, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto waits = spawn(loop, produce(s.queue, "a", 2));
    loop.run_ready();
    EXPECT_TRUE(s.queue.enqueue("b", 3));
    auto other = spawn(loop, produce(s.queue, "c", 4));
    loop.run_ready();
    EXPECT_TRUE(other.ended());
    EXPECT_FALSE(waits.ended());
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);
    loop.run_ready();
    EXPECT_TRUE(waits.blocking_join()->has_value());
    EXPECT_EQ(s.drain(), (std::vector{3, 4, 2}));
}

TEST(FairLimits, TenantsWhoseProducersWaitAreLetInInTurn) {
    manual_loop loop;
    noted s{room_for(1, 10, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("x", 0));
    std::vector<join_handle<enqueue_result<int>>> all;
    for (int i : {1, 2, 3}) all.push_back(spawn(loop, produce(s.queue, "hog", i)));
    all.push_back(spawn(loop, produce(s.queue, "quiet", 4)));
    loop.run_ready();
    std::vector<int> order;
    for (int i = 0; i < 5; ++i) {
        order.push_back(s.queue.try_dequeue()->payload);
        loop.run_ready();
    }
    EXPECT_EQ(order, (std::vector{0, 1, 4, 2, 3}));
}

TEST(FairLimits, AReplacementTakesThePlaceThatItMadeThoughOthersWaitForRoom) {
    manual_loop loop;
    noted s{room_for(2, 1, backpressure::drop_oldest)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    EXPECT_TRUE(s.queue.enqueue("b", 2));
    auto waits = spawn(loop, produce(s.queue, "c", 3));
    loop.run_ready();
    EXPECT_TRUE(s.queue.enqueue("a", 4));
    EXPECT_EQ(s.told, (std::vector{report{disposition::dropped, 1}}));
    EXPECT_FALSE(waits.ended());
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
        order.push_back(s.queue.try_dequeue()->payload);
        loop.run_ready();
    }
    EXPECT_EQ(order, (std::vector{4, 2, 3}));
    EXPECT_TRUE(waits.blocking_join()->has_value());
}

TEST(FairLimits, WaitIsForAsLongAsTheConfigSaysOrTheCallerDoes) {
    manual_loop loop;
    config<std::string> c = room_for(1, 1, backpressure::wait);
    c.patience = 10ms;
    c.time = &loop.timers();
    noted s{std::move(c)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto const longer = [](numbers& q) -> rondo::task<enqueue_result<int>> {
        co_return co_await q.enqueue_wait_for("b", 3, 20ms);
    };
    auto const until = [](numbers& q, time_point t) -> rondo::task<enqueue_result<int>> {
        co_return co_await q.enqueue_wait_until("c", 4, t);
    };
    auto patient = spawn(loop, produce(s.queue, "a", 2));
    auto more_patient = spawn(loop, longer(s.queue));
    auto less_patient = spawn(loop, until(s.queue, loop.now() + 5ms));
    loop.advance(9ms);
    EXPECT_FALSE(patient.ended());
    EXPECT_TRUE(less_patient.ended());
    loop.advance(2ms);
    auto const late = *patient.blocking_join();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().why, enqueue_error::timed_out);
    EXPECT_EQ(late.error().payload, 2);
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);
    loop.run_ready();
    EXPECT_TRUE(more_patient.blocking_join()->has_value());
    EXPECT_EQ(s.queue.stats().rejected_timeout, 2U);
    EXPECT_EQ(less_patient.blocking_join()->error().why, enqueue_error::timed_out);
}

TEST(FairLimits, AProducerThatStopsGetsItsTaskBackAndLeavesItsPlaceToTheNext) {
    manual_loop loop;
    noted s{room_for(1, 1, backpressure::wait)};
    stop_source asks;
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto const stoppable = [](numbers& q, stop_token t) -> rondo::task<enqueue_result<int>> {
        terms const usual{};
        co_return co_await q.enqueue_wait("b", 2, usual, t);
    };
    auto first = spawn(loop, stoppable(s.queue, asks.token()));
    auto second = spawn(loop, produce(s.queue, "b", 3));
    loop.run_ready();
    asks.request_stop();
    loop.run_ready();
    EXPECT_EQ(first.blocking_join()->error().why, enqueue_error::stopped);
    EXPECT_EQ(first.ended(), true);
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);
    loop.run_ready();
    EXPECT_TRUE(second.blocking_join()->has_value());
    EXPECT_EQ(s.drain(), (std::vector{3}));
}

TEST(FairLimits, AStoppedProducerThatWasLetInGivesItsPlaceBack) {
    manual_loop loop;
    noted s{room_for(1, 1, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto waits = spawn(loop, produce(s.queue, "b", 2));
    loop.run_ready();
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);  // the place is reserved now
    waits.request_stop();                          // too late: completion beats stop
    loop.run_ready();
    EXPECT_TRUE(waits.blocking_join()->has_value());
    EXPECT_EQ(s.drain(), (std::vector{2}));
    s.queue.close();
    EXPECT_EQ(s.queue.stats().tenants_known, 0U);  // nobody holds one
}

rondo::task<enqueue_result<int>> race_in(numbers& q, int n, terms t = {}) {
    auto winner = co_await when_any(q.enqueue_wait("a", n, t), sleep_for(1h));
    co_return std::get<0>(std::move(winner));
}

TEST(FairLimits, AProducerThatWinsAWhenAnyIsLetInAsByItself) {
    manual_loop loop;
    auto c = room_for(2, 1, backpressure::drop_oldest);
    c.time = &loop.timers();
    noted s{c};
    for (int i : {1, 2}) {
        auto in = spawn(loop, race_in(s.queue, i));
        loop.run_ready();
        EXPECT_TRUE(in.blocking_join().value());
    }
    EXPECT_EQ(s.told, (std::vector{report{disposition::dropped, 1}}));
    auto late = spawn(loop, race_in(s.queue, 3, {.deadline = loop.now() - 1ns}));
    loop.run_ready();
    EXPECT_TRUE(late.blocking_join().value());
    EXPECT_EQ(s.told.back(), (report{disposition::expired, 3})) << "it needs no room";
    EXPECT_EQ(s.drain(), std::vector{2});
    s.queue.close();
    auto closed = spawn(loop, race_in(s.queue, 4));
    loop.run_ready();
    auto const refused = closed.blocking_join().value();
    EXPECT_EQ(refused.error().why, enqueue_error::closed);
    EXPECT_EQ(refused.error().payload, 4);
}

TEST(FairLimits, AProducerThatFindsRoomAndLosesAWhenAnyIsNotLetIn) {
    manual_loop loop;
    noted s{room_for(1, 1, backpressure::wait)};
    auto const nothing = []() -> rondo::task<void> { co_return; };
    auto racing =
        spawn(loop, when_any(when_any(sleep_for(1h), s.queue.enqueue_wait("a", 1)), nothing()));
    loop.run_ready();
    EXPECT_EQ(racing.blocking_join()->index(), 1U);
    EXPECT_EQ(s.queue.stats().enqueued, 0U);
    EXPECT_TRUE(s.queue.enqueue("a", 2)) << "its place is free again";
    EXPECT_EQ(s.drain(), std::vector{2});
}

TEST(FairLimits, NobodyTakesThePlaceThatAProducerOfTheSameTenantWaitsFor) {
    manual_loop loop;
    std::vector<enqueue_error> refused;
    numbers* self = nullptr;
    numbers q{room_for(10, 1, backpressure::wait), [&](disposition, numbers::task const&) {
                  auto const hurries = self->enqueue("a", 3);  // before the other is let in
                  if (!hurries) refused.push_back(hurries.error().why);
              }};
    self = &q;
    auto const first = q.enqueue_with_handle("a", 1);
    ASSERT_TRUE(first);
    auto waits = spawn(loop, produce(q, "a", 2));
    loop.run_ready();
    EXPECT_EQ(q.cancel(*first), cancel_result::cancelled);
    loop.run_ready();
    EXPECT_TRUE(waits.blocking_join()->has_value());
    EXPECT_EQ(refused.size(), 1U);
    EXPECT_EQ(q.try_dequeue()->payload, 2);
    q.close();
}

TEST(FairLimits, AProducerIsLetInBeforeTheObserverHearsWhoMadeRoom) {
    manual_loop loop;
    bool let_in = false;
    join_handle<enqueue_result<int>>* waits = nullptr;
    numbers q{room_for(1, 1, backpressure::wait), [&](disposition, numbers::task const&) {
                  loop.run_ready();  // else one that waits here for room would wait for ever
                  let_in = waits->ended();
              }};
    auto const first = q.enqueue_with_handle("a", 1);
    ASSERT_TRUE(first);
    auto producer = spawn(loop, produce(q, "b", 2));
    waits = &producer;
    loop.run_ready();
    EXPECT_EQ(q.cancel(*first), cancel_result::cancelled);
    EXPECT_TRUE(let_in);
    EXPECT_EQ(q.try_dequeue()->payload, 2);
}

TEST(FairLimits, ProducersThatWaitAreToldWhenItIsClosed) {
    for (bool const drains : {false, true}) {
        manual_loop loop;
        noted s{room_for(2, 1, backpressure::wait)};
        EXPECT_TRUE(s.queue.enqueue("a", 1));
        EXPECT_TRUE(s.queue.enqueue("b", 2));
        auto own = spawn(loop, produce(s.queue, "a", 3));
        auto all = spawn(loop, produce(s.queue, "c", 4));
        loop.run_ready();
        if (drains) {
            s.queue.close_drain();
        } else {
            s.queue.close_immediate();
        }
        loop.run_ready();
        EXPECT_EQ(own.blocking_join()->error().why, enqueue_error::closed);
        EXPECT_EQ(all.blocking_join()->error().payload, 4);
        EXPECT_EQ(s.drain().size(), drains ? 2U : 0U);
        EXPECT_EQ(s.queue.try_dequeue().error(), try_dequeue_error::closed);
    }
}

TEST(FairLimits, ADrainIsOverWhenAProducerThatWasLetInHasGivenItsPlaceBack) {
    manual_loop loop;
    noted s{room_for(1, 1, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto waits = spawn(loop, produce(s.queue, "b", 2));
    loop.run_ready();
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);  // the place is reserved now
    s.queue.close_drain();
    EXPECT_EQ(s.queue.try_dequeue().error(), try_dequeue_error::empty);
    loop.run_ready();
    EXPECT_EQ(waits.blocking_join()->error().why, enqueue_error::closed);
    EXPECT_EQ(s.queue.try_dequeue().error(), try_dequeue_error::closed);
}

TEST(FairLimits, BlockingFormsWaitAndSayWhy) {
    noted s{room_for(1, 1, backpressure::wait)};
    stop_source asked;
    asked.request_stop();
    EXPECT_TRUE(s.queue.blocking_enqueue("a", 1));
    terms const usual{};
    auto const stopped = s.queue.blocking_enqueue("a", 2, usual, asked.token());
    EXPECT_EQ(stopped.error().why, enqueue_error::stopped);
    EXPECT_EQ(s.queue.blocking_enqueue_for("a", 2, 0s).error().why, enqueue_error::timed_out);
    EXPECT_EQ(s.queue.blocking_enqueue_until("a", 2, time_point{}).error().why,
              enqueue_error::timed_out);
    std::jthread const consumer{[&] { EXPECT_EQ(s.queue.blocking_dequeue()->payload, 1); }};
    EXPECT_TRUE(s.queue.blocking_enqueue("a", 2));
}

// --- deadlines -------------------------------------------------------------------------------

struct with_loop {
    manual_loop loop;
};
struct timed : with_loop, noted {
    explicit timed(config<std::string> c = {}) : noted(with_time(std::move(c))) {}
    config<std::string> with_time(config<std::string> c) {
        c.time = &loop.timers();
        return c;
    }
    terms in(clock::duration d) { return {.deadline = loop.now() + d}; }
};

TEST(FairDeadlines, ATaskIsDeliveredAtItsDeadlineAndNotAfterIt) {
    timed s;
    EXPECT_TRUE(s.queue.enqueue("a", 1, s.in(10ms)));
    EXPECT_TRUE(s.queue.enqueue("a", 2, s.in(10ms)));
    s.loop.pass(10ms);
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);
    s.loop.pass(1ns);
    EXPECT_EQ(s.queue.try_dequeue().error(), try_dequeue_error::empty);
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 2}}));
}

TEST(FairDeadlines, ATaskThatIsLateAlreadyIsAcceptedAndExpiresAtOnce) {
    timed s{room_for(1, 1, backpressure::reject)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto const h = s.queue.enqueue_with_handle("a", 2, s.in(-1ns));  // though there is no room
    ASSERT_TRUE(h);
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 2}}));
    EXPECT_EQ(s.queue.cancel(*h), cancel_result::not_found);
    EXPECT_EQ(s.queue.stats().enqueued, 2U);
    EXPECT_EQ(s.queue.stats().expired, 1U);
}

TEST(FairDeadlines, ATaskThatIsLateAlreadyHasTheTimeAtWhichItCame) {
    manual_loop loop;
    auto c = room_for(1, 1, backpressure::reject);
    c.time = &loop.timers();
    loop.pass(1s);
    std::vector<time_point> came;
    numbers q{c, [&](disposition, numbers::task const& t) { came.push_back(t.enqueued_at); }};
    EXPECT_TRUE(q.enqueue("a", 1, {.deadline = loop.now() - 1ns}));
    EXPECT_EQ(came, std::vector{loop.now()});
}

TEST(FairDeadlines, ATaskThatIsLateWhenItsTenantIsKnownIsNotDelivered) {
    manual_loop loop;
    auto c = room_for(10, 10, backpressure::reject);
    c.time = &loop.timers();
    c.entitlement_of = [&](std::string const&) {
        loop.pass(10ms);  // asks somewhere
        return entitlement{};
    };
    noted s{c};
    auto const consume = [](numbers& q) -> rondo::task<int> {
        auto const next = co_await q.dequeue();
        co_return next ? next->payload : -1;
    };
    auto consumer = spawn(loop, consume(s.queue));
    loop.run_ready();
    EXPECT_TRUE(s.queue.enqueue("a", 1, {.deadline = loop.now() + 5ms}));
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 1}}));
    EXPECT_TRUE(s.queue.enqueue("a", 2, {.deadline = loop.now() + 15ms}));
    loop.run_ready();
    EXPECT_EQ(*consumer.blocking_join(), 2);
}

TEST(FairDeadlines, ExpiredTasksHoldNoRoom) {
    timed s{room_for(2, 2, backpressure::reject)};
    EXPECT_TRUE(s.queue.enqueue("a", 1, s.in(1ms)));
    EXPECT_TRUE(s.queue.enqueue("a", 2, s.in(1ms)));
    EXPECT_FALSE(s.queue.enqueue("a", 3));
    s.loop.pass(2ms);
    EXPECT_TRUE(s.queue.enqueue("a", 4));
    EXPECT_EQ(s.told.size(), 2U);
}

TEST(FairDeadlines, AnEnqueueThatFindsMuchRoomFindsThemToo) {
    manual_loop loop;
    auto c = room_for(1'000, 1'000, backpressure::reject);
    c.time = &loop.timers();
    noted s{c};
    for (int i : {1, 2}) EXPECT_TRUE(s.queue.enqueue("b", i));  // the second without the lock
    for (int i : {3, 4}) EXPECT_TRUE(s.queue.enqueue("a", i, {.deadline = loop.now() + i * 1ms}));
    loop.pass(3ms);
    EXPECT_TRUE(s.queue.enqueue("b", 5));
    EXPECT_TRUE(s.told.empty());
    loop.pass(1ns);
    EXPECT_TRUE(s.queue.enqueue("b", 6));
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 3}}));
    loop.pass(2ms);
    EXPECT_TRUE(s.queue.enqueue("b", 7));
    EXPECT_EQ(s.told.size(), 2U);
}

TEST(FairDeadlines, WhoeverHoldsATimerFindsThemWithoutAnyOtherOperation) {
    timed s;
    EXPECT_EQ(s.queue.next_deadline(), std::nullopt);
    time_point const deadline = s.loop.now() + 3s;
    EXPECT_TRUE(s.queue.enqueue("a", 1, {.deadline = deadline}));
    EXPECT_TRUE(s.queue.enqueue("a", 2));
    int wakes = 0;
    while (auto const at = s.queue.next_deadline()) {
        ASSERT_LE(*at, deadline + 1ns);
        s.loop.pass(*at - s.loop.now());
        s.queue.advance(*at);
        ASSERT_LE(++wakes, 11);
    }
    EXPECT_EQ(s.loop.now(), deadline + 1ns);
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 1}}));
    EXPECT_EQ(s.queue.stats().queued, 1U);
}

TEST(FairDeadlines, RoomThatATaskLeavesWhenItExpiresLetsAProducerIn) {
    timed s{room_for(1, 1, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("a", 1, s.in(1ms)));
    auto waits = spawn(s.loop, produce(s.queue, "b", 2));
    s.loop.run_ready();
    s.loop.pass(2ms);
    EXPECT_EQ(s.queue.advance(s.loop.now()), 1U);
    s.loop.run_ready();
    EXPECT_TRUE(waits.blocking_join()->has_value());
    EXPECT_EQ(s.drain(), (std::vector{2}));
}

TEST(FairDeadlines, ATaskThatIsLateWhenItsProducerIsLetInExpires) {
    timed s{room_for(1, 1, backpressure::wait)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto const late = [](numbers& q, terms t) -> rondo::task<enqueue_result<int>> {
        co_return co_await q.enqueue_wait("b", 2, t);
    };
    auto producer = spawn(s.loop, late(s.queue, s.in(5ms)));
    auto const consume = [](numbers& q) -> rondo::task<int> {
        auto const next = co_await q.dequeue();
        co_return next ? next->payload : -1;
    };
    s.loop.run_ready();
    s.loop.pass(6ms);
    EXPECT_EQ(s.queue.try_dequeue()->payload, 1);
    manual_loop elsewhere;
    auto consumer = spawn(elsewhere, consume(s.queue));
    elsewhere.run_ready();  // it waits before the producer comes
    s.loop.run_ready();
    EXPECT_TRUE(producer.blocking_join()->has_value());  // accepted, as any that is late
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 2}}));
    EXPECT_TRUE(s.queue.enqueue("a", 3));
    elsewhere.run_ready();
    EXPECT_EQ(*consumer.blocking_join(), 3);
}

TEST(FairDeadlines, WhoAsksForFiguresOrForTheEndFindsThemToo) {
    timed s;
    for (int i : {1, 2}) EXPECT_TRUE(s.queue.enqueue("a", i, s.in(i * 1ms)));
    s.loop.pass(1ms + 1ns);
    fair::stats const now = s.queue.stats();
    EXPECT_EQ(now.expired, 1U);
    EXPECT_EQ(now.queued, 1U);
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 1}}));
    s.queue.close_drain();
    EXPECT_FALSE(s.queue.is_finished());
    s.loop.pass(1ms);
    EXPECT_TRUE(s.queue.is_finished());
    EXPECT_EQ(s.told.size(), 2U);
}

// --- counters --------------------------------------------------------------------------------

TEST(FairStats, CountersAreExact) {
    timed s{room_for(4, 2, backpressure::reject)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    EXPECT_TRUE(s.queue.enqueue("a", 2, s.in(1ms)));
    EXPECT_FALSE(s.queue.enqueue("a", 3));
    auto const h = s.queue.enqueue_with_handle("b", 4);
    EXPECT_TRUE(s.queue.enqueue("b", 5));
    EXPECT_FALSE(s.queue.enqueue("c", 6));
    s.loop.pass(5ms);
    EXPECT_EQ(s.queue.cancel(*h), cancel_result::cancelled);
    EXPECT_TRUE(s.queue.try_dequeue());
    fair::stats const now = s.queue.stats();
    counters expected;
    expected.enqueued = 4;
    expected.dequeued = 1;
    expected.expired = 1;
    expected.cancelled = 1;
    expected.rejected_global = 1;
    expected.rejected_tenant = 1;
    EXPECT_EQ(static_cast<counters const&>(now), expected);
    EXPECT_EQ(now.dropped(), 2U);
    EXPECT_EQ(now.queued, 1U);
    EXPECT_EQ(now.capacity, 4U);
    EXPECT_EQ(now.tenants_active, 1U);
    EXPECT_EQ(now.queue_time.count(), 1U);
    EXPECT_EQ(now.queue_time.max(), 5'000'000U);
    s.queue.close();
    EXPECT_FALSE(s.queue.enqueue("a", 7));
    EXPECT_EQ(s.queue.stats().returned, 1U);
    EXPECT_EQ(s.queue.stats().rejected_closed, 1U);
}

}  // namespace
}  // namespace rondo::fair
