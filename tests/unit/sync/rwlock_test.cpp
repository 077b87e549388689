// Rwlock: who may be in together, turns between readers and writers, downgrade, stop, the forms.
#include "rondo/sync/rwlock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::foreign;
using test::manual_loop;

using names = std::vector<std::string>;

// Says that it is in, and stays until the loop runs again.
task<void> read(rwlock<int>& lock, names& in, std::string name) {
    auto const held = co_await lock.read();
    in.push_back(std::move(name));
    co_await yield();
}
task<void> write(rwlock<int>& lock, names& in, std::string name) {
    auto const held = co_await lock.write();
    ++*held;
    in.push_back(std::move(name));
    co_await yield();
}

class Rwlock : public testing::Test {
  protected:
    join_handle<void> reader(std::string name) {
        auto t = spawn(loop, read(lock, in, std::move(name)));
        loop.run_ready();
        return t;
    }
    join_handle<void> writer(std::string name) {
        auto t = spawn(loop, write(lock, in, std::move(name)));
        loop.run_ready();
        return t;
    }
    void then(names const& expected) {
        loop.run_ready();
        EXPECT_EQ(in, expected);
    }

    manual_loop loop;
    rwlock<int> lock{0};
    names in;
};

// --- who may be in together ------------------------------------------------------------------

TEST_F(Rwlock, HasManyReadersOrOneWriter) {
    auto one = lock.try_read();
    auto two = lock.try_read();
    EXPECT_TRUE(one && two);
    EXPECT_FALSE(lock.try_write());
    one.reset();
    EXPECT_FALSE(lock.try_write()) << "one still reads";
    two.reset();
    auto writing = lock.try_write();
    ASSERT_TRUE(writing);
    EXPECT_FALSE(lock.try_read());
    EXPECT_FALSE(lock.try_write());
    **writing = 7;
    writing.reset();
    EXPECT_EQ(*lock.try_read().value(), 7);
}

TEST_F(Rwlock, HasNoMoreReadersThanItsMaximum) {
    rwlock<int> few{max_readers{2}, 5};
    auto one = few.try_read();
    auto const two = few.try_read();
    EXPECT_TRUE(one && two);
    EXPECT_FALSE(few.try_read());
    spawn(loop, read(few, in, "third")).detach();
    then({});
    one.reset();
    then({"third"});
}

TEST_F(Rwlock, WithOneReaderAtATimeReadersExcludeEachOther) {
    rwlock<int> one_at_a_time{max_readers{1}, 5};
    auto writing = one_at_a_time.try_write();
    EXPECT_FALSE(one_at_a_time.try_read());
    auto reading = std::move(*writing).downgrade();
    EXPECT_EQ(*reading, 5);
    EXPECT_FALSE(one_at_a_time.try_read());
    reading.unlock();
    EXPECT_TRUE(one_at_a_time.try_read());
}

// --- turns -----------------------------------------------------------------------------------

TEST_F(Rwlock, AWaitingWriterIsNotOvertakenByReadersThatComeLater) {
    auto reading = lock.try_read();
    writer("writer").detach();
    reader("late reader").detach();
    EXPECT_FALSE(lock.try_read());
    then({});
    reading.reset();
    then({"writer", "late reader"});
    EXPECT_EQ(lock.get_mut(), 1);
}

TEST_F(Rwlock, ReadersThatFollowEachOtherGoTogetherUpToTheNextWriter) {
    auto writing = lock.try_write();
    reader("r1").detach();
    reader("r2").detach();
    writer("w").detach();
    reader("r3").detach();
    writing.reset();
    EXPECT_TRUE(loop.step() && loop.step());
    EXPECT_EQ(in, (names{"r1", "r2"})) << "both are in, and the writer is not";
    EXPECT_FALSE(lock.try_read());
    then({"r1", "r2", "w", "r3"});
}

TEST_F(Rwlock, WritersTakeTurns) {
    auto reading = lock.try_read();
    for (auto const* name : {"a", "b", "c"}) writer(name).detach();
    reading.reset();
    then({"a", "b", "c"});
    EXPECT_EQ(lock.get_mut(), 3);
}

// --- downgrade -------------------------------------------------------------------------------

TEST_F(Rwlock, ADowngradedWriterKeepsWritersOutAndLetsReadersIn) {
    auto writing = lock.try_write();
    **writing = 3;
    auto reading = std::move(*writing).downgrade();
    EXPECT_FALSE(*writing);
    EXPECT_EQ(*reading, 3);
    EXPECT_TRUE(lock.try_read());
    EXPECT_FALSE(lock.try_write());
    reading.unlock();
    EXPECT_TRUE(lock.try_write());
}

TEST_F(Rwlock, ADowngradeLetsInThoseInLineUpToTheNextWriter) {
    auto writing = lock.try_write();
    reader("r1").detach();
    writer("w").detach();
    reader("r2").detach();
    auto reading = std::move(*writing).downgrade();
    then({"r1"});
    EXPECT_FALSE(lock.try_read()) << "the writer is first in line now";
    reading.unlock();
    then({"r1", "w", "r2"});
}

TEST(RwlockDeathTest, AGuardThatHoldsNothingIsNotDowngraded) {
    rwlock<int> lock{0};
    auto held = lock.blocking_write();
    held.unlock();
    EXPECT_DEATH((void)std::move(held).downgrade(), "a guard that is downgraded holds its lock");
}

// --- stop ------------------------------------------------------------------------------------

TEST_F(Rwlock, AStoppedWriterAtTheHeadLetsTheReadersBehindItGoAtOnce) {
    auto reading = lock.try_read();
    auto stopped = writer("writer");
    reader("r1").detach();
    reader("r2").detach();
    writer("next writer").detach();
    then({});
    stopped.request_stop();
    then({"r1", "r2"});
    EXPECT_EQ(stopped.blocking_join().error(), wait_error::stopped);
    EXPECT_FALSE(lock.try_read()) << "the next writer is in line";
    reading.reset();
    then({"r1", "r2", "next writer"});
}

TEST_F(Rwlock, AWriterThatTimesOutLetsTheReadersBehindItGoAtOnce) {
    auto const reading = lock.try_read();
    auto late = spawn(loop, [](rwlock<int>& l) -> task<bool> {
        auto const held = co_await l.write_for(1s);
        co_return held.has_value();
    }(lock));
    reader("r").detach();
    then({});
    loop.advance(1s);
    then({"r"});
    EXPECT_FALSE(late.blocking_join().value());
}

TEST_F(Rwlock, ALockGrantedInTheInstantOfTheStopIsKeptOrPassedOn) {
    auto reading = lock.try_read();
    auto granted = writer("granted");
    auto stopped = writer("stopped");
    reader("reader").detach();
    reading.reset();
    granted.request_stop();
    stopped.request_stop();
    then({"granted", "reader"});
    EXPECT_EQ(granted.blocking_join().error(), wait_error::stopped) << "at its yield";
}

TEST_F(Rwlock, WhatLosesAWhenAnyIsNotInLineAnyMore) {
    auto const reading = lock.try_read();
    auto t = spawn(loop, [](rwlock<int>& l) -> task<std::size_t> {
        auto const won = co_await when_any(l.write(), sleep_for(1s));
        co_return won.index();
    }(lock));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(), 1U);
    EXPECT_TRUE(lock.try_read());
}

// --- every form, in every world --------------------------------------------------------------

using reasons = std::vector<std::optional<wait_error>>;

template <class Locked>
std::optional<wait_error> why(Locked const& result) {
    return result ? std::nullopt : std::optional{result.error()};
}

task<reasons> every_form(rwlock<int>& l, stop_token token, time_point late) {
    reasons all;
    all.push_back(why(co_await l.read(token)));
    all.push_back(why(co_await l.read_until(late)));
    all.push_back(why(co_await l.read_until(late, token)));
    all.push_back(why(co_await l.read_for(0ns)));
    all.push_back(why(co_await l.read_for(0ns, token)));
    all.push_back(why(co_await l.write(token)));
    all.push_back(why(co_await l.write_until(late)));
    all.push_back(why(co_await l.write_until(late, token)));
    all.push_back(why(co_await l.write_for(0ns)));
    all.push_back(why(co_await l.write_for(0ns, token)));
    co_return all;
}

TEST_F(Rwlock, EveryBoundedFormSaysWhyThereIsNoLock) {
    using enum wait_error;
    stop_source source;
    source.request_stop();
    auto served = spawn(loop, every_form(lock, source.token(), loop.now()));
    loop.run_ready();
    auto const writing = lock.try_write();
    auto refused = spawn(loop, every_form(lock, source.token(), loop.now()));
    loop.run_ready();
    EXPECT_EQ(served.blocking_join().value(), reasons(10));
    EXPECT_EQ(refused.blocking_join().value(),
              (reasons{stopped, timed_out, stopped, timed_out, stopped,  //
                       stopped, timed_out, stopped, timed_out, stopped}));
}

TEST(RwlockThread, EveryBlockingFormLocksOrSaysWhyNot) {
    rwlock<int> l{5};
    stop_source source;
    EXPECT_EQ(*l.blocking_read(), 5);
    EXPECT_EQ(**l.blocking_read(source.token()), 5);
    EXPECT_EQ(**l.blocking_read_until(clock::now()), 5);
    EXPECT_EQ(**l.blocking_read_for(0ns), 5);
    EXPECT_EQ(*l.blocking_write(), 5);
    EXPECT_EQ(**l.blocking_write(source.token()), 5);
    EXPECT_EQ(**l.blocking_write_until(clock::now()), 5);
    EXPECT_EQ(**l.blocking_write_for(0ns), 5);
    auto const writing = l.blocking_write();
    EXPECT_EQ(l.blocking_read_until(clock::now()).error(), wait_error::timed_out);
    EXPECT_EQ(l.blocking_read_for(1us).error(), wait_error::timed_out);
    EXPECT_EQ(l.blocking_write_until(clock::now()).error(), wait_error::timed_out);
    EXPECT_EQ(l.blocking_write_for(1us).error(), wait_error::timed_out);
    source.request_stop();
    EXPECT_EQ(l.blocking_read(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(l.blocking_read_for(24h, source.token()).error(), wait_error::stopped);
    EXPECT_EQ(l.blocking_write(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(l.blocking_write_until(time_point::max(), source.token()).error(),
              wait_error::stopped);
}

TEST(RwlockThread, ReadersNeverSeeHalfOfAWrite) {
    constexpr int rounds = 2000;
    struct pair {
        int left = 0;
        int right = 0;
    };
    rwlock<pair> l;
    std::vector<std::thread> crowd;
    for (int i = 0; i < 2; ++i) {
        crowd.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                auto writing = l.blocking_write();
                ++writing->left;
                ++writing->right;
                if (round % 2 == 0) {
                    auto const reading = std::move(writing).downgrade();
                    EXPECT_EQ(reading->left, reading->right);
                }
            }
        });
        crowd.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                if (auto const reading = l.blocking_read_for(round % 2 == 0 ? 10us : 1h)) {
                    EXPECT_EQ((*reading)->left, (*reading)->right);
                }
            }
        });
    }
    for (auto& t : crowd) t.join();
    EXPECT_EQ(l.get_mut().left, 2 * rounds);
}

foreign read_foreign(rwlock<int>& l, names& in) {
    auto const held = co_await l.read();
    in.push_back("foreign");
}

TEST_F(Rwlock, AForeignCoroutineTakesItsTurn) {
    auto writing = lock.try_write();
    read_foreign(lock, in);
    EXPECT_TRUE(in.empty());
    writing.reset();  // the coroutine belongs nowhere: it goes on in here
    EXPECT_EQ(in, names{"foreign"});
    EXPECT_TRUE(lock.try_write());
}

// --- the value -------------------------------------------------------------------------------

TEST(RwlockValue, IsMadeInPlaceAndTakenOut) {
    rwlock<std::unique_ptr<int>> l{std::make_unique<int>(5)};
    *l.get_mut() = 6;
    EXPECT_EQ(*std::move(l).into_inner(), 6);
    rwlock<std::string> text{max_readers{2}, 3U, 'x'};
    EXPECT_EQ(*text.try_read().value(), "xxx");
    static_assert(std::is_same_v<decltype(rwlock{5}), rwlock<int>>);
    static_assert(std::is_same_v<decltype(rwlock{max_readers{2}, 5}), rwlock<int>>);
    static_assert(std::is_same_v<decltype(rwlock{max_readers{2}}), rwlock<void>>);
}

TEST(RwlockValue, MayBeNothing) {
    rwlock l;
    auto const reading = l.try_read();
    EXPECT_TRUE(l.try_read());
    EXPECT_FALSE(l.try_write());
}

TEST(RwlockDeathTest, TheValueIsNotReachedPastSomebodyWhoHasTheLock) {
    rwlock<int> l;
    auto const held = l.try_read();
    EXPECT_DEATH(l.get_mut(), "nobody has the rwlock");
    EXPECT_DEATH((void)std::move(l).into_inner(), "nobody has the rwlock");
}

TEST(RwlockDeathTest, SomebodyMayRead) {
    EXPECT_DEATH((rwlock<int>{max_readers{0}, 5}), "somebody may read");
}

}  // namespace
}  // namespace rondo
