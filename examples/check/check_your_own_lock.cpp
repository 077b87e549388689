// check_your_own_lock.cpp: a lock is written once, used for real, and explored.
//
// The lock takes its atomics and its waiting from a policy. With std_policy it is an ordinary lock;
// with check::policy every way in which its threads can interleave is run. A second version has a
// bug of the kind that a stress test on x86 does not find: its unlock() is relaxed.

#include <cstdint>
#include <cstdio>
#include <mutex>

#include "rondo/check/check.hpp"

namespace {

namespace check = rondo::check;
using order = std::memory_order;

// [lock]
// 0: free. 1: held. 2: held, and somebody may be waiting.
template <class Policy, order Unlock = order::release>
class lock {
  public:
    void acquire() {
        std::uint32_t found = 0;
        // acquire: pairs with the exchange in release(), which must be a release.
        if (state_.compare_exchange_strong(found, 1, order::acquire, order::relaxed)) {
            return;
        }
        while (state_.exchange(2, order::acquire) != 0) {
            Policy::futex_wait(state_, 2);
        }
    }

    void release() {
        if (state_.exchange(0, Unlock) == 2) {
            Policy::futex_wake(&state_, 1);
        }
    }

  private:
    typename Policy::template atomic<std::uint32_t> state_{0};
};
// [/lock]

// [scenario]
// The data that the lock protects is a cell: under the checker, an access that no happens-before
// orders is an error even if the interleaving at hand does no harm.
template <class Policy, class Lock>
int count(int rounds) {
    Lock guard;
    typename Policy::template cell<int> counter{0};
    auto const body = [&] {
        for (int i = 0; i < rounds; ++i) {
            guard.acquire();
            ++counter.write();
            guard.release();
        }
    };
    typename Policy::thread other(body);
    body();
    other.join();
    return counter.read();
}
// [/scenario]

}  // namespace

int main() {
    int const real = count<check::std_policy, lock<check::std_policy>>(100'000);
    std::printf("for real:  counted to %d\n", real);

    // [explore]
    auto const right = check::explore({.preemptions = 3}, [] {
        RONDO_CHECK_EXPECT((count<check::policy, lock<check::policy>>(2)) == 4);
    });
    std::printf("explored:  %s, all %llu executions with up to 3 preemptions\n",
                right.ok ? "correct" : right.error.c_str(),
                static_cast<unsigned long long>(right.executions));
    // [/explore]

    auto const broken = [] { count<check::policy, lock<check::policy, order::relaxed>>(2); };
    auto const wrong = check::explore({}, broken);
    std::printf("\nwith a relaxed unlock, execution %llu fails:\n%s",
                static_cast<unsigned long long>(wrong.executions), wrong.error.c_str());

    auto const again = check::replay(wrong.schedule, broken);
    std::printf("\nreplayed:  %s\n", check::to_string(again.kind));

    bool const as_promised = real == 200'000 && right.ok && right.complete &&
                             wrong.kind == check::failure::race && again.kind == wrong.kind;
    return as_promised ? 0 : 1;
}
