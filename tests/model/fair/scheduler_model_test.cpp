// The scheduler explored: hand-off, cancel, stop, close and producers that wait, in one instant.
// Payloads are blocks of memory: one that is lost is a leak, one that is had twice a double free;
// their content is a cell: one that is seen too early is a race.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"
#include "support/model.hpp"

namespace rondo::fair {
namespace {

using check::thread;

using parcel = std::unique_ptr<cell<int>>;
using queue = scheduler<parcel, int>;

parcel pack(int n) { return std::make_unique<cell<int>>(n); }

config<int> room_for(std::size_t tasks) {
    config<int> c;
    c.max_global = tasks;
    return c;
}

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

TEST(FairModel, AWaitingConsumerGetsWhatIsEnqueued) {
    EXPECT_HOLDS([] {
        queue q;
        thread consumes{[&q] {
            auto const got = q.blocking_dequeue();
            RONDO_CHECK_EXPECT(got && *got->payload == 7);
        }};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(7)));
        consumes.join();
        RONDO_CHECK_EXPECT(q.stats().queued == 0);
    });
}

TEST(FairModel, TwoTasksGoToTwoConsumers) {
    EXPECT_HOLDS(
        [] {
            queue q;
            thread one{[&q] { RONDO_CHECK_EXPECT(q.blocking_dequeue()); }};
            thread two{[&q] { RONDO_CHECK_EXPECT(q.blocking_dequeue()); }};
            RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
            RONDO_CHECK_EXPECT(q.enqueue(2, pack(2)));
            one.join();
            two.join();
            RONDO_CHECK_EXPECT(q.stats().dequeued == 2);
        },
        1);
}

TEST(FairModel, AStoppedConsumerLosesNoTask) {
    EXPECT_HOLDS([] {
        queue q;
        stop_source stop;
        bool had = false;
        thread consumes{[&] { had = q.blocking_dequeue(stop.token()).has_value(); }};
        thread stops{[&] { stop.request_stop(); }};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(7)));
        consumes.join();
        stops.join();
        RONDO_CHECK_EXPECT(q.try_dequeue().has_value() == !had);
    });
}

TEST(FairModel, AConsumerWhoseTimeIsUpLosesNoTask) {
    EXPECT_HOLDS([] {
        queue q;
        bool had = false;
        thread consumes{[&] { had = q.blocking_dequeue_until(soon).has_value(); }};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(7)));
        consumes.join();
        RONDO_CHECK_EXPECT(q.try_dequeue().has_value() == !had);
    });
}

TEST(FairModel, CancelAndDequeueDecideOnce) {
    EXPECT_HOLDS([] {
        int cancelled = 0;
        queue q{{}, [&](disposition how, queue::task const& t) {
                    RONDO_CHECK_EXPECT(how == disposition::cancelled && *t.payload == 7);
                    ++cancelled;
                }};
        auto const h = q.enqueue_with_handle(1, pack(7));
        RONDO_CHECK_EXPECT(h.has_value());
        bool delivered = false;
        thread consumes{[&] { delivered = q.try_dequeue().has_value(); }};
        bool const took_it_back = q.cancel(*h) == cancel_result::cancelled;
        consumes.join();
        RONDO_CHECK_EXPECT(took_it_back != delivered);
        RONDO_CHECK_EXPECT(cancelled == (took_it_back ? 1 : 0));
    });
}

TEST(FairModel, CloseReturnsWhatNobodyHas) {
    EXPECT_HOLDS([] {
        int returned = 0;
        bool accepted = false;
        bool had = false;
        {
            queue q{{}, [&](disposition how, queue::task const&) {
                        RONDO_CHECK_EXPECT(how == disposition::returned);
                        ++returned;
                    }};
            thread consumes{[&] { had = q.blocking_dequeue().has_value(); }};
            thread closes{[&] { q.close_immediate(); }};
            accepted = q.enqueue(1, pack(7)).has_value();
            consumes.join();
            closes.join();
        }
        RONDO_CHECK_EXPECT(returned + (had ? 1 : 0) == (accepted ? 1 : 0));
    });
}

TEST(FairModel, ADrainDeliversWhatWasAcceptedAndThenTellsEverybody) {
    EXPECT_HOLDS([] {
        queue q;
        int had = 0;
        thread consumes{[&] {
            while (q.blocking_dequeue()) ++had;
        }};
        thread closes{[&] { q.close_drain(); }};
        bool const accepted = q.enqueue(1, pack(7)).has_value();
        closes.join();
        consumes.join();
        RONDO_CHECK_EXPECT(had == (accepted ? 1 : 0));
    });
}

TEST(FairModel, AWaitingProducerGetsTheRoomThatIsMade) {
    EXPECT_HOLDS([] {
        queue q{room_for(1)};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
        thread produces{[&q] { RONDO_CHECK_EXPECT(q.blocking_enqueue(2, pack(2))); }};
        RONDO_CHECK_EXPECT(*q.blocking_dequeue()->payload == 1);
        RONDO_CHECK_EXPECT(*q.blocking_dequeue()->payload == 2);
        produces.join();
    });
}

TEST(FairModel, RoomThatAnImpatientProducerDoesNotTakeGoesToAnother) {
    EXPECT_HOLDS(
        [] {
            queue q{room_for(1)};
            RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
            thread hurries{[&q] { (void)q.blocking_enqueue_until(2, pack(2), soon); }};
            thread waits{[&q] { RONDO_CHECK_EXPECT(q.blocking_enqueue(3, pack(3))); }};
            RONDO_CHECK_EXPECT(q.blocking_dequeue().has_value());
            hurries.join();
            if (q.stats().rejected_timeout == 0) RONDO_CHECK_EXPECT(q.blocking_dequeue());
            RONDO_CHECK_EXPECT(q.blocking_dequeue().has_value());
            waits.join();
        },
        2);
}

rondo::task<enqueue_result<parcel>> produce(queue& q, int n) {
    co_return co_await q.enqueue_wait(n, pack(n));
}

TEST(FairModel, NobodyOvertakesAProducerThatWaits) {
    EXPECT_HOLDS([] {
        test::manual_loop loop;
        queue q{room_for(1)};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
        auto waits = spawn(loop, produce(q, 2));
        loop.run_ready();
        bool overtook = false;
        thread other{[&] { overtook = q.enqueue(3, pack(3)).has_value(); }};
        RONDO_CHECK_EXPECT(q.try_dequeue().has_value());
        other.join();
        loop.run_ready();
        RONDO_CHECK_EXPECT(waits.ended() && !overtook);
    });
}

// All wait, of these tenants; then two consumers make room, one of them for one. As many are let
// in, and the first ones, of a tenant each, are among them.
void let_in_in_turn(std::vector<int> const& in_line, std::size_t places, std::size_t first,
                    int fewer) {
    EXPECT_HOLDS(
        [&in_line, places, first] {
            test::manual_loop loop;
            queue q{room_for(places)};
            for (std::size_t i = 0; i < places; ++i) RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
            std::vector<join_handle<enqueue_result<parcel>>> waiting;
            for (int const tenant : in_line) waiting.push_back(spawn(loop, produce(q, tenant)));
            loop.run_ready();
            auto makes_room = [&q] { RONDO_CHECK_EXPECT(q.try_dequeue().has_value()); };
            thread other{[&] {
                for (std::size_t i = 1; i < places; ++i) makes_room();
            }};
            makes_room();
            other.join();
            loop.run_ready();
            auto const is_in = [](auto const& one) { return one.ended(); };
            RONDO_CHECK_EXPECT(std::ranges::count_if(waiting, is_in) == std::ptrdiff_t(places));
            RONDO_CHECK_EXPECT(std::ranges::all_of(waiting | std::views::take(first), is_in));
            q.close_immediate();
            loop.run_ready();
        },
        fewer);
}

TEST(FairModel, TenantsWhoseProducersWaitAreLetInInTurnWhoeverMakesRoom) {
    let_in_in_turn({2, 3, 4}, 2, 2, 0);
}

TEST(FairModel, NobodyTakesThePlaceThatTheDoorOfAnotherTenantIsOpenedFor) {
    let_in_in_turn({2, 3, 2}, 2, 2, 0);
}

TEST(FairModel, ADoorMayBeOpenedAgainBeforeItsOpenerHasLeftIt) {
    let_in_in_turn({2, 3, 4, 2, 4}, 4, 3, 1);
}

TEST(FairModel, CloseTellsAWaitingProducerWhoKeepsItsTask) {
    EXPECT_HOLDS([] {
        queue q{room_for(1)};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
        thread produces{[&q] {
            auto const refused = q.blocking_enqueue(2, pack(2));
            RONDO_CHECK_EXPECT(!refused && refused.error().why == enqueue_error::closed);
            RONDO_CHECK_EXPECT(*refused.error().payload == 2);
        }};
        q.close_immediate();
        produces.join();
    });
}

TEST(FairModel, LimitsHoldBetweenTwoProducers) {
    EXPECT_HOLDS([] {
        queue q{room_for(1)};
        bool first = false;
        thread other{[&] { first = q.enqueue(1, pack(1)).has_value(); }};
        bool const second = q.enqueue(2, pack(2)).has_value();
        other.join();
        RONDO_CHECK_EXPECT(first != second);
    });
}

rondo::task<void> nothing() { co_return; }

// A wait that begins when the race around it is over already, and finds what it waits for.
template <class Wait>
rondo::task<void> lose(Wait w) {
    (void)co_await when_any(when_any(sleep_for(std::chrono::hours{1}), std::move(w)), nothing());
}

TEST(FairModel, WhatALoserOfWhenAnyFindsIsDeliveredToAnother) {
    EXPECT_HOLDS([] {
        test::manual_loop loop;
        queue q;
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(7)));
        auto loses = spawn(loop, lose(q.dequeue()));
        thread consumes{[&q] { RONDO_CHECK_EXPECT(*q.blocking_dequeue()->payload == 7); }};
        loop.run_ready();
        consumes.join();
        RONDO_CHECK_EXPECT(loses.ended() && q.stats().dequeued == 1);
    });
}

TEST(FairModel, WhatALoserOfWhenAnyHasInHandIsReturnedByTheClose) {
    EXPECT_HOLDS([] {
        int returned = 0;
        test::manual_loop loop;
        queue q{{}, [&](disposition how, queue::task const&) {
                    RONDO_CHECK_EXPECT(how == disposition::returned);
                    ++returned;
                }};
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(7)));
        auto loses = spawn(loop, lose(q.dequeue()));
        thread closes{[&q] { q.close_immediate(); }};
        loop.run_ready();
        closes.join();
        RONDO_CHECK_EXPECT(loses.ended() && returned == 1);
    });
}

TEST(FairModel, RoomThatALoserOfWhenAnyFindsGoesToAnother) {
    EXPECT_HOLDS([] {
        test::manual_loop loop;
        queue q{room_for(1)};
        auto loses = spawn(loop, lose(q.enqueue_wait(1, pack(1))));
        thread produces{[&q] { RONDO_CHECK_EXPECT(q.blocking_enqueue(2, pack(2))); }};
        loop.run_ready();
        produces.join();
        RONDO_CHECK_EXPECT(loses.ended() && *q.try_dequeue()->payload == 2);
    });
}

handle put(queue& q, int tenant, std::uint64_t cost) {
    return *q.enqueue_with_handle(tenant, pack(tenant), {.cost = cost});
}

// Which of two tenants that have costs of 6 and 1 queued goes for a third one: who has more for its
// weight.
int who_is_evicted(queue& q, int const& evicted) {
    for (handle const h : {put(q, 1, 6), put(q, 2, 1), put(q, 3, 1)}) (void)q.cancel(h);
    return evicted;
}

// Whatever two threads make of the weight of the first: it is the same when it comes back.
template <class Change, class Other>
void change_its_weight(Change one, Other another) {
    int evicted = 0;
    config<int> c = room_for(2);
    c.when_full = backpressure::evict_longest;
    queue q{c, [&](disposition how, queue::task const& t) {
                if (how == disposition::evicted) evicted = t.tenant;
            }};
    handle const stays = put(q, 1, 1);
    thread other{[&] { another(q); }};
    one(q);
    other.join();
    (void)q.cancel(stays);
    int const now = who_is_evicted(q, evicted);
    RONDO_CHECK_EXPECT(q.stats().tenants_known == 1);  // the third: the first is made anew
    RONDO_CHECK_EXPECT(who_is_evicted(q, evicted) == now);
}

TEST(FairModel, OfTwoWeightsSetAtOnceOneHoldsForATenantAndForItsReturn) {
    EXPECT_HOLDS([] {
        change_its_weight([](queue& q) { q.set_weight(1, 5); },
                          [](queue& q) { q.set_weight(1, 7); });
    });
}

TEST(FairModel, AWeightIsSetOrClearedForATenantAndForItsReturn) {
    EXPECT_HOLDS([] {
        change_its_weight([](queue& q) { q.clear_weight(1); },
                          [](queue& q) { q.set_weight(1, 7); });
    });
}

// Who is in the ranking is held; so is, meanwhile, who is asked for.
TEST(FairModel, ATenantThatIsAskedForIsForgottenAfterTheCloseAndNotBefore) {
    EXPECT_HOLDS([] {
        queue q;
        RONDO_CHECK_EXPECT(q.enqueue(1, pack(1)));
        RONDO_CHECK_EXPECT(q.try_dequeue().has_value());
        thread closes{[&q] { q.close_immediate(); }};
        auto const top = q.top(1);
        RONDO_CHECK_EXPECT(top.first.empty() || top.first[0].tenant == 1);
        closes.join();
        RONDO_CHECK_EXPECT(q.stats().tenants_known == 0);
    });
}

}  // namespace
}  // namespace rondo::fair
