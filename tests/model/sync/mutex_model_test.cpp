// The mutex explored. A lock that is lost shows as a deadlock, one that is granted twice as a race
// on what it protects. The comment above a scenario names mutants that it notices.
#include <memory>
#include <optional>

#include "rondo/core/block_on.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/mutex.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

// lock_what_is_locked, unlock_twice_after_a_move
TEST(MutexModel, ThreadsExcludeEachOtherAndSeeWhatTheOthersWrote) {
    EXPECT_HOLDS([] {
        mutex<cell<int>> m{0};
        auto const count_one = [&] {
            auto const held = m.blocking_lock();
            *held = *held + 1;
        };
        thread one{count_one};
        thread two{count_one};
        one.join();
        two.join();
        RONDO_CHECK_EXPECT(*m.blocking_lock() == 2);
    });
}

// lock_what_is_locked
TEST(MutexModel, WhoTriesHasItAloneOrNotAtAll) {
    EXPECT_HOLDS([] {
        mutex<cell<int>> m{0};
        int tried = 0;
        thread tries{[&] {
            if (auto const held = m.try_lock()) tried = (** held = **held + 1);
        }};
        {
            auto const held = m.blocking_lock();
            *held = *held + 1;
        }
        tries.join();
        RONDO_CHECK_EXPECT(*m.blocking_lock() == (tried > 0 ? 2 : 1));
    });
}

// lock_what_is_locked
TEST(MutexModel, AStoppedHeadLeavesTheLineToItsFollower) {
    EXPECT_HOLDS(
        [] {
            mutex<cell<int>> m{0};
            stop_source stop;
            auto held = m.try_lock();
            thread head{[&] {
                if (auto const got = m.blocking_lock(stop.token())) **got = **got + 1;
            }};
            thread follower{[&] {
                auto const got = m.blocking_lock();
                *got = *got + 1;
            }};
            stop.request_stop();
            **held = 10;
            held.reset();
            head.join();
            follower.join();
            RONDO_CHECK_EXPECT(*m.blocking_lock() >= 11);
        },
        1);
}

// withdraw_after_the_decision (of core)
TEST(MutexModel, ALockGrantedInTheInstantOfTheStopIsPassedOn) {
    EXPECT_HOLDS([] {
        mutex<> m;
        stop_source stop;
        auto held = m.try_lock();
        thread waits{[&] { (void)m.blocking_lock(stop.token()); }};
        thread stops{[&] { stop.request_stop(); }};
        held.reset();
        waits.join();
        stops.join();
        RONDO_CHECK_EXPECT(m.try_lock().has_value());
    });
}

// do_not_wait_for_the_owed_wake_up (of core)
TEST(MutexModel, ADeadlineAndAnUnlockMeetAndTheLockIsFreeInTheEnd) {
    EXPECT_HOLDS([] {
        constexpr time_point soon{std::chrono::seconds{1}};  // passes at any moment
        mutex<> m;
        auto held = m.try_lock();
        thread waits{[&] { (void)m.blocking_lock_until(soon); }};
        held.reset();
        waits.join();
        RONDO_CHECK_EXPECT(m.try_lock().has_value());
    });
}

// line_up_without_looking (of the pool)
TEST(MutexModel, ATaskAndAThreadTakeTurns) {
    EXPECT_HOLDS(
        [] {
            mutex<cell<int>> m{0};
            thread other{[&] {
                auto const held = m.blocking_lock();
                *held = *held + 1;
            }};
            block_on([](mutex<cell<int>>& shared) -> task<void> {
                auto const held = co_await shared.lock();
                *held = *held + 1;
            }(m));
            other.join();
            RONDO_CHECK_EXPECT(*m.blocking_lock() == 2);
        },
        1);
}

// lock_what_is_locked. Nothing of the mutex is touched after the exchange, or the unlock, that
// serves the next one.
TEST(MutexModel, WhoHasItLastMayDestroyIt) {
    EXPECT_HOLDS([] {
        auto m = std::make_unique<mutex<cell<int>>>(0);
        std::optional held{m->try_lock()};
        thread last{[&] {
            *m->blocking_lock() = 1;
            m.reset();
        }};
        held.reset();
        last.join();
    });
}

}  // namespace
}  // namespace rondo
