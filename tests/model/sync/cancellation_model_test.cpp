// Cancellation tokens, explored: tokens that are made, cancelled and dropped at the same time. Each
// scenario names the mutants that it is there for (tests/mutants/sync/cancellation.mutants).
#include <optional>
#include <utility>

#include "rondo/sync/cancellation.hpp"
#include "support/foreign.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using test::foreign;

// cancel_wake_nobody; raise_the_flag_relaxed, read_the_flag_relaxed (of core)
TEST(CancellationModel, WhoWaitsIsReachedAndSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        cancellation_token t;
        cell<int> written{0};
        thread waits{[&, mine = t.child_token()] {
            mine.blocking_cancelled();
            RONDO_CHECK_EXPECT(written == 7);
        }};
        written = 7;
        t.cancel();
        waits.join();
    });
}

// cancel_adopt_too_late, cancel_leave_it_open
TEST(CancellationModel, AChildThatIsMadeMeanwhileIsCancelledToo) {
    EXPECT_HOLDS([] {
        cancellation_token parent;
        std::optional<cancellation_token> child;
        thread makes{[&] { child.emplace(parent.child_token()); }};
        parent.cancel();
        makes.join();
        RONDO_CHECK_EXPECT(child->is_cancelled());
    });
}

// cancel_hold_the_dead, cancel_stay_listed, cancel_unlist_twice
TEST(CancellationModel, AChildMayGoAsItsParentIsCancelled) {
    EXPECT_HOLDS([] {
        cancellation_token parent;
        std::optional<cancellation_token> goes{parent.child_token()};
        auto stays = parent.child_token();
        thread drops{[&] { goes.reset(); }};
        parent.cancel();
        drops.join();
        RONDO_CHECK_EXPECT(stays.is_cancelled());
    });
}

// cancel_let_go_without_acquire, cancel_let_go_without_release
TEST(CancellationModel, TheLastTokenFreesItAndWhatItHeld) {
    EXPECT_HOLDS([] {
        std::optional<cancellation_token> parent{std::in_place};
        std::optional<cancellation_token> child{parent->child_token()};
        thread drops{[&] {
            child->cancel();
            child.reset();
        }};
        parent.reset();
        drops.join();
    });
}

// cancel_break_the_list
TEST(CancellationModel, AParentAndAChildAreCancelledAtOnceAndHooksAreCalledOnce) {
    EXPECT_HOLDS([] {
        cancellation_token parent;
        auto first = parent.child_token(), second = parent.child_token();
        auto grandchild = first.child_token();
        atomic<int> calls{0};
        stop_callback const hook{first.token(),
                                 [&] { calls.fetch_add(1, std::memory_order_relaxed); }};
        thread cancels{[&] { first.cancel(); }};
        parent.cancel();
        cancels.join();
        RONDO_CHECK_EXPECT(calls.load(std::memory_order_relaxed) == 1);
        RONDO_CHECK_EXPECT(second.is_cancelled() && grandchild.is_cancelled());
    });
}

// cancel_hold_no_parent
TEST(CancellationModel, AGrandchildIsReachedThoughTheTokenBetweenGoes) {
    EXPECT_HOLDS([] {
        cancellation_token root;
        std::optional<cancellation_token> middle{root.child_token()};
        auto last = middle->child_token();
        thread drops{[&] { middle.reset(); }};
        root.cancel();
        drops.join();
        RONDO_CHECK_EXPECT(last.is_cancelled());
    });
}

// cancel_let_go_before_it_is_done
TEST(CancellationModel, WhoIsWokenMayDropTheLastTokenOfWhatIsBeingCancelled) {
    EXPECT_HOLDS([] {
        cancellation_token parent;
        std::optional<cancellation_token> child{parent.child_token()};
        auto const waits = [](std::optional<cancellation_token>& own) -> foreign {
            co_await own->cancelled();
            own.reset();
        };
        waits(child);
        thread cancels{[&] { parent.cancel(); }};
        cancels.join();
        RONDO_CHECK_EXPECT(!child.has_value());
    });
}

// withdraw_after_the_decision (of core)
TEST(CancellationModel, AStopAndACancellationMeet) {
    EXPECT_HOLDS(
        [] {
            cancellation_token t;
            stop_source stop;
            thread waits{[&, mine = t] { (void)mine.blocking_cancelled(stop.token()); }};
            thread stops{[&] { stop.request_stop(); }};
            t.cancel();
            waits.join();
            stops.join();
        },
        1);
}

// cancel_owe_nobody
TEST(CancellationModel, EveryoneInLineIsReachedAlsoWhoIsStoppedBetweenTwoBatches) {
    EXPECT_HOLDS([] {
        cancellation_token t;
        stop_source stop;
        atomic<int> first{0}, second{0}, third{0};
        auto const waits = [](cancellation_token const& on, stop_token s,
                              atomic<int>& result) -> foreign {
            auto const cancelled = co_await on.cancelled(s);
            result.store(cancelled ? 1 : -1, std::memory_order_relaxed);
        };
        waits(t, {}, first);
        waits(t, {}, second);
        waits(t, stop.token(), third);
        thread cancels{[&] { t.cancel(); }};
        while (first.load(std::memory_order_relaxed) == 0) spin_pause();
        stop.request_stop();
        cancels.join();
        RONDO_CHECK_EXPECT(third.load(std::memory_order_relaxed) == 1);
    });
}

}  // namespace
}  // namespace rondo
