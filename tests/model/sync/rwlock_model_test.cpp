// The rwlock explored. A writer beside somebody else shows as a race on what is protected, a lock
// that is lost as a deadlock. The comment above a scenario names mutants that it notices.
#include <optional>

#include "rondo/sync/rwlock.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

constexpr max_readers two{2};  // few permits, few executions

// let_readers_in_for_nothing, leave_a_permit_to_readers
TEST(RwlockModel, AWriterIsAloneAndIsSeenByTheReadersAfterIt) {
    EXPECT_HOLDS([] {
        rwlock<cell<int>> lock{two, 0};
        thread writes{[&] {
            auto const held = lock.blocking_write();
            *held = *held + 1;
        }};
        RONDO_CHECK_EXPECT(*lock.blocking_read() <= 1);
        writes.join();
        RONDO_CHECK_EXPECT(*lock.blocking_read() == 1);
    });
}

// write_what_is_read
TEST(RwlockModel, ReadersAreInTogether) {
    EXPECT_HOLDS([] {
        rwlock<cell<int>> lock{two, 7};
        auto const held = lock.blocking_read();
        thread reads{[&] { RONDO_CHECK_EXPECT(*lock.blocking_read() == 7); }};
        reads.join();
        RONDO_CHECK_EXPECT(!lock.try_write());
    });
}

// unlock_a_reader_twice
TEST(RwlockModel, TheLastOfTheReadersLetsTheWriterIn) {
    EXPECT_HOLDS(
        [] {
            rwlock<cell<int>> lock{two, 0};
            auto held = lock.try_read();
            thread reads{[&] { RONDO_CHECK_EXPECT(*lock.blocking_read() <= 1); }};
            thread writes{[&] { *lock.blocking_write() = 1; }};
            held.reset();
            reads.join();
            writes.join();
            RONDO_CHECK_EXPECT(*lock.blocking_read() == 1);
        },
        1);
}

// unlock_a_writer_in_part
TEST(RwlockModel, TwoWritersExcludeEachOther) {
    EXPECT_HOLDS([] {
        rwlock<cell<int>> lock{two, 0};
        auto const count_one = [&] {
            auto const held = lock.blocking_write();
            *held = *held + 1;
        };
        thread other{count_one};
        count_one();
        other.join();
        RONDO_CHECK_EXPECT(*lock.blocking_read() == 2);
    });
}

// skip_the_head_rerun (of core)
TEST(RwlockModel, AStoppedWriterLetsTheReadersBehindItGoAtOnce) {
    EXPECT_HOLDS(
        [] {
            rwlock<cell<int>> lock{two, 0};
            stop_source stop;
            auto const held = lock.blocking_read();  // until the end: no writer gets in
            thread writer{[&] { RONDO_CHECK_EXPECT(!lock.blocking_write(stop.token())); }};
            thread reader{[&] { RONDO_CHECK_EXPECT(*lock.blocking_read() == 0); }};
            stop.request_stop();
            writer.join();
            reader.join();
        },
        1);
}

// withdraw_after_the_decision (of core)
TEST(RwlockModel, AWriteLockGrantedInTheInstantOfTheStopIsPassedOn) {
    EXPECT_HOLDS([] {
        rwlock<cell<int>> lock{two, 0};
        stop_source stop;
        auto held = lock.try_read();
        thread writer{[&] {
            if (auto const got = lock.blocking_write(stop.token())) **got = 1;
        }};
        thread stops{[&] { stop.request_stop(); }};
        held.reset();
        writer.join();
        stops.join();
        RONDO_CHECK_EXPECT(lock.try_write().has_value());
    });
}

// downgrade_to_nothing, keep_all_when_downgraded
TEST(RwlockModel, ADowngradedWriterKeepsWritersOutAndIsSeenByReaders) {
    EXPECT_HOLDS([] {
        rwlock<cell<int>> lock{two, 0};
        thread writes{[&] {
            auto const held = lock.blocking_write();
            *held = *held + 1;
        }};
        {
            auto writing = lock.blocking_write();
            *writing = *writing + 1;
            int const written = *writing;
            auto const reading = std::move(writing).downgrade();
            RONDO_CHECK_EXPECT(*reading == written);
        }
        writes.join();
        RONDO_CHECK_EXPECT(*lock.blocking_read() == 2);
    });
}

// keep_all_when_downgraded
TEST(RwlockModel, ADowngradeLetsAReaderInWhileItReads) {
    EXPECT_HOLDS([] {
        rwlock<cell<int>> lock{two, 0};
        auto writing = lock.blocking_write();
        thread reads{[&] { RONDO_CHECK_EXPECT(*lock.blocking_read() == 1); }};
        *writing = 1;
        auto const reading = std::move(writing).downgrade();
        reads.join();  // it was let in although this one still reads
        RONDO_CHECK_EXPECT(*reading == 1);
    });
}

}  // namespace
}  // namespace rondo
