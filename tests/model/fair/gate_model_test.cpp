// The gate explored: the word against the line, in one instant; stop, close and changed limits.
// What a permit guards is a cell: two who have it at once, or one who sees too little, are a race.
#include <optional>
#include <utility>

#include "rondo/fair/detail/admission_word.hpp"
#include "rondo/fair/gate.hpp"
#include "support/model.hpp"

namespace rondo::fair {
namespace {

using check::thread;
using door = gate<int>;

gate_config<int> places(std::size_t in_flight, std::size_t per_tenant = 100) {
    gate_config<int> c;
    c.max_in_flight = in_flight;
    c.max_in_flight_per_tenant = per_tenant;
    return c;
}

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

// --- the word alone --------------------------------------------------------------------------

TEST(GateModel, TheWordLetsOneInAtATime) {
    EXPECT_HOLDS([] {
        detail::admission_word word{1};
        cell<int> guarded{0};
        auto const visit = [&] {
            if (!word.try_pass()) return;
            guarded = guarded + 1;
            RONDO_CHECK_EXPECT(word.try_leave());
        };
        thread one{visit};
        thread two{visit};
        visit();
        one.join();
        two.join();
        RONDO_CHECK_EXPECT(word.look().places == 1);
        RONDO_CHECK_EXPECT(word.look().passed == static_cast<unsigned>(guarded.read()));
    });
}

TEST(GateModel, NobodyPassesAWordWithALineAndNoPlaceIsLost) {
    EXPECT_HOLDS([] {
        detail::admission_word word{1};
        cell<int> guarded{0};
        bool kept = false;  // a place that could not be given back
        thread passes{[&] {
            if (!word.try_pass()) return;
            guarded = guarded + 1;
            kept = !word.try_leave();
        }};
        auto const was = word.form_line();
        RONDO_CHECK_EXPECT(!word.try_pass());
        if (was.places == 1) guarded = guarded + 1;
        passes.join();
        RONDO_CHECK_EXPECT(was.places + (kept ? 1U : 0U) == 1);
        word.dissolve(1);
        RONDO_CHECK_EXPECT(word.try_pass());
    });
}

TEST(GateModel, WhatWasDoneBehindTheLineIsSeenByWhoPassesAfterIt) {
    EXPECT_HOLDS([] {
        detail::admission_word word{1};
        cell<int> guarded{0};
        (void)word.form_line();
        thread passes{[&] {
            if (word.try_pass()) RONDO_CHECK_EXPECT(guarded == 7);
        }};
        guarded = 7;
        word.dissolve(1);
        passes.join();
    });
}

// --- the gate --------------------------------------------------------------------------------

TEST(GateModel, OnePermitIsHadByOneAtATime) {
    EXPECT_HOLDS(
        [] {
            door g{places(1)};
            cell<int> guarded{0};
            auto const visit = [&](int tenant) {
                auto const permit = g.blocking_acquire(tenant);
                RONDO_CHECK_EXPECT(permit.has_value());
                guarded = guarded + 1;
            };
            thread one{[&] { visit(1); }};
            thread two{[&] { visit(2); }};
            visit(3);
            one.join();
            two.join();
            RONDO_CHECK_EXPECT(guarded == 3);
            gate_stats const s = g.stats();
            RONDO_CHECK_EXPECT(s.in_flight == 0 && s.queued == 0 && s.admitted() == 3);
        },
        2);
}

TEST(GateModel, APermitGivenBackWhileALineFormsIsNotLost) {
    EXPECT_HOLDS([] {
        door g{places(1)};
        cell<int> guarded{0};
        auto held = g.try_acquire(1);
        guarded = 7;
        thread waits{[&] {
            auto const permit = g.blocking_acquire(2);
            RONDO_CHECK_EXPECT(permit && guarded == 7);
        }};
        held->release();
        waits.join();
        RONDO_CHECK_EXPECT(g.try_acquire(3).has_value());
    });
}

TEST(GateModel, AStopAndATurnAreDecidedOnce) {
    EXPECT_HOLDS(
        [] {
            door g{places(1)};
            stop_source stop;
            auto held = g.try_acquire(1);
            thread waits{[&] {
                auto const permit = g.blocking_acquire(2, 1, stop.token());
                if (!permit) RONDO_CHECK_EXPECT(permit.error() == gate_error::stopped);
            }};
            thread stops{[&] { stop.request_stop(); }};
            held->release();
            waits.join();
            stops.join();
            gate_stats const s = g.stats();
            RONDO_CHECK_EXPECT(s.in_flight == 0 && s.queued == 0);
            RONDO_CHECK_EXPECT(g.try_acquire(3).has_value());
        },
        1);
}

TEST(GateModel, AWaitWhoseTimeIsUpLeavesThePlaceToTheNext) {
    EXPECT_HOLDS(
        [] {
            door g{places(1)};
            auto held = g.try_acquire(1);
            thread brief{[&] { (void)g.blocking_acquire_until(2, soon); }};
            thread next{[&] { RONDO_CHECK_EXPECT(g.blocking_acquire(3).has_value()); }};
            held->release();
            brief.join();
            next.join();
            RONDO_CHECK_EXPECT(g.stats().in_flight == 0);
        },
        2);
}

TEST(GateModel, CloseTellsWhoWaitsAndKeepsWhoIsIn) {
    EXPECT_HOLDS([] {
        door g{places(1)};
        auto held = g.try_acquire(1);
        thread waits{[&] {
            auto const permit = g.blocking_acquire(2);
            if (!permit) RONDO_CHECK_EXPECT(permit.error() == gate_error::closed);
        }};
        thread closes{[&] { g.close(); }};
        held->release();
        waits.join();
        closes.join();
        RONDO_CHECK_EXPECT(g.is_finished());
        RONDO_CHECK_EXPECT(g.try_acquire(3).error() == try_gate_error::closed);
    });
}

TEST(GateModel, OfTwoInATinyLineOneIsToldAtOnce) {
    EXPECT_HOLDS(
        [] {
            auto c = places(1);
            c.max_queued = 1;
            c.when_full = backpressure::drop_oldest;
            door g{std::move(c)};
            auto held = g.try_acquire(1);
            int in = 0;
            int out = 0;
            thread one{[&] { ++(g.blocking_acquire(2) ? in : out); }};
            {
                auto const mine = g.blocking_acquire_until(2, soon);
                if (!mine) {
                    RONDO_CHECK_EXPECT(mine.error() == gate_error::evicted ||
                                       mine.error() == gate_error::timed_out);
                }
            }
            held->release();
            one.join();
            RONDO_CHECK_EXPECT(in + out == 1);
            RONDO_CHECK_EXPECT(g.stats().in_flight == 0);
        },
        1);
}

TEST(GateModel, WhoIsHeldBackByItsTenantIsCalledUp) {
    EXPECT_HOLDS([] {
        door g{places(2, 1)};
        cell<int> guarded{0};
        auto const visit = [&] {
            auto const permit = g.blocking_acquire(1);
            RONDO_CHECK_EXPECT(permit.has_value());
            guarded = guarded + 1;
        };
        thread other{visit};
        visit();
        other.join();
        RONDO_CHECK_EXPECT(g.stats().in_flight == 0);
    });
}

TEST(GateModel, ALoweredLimitHoldsOnceEnoughHaveGone) {
    EXPECT_HOLDS([] {
        door g{places(2)};
        cell<int> guarded{0};
        auto one = g.try_acquire(1);
        auto two = g.try_acquire(2);
        thread lowers{[&] {
            gate_terms<int> t;
            t.max_in_flight = 1;
            g.reconfigure(std::move(t));
        }};
        one->release();
        two->release();
        lowers.join();
        auto const visit = [&](int tenant) {
            auto const permit = g.blocking_acquire(tenant);
            RONDO_CHECK_EXPECT(permit.has_value());
            guarded = guarded + 1;
        };
        thread first{[&] { visit(3); }};
        visit(4);
        first.join();
        RONDO_CHECK_EXPECT(g.stats().in_flight == 0);
    });
}

}  // namespace
}  // namespace rondo::fair
