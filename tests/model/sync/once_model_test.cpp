// Once_cell and set_once, explored: who makes the value, who sees it, and what becomes of the right
// to make it. Each scenario names the mutants that it is there for
// (tests/mutants/sync/once.mutants).
#include <expected>
#include <optional>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/once_cell.hpp"
#include "rondo/sync/set_once.hpp"
#include "support/foreign.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using test::fenced;
using test::foreign;
using test::owned_foreign;

using fallible = std::expected<int, char>;

// once_claim_although_busy
TEST(OnceCellModel, OneInitialiserRunsAndBothGetItsValue) {
    EXPECT_HOLDS([] {
        once_cell<int> c;
        cell<int> runs{0};
        auto const make = [&] {
            runs = runs + 1;  // a race, if two of them run
            return 7;
        };
        thread other{[&] { RONDO_CHECK_EXPECT(*c.blocking_get_or_init(make) == 7); }};
        RONDO_CHECK_EXPECT(*c.blocking_get_or_init(make) == 7);
        other.join();
        RONDO_CHECK_EXPECT(runs == 1);
    });
}

// once_publish_relaxed, once_look_relaxed
TEST(OnceCellModel, WhoGetsTheValueSeesWhatItsInitialiserDid) {
    EXPECT_HOLDS([] {
        once_cell<int> c;
        cell<int> written{0};
        thread makes{[&] {
            (void)c.blocking_get_or_init([&] {
                written = 7;
                return 1;
            });
        }};
        if (c.get() != nullptr) RONDO_CHECK_EXPECT(written == 7);
        makes.join();
        RONDO_CHECK_EXPECT(*c.get() == 1);
    });
}

// once_keep_an_abandoned_claim, once_wake_nobody_after_a_failure
TEST(OnceCellModel, AFailureLeavesItToTheNext) {
    EXPECT_HOLDS([] {
        once_cell<int> c;
        thread fails{[&] {
            auto const made =
                c.blocking_get_or_try_init([]() -> fallible { return std::unexpected{'x'}; });
            RONDO_CHECK_EXPECT(!made || **made == 7);
        }};
        auto const made = c.blocking_get_or_try_init([]() -> fallible { return 7; });
        RONDO_CHECK_EXPECT(**made == 7);
        fails.join();
    });
}

// once_keep_an_abandoned_claim; withdraw_after_the_decision (of core)
TEST(OnceCellModel, TheRightToInitialiseIsNotLostWithOneWhoIsStopped) {
    EXPECT_HOLDS(
        [] {
            once_cell<int> c;
            stop_source stop;
            RONDO_CHECK_EXPECT(c.state().try_claim());
            thread stoppable{[&] {
                (void)c.blocking_get_or_try_init([]() -> fallible { return std::unexpected{'x'}; },
                                                 stop.token());
            }};
            thread waits{
                [&] { RONDO_CHECK_EXPECT(*c.blocking_get_or_init([] { return 7; }) == 7); }};
            stop.request_stop();
            c.state().abandon();
            stoppable.join();
            waits.join();
        },
        1);
}

// once_drop_a_claim_with_its_frame
TEST(OnceCellModel, TheRightIsHandedOnByACoroutineThatIsDestroyedBeforeItCouldUseIt) {
    EXPECT_HOLDS([] {
        once_cell<int> c;
        RONDO_CHECK_EXPECT(c.state().try_claim());
        auto const waits_for_its_turn = [](once_cell<int>& of) -> owned_foreign {
            wait<detail::once_op> turn{detail::once_op{of.state(), &of}};
            (void)co_await std::move(turn);
        };
        thread waits;
        {
            fenced nowhere;
            executor::scope const there{&nowhere};
            owned_foreign const gone = waits_for_its_turn(c);
            waits = thread{[&] { (void)c.blocking_get_or_init([] { return 7; }); }};
            c.state().abandon();  // granted to the first in line, but the wake-up ends at the fence
        }
        waits.join();
        RONDO_CHECK_EXPECT(*c.get() == 7);
    });
}

// once_claim_although_busy
TEST(OnceCellModel, OfAValueThatIsSetAndOneThatIsMadeOneWins) {
    EXPECT_HOLDS([] {
        once_cell<int> c;
        cell<bool> set{false};
        thread sets{[&] { set = c.set(1).has_value(); }};
        int const got = *c.blocking_get_or_init([] { return 2; });
        sets.join();
        RONDO_CHECK_EXPECT(got == (set ? 1 : 2));
        RONDO_CHECK_EXPECT(*c.get() == got);
    });
}

// leave_the_stop_hook_armed (of core)
TEST(OnceCellModel, AStoppedTasksInitialiserLeavesItToATaskOnAnotherThread) {
    EXPECT_HOLDS(
        [] {
            once_cell<int> c;
            stop_source stop;
            auto const gives_up = [](once_cell<int>& of, stop_token t) -> task<void> {
                set_once<int> never;
                auto const make = [&]() -> task<int> { co_return *co_await never.wait(); };
                auto const made = co_await of.get_or_init(make, t);
                RONDO_CHECK_EXPECT(!made || **made == 7);
            };
            auto const makes = [](once_cell<int>& of) -> task<int> {
                auto const make = [] { return 7; };
                co_return *co_await of.get_or_init(make);
            };
            thread other{[&] { block_on(gives_up(c, stop.token())); }};
            thread stops{[&] { stop.request_stop(); }};
            RONDO_CHECK_EXPECT(block_on(makes(c)) == 7);
            other.join();
            stops.join();
        },
        1);
}

// once_publish_relaxed, once_look_relaxed
TEST(SetOnceModel, WhoWaitsGetsTheValueAndSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        set_once<int> s;
        cell<int> written{0};
        thread sets{[&] {
            written = 7;
            RONDO_CHECK_EXPECT(s.set(1));
        }};
        RONDO_CHECK_EXPECT(*s.blocking_wait() == 1);
        RONDO_CHECK_EXPECT(written == 7);
        sets.join();
    });
}

// once_claim_although_busy
TEST(SetOnceModel, OfTwoWhoSetOneWinsAndTheOtherGetsItsValueBack) {
    EXPECT_HOLDS([] {
        set_once<int> s;
        cell<bool> first{false};
        thread one{[&] { first = s.set(1).has_value(); }};
        auto const second = s.set(2);
        one.join();
        RONDO_CHECK_EXPECT(first.read() != second.has_value());
        RONDO_CHECK_EXPECT(*s.get() == (first ? 1 : 2));
        if (!second) RONDO_CHECK_EXPECT(second.error() == 2);
    });
}

// once_owe_nobody
TEST(SetOnceModel, EveryoneInLineGetsItAlsoWhoIsStoppedBetweenTwoBatches) {
    EXPECT_HOLDS([] {
        set_once<int> s;
        stop_source stop;
        atomic<int> first{0}, third{0};
        auto const waits = [](set_once<int>& on, stop_token t, atomic<int>& outcome) -> foreign {
            auto const got = co_await on.wait(t);
            outcome.store(got ? **got : -1, std::memory_order_relaxed);
        };
        atomic<int> second{0};
        waits(s, {}, first);
        waits(s, {}, second);
        waits(s, stop.token(), third);
        thread sets{[&] { RONDO_CHECK_EXPECT(s.set(7)); }};
        while (first.load(std::memory_order_relaxed) == 0) spin_pause();
        stop.request_stop();
        sets.join();
        RONDO_CHECK_EXPECT(third.load(std::memory_order_relaxed) == 7);
    });
}

// once_ask_who_only_waits
TEST(SetOnceModel, AStopAndASetMeet) {
    EXPECT_HOLDS([] {
        set_once<int> s;
        stop_source stop;
        thread waits{[&] {
            auto const got = s.blocking_wait(stop.token());
            if (got) RONDO_CHECK_EXPECT(**got == 7);
        }};
        thread stops{[&] { stop.request_stop(); }};
        RONDO_CHECK_EXPECT(s.set(7));
        waits.join();
        stops.join();
    });
}

}  // namespace
}  // namespace rondo
