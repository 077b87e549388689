// Watch, explored: values, waits and ends in every order. Each scenario names the mutants that it
// is there for (tests/mutants/sync/watch.mutants).
#include <optional>
#include <utility>

#include "rondo/sync/watch.hpp"
#include "support/foreign.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using test::foreign;
using watch::changed_error;
using watch::channel;

// watch_advance_relaxed, watch_look_relaxed, watch_enter_without_looking, watch_wait_unseen
TEST(WatchModel, AChangeReachesWhoWaitsAndBringsWhatCameBefore) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        cell<int> written{0};
        thread waits{[&] {
            RONDO_CHECK_EXPECT(rx.blocking_changed());
            RONDO_CHECK_EXPECT(written == 7);
        }};
        written = 7;
        RONDO_CHECK_EXPECT(tx.send(1));
        waits.join();
    });
}

// watch_look_relaxed
TEST(WatchModel, WhoLooksAtTheVersionOrTheValueSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        cell<int> written{0};
        thread sends{[&] {
            written = 7;
            tx.send_modify([](int& v) { v = 1; });
        }};
        if (*rx.has_changed()) RONDO_CHECK_EXPECT(written == 7);
        if (*rx.borrow() == 1) RONDO_CHECK_EXPECT(written == 7);
        sends.join();
    });
}

// watch_advance_without_the_lock, watch_update_without_the_lock
TEST(WatchModel, AValueAndItsVersionBelongTogether) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        thread sends{[&] { RONDO_CHECK_EXPECT(tx.send(1)); }};
        int const seen = *rx.borrow_and_update();
        sends.join();
        RONDO_CHECK_EXPECT(*rx.has_changed() == (seen == 0));
    });
}

// watch_replace_without_the_lock
TEST(WatchModel, NobodyBorrowsAValueThatIsBeingReplaced) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(std::optional<int>{1});
        thread sends{[&] { RONDO_CHECK_EXPECT(tx.send_replace(2) == 1); }};
        int const seen = rx.borrow()->value();
        RONDO_CHECK_EXPECT(seen == 1 || seen == 2);
        sends.join();
    });
}

// watch_modify_without_the_lock
TEST(WatchModel, TwoWhoModifyBothCount) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        thread other{[mine = tx] { mine.send_modify([](int& v) { ++v; }); }};
        tx.send_modify([](int& v) { ++v; });
        other.join();
        RONDO_CHECK_EXPECT(*rx.borrow() == 2);
        RONDO_CHECK_EXPECT(rx.try_changed());
        RONDO_CHECK_EXPECT(!rx.try_changed());
    });
}

// watch_close_relaxed, watch_leave_sender_without_acquire, watch_close_silently
TEST(WatchModel, WhoIsToldOfTheEndSeesWhatAllSendersDidBefore) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        cell<int> one{0}, two{0};
        thread first{[&, mine = std::optional{tx}]() mutable {
            one = 1;
            mine.reset();
        }};
        thread second{[&, mine = std::optional{std::move(tx)}]() mutable {
            two = 2;
            mine.reset();
        }};
        RONDO_CHECK_EXPECT(rx.blocking_changed().error() == changed_error::closed);
        RONDO_CHECK_EXPECT(one == 1 && two == 2);
        first.join();
        second.join();
    });
}

// watch_forget_the_last_value
TEST(WatchModel, TheLastValueIsSeenBeforeTheEnd) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        thread sends{[mine = std::optional{std::move(tx)}]() mutable {
            RONDO_CHECK_EXPECT(mine->send(1));
            mine.reset();
        }};
        RONDO_CHECK_EXPECT(rx.blocking_changed());
        RONDO_CHECK_EXPECT(*rx.borrow() == 1);
        RONDO_CHECK_EXPECT(!rx.blocking_changed());
        sends.join();
    });
}

// headcount_drop_relaxed, headcount_see_nobody_relaxed, headcount_drop_silently
TEST(WatchModel, ASenderIsToldOfTheLastReceiversEndAndSeesWhatTheyDidBefore) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        cell<int> one{0}, two{0};
        thread first{[&, mine = std::optional{rx}]() mutable {
            one = 1;
            mine.reset();
        }};
        thread second{[&, mine = std::optional{std::move(rx)}]() mutable {
            two = 2;
            mine.reset();
        }};
        tx.blocking_closed();
        RONDO_CHECK_EXPECT(one == 1 && two == 2);
        first.join();
        second.join();
    });
}

// watch_disown_without_acquire, watch_disown_without_release
TEST(WatchModel, TheLastEndFreesTheChannel) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        thread other{[mine = std::optional{std::move(rx)}]() mutable {
            (void)*mine->borrow();
            mine.reset();
        }};
        {
            auto const mine = std::move(tx);
            (void)mine.send_replace(1);
        }
        other.join();
    });
}

// watch_stop_marks_as_seen
TEST(WatchModel, AStopAndAChangeMeetAndItIsSeenOrStillThere) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = channel(0);
            stop_source stop;
            cell<bool> seen{false};
            thread waits{[&] { seen = rx.blocking_changed(stop.token()).has_value(); }};
            thread stops{[&] { stop.request_stop(); }};
            RONDO_CHECK_EXPECT(tx.send(1));
            waits.join();
            stops.join();
            RONDO_CHECK_EXPECT(*rx.has_changed() != seen.read());
        },
        1);
}

// watch_owe_nobody
TEST(WatchModel, EveryoneInLineIsToldAlsoWhoIsStoppedBetweenTwoBatches) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        stop_source stop;
        auto a = rx, b = rx, c = rx;
        atomic<int> first{0}, second{0}, third{0};
        auto const waits = [](watch::receiver<int>& r, stop_token t,
                              atomic<int>& outcome) -> foreign {
            auto const changed = co_await r.changed(t);
            outcome.store(changed ? 1 : -1, std::memory_order_relaxed);
        };
        waits(a, {}, first);
        waits(b, {}, second);
        waits(c, stop.token(), third);
        thread sends{[&] { RONDO_CHECK_EXPECT(tx.send(1)); }};
        while (first.load(std::memory_order_relaxed) == 0) spin_pause();
        stop.request_stop();
        sends.join();
        RONDO_CHECK_EXPECT(third.load(std::memory_order_relaxed) == 1);
    });
}

// queue_up_what_is_owed (of core)
TEST(WatchModel, WhoEntersAfterTheChangeGoesOnAlthoughAnotherWaitsForTheNext) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        auto newcomer = rx;
        thread sends{[&] {
            RONDO_CHECK_EXPECT(tx.send(1));
            newcomer.mark_unchanged();
            auto const none = newcomer.blocking_changed_until(time_point{std::chrono::seconds{1}});
            RONDO_CHECK_EXPECT(!none);
        }};
        RONDO_CHECK_EXPECT(rx.blocking_changed());
        sends.join();
    });
}

// watch_wait_for_any_value
TEST(WatchModel, WaitForEndsWithTheRightValueWhateverComesBefore) {
    EXPECT_HOLDS(
        [] {
            auto [tx, rx] = channel(0);
            thread sends{[&] {
                RONDO_CHECK_EXPECT(tx.send(1));
                RONDO_CHECK_EXPECT(tx.send(2));
            }};
            {
                auto const found = rx.blocking_wait_for([](int v) { return v == 2; });
                RONDO_CHECK_EXPECT(**found == 2);
            }
            sends.join();
        },
        1);
}

// headcount_owe_nobody
TEST(WatchModel, AllSendersAreToldOfTheLastReceiversEnd) {
    EXPECT_HOLDS([] {
        auto [tx, rx] = channel(0);
        atomic<int> told{0};
        auto const waits = [](watch::sender<int> const& s, atomic<int>& count) -> foreign {
            co_await s.closed();
            count.fetch_add(1, std::memory_order_relaxed);
        };
        for (int i = 0; i < 3; ++i) waits(tx, told);
        thread goes{[mine = std::optional{std::move(rx)}]() mutable { mine.reset(); }};
        goes.join();
        RONDO_CHECK_EXPECT(told.load(std::memory_order_relaxed) == 3);
    });
}

}  // namespace
}  // namespace rondo
