// Notify, explored: those who notify, those who wait, and those who give up, in every order. Each
// scenario names the mutants that it is there for (tests/mutants/sync/notify.mutants). A lost
// notification shows as a deadlock, one that brings too little as a race on a cell.
#include <optional>

#include "rondo/sync/notify.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

// notify_store_relaxed, notify_look_before_entering_the_line,
// notify_do_not_say_that_somebody_waits, notify_store_although_somebody_waits
TEST(NotifyModel, OneReachesTheWaiterAndBringsWhatCameBefore) {
    EXPECT_HOLDS([] {
        notify n;
        cell<int> written{0};
        thread waits{[&] {
            n.blocking_notified();
            RONDO_CHECK_EXPECT(written == 7);
        }};
        written = 7;
        n.notify_one();
        waits.join();
        RONDO_CHECK_EXPECT(!n.try_notified());
    });
}

// notify_try_relaxed
TEST(NotifyModel, TryTakesWhatIsStoredAndSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        notify n;
        cell<int> written{0};
        thread notifies{[&] {
            written = 7;
            n.notify_last();
        }};
        if (n.try_notified()) RONDO_CHECK_EXPECT(written == 7);
        notifies.join();
    });
}

// notify_spare_the_write_if_one_is_stored, notify_take_relaxed
TEST(NotifyModel, WhoTakesAStoredOneSeesWhatCameBeforeEveryCallThatItStandsFor) {
    EXPECT_HOLDS([] {
        notify n;
        atomic<int> written{0};
        n.notify_one();
        thread notifies{[&] {
            written.store(7, std::memory_order_relaxed);
            n.notify_one();
        }};
        n.blocking_notified();
        int const seen = written.load(std::memory_order_relaxed);
        notifies.join();
        // If nothing is left, the one we took stood for both calls.
        if (!n.try_notified()) RONDO_CHECK_EXPECT(seen == 7);
    });
}

// notify_offer_it_again
TEST(NotifyModel, TwoCallsReachTwoWhoWait) {
    EXPECT_HOLDS(
        [] {
            notify n;
            thread one{[&] {
                n.blocking_notified();
                n.notify_one();
            }};
            thread two{[&] {
                n.blocking_notified();
                n.notify_one();
            }};
            n.notify_one();
            one.join();
            two.join();
            RONDO_CHECK_EXPECT(n.try_notified());
        },
        1);
}

// notify_waiters_relaxed, notify_see_the_call_relaxed, notify_forget_the_calls
TEST(NotifyModel, WaitersReachesWhoWasMadeBeforeWhereverItIs) {
    EXPECT_HOLDS([] {
        notify n;
        cell<int> written{0};
        auto waits = n.notified();
        thread notifies{[&] {
            written = 7;
            n.notify_waiters();
        }};
        waits.blocking_wait();
        RONDO_CHECK_EXPECT(written == 7);
        notifies.join();
        RONDO_CHECK_EXPECT(!n.try_notified());
    });
}

// The condition is nobody's but theirs, and relaxed: a notified() that comes too late to hear the
// call sees what it was about.
// notify_remember_the_calls_relaxed
TEST(NotifyModel, WhoIsMadeAfterACallSeesWhatCameBeforeIt) {
    EXPECT_HOLDS([] {
        notify n;
        atomic<int> condition{0};
        thread notifies{[&] {
            condition.store(1, std::memory_order_relaxed);
            n.notify_waiters();
        }};
        auto change = n.notified();
        if (condition.load(std::memory_order_relaxed) == 0) change.blocking_wait();
        notifies.join();
    });
}

// notify_waiters_in_line_relaxed
TEST(NotifyModel, WaitersReachesWhoWasMadeBeforeAlsoIfSomebodyElseIsInLine) {
    EXPECT_HOLDS([] {
        notify n;
        cell<int> written{0};
        auto in_line = n.notified(), made = n.notified();
        in_line.enable();
        thread notifies{[&] {
            written = 7;
            n.notify_waiters();
        }};
        made.blocking_wait();
        RONDO_CHECK_EXPECT(written == 7);
        RONDO_CHECK_EXPECT(in_line.enable());  // if one has been reached, all have
        notifies.join();
    });
}

// notify_fail_to_take_relaxed
TEST(NotifyModel, WaitersLeavesTheStoredOneAlone) {
    EXPECT_HOLDS([] {
        notify n;
        atomic<int> written{0};
        auto made = n.notified();
        n.notify_one();
        thread notifies{[&] {
            written.store(7, std::memory_order_relaxed);
            n.notify_waiters();
        }};
        made.blocking_wait();  // by the one that is stored, or by the call
        int const seen = written.load(std::memory_order_relaxed);
        notifies.join();
        if (n.try_notified()) RONDO_CHECK_EXPECT(seen == 7);
    });
}

// notify_take_relaxed
TEST(NotifyModel, WhoIsOwedACallFromBeforeTheLineBeganSeesWhatCameBeforeIt) {
    EXPECT_HOLDS([] {
        notify n;
        cell<int> written{0};
        auto made = n.notified();
        thread notifies{[&] {
            written = 7;
            n.notify_waiters();
        }};
        thread begins{[&] {
            auto other = n.notified();
            other.enable();
        }};
        made.blocking_wait();
        RONDO_CHECK_EXPECT(written == 7);
        notifies.join();
        begins.join();
    });
}

// notify_owe_nobody
TEST(NotifyModel, WhoWasNotifiedDoesNotQueueBehindANewcomer) {
    EXPECT_HOLDS([] {
        notify n;
        auto made = n.notified();
        std::optional<notified> newcomer;
        thread notifies{[&] {
            n.notify_waiters();
            newcomer.emplace(n.notified());
            newcomer->enable();
        }};
        made.blocking_wait();
        notifies.join();
        RONDO_CHECK_EXPECT(!newcomer->enable());
    });
}

// notify_offer_it_again
TEST(NotifyModel, WaitersAndOneTogetherReachAWaiterOnce) {
    EXPECT_HOLDS([] {
        notify n;
        auto waits = n.notified();
        waits.enable();
        thread all{[&] { n.notify_waiters(); }};
        thread one{[&] { n.notify_one(); }};
        waits.blocking_wait();
        all.join();
        one.join();
        // Reached by notify_one(), it used that up; reached by notify_waiters(), one is left.
        (void)n.try_notified();
        RONDO_CHECK_EXPECT(!n.try_notified());
    });
}

// notify_lose_what_is_left_over
TEST(NotifyModel, OneInTheMiddleOfABroadcastIsNotUsedUpByThoseWhoAreOwedIt) {
    EXPECT_HOLDS([] {
        notify n;
        auto a = n.notified(), b = n.notified(), c = n.notified();
        for (auto* w : {&a, &b, &c}) w->enable();
        thread all{[&] { n.notify_waiters(); }};
        a.blocking_wait();
        n.notify_one();
        all.join();
        RONDO_CHECK_EXPECT(b.enable() && c.enable());
        RONDO_CHECK_EXPECT(n.try_notified());
    });
}

// notify_leave_over_relaxed
TEST(NotifyModel, WhatABroadcastLeavesOverBringsWhatCameBefore) {
    EXPECT_HOLDS(
        [] {
            notify n;
            cell<int> written{0};
            auto a = n.notified(), b = n.notified(), c = n.notified();
            for (auto* w : {&a, &b, &c}) w->enable();
            thread all{[&] { n.notify_waiters(); }};
            thread one{[&] {
                a.blocking_wait();
                written = 7;
                n.notify_one();
            }};
            if (n.try_notified()) RONDO_CHECK_EXPECT(written == 7);
            all.join();
            one.join();
        },
        1);
}

// --- giving up ---------------------------------------------------------------------------------

// withdraw_after_the_decision (of core)
TEST(NotifyModel, AStopAndOneMeetAndItIsSeenOrKept) {
    EXPECT_HOLDS([] {
        notify n;
        stop_source stop;
        cell<bool> seen{false};
        thread waits{[&] { seen = n.blocking_notified(stop.token()).has_value(); }};
        thread stops{[&] { stop.request_stop(); }};
        n.notify_one();
        waits.join();
        stops.join();
        RONDO_CHECK_EXPECT(n.try_notified() != seen.read());
    });
}

// notify_drop_it_with_the_waiter
TEST(NotifyModel, AnEnabledOneThatIsDroppedPassesOnWhatReachedIt) {
    EXPECT_HOLDS([] {
        notify n;
        thread gives_up{[&] {
            auto dropped = n.notified();
            dropped.enable();
        }};
        thread waits{[&] { n.blocking_notified(); }};
        n.notify_one();
        gives_up.join();
        waits.join();
    });
}

// notify_hand_on_to_the_first, notify_serve_the_first_for_the_last
TEST(NotifyModel, TheLastPassesItOnToTheLastThatIsLeft) {
    EXPECT_HOLDS([] {
        notify n;
        auto first = n.notified(), second = n.notified();
        std::optional<notified> last{n.notified()};
        for (auto* w : {&first, &second, &*last}) w->enable();
        thread gives_up{[&] { last.reset(); }};
        n.notify_last();
        gives_up.join();
        RONDO_CHECK_EXPECT(!first.enable());
        RONDO_CHECK_EXPECT(second.enable());
    });
}

// notify_store_relaxed_under_the_lock
TEST(NotifyModel, WhoLeavesAsItIsNotifiedLeavesItToTheNextWhoSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        notify n;
        cell<int> written{0};
        thread gives_up{[&] {
            auto dropped = n.notified();
            dropped.enable();
        }};
        thread notifies{[&] {
            written = 7;
            n.notify_one();
        }};
        n.blocking_notified();
        RONDO_CHECK_EXPECT(written == 7);
        gives_up.join();
        notifies.join();
    });
}

// withdraw_after_the_decision (of core)
TEST(NotifyModel, AStoppedHeadLeavesItToTheOneBehind) {
    EXPECT_HOLDS(
        [] {
            notify n;
            stop_source stop;
            cell<bool> head_saw{false};
            thread head{[&] { head_saw = n.blocking_notified(stop.token()).has_value(); }};
            thread behind{[&] {
                n.blocking_notified();
                n.notify_one();
            }};
            stop.request_stop();
            n.notify_one();
            head.join();
            if (head_saw) n.notify_one();
            behind.join();
            RONDO_CHECK_EXPECT(n.try_notified());
        },
        1);
}

// do_not_wait_for_the_owed_wake_up (of core)
TEST(NotifyModel, ADeadlineAndOneMeetAndItIsSeenOrKept) {
    EXPECT_HOLDS([] {
        notify n;
        constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment
        cell<bool> seen{false};
        thread waits{[&] { seen = n.blocking_notified_until(soon).has_value(); }};
        n.notify_one();
        waits.join();
        RONDO_CHECK_EXPECT(n.try_notified() != seen.read());
    });
}

// read_the_successor_after_the_wake_up (of core)
TEST(NotifyModel, WhoWasReachedMayDestroyTheObjectAtOnce) {
    EXPECT_HOLDS([] {
        std::optional<notify> n{std::in_place};
        thread notifies{[&] { n->notify_one(); }};
        n->blocking_notified();
        n.reset();
        notifies.join();
    });
}

}  // namespace
}  // namespace rondo
