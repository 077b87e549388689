// Shutdown: who is told, who has answered, and who is still awaited. What happens when they meet in
// one instant is model-checked in tests/model/sync/shutdown_model_test.cpp.
#include "rondo/sync/shutdown.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using shutdown::notification;
using shutdown::notifier;
using shutdown::receive_error;
using shutdown::send_error;
using shutdown::subscription;
using shutdown::unanswered;
using test::foreign;
using test::manual_loop;

using names = std::vector<std::string>;
using received = std::expected<notification, receive_error>;
using collected = std::expected<void, unanswered>;

void drop(subscription& s) { [[maybe_unused]] subscription const gone = std::move(s); }

task<received> receive(subscription& s) { co_return co_await s.receive(); }
task<void> collect(notifier& n) { co_await n.collect_acknowledgements(); }
task<void> collect_dropped(notifier& n) { co_await n.collect_dropped(); }

// --- sending and receiving -------------------------------------------------------------------

TEST(Shutdown, EverySubscriptionIsReachedAndCounted) {
    notifier n;
    auto a = n.subscribe(), b = n.subscribe();
    EXPECT_EQ(n.subscription_count(), 2U);
    EXPECT_FALSE(a.try_receive());
    EXPECT_FALSE(n.sent());
    EXPECT_EQ(n.send(notification::shutdown), 2U);
    EXPECT_TRUE(n.sent());
    EXPECT_EQ(a.try_receive(), notification::shutdown);
    EXPECT_EQ(b.try_receive(), notification::shutdown);
}

TEST(Shutdown, SendingSaysWhenNobodyIsSubscribed) {
    notifier n;
    EXPECT_EQ(n.send().error(), send_error::nobody_subscribed);
    auto late = n.subscribe();
    EXPECT_EQ(late.try_receive(), notification::shutdown) << "a late one sees it all the same";
}

TEST(Shutdown, SendingAgainChangesNothing) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe();
    EXPECT_EQ(n.send(), 1U);
    a.acknowledge();
    auto b = n.subscribe();
    EXPECT_EQ(n.send(), 2U);
    EXPECT_TRUE(a.acknowledged()) << "an answer is not asked for again";
    EXPECT_EQ(n.unacknowledged(), names{"subscription 2"});
}

TEST(Shutdown, WhatWasReceivedIsStillThere) {
    notifier n;
    auto a = n.subscribe();
    EXPECT_TRUE(n.send());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(a.try_receive());
    EXPECT_TRUE(a.blocking_receive());
}

TEST(Shutdown, EveryoneWhoWaitsIsWoken) {
    manual_loop loop;
    notifier n;
    std::vector<subscription> all;
    for (int i = 0; i < 100; ++i) all.push_back(n.subscribe());
    std::vector<join_handle<received>> waiting;
    for (auto& s : all) waiting.push_back(spawn(loop, receive(s)));
    loop.run_ready();
    EXPECT_EQ(n.send(), 100U);
    EXPECT_FALSE(waiting[0].ended()) << "nobody runs inside send()";
    loop.run_ready();
    for (auto& t : waiting) EXPECT_EQ(t.blocking_join().value(), notification::shutdown);
}

TEST(Shutdown, WithoutANotifierNoNotificationWillCome) {
    manual_loop loop;
    std::optional<notifier> n{std::in_place};
    auto a = n->subscribe(), b = n->subscribe();
    auto t = spawn(loop, receive(a));
    loop.run_ready();
    n.reset();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), receive_error::abandoned);
    EXPECT_FALSE(b.try_receive());
    EXPECT_EQ(b.blocking_receive().error(), receive_error::abandoned);
    EXPECT_FALSE(b.token().stop_requested()) << "nobody asked";
}

TEST(Shutdown, WhatWasSentOutlivesTheNotifier) {
    std::optional<notifier> n{std::in_place};
    auto a = n->subscribe();
    EXPECT_TRUE(n->send());
    n.reset();
    EXPECT_EQ(a.try_receive(), notification::shutdown);
    EXPECT_TRUE(a.token().stop_requested());
    a.acknowledge();
}

TEST(Shutdown, ReceiveHasEveryForm) {
    manual_loop loop;
    notifier n;
    auto s = n.subscribe();
    stop_source source;
    source.request_stop();
    EXPECT_EQ(s.blocking_receive(source.token()).error(), receive_error::stopped);
    EXPECT_EQ(s.blocking_receive_for(1us).error(), receive_error::timed_out);
    EXPECT_EQ(s.blocking_receive_until(clock::now()).error(), receive_error::timed_out);
    auto t = spawn(loop, [](subscription& on, stop_token stop) -> task<int> {
        received const stopped = co_await on.receive(stop);
        received const late = co_await on.receive_for(1s);
        received const in_time = co_await on.receive_until(time_point::max());
        co_return (stopped ? 0 : 1) + (late ? 0 : 1) + (in_time ? 1 : 0);
    }(s, source.token()));
    auto stopped = spawn(loop, receive(s));
    loop.advance(1s);
    stopped.request_stop();
    loop.run_ready();
    EXPECT_EQ(stopped.blocking_join().error(), wait_error::stopped);
    EXPECT_TRUE(n.send());
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 3);
}

// --- collecting ------------------------------------------------------------------------------

TEST(Shutdown, AcknowledgementsAreCollectedFromAll) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe(), b = n.subscribe();
    EXPECT_TRUE(n.send());
    auto t = spawn(loop, collect(n));
    loop.run_ready();
    a.acknowledge();
    a.acknowledge();
    loop.run_ready();
    EXPECT_FALSE(t.ended() || n.try_collect_acknowledgements()) << "twice is once";
    b.acknowledge();
    EXPECT_FALSE(t.ended()) << "nobody runs inside acknowledge()";
    EXPECT_TRUE(n.try_collect_acknowledgements());
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    EXPECT_FALSE(n.try_collect_dropped());
}

TEST(Shutdown, ADroppedSubscriptionCountsAsAcknowledged) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe(), b = n.subscribe();
    EXPECT_TRUE(n.send());
    auto t = spawn(loop, collect(n));
    loop.run_ready();
    a.acknowledge();
    drop(b);
    loop.run_ready();
    EXPECT_TRUE(t.ended());
}

TEST(Shutdown, TheSecondFormWaitsUntilAllAreGone) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe(), b = n.subscribe();
    EXPECT_TRUE(n.send());
    auto t = spawn(loop, collect_dropped(n));
    a.acknowledge();
    b.acknowledge();
    drop(a);
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    drop(b);
    loop.run_ready();
    EXPECT_TRUE(t.ended());
    EXPECT_TRUE(n.try_collect_dropped());
}

TEST(Shutdown, WithoutSubscriptionsThereIsNothingToCollect) {
    notifier n;
    n.blocking_collect_acknowledgements();
    n.blocking_collect_dropped();
}

TEST(Shutdown, ALateSubscriptionIsWaitedForToo) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe();
    EXPECT_TRUE(n.send());
    auto t = spawn(loop, collect(n));
    loop.run_ready();
    auto late = n.subscribe();
    a.acknowledge();
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    late.acknowledge();
    loop.run_ready();
    EXPECT_TRUE(t.ended());
}

TEST(Shutdown, ADeadlineReportsWhoDidNotAnswer) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe("listener"),
         b = n.subscribe("worker with a long name, longer than short ones"), c = n.subscribe();
    EXPECT_TRUE(n.send());
    b.acknowledge();
    auto acknowledgements = spawn(loop, [](notifier& of) -> task<collected> {
        co_return co_await of.collect_acknowledgements_for(1s);
    }(n));
    auto ends = spawn(loop, [](notifier& of, time_point d) -> task<collected> {
        co_return co_await of.collect_dropped_until(d);
    }(n, loop.now() + 1s));
    loop.advance(1s);
    unanswered const missing = acknowledgements.blocking_join().value().error();
    EXPECT_EQ(missing.why, wait_error::timed_out);
    EXPECT_EQ(missing.who, (names{"listener", "subscription 3"}));
    EXPECT_EQ(
        ends.blocking_join().value().error().who,
        (names{"listener", "worker with a long name, longer than short ones", "subscription 3"}));
    EXPECT_EQ(b.name(), "worker with a long name, longer than short ones");
}

TEST(Shutdown, ATokenReportsThemToo) {
    manual_loop loop;
    notifier n;
    auto a = n.subscribe("a");
    stop_source source;
    auto t = spawn(loop, [](notifier& of, stop_token stop) -> task<collected> {
        co_return co_await of.collect_acknowledgements(stop);
    }(n, source.token()));
    auto d = spawn(loop, [](notifier& of, stop_token stop) -> task<collected> {
        co_return co_await of.collect_dropped(stop);
    }(n, source.token()));
    loop.run_ready();
    source.request_stop();
    loop.run_ready();
    unanswered const missing = t.blocking_join().value().error();
    EXPECT_EQ(missing.why, wait_error::stopped);
    EXPECT_EQ(missing.who, names{"a"});
    EXPECT_EQ(d.blocking_join().value().error().who, names{"a"});
}

TEST(Shutdown, CollectingHasEveryForm) {
    notifier n;
    auto a = n.subscribe("a");
    stop_source source;
    source.request_stop();
    EXPECT_EQ(n.blocking_collect_acknowledgements(source.token()).error().why, wait_error::stopped);
    EXPECT_EQ(n.blocking_collect_acknowledgements_for(1us).error().who, names{"a"});
    EXPECT_EQ(n.blocking_collect_acknowledgements_until(clock::now()).error().who, names{"a"});
    EXPECT_EQ(n.blocking_collect_dropped(source.token()).error().why, wait_error::stopped);
    EXPECT_EQ(n.blocking_collect_dropped_for(1us).error().who, names{"a"});
    EXPECT_EQ(n.blocking_collect_dropped_until(clock::now()).error().who, names{"a"});
    a.acknowledge();
    EXPECT_TRUE(n.blocking_collect_acknowledgements_for(1s));
    drop(a);
    EXPECT_TRUE(n.blocking_collect_dropped_for(1s));
    manual_loop loop;
    auto t = spawn(loop, [](notifier& of) -> task<bool> {
        collected const a1 = co_await of.collect_acknowledgements_until(time_point::max());
        collected const d1 = co_await of.collect_dropped_for(1s);
        co_return a1&& d1;
    }(n));
    loop.run_ready();
    EXPECT_TRUE(t.blocking_join().value());
}

TEST(Shutdown, LosingAWhenAnyLosesNothing) {
    manual_loop loop;
    notifier n;
    auto s = n.subscribe();
    notify other;
    auto t = spawn(loop, [](subscription& on, notify& o) -> task<std::size_t> {
        auto const first = co_await when_any(on.receive(), o.notified());
        co_return first.index();
    }(s, other));
    loop.run_ready();
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_TRUE(n.send());
    EXPECT_TRUE(s.try_receive());
}

// --- subscriptions ---------------------------------------------------------------------------

TEST(Shutdown, AMovedSubscriptionIsTheSame) {
    notifier n;
    auto a = n.subscribe("a");
    subscription b = std::move(a);
    EXPECT_EQ(n.subscription_count(), 1U);
    EXPECT_EQ(b.name(), "a");
    auto c = n.subscribe("c");
    c = std::move(b);
    EXPECT_EQ(n.subscription_count(), 1U);
    EXPECT_EQ(c.name(), "a");
    EXPECT_EQ(n.unacknowledged(), names{"a"});
    EXPECT_FALSE(c.acknowledged());
}

// --- stop tokens -----------------------------------------------------------------------------

TEST(Shutdown, ItsTokensAskToStopWhenItIsSent) {
    manual_loop loop;
    notifier n;
    auto s = n.subscribe();
    EXPECT_FALSE(n.token().stop_requested());
    auto const sleeps = []() -> task<void> { co_await sleep_for(1h); };
    auto t = spawn(loop, sleeps(), n.token());
    bool called = false;
    stop_callback const callback{s.token(), [&] { called = true; }};
    loop.run_ready();
    EXPECT_TRUE(n.send());
    EXPECT_TRUE(called);
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_TRUE(n.token().stop_requested());
}

TEST(Shutdown, ItFollowsTheTokenItWasMadeWith) {
    stop_source parent;
    {
        notifier n{parent.token()};
        auto s = n.subscribe();
        parent.request_stop();
        EXPECT_TRUE(n.sent());
        EXPECT_TRUE(s.try_receive());
    }
    notifier late{parent.token()};
    EXPECT_TRUE(late.sent());
}

TEST(Shutdown, AnEndedNotifierFollowsNobody) {
    stop_source parent;
    std::optional<notifier> n{std::in_place, parent.token()};
    auto s = n->subscribe();
    n.reset();
    parent.request_stop();
    EXPECT_FALSE(s.try_receive());
}

// --- other worlds ----------------------------------------------------------------------------

TEST(Shutdown, ThreadsTasksAndForeignCoroutinesEndTogether) {
    manual_loop loop;
    notifier n;
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&ended, mine = n.subscribe()]() mutable {
            EXPECT_TRUE(mine.blocking_receive());
            ++ended;
            mine.acknowledge();
        });
    }
    auto const works = [](subscription mine, std::atomic<int>& count) -> task<void> {
        (void)co_await mine.receive();
        ++count;
    };
    auto const foreigner = [](subscription mine, std::atomic<int>& count) -> foreign {
        (void)co_await mine.receive();
        ++count;
    };
    auto t = spawn(loop, works(n.subscribe(), ended));
    foreigner(n.subscribe(), ended);
    loop.run_ready();
    EXPECT_EQ(n.send(), 5U);
    loop.run_ready();
    n.blocking_collect_acknowledgements();
    EXPECT_EQ(ended, 5);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rondo
