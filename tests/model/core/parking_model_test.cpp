// The lock and the parker, explored down to each operation on their words.
#include <memory>
#include <mutex>

#include "rondo/core/parker.hpp"
#include "rondo/core/short_lock.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

TEST(FutexLockModel, TwoThreadsExcludeEachOtherAndSeeEachOthersWrites) {
    EXPECT_HOLDS([] {
        futex_lock lock;
        cell<int> count{0};
        auto const work = [&] {
            for (int i = 0; i < 2; ++i) {
                std::lock_guard const guard{lock};
                count = count + 1;
            }
        };
        thread other{work};
        work();
        other.join();
        RONDO_CHECK_EXPECT(count == 4);
    });
}

TEST(FutexLockModel, OfThreeThreadsNoneSleepsForEver) {
    EXPECT_HOLDS([] {
        futex_lock lock;
        cell<int> count{0};
        auto const work = [&] {
            std::lock_guard const guard{lock};
            count = count + 1;
        };
        thread two{work}, three{work};
        work();
        two.join();
        three.join();
        RONDO_CHECK_EXPECT(count == 3);
    });
}

TEST(FutexLockModel, TryLockTakesItOrLeavesIt) {
    EXPECT_HOLDS([] {
        futex_lock lock;
        cell<int> count{0};
        cell<int> missed{0};
        thread other{[&] {
            if (lock.try_lock()) {
                count = count + 1;
                lock.unlock();
            } else {
                missed = 1;
            }
        }};
        {
            std::lock_guard const guard{lock};
            count = count + 1;
        }
        other.join();
        RONDO_CHECK_EXPECT(count + missed == 2);
    });
}

TEST(FutexLockModel, TheLastOwnerMayDestroyIt) {
    EXPECT_HOLDS([] {
        struct shared {
            futex_lock lock;
            cell<int> owners{2};
        };
        auto* const s = new shared;
        auto const drop = [s] {
            s->lock.lock();
            int const left = s->owners - 1;
            s->owners = left;
            s->lock.unlock();
            if (left == 0) delete s;
        };
        thread other{drop};
        drop();
        other.join();
    });
}

TEST(ParkerModel, AWakeUpIsNeverLostAndBringsWhatCameBefore) {
    EXPECT_HOLDS([] {
        parker p;
        cell<int> data{0};
        thread wakes{[&] {
            data = 7;
            p.unpark();
        }};
        p.park();
        RONDO_CHECK_EXPECT(data == 7);
        wakes.join();
    });
}

TEST(ParkerModel, AWakeUpThatMeetsTheEndOfAParkIsNotSwallowed) {
    EXPECT_HOLDS([] {
        parker p;
        atomic<bool> ending{false};
        thread sleeps{[&] {
            while (!ending.load(std::memory_order_relaxed)) p.park();
        }};
        p.unpark();
        ending.store(true, std::memory_order_relaxed);  // ordered by the unpark
        p.unpark();
        sleeps.join();
    });
}

TEST(ParkerModel, TwoRoundsNeedTwoWakeUps) {
    EXPECT_HOLDS([] {
        parker p, back;
        thread wakes{[&] {
            p.unpark();
            back.park();
            p.unpark();
        }};
        p.park();
        back.unpark();
        p.park();
        wakes.join();
    });
}

TEST(ParkerModel, ItMayBeDestroyedAsSoonAsParkHasReturned) {
    EXPECT_HOLDS([] {
        auto p = std::make_unique<parker>();
        thread wakes{[q = p.get()] { q->unpark(); }};
        p->park();
        p.reset();
        wakes.join();
    });
}

TEST(ParkerModel, ADeadlineThatMeetsAWakeUpLosesNothing) {
    EXPECT_HOLDS([] {
        parker p;
        cell<int> data{0};
        thread wakes{[&] {
            data = 7;
            p.unpark();
        }};
        if (!p.park_until(soon)) p.park();
        RONDO_CHECK_EXPECT(data == 7);
        wakes.join();
    });
}

}  // namespace
}  // namespace rondo
