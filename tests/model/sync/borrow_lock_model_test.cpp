// The lock of a watch's value, explored. Each scenario names the mutants that it is there for
// (tests/mutants/sync/watch.mutants).
#include <mutex>
#include <shared_mutex>

#include "rondo/sync/detail/borrow_lock.hpp"
#include "support/model.hpp"

namespace rondo::detail {
namespace {

using check::thread;

struct guarded {
    borrow_lock lock;
    cell<int> left{0}, right{0};

    void write() {
        std::lock_guard const guard{lock};
        left = left + 1;
        right = right + 1;
    }
    int read() {
        lock.lock_shared();
        int const l = left, r = right;
        lock.unlock_shared();
        RONDO_CHECK_EXPECT(l == r);
        return l;
    }
};

// borrow_lock_relaxed, borrow_unlock_relaxed, borrow_look_for_readers_relaxed,
// borrow_wake_nobody_at_the_gate, borrow_sleep_unseen
TEST(BorrowLockModel, WritersExcludeEachOther) {
    EXPECT_HOLDS([] {
        guarded g;
        thread other{[&] { g.write(); }};
        g.write();
        other.join();
        RONDO_CHECK_EXPECT(g.read() == 2);
    });
}

// borrow_shared_relaxed, borrow_shared_slowly_relaxed, borrow_unlock_shared_relaxed,
// borrow_pass_a_closed_gate, borrow_do_not_wait_for_readers, borrow_wake_no_writer
TEST(BorrowLockModel, AReaderSeesAllOfAWriteOrNothingOfIt) {
    EXPECT_HOLDS([] {
        guarded g;
        thread writes{[&] { g.write(); }};
        int const seen = g.read();
        RONDO_CHECK_EXPECT(seen == 0 || seen == 1);
        writes.join();
        RONDO_CHECK_EXPECT(g.read() == 1);
    });
}

// borrow_wake_no_writer
TEST(BorrowLockModel, AWriterWaitsForAllReaders) {
    EXPECT_HOLDS(
        [] {
            guarded g;
            thread one{[&] { (void)g.read(); }};
            thread two{[&] { (void)g.read(); }};
            g.write();
            one.join();
            two.join();
        },
        1);
}

// borrow_wake_one_at_the_gate
TEST(BorrowLockModel, NobodySleepsForEverAtTheGate) {
    EXPECT_HOLDS(
        [] {
            guarded g;
            thread reads{[&] { (void)g.read(); }};
            thread writes{[&] { g.write(); }};
            g.write();
            reads.join();
            writes.join();
            RONDO_CHECK_EXPECT(g.read() == 2);
        },
        1);
}

// borrow_let_one_in_at_a_time
TEST(BorrowLockModel, ReadersReadTogether) {
    EXPECT_HOLDS([] {
        borrow_lock lock;
        atomic<bool> other_is_in{false};
        lock.lock_shared();
        thread other{[&] {
            lock.lock_shared();
            other_is_in.store(true, std::memory_order_relaxed);
            lock.unlock_shared();
        }};
        while (!other_is_in.load(std::memory_order_relaxed)) spin_pause();
        lock.unlock_shared();
        other.join();
    });
}

}  // namespace
}  // namespace rondo::detail
