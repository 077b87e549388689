// The scheduler as producers and consumers see it: every form of its operations, hand-off, stop and
// close. Limits are in limits_test.cpp, deadlines in deadlines_test.cpp, shares in shares_test.cpp;
// what happens in one instant is model-checked in tests/model/fair/scheduler_model_test.cpp.
#include "rondo/fair/scheduler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/fair/key.hpp"
#include "rondo/fair/results.hpp"
#include "rondo/fair/stats.hpp"
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::census;
using test::counted;
using test::manual_loop;

using numbers = scheduler<int, std::string>;

config<std::string> on(manual_loop& loop) {
    config<std::string> c;
    c.time = &loop.timers();
    return c;
}

rondo::task<numbers::dequeued> consume(numbers& s) { co_return co_await s.dequeue(); }

// --- tasks and keys --------------------------------------------------------------------------

TEST(FairScheduler, ATaskIsDeliveredWithAllThatWasSaidOfIt) {
    manual_loop loop;
    numbers s{on(loop)};
    time_point const deadline = loop.now() + 1s;
    EXPECT_TRUE(s.enqueue("a", 7, {.cost = 3, .deadline = deadline, .priority = priority::low}));
    time_point const then = loop.now();
    loop.advance(5ms);
    auto const got = s.try_dequeue();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->tenant, "a");
    EXPECT_EQ(got->payload, 7);
    EXPECT_EQ(got->cost, 3U);
    EXPECT_EQ(got->priority, priority::low);
    EXPECT_EQ(got->deadline, deadline);
    EXPECT_EQ(got->enqueued_at, then);
}

TEST(FairScheduler, TasksOfATenantComeByPriorityAndThenInOrder) {
    numbers s;
    EXPECT_TRUE(s.enqueue("a", 5, {.priority = priority::low}));
    EXPECT_TRUE(s.enqueue("a", 3));
    EXPECT_TRUE(s.enqueue("a", 1, {.priority = priority::high}));
    EXPECT_TRUE(s.enqueue("a", 4));
    EXPECT_TRUE(s.enqueue("a", 2, {.priority = priority::high}));
    for (int i = 1; i <= 5; ++i) EXPECT_EQ(s.try_dequeue()->payload, i);
    EXPECT_EQ(s.try_dequeue().error(), try_dequeue_error::empty);
}

TEST(FairScheduler, AKeyIsAnIntegerAStringOrATupleOfThem) {
    scheduler<int> by_number;
    EXPECT_TRUE(by_number.enqueue(17, 1));
    EXPECT_EQ(by_number.try_dequeue()->tenant, 17U);

    using route = std::tuple<std::string, std::uint32_t>;
    scheduler<int, route> by_route;
    EXPECT_TRUE(by_route.enqueue({"acme", 1}, 1));
    EXPECT_TRUE(by_route.enqueue({"acme", 2}, 2));
    EXPECT_EQ(by_route.stats().tenants_active, 2U);
    EXPECT_EQ(by_route.try_dequeue()->tenant, (route{"acme", 1}));

    scheduler<int, std::pair<int, int>> by_pair;
    EXPECT_TRUE(by_pair.enqueue({1, 2}, 3));
    EXPECT_EQ(by_pair.try_dequeue()->payload, 3);
}

// A part of a key that says how often it was copied.
struct traced {
    explicit traced(int& count) : copies(&count) {}
    traced(traced const& other) : copies(other.copies) { ++*copies; }
    traced& operator=(traced const&) = default;
    bool operator==(traced const&) const = default;
    int* copies;
};

}  // namespace

template <>
struct key_hash<traced> {
    std::size_t operator()(traced const&) const noexcept { return 1; }
};

namespace {

TEST(FairScheduler, HashingAPairCopiesNeitherPart) {
    int copies = 0;
    using pair = std::pair<traced, traced>;
    using tuple = std::tuple<traced, traced>;
    pair const both{traced{copies}, traced{copies}};
    tuple const same{both};
    copies = 0;
    EXPECT_EQ(key_hash<pair>{}(both), key_hash<tuple>{}(same));
    EXPECT_EQ(copies, 0);
}

TEST(FairScheduler, APayloadThatOnlyMovesIsNeitherLostNorKept) {
    census all;
    {
        scheduler<counted> s;
        EXPECT_TRUE(s.enqueue(1, counted{all, 1}));
        EXPECT_TRUE(s.enqueue(1, counted{all, 2}));
        auto const got = s.try_dequeue();
        ASSERT_TRUE(got);
        EXPECT_EQ(got->payload.number, 1);
        EXPECT_EQ(all.alive(), 2);
    }
    EXPECT_EQ(all.alive(), 0);
}

// --- consumers that wait ---------------------------------------------------------------------

TEST(FairScheduler, ATaskIsHandedToTheConsumerThatWaitedFirst) {
    manual_loop loop;
    numbers s{on(loop)};
    auto first = spawn(loop, consume(s));
    auto second = spawn(loop, consume(s));
    loop.run_ready();
    EXPECT_TRUE(s.enqueue("a", 1));
    EXPECT_EQ(s.try_dequeue().error(), try_dequeue_error::empty);  // it is in hand
    EXPECT_EQ(loop.run_ready(), 1U);                               // one task wakes one
    EXPECT_TRUE(first.ended());
    EXPECT_FALSE(second.ended());
    EXPECT_EQ(first.blocking_join()->value().payload, 1);
    s.close();
    loop.run_ready();
    EXPECT_EQ(second.blocking_join()->error(), dequeue_error::closed);
}

TEST(FairScheduler, AConsumerThatStopsWhileItWaitsLosesNoTask) {
    manual_loop loop;
    numbers s{on(loop)};
    auto first = spawn(loop, consume(s));
    auto second = spawn(loop, consume(s));
    loop.run_ready();
    first.request_stop();
    EXPECT_TRUE(s.enqueue("a", 1));
    loop.run_ready();
    EXPECT_FALSE(first.blocking_join().has_value());
    EXPECT_EQ(second.blocking_join()->value().payload, 1);
}

TEST(FairScheduler, AConsumerThatWasHandedATaskBeforeItsStopHasIt) {
    manual_loop loop;
    numbers s{on(loop)};
    auto consumer = spawn(loop, consume(s));
    loop.run_ready();
    EXPECT_TRUE(s.enqueue("a", 1));
    consumer.request_stop();
    loop.run_ready();
    EXPECT_EQ(consumer.blocking_join()->value().payload, 1);
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

fragile wait_at(numbers& s) { (void)co_await s.dequeue(); }

TEST(FairScheduler, AConsumerThatIsDestroyedWhileItWaitsLosesNoTask) {
    numbers s;
    fragile const gone = wait_at(s);
    gone.frame.destroy();
    EXPECT_TRUE(s.enqueue("a", 1));
    EXPECT_EQ(s.try_dequeue()->payload, 1);
}

TEST(FairScheduler, ATaskThatItsConsumerCannotTakeAnyMoreIsFirstAgainAndKeptItsPlace) {
    manual_loop loop;
    config<std::string> c = on(loop);
    c.max_global = 2;
    numbers s{std::move(c)};
    std::optional<executor::scope> const here{std::in_place, &loop};  // where it would resume
    fragile const gone = wait_at(s);
    EXPECT_TRUE(s.enqueue("a", 1));
    EXPECT_TRUE(s.enqueue("a", 2));
    EXPECT_FALSE(s.enqueue("a", 3));  // what is in hand takes room
    gone.frame.destroy();             // the loop is not run: the wake-up reaches nobody
    EXPECT_FALSE(s.enqueue("a", 3));
    EXPECT_EQ(s.try_dequeue()->payload, 1);
    EXPECT_EQ(s.try_dequeue()->payload, 2);
}

TEST(FairScheduler, ATaskThatComesBackTooLateIsNotDeliveredToAnother) {
    manual_loop loop;
    std::vector<disposition> told;
    numbers s{on(loop), [&](disposition how, numbers::task const&) { told.push_back(how); }};
    executor::scope const here{&loop};  // where they would resume; it is not run
    fragile const gone = wait_at(s);
    fragile const next = wait_at(s);
    EXPECT_TRUE(s.enqueue("a", 1, {.deadline = loop.now() + 1ms}));
    loop.pass(2ms);
    gone.frame.destroy();
    EXPECT_EQ(told, (std::vector{disposition::expired}));
    EXPECT_EQ(s.stats().queued, 0U);
    next.frame.destroy();
    EXPECT_EQ(told.size(), 1U);
}

TEST(FairScheduler, EveryFormOfDequeueGivesTheTaskTheEndOrTheReason) {
    manual_loop loop;
    numbers s{on(loop)};
    stop_source asked;
    asked.request_stop();
    EXPECT_TRUE(s.enqueue("a", 1));
    EXPECT_EQ(s.blocking_dequeue()->payload, 1);
    EXPECT_EQ(s.blocking_dequeue(asked.token()).error(), dequeue_error::stopped);
    EXPECT_EQ(s.blocking_dequeue_until(time_point{}).error(), dequeue_error::timed_out);
    EXPECT_EQ(s.blocking_dequeue_for(0s).error(), dequeue_error::timed_out);

    auto const forms = [](numbers& from, stop_token t) -> rondo::task<std::vector<dequeue_error>> {
        std::vector<dequeue_error> all;
        auto const stopped = co_await from.dequeue(t);
        all.push_back(stopped.error());
        auto const late = co_await from.dequeue_until(time_point{});
        all.push_back(late.error());
        auto const too_late = co_await from.dequeue_for(10ms);
        all.push_back(too_late.error());
        from.close();
        auto const closed = co_await from.dequeue();
        all.push_back(closed.error());
        co_return all;
    };
    auto waits = spawn(loop, forms(s, asked.token()));
    loop.advance(20ms);
    EXPECT_EQ(*waits.blocking_join(),
              (std::vector{dequeue_error::stopped, dequeue_error::timed_out,
                           dequeue_error::timed_out, dequeue_error::closed}));
    EXPECT_EQ(s.try_dequeue().error(), try_dequeue_error::closed);
}

TEST(FairScheduler, DeliveriesAreASequenceThatEndsWithTheDrain) {
    numbers s;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(s.enqueue("a", i));
    s.close_drain();
    auto const sum = [](numbers& from) -> rondo::task<int> {
        int total = 0;
        for (;;) {
            auto next = co_await from.dequeue();
            if (!next) break;
            total += next->payload;
        }
        co_return total;
    };
    EXPECT_EQ(block_on(sum(s)), 3);
}

TEST(FairScheduler, ADequeueThatLosesAWhenAnyTakesNothing) {
    manual_loop loop;
    numbers one{on(loop)};
    numbers other{on(loop)};
    auto const race = [](numbers& a, numbers& b) -> rondo::task<std::size_t> {
        auto const winner = co_await when_any(a.dequeue(), b.dequeue());
        co_return winner.index();
    };
    auto racing = spawn(loop, race(one, other));
    loop.run_ready();
    EXPECT_TRUE(other.enqueue("a", 2));
    loop.run_ready();
    EXPECT_EQ(*racing.blocking_join(), 1U);
    EXPECT_TRUE(one.enqueue("a", 1));
    EXPECT_EQ(one.try_dequeue()->payload, 1);
}

TEST(FairScheduler, ATaskThatADequeueFindsAndLosesAWhenAnyIsFirstAgainAndWasNotCounted) {
    manual_loop loop;
    numbers s{on(loop)};
    for (int i : {1, 2}) EXPECT_TRUE(s.enqueue("a", i));
    auto const nothing = []() -> rondo::task<void> { co_return; };
    auto racing =
        spawn(loop, when_any(when_any(sleep_for(1h), s.dequeue()), nothing()));  // settled before
    loop.run_ready();
    EXPECT_EQ(racing.blocking_join()->index(), 1U);
    auto const counted = s.stats();
    EXPECT_EQ(counted.queued, 2U);
    EXPECT_EQ(counted.dequeued, 0U);
    EXPECT_EQ(counted.queue_time.count(), 0U);
    EXPECT_TRUE(s.top(1).first.empty());
    EXPECT_EQ(s.try_dequeue()->payload, 1);
    EXPECT_EQ(s.try_dequeue()->payload, 2);
}

TEST(FairScheduler, ADequeueThatWinsAWhenAnyHasTheTaskOrTheEnd) {
    manual_loop loop;
    numbers s{on(loop)};
    auto const race = [](numbers& from) -> rondo::task<numbers::dequeued> {
        auto winner = co_await when_any(from.dequeue(), sleep_for(1h));
        co_return std::get<0>(std::move(winner));
    };
    EXPECT_TRUE(s.enqueue("a", 1));
    auto first = spawn(loop, race(s));
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value()->payload, 1);
    EXPECT_EQ(s.stats().dequeued, 1U);
    s.close();
    auto second = spawn(loop, race(s));
    loop.run_ready();
    EXPECT_EQ(second.blocking_join().value().error(), dequeue_error::closed);
}

TEST(FairScheduler, AForeignCoroutineConsumesToo) {
    numbers s;
    int got = 0;
    [](numbers& from, int& to) -> test::foreign {
        auto const next = co_await from.dequeue();
        to = next->payload;
    }(s, got);
    EXPECT_TRUE(s.enqueue("a", 4));
    EXPECT_EQ(got, 4);
}

void produce_and_consume(std::size_t room) {
    constexpr int each = 2'000;
    scheduler<int> s{{{.max_global = room}}};
    std::vector<int> seen(2 * each);
    {
        std::vector<std::jthread> threads;
        std::vector<std::vector<int>> got(2);
        for (std::size_t c = 0; c < 2; ++c) {
            threads.emplace_back([&s, &mine = got[c]] {
                while (auto const next = s.blocking_dequeue()) mine.push_back(next->payload);
            });
        }
        {
            std::vector<std::jthread> producers;
            for (int p = 0; p < 2; ++p) {
                producers.emplace_back([&s, p] {
                    for (int i = 0; i < each; ++i) {
                        EXPECT_TRUE(
                            s.blocking_enqueue(static_cast<std::uint64_t>(i % 7), p * each + i));
                    }
                });
            }
        }
        s.close_drain();
        threads.clear();
        for (auto const& mine : got) {
            for (int const i : mine) ++seen[static_cast<std::size_t>(i)];
        }
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    fair::stats const end = s.stats();
    EXPECT_EQ(end.dequeued, 2U * each);
    EXPECT_EQ(end.queued, 0U);
    EXPECT_EQ(end.tenants_known, 0U);
}

TEST(FairScheduler, ThreadsProduceAndConsumeEachTaskOnce) { produce_and_consume(64); }
TEST(FairScheduler, ThreadsWithRoomToSpareProduceAndConsumeEachTaskOnce) {
    produce_and_consume(1024);
}

// --- cancel ----------------------------------------------------------------------------------

TEST(FairScheduler, ACancelledTaskIsReportedAndNotDelivered) {
    std::vector<std::pair<disposition, int>> told;
    numbers s{{},
              [&](disposition how, numbers::task const& t) { told.emplace_back(how, t.payload); }};
    auto const first = s.enqueue_with_handle("a", 1);
    auto const second = s.enqueue_with_handle("a", 2);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(s.cancel(*first), cancel_result::cancelled);
    EXPECT_EQ(s.cancel(*first), cancel_result::not_found);
    EXPECT_EQ(s.try_dequeue()->payload, 2);
    EXPECT_EQ(s.cancel(*second), cancel_result::not_found);
    EXPECT_EQ(told, (std::vector{std::pair{disposition::cancelled, 1}}));
}

TEST(FairScheduler, AHandleOfATaskThatHasGoneDoesNotCancelAnother) {
    numbers s;
    auto const first = s.enqueue_with_handle("a", 1);
    EXPECT_EQ(s.try_dequeue()->payload, 1);
    auto const second = s.enqueue_with_handle("a", 2);  // in the same slot
    EXPECT_NE(*first, *second);
    EXPECT_EQ(s.cancel(*first), cancel_result::not_found);
    EXPECT_EQ(s.try_dequeue()->payload, 2);
}

// (What can be told apart of two tables of handles: how often their slots were used.)
TEST(FairScheduler, AHandleThatCameToNothingIsUsedAgain) {
    auto c = config<std::string>{};
    c.entitlement_of = [](std::string const& tenant) -> entitlement {
        if (tenant == "unknown") throw std::out_of_range{"no such tenant"};
        return {};
    };
    numbers throws{c};
    numbers cancels{c};
    for (int i = 0; i < 3; ++i) {
        EXPECT_THROW((void)throws.enqueue_with_handle("unknown", i), std::out_of_range);
        EXPECT_EQ(cancels.cancel(*cancels.enqueue_with_handle("a", i)), cancel_result::cancelled);
    }
    EXPECT_EQ(*throws.enqueue_with_handle("a", 3), *cancels.enqueue_with_handle("a", 3));
}

TEST(FairScheduler, ATaskInTheHandsOfAConsumerIsNotCancelled) {
    manual_loop loop;
    numbers s{on(loop)};
    auto consumer = spawn(loop, consume(s));
    loop.run_ready();
    auto const h = s.enqueue_with_handle("a", 1);
    EXPECT_EQ(s.cancel(*h), cancel_result::not_found);
    loop.run_ready();
    EXPECT_EQ(consumer.blocking_join()->value().payload, 1);
}

TEST(FairScheduler, ATaskThatWasHandedOnCanBeCancelledAgain) {
    manual_loop loop;
    numbers s{on(loop)};
    executor::scope const here{&loop};  // where it would resume; it is not run
    fragile const gone = wait_at(s);
    auto const h = s.enqueue_with_handle("a", 1);
    ASSERT_TRUE(h);
    EXPECT_EQ(s.cancel(*h), cancel_result::not_found);
    gone.frame.destroy();
    EXPECT_EQ(s.cancel(*h), cancel_result::cancelled);
    EXPECT_EQ(s.cancel(*h), cancel_result::not_found);
    EXPECT_EQ(s.stats().cancelled, 1U);
}

// --- close -----------------------------------------------------------------------------------

TEST(FairScheduler, CloseImmediateReturnsWhatIsQueuedAndRefusesWhatComes) {
    std::vector<int> returned;
    numbers s{{}, [&](disposition how, numbers::task const& t) {
                  EXPECT_EQ(how, disposition::returned);
                  returned.push_back(t.payload);
              }};
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(s.enqueue("a", i));
    s.close_immediate();
    EXPECT_EQ(returned.size(), 200U);
    EXPECT_EQ(s.try_dequeue().error(), try_dequeue_error::closed);
    auto const late = s.enqueue("a", 7);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().why, enqueue_error::closed);
    EXPECT_EQ(late.error().payload, 7);
    EXPECT_EQ(s.stats().tenants_known, 0U);
}

TEST(FairScheduler, CloseImmediateAfterADrainReturnsTheRest) {
    int returned = 0;
    numbers s{{}, [&](disposition, numbers::task const&) { ++returned; }};
    EXPECT_TRUE(s.enqueue("a", 1));
    s.close_drain();
    s.close_immediate();
    s.close_drain();  // says no more than what was said
    EXPECT_EQ(returned, 1);
    EXPECT_EQ(s.try_dequeue().error(), try_dequeue_error::closed);
}

TEST(FairScheduler, ADrainWaitsForATaskThatIsInHand) {
    manual_loop loop;
    numbers s{on(loop)};
    auto first = spawn(loop, consume(s));
    auto second = spawn(loop, consume(s));
    loop.run_ready();
    EXPECT_TRUE(s.enqueue("a", 1));
    s.close_drain();
    EXPECT_EQ(s.try_dequeue().error(), try_dequeue_error::empty);  // not yet
    loop.run_ready();
    EXPECT_EQ(first.blocking_join()->value().payload, 1);
    EXPECT_EQ(second.blocking_join()->error(), dequeue_error::closed);
}

TEST(FairScheduler, ItIsNotFinishedWhileATaskIsInHandHoweverItWasClosed) {
    manual_loop loop;
    numbers s{on(loop)};
    auto consumer = spawn(loop, consume(s));
    loop.run_ready();
    EXPECT_TRUE(s.enqueue("a", 1));
    s.close_immediate();
    EXPECT_FALSE(s.is_finished());
    loop.run_ready();
    EXPECT_TRUE(s.is_finished());
    EXPECT_EQ(consumer.blocking_join()->value().payload, 1);
}

TEST(FairScheduler, AnObserverMayUseTheScheduler) {
    numbers* again = nullptr;
    numbers s{{}, [&](disposition how, numbers::task const& t) {
                  if (how == disposition::cancelled) {
                      EXPECT_TRUE(again->enqueue(t.tenant, t.payload + 1));
                  }
              }};
    again = &s;
    auto const h = s.enqueue_with_handle("a", 1);
    EXPECT_EQ(s.cancel(*h), cancel_result::cancelled);
    EXPECT_EQ(s.try_dequeue()->payload, 2);
}

// --- what cannot be --------------------------------------------------------------------------

std::string refusal(config<std::string> c) {
    try {
        numbers const s{std::move(c)};
    } catch (std::invalid_argument const& e) {
        return e.what();
    }
    return "";
}

TEST(FairConfig, AnErrorNamesTheField) {
    EXPECT_EQ(refusal({}), "");
    config<std::string> c;
    c.shards = 0;
    EXPECT_EQ(refusal(c), "rondo::fair: shards is from 1 to 4096");
    c = {};
    c.max_global = 0;
    EXPECT_EQ(refusal(c), "rondo::fair: max_global is at least 1");
    c = {};
    c.max_per_tenant = 0;
    EXPECT_EQ(refusal(c), "rondo::fair: max_per_tenant is at least 1");
    c = {};
    c.quantum = 0;
    EXPECT_EQ(refusal(c), "rondo::fair: quantum is from 1 to 10^12");
    c = {};
    c.patience = -1s;
    EXPECT_EQ(refusal(c), "rondo::fair: patience is not negative");
    c = {};
    c.tenants = {{"a", {.weight = 0}}};
    EXPECT_EQ(refusal(c), "rondo::fair: weight is from 1 to 10^6");
    c = {};
    c.tenants = {{"a", {.when_full = backpressure::evict_longest}}};
    EXPECT_EQ(refusal(c), "rondo::fair: when_full is evict_longest for all tenants or for none");
}

TEST(FairConfig, ACostAPriorityAndAWeightThatCannotBeAreRefusedByName) {
    numbers s;
    EXPECT_THROW((void)s.enqueue("a", 1, {.cost = 0}), std::invalid_argument);
    EXPECT_THROW((void)s.enqueue("a", 1, {.cost = max_cost + 1}), std::invalid_argument);
    EXPECT_THROW((void)s.enqueue("a", 1, {.priority = priority{3}}), std::invalid_argument);
    EXPECT_THROW(s.set_weight("a", 0), std::invalid_argument);
    EXPECT_EQ(validate(terms{.priority = priority{3}}),
              (config_error{"priority", "is high, normal or low"}));
    EXPECT_EQ(validate(terms{.cost = 0}), (config_error{"cost", "is from 1 to 2^32 - 1"}));
    EXPECT_EQ(validate(terms{}), std::nullopt);
    EXPECT_EQ(s.stats().queued, 0U);
}

TEST(FairConfig, AFunctionThatGivesNoWeightIsRefusedAndNothingIsQueued) {
    config<std::string> c;
    c.entitlement_of = [](std::string const&) { return entitlement{.weight = 0}; };
    numbers s{std::move(c)};
    EXPECT_THROW((void)s.enqueue("a", 1), std::invalid_argument);
    EXPECT_EQ(s.stats().queued, 0U);
    EXPECT_EQ(s.stats().tenants_known, 0U);
}

}  // namespace
}  // namespace rondo::fair
