// Every line of sync: what comes in the instant of a stop is never lost.
#include "support/turn_taking_model.hpp"

#include <gtest/gtest.h>

#include <cstddef>

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
struct checked_line {
    static constexpr left_over left = Left;
    static constexpr bool one_waits = OneWaits;
};

struct mutex_lock : checked_line<left_over::same> {
    bool take(stop_token t) { return m.blocking_lock(t).has_value(); }
    void supply() { held.reset(); }

    mutex<> m;
    decltype(m.try_lock()) held = m.try_lock();
};

struct rwlock_read : checked_line<left_over::same> {
    bool take(stop_token t) { return lock.blocking_read(t).has_value(); }
    void supply() { held.reset(); }

    rwlock<int> lock;
    decltype(lock.try_write()) held = lock.try_write();
};

struct rwlock_write : checked_line<left_over::same> {
    bool take(stop_token t) { return lock.blocking_write(t).has_value(); }
    void supply() { held.reset(); }

    rwlock<int> lock;
    decltype(lock.try_read()) held = lock.try_read();
};

struct semaphore_acquire_two : checked_line<left_over::same> {
    bool take(stop_token t) { return s.blocking_acquire(2, t).has_value(); }
    void supply() { s.add_permits(1); }

    semaphore s{1};
};

struct notify_notified : checked_line<left_over::none> {
    bool take(stop_token t) { return n.blocking_notified(t).has_value(); }
    void supply() { n.notify_one(); }

    notify n;
};

struct set_once_wait : checked_line<left_over::all> {
    bool take(stop_token t) { return value.blocking_wait(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(value.set(1).has_value()); }

    set_once<int> value;
};

struct oneshot_recv : checked_line<left_over::nothing, true> {
    bool take(stop_token t) { return ends.receiver.blocking_recv(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(ends.sender.send(1).has_value()); }

    oneshot::ends<int> ends = oneshot::channel<int>();
};

template <std::size_t Capacity>
struct filled_channel {
    filled_channel() {
        for (std::size_t i = 0; i < Capacity; ++i) {
            RONDO_CHECK_EXPECT(ends.sender.try_send(0).has_value());
        }
    }
    void supply() { RONDO_CHECK_EXPECT(ends.receiver.try_recv().has_value()); }

    mpsc::ends<int> ends = mpsc::channel<int>(Capacity);
};

struct mpsc_reserve : checked_line<left_over::same>, filled_channel<1> {
    bool take(stop_token t) { return ends.sender.blocking_reserve(t).has_value(); }
};

struct mpsc_reserve_owned : checked_line<left_over::same>, filled_channel<1> {
    bool take(stop_token t) { return ends.sender.blocking_reserve_owned(t).has_value(); }
};

// One place is free, and accrues to the head.
struct mpsc_reserve_many : checked_line<left_over::same> {
    mpsc_reserve_many() { RONDO_CHECK_EXPECT(ends.sender.try_send(0).has_value()); }
    bool take(stop_token t) { return ends.sender.blocking_reserve_many(2, t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(ends.receiver.try_recv().has_value()); }

    mpsc::ends<int> ends = mpsc::channel<int>(2);
};

struct mpsc_recv : checked_line<left_over::none, true> {
    bool take(stop_token t) { return ends.receiver.blocking_recv(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(ends.sender.try_send(1).has_value()); }

    mpsc::ends<int> ends = mpsc::channel<int>(1);
};

struct mpsc_unbounded_recv : checked_line<left_over::none, true> {
    bool take(stop_token t) { return ends.receiver.blocking_recv(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(ends.sender.send(1).has_value()); }

    mpsc::unbounded_ends<int> ends = mpsc::unbounded<int>();
};

struct broadcast_recv : checked_line<left_over::none, true> {
    bool take(stop_token t) { return ends.receiver.blocking_recv(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(ends.sender.send(1).has_value()); }

    broadcast::ends<int> ends = broadcast::channel<int>(2);
};

struct watch_changed : checked_line<left_over::none, true> {
    bool take(stop_token t) { return ends.receiver.blocking_changed(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(ends.sender.send(1).has_value()); }

    watch::ends<int> ends = watch::channel(0);
};

struct shutdown_receive : checked_line<left_over::all> {
    bool take(stop_token t) { return subscribed.blocking_receive(t).has_value(); }
    void supply() { RONDO_CHECK_EXPECT(end.send().has_value()); }

    shutdown::notifier end;
    shutdown::subscription subscribed = end.subscribe();
};

struct shutdown_collect : checked_line<left_over::all> {
    bool take(stop_token t) { return end.blocking_collect_acknowledgements(t).has_value(); }
    void supply() { subscribed.acknowledge(); }

    shutdown::notifier end;
    shutdown::subscription subscribed = end.subscribe();
};

struct token_cancelled : checked_line<left_over::all> {
    bool take(stop_token t) { return token.blocking_cancelled(t).has_value(); }
    void supply() { token.cancel(); }

    cancellation_token token;
};

}  // namespace

namespace test {

using locks = testing::Types<mutex_lock, rwlock_read, rwlock_write, semaphore_acquire_two>;
using signals = testing::Types<notify_notified, set_once_wait, shutdown_receive, shutdown_collect,
                               token_cancelled>;
using channels = testing::Types<oneshot_recv, mpsc_reserve, mpsc_reserve_owned, mpsc_reserve_many,
                                mpsc_recv, mpsc_unbounded_recv, broadcast_recv, watch_changed>;

INSTANTIATE_TYPED_TEST_SUITE_P(Locks, TurnTakingModel, locks);
INSTANTIATE_TYPED_TEST_SUITE_P(Signals, TurnTakingModel, signals);
INSTANTIATE_TYPED_TEST_SUITE_P(Channels, TurnTakingModel, channels);

}  // namespace test
}  // namespace rondo
