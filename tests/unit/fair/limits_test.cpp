// Room: limits, every policy of backpressure, and producers that wait.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "noted.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

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

TEST(FairLimits, TenantsAtTheirOwnLimitDoNotKeepOthersFromTheRoomInAll) {
    manual_loop loop;
    noted s{room_for(4, 2, backpressure::wait)};
    for (auto const* who : {"a", "a", "b", "b"}) EXPECT_TRUE(s.queue.enqueue(who, 0));
    std::vector<join_handle<enqueue_result<int>>> insatiable;
    for (int i = 0; i < 100; ++i) {
        insatiable.push_back(spawn(loop, produce(s.queue, i % 2 == 0 ? "a" : "b", i)));
    }
    auto quiet = spawn(loop, produce(s.queue, "quiet", 100));
    loop.run_ready();
    EXPECT_TRUE(s.queue.try_dequeue());
    loop.run_ready();
    EXPECT_TRUE(quiet.ended()) << "it was the first that waited for that";
    s.queue.close();
    loop.run_ready();
}

TEST(FairLimits, TenantsWhoseProducersWaitShareTheRoomThatIsMadeAtOnce) {
    manual_loop loop;
    auto c = room_for(3, 10, backpressure::wait);
    c.time = &loop.timers();
    noted s{c};
    for (int i : {1, 2, 3}) EXPECT_TRUE(s.queue.enqueue("x", i, {.deadline = loop.now() + 1ms}));
    std::vector<join_handle<enqueue_result<int>>> hog;
    for (int i : {4, 5, 6}) hog.push_back(spawn(loop, produce(s.queue, "hog", i)));
    auto quiet = spawn(loop, produce(s.queue, "quiet", 7));
    loop.run_ready();
    loop.pass(2ms);
    EXPECT_EQ(s.queue.advance(loop.now()), 3U);
    loop.run_ready();
    EXPECT_TRUE(quiet.ended());
    EXPECT_TRUE(hog[1].ended());
    EXPECT_FALSE(hog[2].ended());
    s.queue.close();
    loop.run_ready();
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

TEST(FairLimits, ATenantWhoseOnlyTaskIsReplacedInAWhenAnyHasItsShare) {
    manual_loop loop;
    auto c = room_for(10, 1, backpressure::drop_oldest);
    c.time = &loop.timers();
    c.quantum = 1;
    noted s{c};
    int served = 0;
    EXPECT_TRUE(s.queue.enqueue("b", 0));
    for (int i = 0; i < 1'100; ++i) {
        auto in = spawn(loop, race_in(s.queue, i, {.cost = 10}));
        loop.run_ready();
        EXPECT_TRUE(in.blocking_join().value());
        if (s.queue.try_dequeue()->tenant == "a") {
            ++served;
        } else {
            EXPECT_TRUE(s.queue.enqueue("b", i));
        }
    }
    EXPECT_NEAR(served, 100, 2);
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

TEST(FairLimits, AProducerThatWouldReplaceTheOnlyTaskAndLosesAWhenAnyLeavesNothingBehind) {
    manual_loop loop;
    noted s{room_for(1, 1, backpressure::drop_oldest)};
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    auto const nothing = []() -> rondo::task<void> { co_return; };
    auto racing =
        spawn(loop, when_any(when_any(sleep_for(1h), s.queue.enqueue_wait("a", 2)), nothing()));
    loop.run_ready();
    EXPECT_EQ(racing.blocking_join()->index(), 1U);
    EXPECT_EQ(s.told, (std::vector{report{disposition::dropped, 1}}));
    EXPECT_EQ(s.queue.stats().queued, 0U);
    EXPECT_EQ(s.queue.try_dequeue().error(), try_dequeue_error::empty);
    EXPECT_TRUE(s.queue.enqueue("b", 3)) << "its place is free again";
    EXPECT_EQ(s.drain(), std::vector{3});
    s.queue.close();
    EXPECT_EQ(s.queue.stats().tenants_known, 0U);
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

TEST(FairLimits, NobodyTakesThePlaceOfAProducerWhoseTenantsDoorIsOpenedNext) {
    manual_loop loop;
    auto c = room_for(10, 1, backpressure::wait);
    c.time = &loop.timers();
    noted s{c};
    for (auto const* who : {"a", "b"}) {
        EXPECT_TRUE(s.queue.enqueue(who, 1, {.deadline = loop.now() + 1ms}));
    }
    bool refused = false;
    [](numbers& q, bool& was_refused) -> test::foreign {  // it resumes where it is let in
        (void)co_await q.enqueue_wait("a", 2);
        auto const hurries = q.enqueue("b", 3);
        was_refused = !hurries;
    }(s.queue, refused);
    auto waits = spawn(loop, produce(s.queue, "b", 4));
    loop.run_ready();
    loop.pass(2ms);
    EXPECT_EQ(s.queue.advance(loop.now()), 2U);
    loop.run_ready();
    EXPECT_TRUE(refused);
    EXPECT_TRUE(waits.ended());
    EXPECT_EQ(s.drain(), (std::vector{2, 4}));
}

// What is in hand cannot be evicted, so their producers wait; then it is queued again, and expires.
TEST(FairLimits, EvictLongestTakesNothingForAPlaceThatAProducerOfTheSameTenantWaitsFor) {
    manual_loop loop;
    auto c = room_for(10, 1, backpressure::evict_longest);
    c.time = &loop.timers();
    noted s{c};
    auto const wait_at = [](numbers& q) -> test::owned_foreign { (void)co_await q.dequeue(); };
    test::fenced nowhere;
    std::optional<executor::scope> there{std::in_place, &nowhere};
    std::optional gone{std::array{wait_at(s.queue), wait_at(s.queue)}};
    there.reset();
    for (auto const* who : {"a", "b"}) {
        EXPECT_TRUE(s.queue.enqueue(who, 1, {.deadline = loop.now() + 1ms}));
    }
    std::optional<enqueue_error> refused;
    [](numbers& q, std::optional<enqueue_error>& why) -> test::foreign {
        (void)co_await q.enqueue_wait("b", 2);
        auto const hurries = q.enqueue("a", 3);
        if (!hurries) why = hurries.error().why;
    }(s.queue, refused);
    auto waits = spawn(loop, produce(s.queue, "a", 4));
    loop.run_ready();
    EXPECT_TRUE(s.queue.enqueue("bystander", 5));
    gone.reset();  // the last one first, so the door of "b" is opened before that of "a"
    loop.pass(2ms);
    EXPECT_EQ(s.queue.advance(loop.now()), 2U);
    loop.run_ready();
    EXPECT_EQ(refused, enqueue_error::rejected_tenant) << "there is room in all";
    EXPECT_TRUE(waits.ended());
    EXPECT_EQ(s.told, (std::vector{report{disposition::expired, 1}, {disposition::expired, 1}}));
    EXPECT_EQ(s.drain(), (std::vector{5, 2, 4}));
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

}  // namespace
}  // namespace rondo::fair
