// parker and futex_lock with real threads; every interleaving of their words is explored in
// tests/model/core/parking_model_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "rondo/core/parker.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/short_lock.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;

TEST(Parker, AnUnparkThatCameFirstIsRememberedOnce) {
    parker p;
    p.unpark();
    p.unpark();
    p.park();
    EXPECT_FALSE(p.park_until(clock::now()));
}

TEST(Parker, ADeadlineThatHasPassedStillTakesAWakeUpThatIsThere) {
    parker p;
    p.unpark();
    EXPECT_TRUE(p.park_until(clock::now() - 1h));
    EXPECT_FALSE(p.park_until(clock::now() - 1h));
    EXPECT_FALSE(p.park_until(time_point{}));
    EXPECT_FALSE(p.park_until(time_point::min()));
}

TEST(Parker, ParksUntilTheDeadlineAndNotLess) {
    parker p;
    time_point const deadline = clock::now() + 5ms;  // real time is what is tested
    EXPECT_FALSE(p.park_until(deadline));
    EXPECT_GE(clock::now(), deadline);
}

TEST(Parker, TwoThreadsHandAValueBackAndForth) {
    parker there, back;
    int ball = 0;  // plain: only unpark() and park() order its uses
    constexpr int rounds = 20'000;
    std::thread other{[&] {
        for (int i = 0; i < rounds; ++i) {
            there.park();
            ++ball;
            back.unpark();
        }
    }};
    for (int i = 0; i < rounds; ++i) {
        ++ball;
        there.unpark();
        back.park();
    }
    other.join();
    EXPECT_EQ(ball, 2 * rounds);
}

TEST(Parker, MayBeDestroyedWhileUnparkReturns) {
    for (int i = 0; i < 2000; ++i) {
        auto p = std::make_unique<parker>();
        std::thread wakes{[q = p.get()] { q->unpark(); }};
        p->park();
        p.reset();
        wakes.join();
    }
}

TEST(FutexLock, TryLockFailsWhileItIsHeld) {
    futex_lock lock;
    ASSERT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
}

TEST(FutexLock, ManyThreadsExcludeEachOther) {
    futex_lock lock;
    long count = 0;
    constexpr int threads = 8, rounds = 20'000;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                std::lock_guard const guard{lock};
                ++count;
            }
        });
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(count, static_cast<long>(threads) * rounds);
}

TEST(FutexLock, AHolderThatIsOffTheProcessorMakesTheOthersSleepAndWakesThemAll) {
    futex_lock lock;
    std::atomic<int> arrived{0};
    int entered = 0;
    lock.lock();
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t) {
        all.emplace_back([&] {
            ++arrived;
            std::lock_guard const guard{lock};
            ++entered;
        });
    }
    while (arrived.load() != 4) std::this_thread::yield();
    // Long enough, in yields, for their spins to end: most of them sleep when it is released.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    lock.unlock();
    for (auto& t : all) t.join();
    EXPECT_EQ(entered, 4);
}

}  // namespace
}  // namespace rondo
