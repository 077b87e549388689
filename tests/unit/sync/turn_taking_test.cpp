// What every line of sync owes to those who stand in it, for each operation that waits. A barrier
// has no such line: those who wait at it go together, and one that is stopped is missed by all
// (barrier_test.cpp). notify_last() serves a line from its end (notify_test.cpp).
#include "support/turn_taking.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "rondo/sync/broadcast.hpp"
#include "rondo/sync/cancellation.hpp"
#include "rondo/sync/mpsc.hpp"
#include "rondo/sync/mutex.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/once_cell.hpp"
#include "rondo/sync/oneshot.hpp"
#include "rondo/sync/rwlock.hpp"
#include "rondo/sync/semaphore.hpp"
#include "rondo/sync/set_once.hpp"
#include "rondo/sync/shutdown.hpp"
#include "rondo/sync/watch.hpp"

namespace rondo {
namespace {

using test::left_over;

template <left_over Left, bool OneWaits = false>
struct line {
    static constexpr left_over left = Left;
    static constexpr bool one_waits = OneWaits;
};

struct mutex_lock : line<left_over::same> {
    auto next() { return m.lock(); }
    auto next(stop_token t) { return m.lock(t); }
    void supply() { held.reset(); }

    mutex<> m;
    decltype(m.try_lock()) held = m.try_lock();
};

struct rwlock_read : line<left_over::same> {
    auto next() { return lock.read(); }
    auto next(stop_token t) { return lock.read(t); }
    void supply() { held.reset(); }

    rwlock<int> lock;
    decltype(lock.try_write()) held = lock.try_write();
};

struct rwlock_write : line<left_over::same> {
    auto next() { return lock.write(); }
    auto next(stop_token t) { return lock.write(t); }
    void supply() { held.reset(); }

    rwlock<int> lock;
    decltype(lock.try_read()) held = lock.try_read();
};

struct semaphore_acquire : line<left_over::same> {
    auto next() { return s.acquire(); }
    auto next(stop_token t) { return s.acquire(1, t); }
    void supply() { s.add_permits(1); }

    semaphore s{0};
};

struct semaphore_acquire_two : line<left_over::same> {
    auto next() { return s.acquire(2); }
    auto next(stop_token t) { return s.acquire(2, t); }
    void supply() { s.add_permits(1); }  // the other one has accrued to the head

    semaphore s{1};
};

// Here too_much() is not there, and small() would be had but for that at the head of the line.
struct semaphore_of_two {
    auto too_much() { return s.acquire(3); }
    auto small() { return s.acquire(); }

    semaphore s{2};
};

struct rwlock_with_readers {
    auto too_much() { return lock.write(); }
    auto small() { return lock.read(); }

    rwlock<int> lock;
    decltype(lock.try_read()) held = lock.try_read();
};

struct notify_notified : line<left_over::none> {
    auto next() { return n.notified(); }
    auto next(stop_token t) { return n.notified(t); }
    void supply() { n.notify_one(); }

    notify n;
};

struct once_cell_init : line<left_over::all> {
    once_cell_init() { EXPECT_FALSE(cell.get()); }
    auto next() { return cell.get_or_init(made); }
    auto next(stop_token t) { return cell.get_or_init(made, t); }
    // Somebody initialises; when that one gives up it is the next one's right.
    void supply() { first.request_stop(), loop.run_ready(); }

    static int made() { return 1; }
    static task<void> initialise(once_cell<int>& of, notify& never) {
        auto const waits = [&never]() -> task<int> {
            co_await never.notified();
            co_return 0;
        };
        (void)co_await of.get_or_init(waits);
    }

    test::manual_loop loop;
    notify never;
    once_cell<int> cell;
    join_handle<void> first = begin();

    join_handle<void> begin() {
        auto t = spawn(loop, initialise(cell, never));
        loop.run_ready();
        return t;
    }
};

struct set_once_wait : line<left_over::all> {
    auto next() { return value.wait(); }
    auto next(stop_token t) { return value.wait(t); }
    void supply() { EXPECT_TRUE(value.set(1)); }

    set_once<int> value;
};

struct oneshot_recv : line<left_over::nothing, true> {
    auto next() { return ends.receiver.recv(); }
    auto next(stop_token t) { return ends.receiver.recv(t); }
    void supply() { EXPECT_TRUE(ends.sender.send(1)); }

    oneshot::ends<int> ends = oneshot::channel<int>();
};

struct oneshot_closed : line<left_over::all, true> {
    auto next() { return ends.sender.closed(); }
    auto next(stop_token t) { return ends.sender.closed(t); }
    void supply() { ends.receiver.close(); }

    oneshot::ends<int> ends = oneshot::channel<int>();
};

template <std::size_t Capacity>
struct full_channel {
    full_channel() {
        for (std::size_t i = 0; i < Capacity; ++i) EXPECT_TRUE(ends.sender.try_send(0));
    }

    mpsc::ends<int> ends = mpsc::channel<int>(Capacity);
};

struct mpsc_send : line<left_over::none>, full_channel<1> {
    auto next() { return ends.sender.send(1); }
    auto next(stop_token t) { return ends.sender.send(1, t); }
    void supply() { EXPECT_TRUE(ends.receiver.try_recv()); }
};

struct mpsc_reserve : line<left_over::same>, full_channel<1> {
    auto next() { return ends.sender.reserve(); }
    auto next(stop_token t) { return ends.sender.reserve(t); }
    void supply() { EXPECT_TRUE(ends.receiver.try_recv()); }
};

struct mpsc_reserve_owned : line<left_over::same>, full_channel<1> {
    auto next() { return ends.sender.reserve_owned(); }
    auto next(stop_token t) { return ends.sender.reserve_owned(t); }
    void supply() { EXPECT_TRUE(ends.receiver.try_recv()); }
};

struct mpsc_reserve_many : line<left_over::same>, full_channel<2> {
    auto next() { return ends.sender.reserve_many(2); }
    auto next(stop_token t) { return ends.sender.reserve_many(2, t); }
    void supply() {
        EXPECT_TRUE(ends.receiver.try_recv());
        EXPECT_TRUE(ends.receiver.try_recv());
    }
};

struct channel_with_room {
    channel_with_room() { EXPECT_TRUE(ends.sender.try_send(0)); }
    auto too_much() { return ends.sender.reserve_many(3); }
    auto small() { return ends.sender.send(1); }

    mpsc::ends<int> ends = mpsc::channel<int>(3);
};

struct mpsc_closed : line<left_over::all> {
    auto next() { return ends.sender.closed(); }
    auto next(stop_token t) { return ends.sender.closed(t); }
    void supply() { ends.receiver.close(); }

    mpsc::ends<int> ends = mpsc::channel<int>(1);
};

struct mpsc_recv : line<left_over::none, true> {
    auto next() { return ends.receiver.recv(); }
    auto next(stop_token t) { return ends.receiver.recv(t); }
    void supply() { EXPECT_TRUE(ends.sender.try_send(1)); }

    mpsc::ends<int> ends = mpsc::channel<int>(1);
};

struct mpsc_recv_many : line<left_over::none, true> {
    auto next() { return ends.receiver.recv_many(values, 2); }
    auto next(stop_token t) { return ends.receiver.recv_many(values, 2, t); }
    void supply() { EXPECT_TRUE(ends.sender.try_send(1)); }

    mpsc::ends<int> ends = mpsc::channel<int>(2);
    std::vector<int> values;
};

struct mpsc_unbounded_recv : line<left_over::none, true> {
    auto next() { return ends.receiver.recv(); }
    auto next(stop_token t) { return ends.receiver.recv(t); }
    void supply() { EXPECT_TRUE(ends.sender.send(1)); }

    mpsc::unbounded_ends<int> ends = mpsc::unbounded<int>();
};

struct broadcast_recv : line<left_over::none, true> {
    auto next() { return ends.receiver.recv(); }
    auto next(stop_token t) { return ends.receiver.recv(t); }
    void supply() { EXPECT_TRUE(ends.sender.send(1)); }

    broadcast::ends<int> ends = broadcast::channel<int>(2);
};

struct broadcast_closed : line<left_over::all> {
    auto next() { return ends.sender.closed(); }
    auto next(stop_token t) { return ends.sender.closed(t); }
    void supply() { auto const gone = std::move(ends.receiver); }

    broadcast::ends<int> ends = broadcast::channel<int>(2);
};

struct watch_changed : line<left_over::none, true> {
    auto next() { return ends.receiver.changed(); }
    auto next(stop_token t) { return ends.receiver.changed(t); }
    void supply() { EXPECT_TRUE(ends.sender.send(1)); }

    watch::ends<int> ends = watch::channel(0);
};

struct watch_closed : line<left_over::all> {
    auto next() { return ends.sender.closed(); }
    auto next(stop_token t) { return ends.sender.closed(t); }
    void supply() { auto const gone = std::move(ends.receiver); }

    watch::ends<int> ends = watch::channel(0);
};

struct shutdown_receive : line<left_over::all> {
    auto next() { return subscribed.receive(); }
    auto next(stop_token t) { return subscribed.receive(t); }
    void supply() { EXPECT_TRUE(end.send()); }

    shutdown::notifier end;
    shutdown::subscription subscribed = end.subscribe();
};

struct shutdown_collect : line<left_over::all> {
    auto next() { return end.collect_acknowledgements(); }
    auto next(stop_token t) { return end.collect_acknowledgements(t); }
    void supply() { subscribed.acknowledge(); }

    shutdown::notifier end;
    shutdown::subscription subscribed = end.subscribe();
};

struct token_cancelled : line<left_over::all> {
    auto next() { return token.cancelled(); }
    auto next(stop_token t) { return token.cancelled(t); }
    void supply() { token.cancel(); }

    cancellation_token token;
};

// --- lines in which one may ask for more than another ----------------------------------------

template <class Line>
class MixedTurnTaking : public testing::Test {
  protected:
    static task<void> ask_for_too_much(Line& from) { (void)co_await from.too_much(); }
    static task<void> ask(Line& from, bool& had) {
        (void)co_await from.small();
        had = true;
    }

    void followers_come() {
        for (bool* had : {&second_had, &third_had}) spawn(loop, ask(line, *had)).detach();
        loop.run_ready();
        EXPECT_FALSE(second_had || third_had) << "nobody overtakes";
    }

    test::manual_loop loop;
    Line line;
    bool second_had = false;
    bool third_had = false;
};

using mixed = testing::Types<semaphore_of_two, rwlock_with_readers, channel_with_room>;
TYPED_TEST_SUITE(MixedTurnTaking, mixed);

TYPED_TEST(MixedTurnTaking, AStoppedWaiterAtTheHeadLetsFollowersThatFitGoAtOnce) {
    auto head = spawn(this->loop, this->ask_for_too_much(this->line));
    this->loop.run_ready();
    this->followers_come();
    head.request_stop();
    this->loop.run_ready();
    EXPECT_FALSE(head.blocking_join().has_value());
    EXPECT_TRUE(this->second_had && this->third_had);
}

TYPED_TEST(MixedTurnTaking, AHeadThatLosesAWhenAnyLetsFollowersThatFitGoAtOnce) {
    notify bell;
    auto const hear_or_ask = [](TypeParam& from, notify& n) -> task<std::size_t> {
        auto const first = co_await when_any(n.notified(), from.too_much());
        co_return first.index();
    };
    auto head = spawn(this->loop, hear_or_ask(this->line, bell));
    this->loop.run_ready();
    this->followers_come();
    bell.notify_one();
    this->loop.run_ready();
    EXPECT_EQ(head.blocking_join().value(), 0U);
    EXPECT_TRUE(this->second_had && this->third_had);
}

}  // namespace

namespace test {

using locks =
    testing::Types<mutex_lock, rwlock_read, rwlock_write, semaphore_acquire, semaphore_acquire_two>;
using signals = testing::Types<notify_notified, once_cell_init, set_once_wait, shutdown_receive,
                               shutdown_collect, token_cancelled>;
using channels =
    testing::Types<oneshot_recv, oneshot_closed, mpsc_send, mpsc_reserve, mpsc_reserve_owned,
                   mpsc_reserve_many, mpsc_closed, mpsc_recv, mpsc_recv_many, mpsc_unbounded_recv,
                   broadcast_recv, broadcast_closed, watch_changed, watch_closed>;

INSTANTIATE_TYPED_TEST_SUITE_P(Locks, TurnTaking, locks);
INSTANTIATE_TYPED_TEST_SUITE_P(Signals, TurnTaking, signals);
INSTANTIATE_TYPED_TEST_SUITE_P(Channels, TurnTaking, channels);

}  // namespace test
}  // namespace rondo
