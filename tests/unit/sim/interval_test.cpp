// interval.hpp in a world whose clock is exact: when ticks come, and when they were due.
#include "rondo/core/interval.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <expected>
#include <vector>

#include "rondo/core/stop.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sim/world.hpp"

namespace {

using rondo::interval;
using rondo::missed_ticks;
using rondo::task;
using rondo::time_point;
using namespace std::chrono_literals;

namespace sim = rondo::sim;

constexpr time_point at(rondo::clock::duration after_the_beginning) {
    return time_point{after_the_beginning};
}

using moments = std::vector<time_point>;

// When ticks were due, and when they came.
struct log {
    moments due;
    moments came;
};

task<log> listen(interval& every, int ticks) {
    log seen;
    rondo::environment const& env = co_await rondo::this_environment();
    for (int i = 0; i < ticks; ++i) {
        time_point const due = co_await every.tick();
        seen.due.push_back(due);
        seen.came.push_back(env.timers().now());
    }
    co_return seen;
}

TEST(Interval, TicksAtOnceAndThenEveryPeriod) {
    sim::world w;
    w.advance(1s);
    interval every{10s};
    EXPECT_EQ(every.period(), 10s);
    log const seen = w.block_on(listen(every, 3)).value();
    EXPECT_EQ(seen.due, (moments{at(1s), at(11s), at(21s)}));
    EXPECT_EQ(seen.came, seen.due);
}

TEST(Interval, BeginsAtTheStartItWasGiven) {
    sim::world w;
    interval every{10s, at(4s)};
    log const seen = w.block_on(listen(every, 2)).value();
    EXPECT_EQ(seen.came, (moments{at(4s), at(14s)}));
}

// The first tick, a pause of `busy`, and some more.
task<log> listen_after(interval& every, rondo::clock::duration busy, int ticks) {
    (void)co_await every.tick();
    co_await rondo::sleep_for(busy);
    co_return co_await listen(every, ticks);
}

TEST(Interval, BeingLateByLessThanAPeriodDoesNotMoveTheRhythm) {
    for (auto missed : {missed_ticks::burst, missed_ticks::skip}) {
        sim::world w;
        interval every{10s, missed};
        log const seen = w.block_on(listen_after(every, 19s, 3)).value();
        EXPECT_EQ(seen.due, (moments{at(10s), at(20s), at(30s)}));
        EXPECT_EQ(seen.came, (moments{at(19s), at(20s), at(30s)}));
    }
}

TEST(Interval, BurstBringsAllThatWereMissedAtOnce) {
    sim::world w;
    interval every{10s, missed_ticks::burst};
    log const seen = w.block_on(listen_after(every, 35s, 4)).value();
    EXPECT_EQ(seen.due, (moments{at(10s), at(20s), at(30s), at(40s)}));
    EXPECT_EQ(seen.came, (moments{at(35s), at(35s), at(35s), at(40s)}));
}

TEST(Interval, DelayGoesOnAPeriodAfterTheLateOne) {
    sim::world w;
    interval every{10s, missed_ticks::delay};
    log const seen = w.block_on(listen_after(every, 35s, 3)).value();
    EXPECT_EQ(seen.due, (moments{at(10s), at(45s), at(55s)}));
    EXPECT_EQ(seen.came, (moments{at(35s), at(45s), at(55s)}));
}

TEST(Interval, DelayKeepsAPeriodBetweenTicksThoughOneIsLateByLess) {
    sim::world w;
    interval every{10s, missed_ticks::delay};
    log const seen = w.block_on(listen_after(every, 19s, 3)).value();
    EXPECT_EQ(seen.due, (moments{at(10s), at(29s), at(39s)}));
    EXPECT_EQ(seen.came, (moments{at(19s), at(29s), at(39s)}));
}

TEST(Interval, DelayForgivesATimerThatIsALittleLate) {
    sim::world w;
    interval every{10s, missed_ticks::delay};
    log const seen = w.block_on(listen_after(every, 10s + 4ms, 2)).value();
    EXPECT_EQ(seen.came, (moments{at(10s + 4ms), at(20s)}));
    interval brief{2ms, missed_ticks::delay};  // where it is no little
    log const next = w.block_on(listen_after(brief, 5ms, 2)).value();
    EXPECT_EQ(next.came[1] - next.came[0], 2ms);
}

TEST(Interval, SkipGoesOnInTheOldRhythm) {
    sim::world w;
    interval every{10s, missed_ticks::skip};
    log const seen = w.block_on(listen_after(every, 35s, 3)).value();
    EXPECT_EQ(seen.due, (moments{at(10s), at(40s), at(50s)}));
    EXPECT_EQ(seen.came, (moments{at(35s), at(40s), at(50s)}));
}

// Longer ago than a duration can say.
TEST(Interval, MayHaveBegunAtTheBeginningOfTime) {
    for (auto missed : {missed_ticks::delay, missed_ticks::skip}) {
        sim::world w{{.start = at(1h)}};
        interval every{10s, time_point::min(), missed};
        log const seen = w.block_on(listen(every, 3)).value();
        EXPECT_EQ(seen.due[0], time_point::min());
        EXPECT_EQ(seen.came[0], at(1h));
        EXPECT_GT(seen.came[1], at(1h));
        EXPECT_LE(seen.came[1], at(1h + 10s));
        EXPECT_EQ(seen.came[2] - seen.came[1], 10s);
    }
}

TEST(Interval, SkipLeavesOutTheTickThatIsDueInTheSameMoment) {
    sim::world w;
    interval every{10s, missed_ticks::skip};
    log const seen = w.block_on(listen_after(every, 30s, 2)).value();
    EXPECT_EQ(seen.due, (moments{at(10s), at(40s)}));
}

TEST(Interval, CanBeResetBeforeItsFirstTick) {
    sim::world w;
    interval later{10s};
    later.reset();
    EXPECT_EQ(w.block_on(listen(later, 2)).value().came, (moments{at(10s), at(20s)}));
    interval much_later{10s};
    much_later.reset_at(at(100s));
    EXPECT_EQ(w.block_on(listen(much_later, 2)).value().came, (moments{at(100s), at(110s)}));
}

TEST(Interval, CountsFromTheMomentItIsReset) {
    sim::world w;
    interval every{10s};
    (void)w.block_on(listen(every, 1)).value();
    w.advance(4s);
    every.reset();
    w.advance(1s);
    EXPECT_EQ(w.block_on(listen(every, 2)).value().came, (moments{at(14s), at(24s)}));
    every.reset_after(3s);
    EXPECT_EQ(w.block_on(listen(every, 1)).value().came, moments{at(27s)});
    every.reset_immediately();
    EXPECT_EQ(w.block_on(listen(every, 2)).value().came, (moments{at(27s), at(37s)}));
}

task<bool> give_up(interval& every) {
    auto const tick = co_await rondo::with_timeout(every.tick(), 3s);
    co_return !tick;
}

TEST(Interval, ATickThatWasStoppedIsNotLost) {
    sim::world w;
    interval every{10s};
    (void)w.block_on(listen(every, 1)).value();
    EXPECT_TRUE(w.block_on(give_up(every)).value());
    EXPECT_EQ(w.now(), at(3s));
    EXPECT_EQ(w.block_on(listen(every, 2)).value().came, (moments{at(10s), at(20s)}));
}

task<std::expected<time_point, rondo::wait_error>> tick_until(interval& every,
                                                              rondo::stop_token token) {
    co_return co_await every.tick(token);
}

TEST(Interval, ATokenEndsATickEarly) {
    sim::world w;
    interval every{10s};
    rondo::stop_source source;
    EXPECT_EQ(w.block_on(tick_until(every, source.token())).value(), at(0s));
    auto handle = w.spawn(tick_until(every, source.token()));
    (void)w.run_for(1s);
    source.request_stop();
    EXPECT_EQ(w.run_ready(), sim::outcome::finished);
    EXPECT_EQ(handle.blocking_join().value(), std::unexpected{rondo::wait_error::stopped});
}

using IntervalDeathTest = testing::Test;

TEST(IntervalDeathTest, APeriodOfNothingIsAnError) {
    EXPECT_DEATH(interval{0s}, "an interval has a period");
}

}  // namespace
