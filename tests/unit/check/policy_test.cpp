// policy_test.cpp: one lock, written once, for real and under the checker.

#include "rondo/check/policy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <mutex>

#include "rondo/check/explore.hpp"

namespace {

namespace check = rondo::check;
using order = std::memory_order;

// Drepper, "Futexes Are Tricky", mutex 2. 0 free, 1 held, 2 held and perhaps waited for.
template <class Policy>
class futex_lock {
  public:
    void lock() {
        std::uint32_t seen = 0;
        // acquire: pairs with the release exchange in unlock().
        if (state_.compare_exchange_strong(seen, 1, order::acquire, order::relaxed)) {
            return;
        }
        while (state_.exchange(2, order::acquire) != 0) {
            Policy::futex_wait(state_, 2);
        }
    }
    void unlock() {
        if (state_.exchange(0, order::release) == 2) {
            Policy::futex_wake(&state_, 1);
        }
    }

  private:
    typename Policy::template atomic<std::uint32_t> state_{0};
};

template <class Policy>
int count_under_lock(int rounds) {
    futex_lock<Policy> lock;
    typename Policy::template cell<int> value{0};
    auto const body = [&] {
        for (int i = 0; i < rounds; ++i) {
            std::scoped_lock const held(lock);
            ++value.write();
        }
    };
    typename Policy::thread other(body);
    body();
    other.join();
    return value.read();
}

TEST(Policy, SameLockIsExploredAndRuns) {
    auto const result = check::explore(
        {.preemptions = 3}, [] { RONDO_CHECK_EXPECT(count_under_lock<check::policy>(2) == 4); });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(count_under_lock<check::std_policy>(20'000), 40'000);
}

TEST(Policy, RealTimedWaitEnds) {
    std::atomic<std::uint32_t> word{1};
    auto const past = std::chrono::steady_clock::now() - std::chrono::milliseconds(1);
    EXPECT_FALSE(check::std_policy::futex_wait_until(word, 1, past));
    EXPECT_TRUE(check::std_policy::futex_wait_until(word, 0, past));
    check::std_policy::futex_wake(&word, 1);
    check::std_policy::spin_pause();
    check::std_policy::thread_storage<int>() = 3;
    EXPECT_EQ(check::std_policy::thread_storage<int>(), 3);
}

TEST(Policy, CheckedMembersForwardToTheChecker) {
    auto const result = check::explore({}, [] {
        check::policy::atomic<std::uint32_t> word{0};
        check::policy::thread waker([&] {
            word.store(1);
            check::policy::futex_wake(&word, 1);
        });
        while (word.load() == 0) {
            static_cast<void>(check::policy::futex_wait_until(word, 0, {}));
            check::policy::spin_pause();
        }
        check::policy::thread_storage<int>() = 1;
        waker.join();
    });
    EXPECT_TRUE(result.ok) << result.error;
    EXPECT_TRUE(result.complete);
}

}  // namespace
