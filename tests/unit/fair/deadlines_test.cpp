// Time: deadlines, who finds what has expired, and what the counters say of it all.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "noted.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/fair/scheduler.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;

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

TEST(FairStats, QueueTimeEndsWhenATaskIsHandedOver) {
    timed s;
    auto const consume = [](numbers& q) -> rondo::task<void> { (void)co_await q.dequeue(); };
    auto consumer = spawn(s.loop, consume(s.queue));
    s.loop.run_ready();
    EXPECT_TRUE(s.queue.enqueue("a", 1));
    s.loop.pass(5ms);  // the consumer is not run meanwhile
    s.loop.run_ready();
    EXPECT_EQ(s.queue.stats().queue_time.count(), 1U);
    EXPECT_EQ(s.queue.stats().queue_time.max(), 0U);
}

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
