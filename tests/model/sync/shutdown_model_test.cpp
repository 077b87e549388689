// Shutdown, explored: notifications, answers and ends in every order. Each scenario names the
// mutants that it is there for (tests/mutants/sync/shutdown.mutants).
#include <optional>
#include <utility>

#include "rondo/sync/shutdown.hpp"
#include "support/foreign.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using shutdown::notifier;
using shutdown::receive_error;
using shutdown::subscription;
using test::foreign;

// shutdown_say_relaxed, shutdown_hear_relaxed, shutdown_say_silently,
// shutdown_count_after_they_were_told
TEST(ShutdownModel, TheNotificationReachesWhoWaitsAndBringsWhatCameBefore) {
    EXPECT_HOLDS([] {
        notifier n;
        cell<int> written{0};
        thread works{[&, mine = n.subscribe("a")]() mutable {
            RONDO_CHECK_EXPECT(mine.blocking_receive());
            RONDO_CHECK_EXPECT(written == 7);
        }};
        written = 7;
        RONDO_CHECK_EXPECT(n.send());
        works.join();
    });
}

// shutdown_hear_relaxed
TEST(ShutdownModel, WhoFindsTheNotificationSeesWhatCameBefore) {
    EXPECT_HOLDS([] {
        notifier n;
        auto s = n.subscribe("a");
        cell<int> written{0};
        thread sends{[&] {
            written = 7;
            (void)n.send();
        }};
        if (s.try_receive()) RONDO_CHECK_EXPECT(written == 7);
        sends.join();
    });
}

// shutdown_acknowledge_silently
TEST(ShutdownModel, WhoCollectsSeesWhatWasDoneBeforeEveryAnswer) {
    EXPECT_HOLDS(
        [] {
            notifier n;
            cell<int> one{0}, two{0};
            thread first{[&, mine = n.subscribe("a")]() mutable {
                one = 1;
                mine.acknowledge();
            }};
            thread second{[&, mine = std::optional{n.subscribe("b")}]() mutable {
                two = 2;
                mine.reset();  // counts as an answer
            }};
            n.blocking_collect_acknowledgements();
            RONDO_CHECK_EXPECT(one == 1 && two == 2);
            first.join();
            second.join();
        },
        1);
}

// shutdown_answer_twice
TEST(ShutdownModel, WhoAcknowledgesAndGoesCountsOnce) {
    EXPECT_HOLDS([] {
        notifier n;
        auto other = n.subscribe("b");
        thread goes{[mine = std::optional{n.subscribe("a")}]() mutable {
            mine->acknowledge();
            mine.reset();
        }};
        RONDO_CHECK_EXPECT(!n.try_collect_acknowledgements());
        goes.join();
        RONDO_CHECK_EXPECT(!n.try_collect_acknowledgements());
        other.acknowledge();
        RONDO_CHECK_EXPECT(n.try_collect_acknowledgements());
    });
}

// shutdown_disown_without_acquire, shutdown_disown_without_release
TEST(ShutdownModel, TheLastOfThemFreesWhatTheyShare) {
    EXPECT_HOLDS([] {
        std::optional<notifier> n{std::in_place};
        thread goes{[mine = std::optional{n->subscribe("a")}]() mutable {
            (void)mine->try_receive();
            mine.reset();
        }};
        n.reset();
        goes.join();
    });
}

// shutdown_go_without_a_word
TEST(ShutdownModel, WhoWaitsIsToldThatTheNotifierHasGone) {
    EXPECT_HOLDS([] {
        std::optional<notifier> n{std::in_place};
        thread works{[mine = n->subscribe("a")]() mutable {
            RONDO_CHECK_EXPECT(mine.blocking_receive().error() == receive_error::abandoned);
        }};
        n.reset();
        works.join();
    });
}

// shutdown_say_it_again
TEST(ShutdownModel, OfTwoWhoSendOneIsFirstAndStopsOnce) {
    EXPECT_HOLDS([] {
        notifier n;
        auto s = n.subscribe("a");
        atomic<int> calls{0};
        stop_callback const callback{s.token(),
                                     [&] { calls.fetch_add(1, std::memory_order_relaxed); }};
        thread other{[&] { RONDO_CHECK_EXPECT(n.send() == 1U); }};
        RONDO_CHECK_EXPECT(n.send() == 1U);
        other.join();
        RONDO_CHECK_EXPECT(calls.load(std::memory_order_relaxed) == 1);
    });
}

// shutdown_stay_in_the_list
TEST(ShutdownModel, TheReportNamesWhoIsThere) {
    EXPECT_HOLDS([] {
        notifier n;
        auto a = n.subscribe("a");
        thread goes{[mine = std::optional{n.subscribe("b")}]() mutable { mine.reset(); }};
        std::size_t const named = n.unacknowledged().size();
        RONDO_CHECK_EXPECT(named == 1 || named == 2);
        goes.join();
        RONDO_CHECK_EXPECT(n.unacknowledged() == std::vector<std::string>{"a"});
    });
}

// withdraw_after_the_decision (of core)
TEST(ShutdownModel, ADeadlineAndTheLastAnswerMeet) {
    EXPECT_HOLDS([] {
        notifier n;
        constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment
        thread answers{[mine = n.subscribe("a")]() mutable { mine.acknowledge(); }};
        auto const all = n.blocking_collect_acknowledgements_until(soon);
        if (!all) RONDO_CHECK_EXPECT(all.error().who.size() <= 1);
        answers.join();
        RONDO_CHECK_EXPECT(n.try_collect_acknowledgements());
    });
}

// shutdown_owe_nobody
TEST(ShutdownModel, EveryoneInLineIsToldAlsoWhoIsStoppedBetweenTwoBatches) {
    EXPECT_HOLDS([] {
        notifier n;
        stop_source stop;
        auto a = n.subscribe("a"), b = n.subscribe("b"), c = n.subscribe("c");
        atomic<int> first{0}, second{0}, third{0};
        auto const waits = [](subscription& s, stop_token t, atomic<int>& outcome) -> foreign {
            auto const got = co_await s.receive(t);
            outcome.store(got ? 1 : -1, std::memory_order_relaxed);
        };
        waits(a, {}, first);
        waits(b, {}, second);
        waits(c, stop.token(), third);
        thread sends{[&] { RONDO_CHECK_EXPECT(n.send() == 3U); }};
        while (first.load(std::memory_order_relaxed) == 0) spin_pause();
        stop.request_stop();
        sends.join();
        RONDO_CHECK_EXPECT(third.load(std::memory_order_relaxed) == 1);
    });
}

// shutdown_follow_after_the_end
TEST(ShutdownModel, AParentTokenMayAskAsTheNotifierGoes) {
    EXPECT_HOLDS([] {
        stop_source parent;
        std::optional<notifier> n{std::in_place, parent.token()};
        auto s = n->subscribe("a");
        thread asks{[&] { parent.request_stop(); }};
        n.reset();
        asks.join();
        (void)s.try_receive();
    });
}

}  // namespace
}  // namespace rondo
