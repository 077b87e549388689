// Tasks that producers leave without the lock, explored beside those who wait, close, count and
// forget. Each scenario begins with a tenant that is known, so that its task can be left.
#include <memory>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"
#include "support/model.hpp"

namespace rondo::fair {
namespace {

using check::thread;

using parcel = std::unique_ptr<cell<int>>;
using queue = scheduler<parcel, int>;

constexpr int known = 1;
constexpr int stranger = 2;

parcel pack(int n) { return std::make_unique<cell<int>>(n); }

config<int> room_for(std::size_t tasks) {
    config<int> c;
    c.max_global = tasks;
    return c;
}

// It has come and gone.
void get_known(queue& q) {
    RONDO_CHECK_EXPECT(q.enqueue(known, pack(0)));
    RONDO_CHECK_EXPECT(q.try_dequeue().has_value());
}

TEST(FairIntakeModel, WhatIsLeftIsFoundByAConsumerThatComesToWait) {
    EXPECT_HOLDS([] {
        queue q;
        get_known(q);
        thread consumes{[&q] {
            auto const got = q.blocking_dequeue();
            RONDO_CHECK_EXPECT(got && *got->payload == 7);
        }};
        RONDO_CHECK_EXPECT(q.enqueue(known, pack(7)));
        consumes.join();
        RONDO_CHECK_EXPECT(q.stats().queued == 0);
    });
}

TEST(FairIntakeModel, NothingCanBeLeftWhileAConsumerWaits) {
    EXPECT_HOLDS([] {
        queue q;
        get_known(q);
        thread consumes{[&q] { RONDO_CHECK_EXPECT(q.blocking_dequeue().has_value()); }};
        (void)q.advance(time_point{});  // an operation of somebody else
        RONDO_CHECK_EXPECT(q.enqueue(known, pack(7)));
        consumes.join();
    });
}

TEST(FairIntakeModel, TasksOfTwoThreadsAreTakenOnceEach) {
    EXPECT_HOLDS(
        [] {
            queue q;
            get_known(q);
            thread other{[&q] { RONDO_CHECK_EXPECT(q.enqueue(known, pack(1))); }};
            thread consumes{[&q] { RONDO_CHECK_EXPECT(q.blocking_dequeue().has_value()); }};
            RONDO_CHECK_EXPECT(q.enqueue(known, pack(2)));
            other.join();
            consumes.join();
            RONDO_CHECK_EXPECT(q.try_dequeue().has_value() && !q.try_dequeue());
        },
        2);
}

TEST(FairIntakeModel, CloseReturnsWhatWasLeft) {
    EXPECT_HOLDS([] {
        int returned = 0;
        bool accepted = false;
        {
            queue q{{}, [&](disposition how, queue::task const&) {
                        RONDO_CHECK_EXPECT(how == disposition::returned);
                        ++returned;
                    }};
            get_known(q);
            thread closes{[&] { q.close_immediate(); }};
            accepted = q.enqueue(known, pack(7)).has_value();
            closes.join();
            RONDO_CHECK_EXPECT(returned == (accepted ? 1 : 0));
            RONDO_CHECK_EXPECT(!q.enqueue(known, pack(8)));
        }
    });
}

TEST(FairIntakeModel, ADrainDeliversWhatWasLeft) {
    EXPECT_HOLDS(
        [] {
            queue q;
            get_known(q);
            int had = 0;
            thread consumes{[&] {
                while (q.blocking_dequeue()) ++had;
            }};
            thread closes{[&] { q.close_drain(); }};
            bool const accepted = q.enqueue(known, pack(7)).has_value();
            closes.join();
            consumes.join();
            RONDO_CHECK_EXPECT(had == (accepted ? 1 : 0));
        },
        2);
}

TEST(FairIntakeModel, NothingIsLeftOnceItIsClosed) {
    EXPECT_HOLDS([] {
        queue q;
        RONDO_CHECK_EXPECT(q.enqueue(known, pack(1)));
        thread closes{[&q] { q.close_drain(); }};
        closes.join();
        (void)q.advance(time_point{});  // an operation of somebody else
        RONDO_CHECK_EXPECT(!q.enqueue(known, pack(2)));
        RONDO_CHECK_EXPECT(q.try_dequeue().has_value() && !q.try_dequeue());
    });
}

TEST(FairIntakeModel, WhatIsLeftIsCounted) {
    EXPECT_HOLDS([] {
        queue q;
        get_known(q);
        thread leaves{[&q] { RONDO_CHECK_EXPECT(q.enqueue(known, pack(7))); }};
        leaves.join();
        auto const s = q.stats();
        RONDO_CHECK_EXPECT(s.queued == 1 && s.enqueued == 2 && s.tenants_active == 1);
    });
}

TEST(FairIntakeModel, WhatHasADeadlineIsNotLeftForLater) {
    EXPECT_HOLDS([] {
        int expired = 0;
        queue q{{}, [&](disposition how, queue::task const&) {
                    RONDO_CHECK_EXPECT(how == disposition::expired);
                    ++expired;
                }};
        get_known(q);
        RONDO_CHECK_EXPECT(q.enqueue(known, pack(7), {.deadline = time_point{}}));
        RONDO_CHECK_EXPECT(expired == 1);
    });
}

TEST(FairIntakeModel, TheLimitHoldsForWhatIsLeft) {
    EXPECT_HOLDS([] {
        queue q{room_for(1)};
        get_known(q);
        bool first = false;
        thread other{[&] { first = q.enqueue(known, pack(1)).has_value(); }};
        bool const second = q.enqueue(known, pack(2)).has_value();
        other.join();
        RONDO_CHECK_EXPECT(first != second);
    });
}

TEST(FairIntakeModel, PlacesAreNotGivenAgainBeforeTheirTasksHaveGone) {
    EXPECT_HOLDS([] {
        queue q{room_for(2)};
        get_known(q);
        bool third = false;
        thread leaves{[&] {
            RONDO_CHECK_EXPECT(q.enqueue(known, pack(1)));
            RONDO_CHECK_EXPECT(q.enqueue(known, pack(2)));
            third = q.enqueue(known, pack(3)).has_value();
        }};
        (void)q.advance(time_point{});  // an operation of somebody else
        leaves.join();
        RONDO_CHECK_EXPECT(!third && q.stats().queued == 2);
    });
}

TEST(FairIntakeModel, WhoComesToWaitForRoomIsNotPromisedThePlacesOfTheIntake) {
    EXPECT_HOLDS(
        [] {
            queue q{room_for(1)};
            RONDO_CHECK_EXPECT(q.enqueue(known, pack(1)));
            thread other{[&q] {
                RONDO_CHECK_EXPECT(q.try_dequeue().has_value());
                bool const left = q.enqueue(known, pack(3)).has_value();
                RONDO_CHECK_EXPECT(q.stats().queued <= 1);
                if (left) RONDO_CHECK_EXPECT(q.try_dequeue().has_value());
            }};
            RONDO_CHECK_EXPECT(q.blocking_enqueue(stranger, pack(2)));
            other.join();
        },
        1);
}

TEST(FairIntakeModel, TheLimitHoldsBetweenWhatIsLeftAndWhatIsNot) {
    EXPECT_HOLDS([] {
        queue q{room_for(2)};
        get_known(q);
        bool left = false;
        bool left_too = false;
        thread other{[&] {
            left = q.enqueue(known, pack(1)).has_value();
            left_too = q.enqueue(known, pack(2)).has_value();
        }};
        bool const brought = q.enqueue(stranger, pack(3)).has_value();
        other.join();
        RONDO_CHECK_EXPECT(int{left} + int{left_too} + int{brought} == 2);
    });
}

rondo::task<enqueue_result<parcel>> produce(queue& q, int n) {
    co_return co_await q.enqueue_wait(stranger, pack(n));
}

TEST(FairIntakeModel, NothingIsLeftPastAProducerThatWaits) {
    EXPECT_HOLDS([] {
        test::manual_loop loop;
        queue q{room_for(1)};
        RONDO_CHECK_EXPECT(q.enqueue(known, pack(1)));
        auto waits = spawn(loop, produce(q, 2));
        loop.run_ready();
        bool overtook = false;
        thread other{[&] { overtook = q.enqueue(known, pack(3)).has_value(); }};
        RONDO_CHECK_EXPECT(q.try_dequeue().has_value());
        other.join();
        loop.run_ready();
        RONDO_CHECK_EXPECT(waits.ended() && !overtook);
    });
}

// One idle tenant is remembered here, so the next that is idle makes the first be forgotten.
TEST(FairIntakeModel, ATenantForWhomSomethingWasLeftIsNotForgotten) {
    EXPECT_HOLDS([] {
        queue q;
        auto const come_and_go = [&q](int tenant) {
            auto const h = q.enqueue_with_handle(tenant, pack(0));
            RONDO_CHECK_EXPECT(h && q.cancel(*h) == cancel_result::cancelled);
        };
        come_and_go(known);
        thread other{[&] { come_and_go(stranger); }};
        RONDO_CHECK_EXPECT(q.enqueue(known, pack(7)));
        other.join();
        auto const got = q.try_dequeue();
        RONDO_CHECK_EXPECT(got && *got->payload == 7);
    });
}

}  // namespace
}  // namespace rondo::fair
