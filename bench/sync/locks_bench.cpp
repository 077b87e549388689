// Locks and permits, beside Tokio.
//
// *_uncontended       one task, nobody else
// *_contended         eight tasks, which do as many operations together; a semaphore of two permits
// *_contended_yield   the same, and whoever has it gives way before it gives it back
// rwlock_mixed*       as contended; every tenth operation of a task writes
// *_floor             uncontended, beside the two atomic operations that a lock and an unlock need:
//                     a compare-exchange there and one back, on a line of its own
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../support/driver.hpp"
#include "../support/ratio.hpp"
#include "../support/tasks.hpp"
#include "rondo/sync/mutex.hpp"
#include "rondo/sync/rwlock.hpp"
#include "rondo/sync/semaphore.hpp"

namespace {

using namespace rondo::bench;
using rondo::environment;
using rondo::join_handle;
using rondo::task;

constexpr std::size_t contenders = 8;

// `body(object, n, with_yield)` for each of eight tasks, with n operations together.
template <class Object, class Body>
task<duration> eight_tasks(Object& object, std::size_t n, bool with_yield, Body body) {
    environment const& env = co_await rondo::this_environment();
    std::vector<join_handle<void>> all;
    stopwatch const watch;
    for (std::size_t i = 0; i < contenders; ++i) {
        all.push_back(spawn_here(env, body(object, n / contenders, with_yield)));
    }
    co_await join_all(all);
    co_return watch.elapsed();
}

// --- mutex ---

task<duration> mutex_uncontended(std::size_t n) {
    rondo::mutex<std::uint64_t> m{0U};
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        auto const value = co_await m.lock();
        ++*value;
    }
    duration const took = watch.elapsed();
    RONDO_ASSERT(m.get_mut() == n, "nothing was lost");
    co_return took;
}

task<void> locks(rondo::mutex<std::uint64_t>& m, std::size_t n, bool with_yield) {
    for (std::size_t i = 0; i < n; ++i) {
        auto const value = co_await m.lock();
        ++*value;
        count();
        if (with_yield) co_await rondo::yield();
    }
}

template <bool WithYield>
task<duration> mutex_contended(std::size_t n) {
    rondo::mutex<std::uint64_t> m{0U};
    co_return co_await eight_tasks(m, n, WithYield, locks);
}

// --- rwlock ---

task<duration> rwlock_read_uncontended(std::size_t n) {
    rondo::rwlock<std::uint64_t> lock{7U};
    std::uint64_t sum = 0;
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        auto const value = co_await lock.read();
        sum += *value;
    }
    asm volatile("" ::"r"(sum));
    co_return watch.elapsed();
}

task<void> reads_and_writes(rondo::rwlock<std::uint64_t>& lock, std::size_t n, bool with_yield) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 10 == 0) {
            auto const value = co_await lock.write();
            ++*value;
            count();
            if (with_yield) co_await rondo::yield();
        } else {
            auto const value = co_await lock.read();
            sum += *value;
            count();
            if (with_yield) co_await rondo::yield();
        }
    }
    asm volatile("" ::"r"(sum));
}

template <bool WithYield>
task<duration> rwlock_mixed(std::size_t n) {
    rondo::rwlock<std::uint64_t> lock{0U};
    co_return co_await eight_tasks(lock, n, WithYield, reads_and_writes);
}

// --- semaphore ---

task<duration> semaphore_uncontended(std::size_t n) {
    rondo::semaphore s{1};
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        auto const permit = co_await s.acquire();
        asm volatile("" ::"r"(&permit) : "memory");
    }
    co_return watch.elapsed();
}

task<void> acquires(rondo::semaphore& s, std::size_t n, bool with_yield) {
    for (std::size_t i = 0; i < n; ++i) {
        auto const permit = co_await s.acquire();
        count();
        if (with_yield) co_await rondo::yield();
    }
}

template <bool WithYield>
task<duration> semaphore_contended(std::size_t n) {
    rondo::semaphore s{2};
    co_return co_await eight_tasks(s, n, WithYield, acquires);
}

// --- what it cannot cost less than ---

task<duration> two_atomic_operations(std::size_t n) {
    alignas(64) std::atomic<std::size_t> word{1};
    std::uint64_t value = 0;
    stopwatch const watch;
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t seen = 1;
        (void)word.compare_exchange_strong(seen, 0, std::memory_order_acquire);
        ++value;
        seen = 0;
        (void)word.compare_exchange_strong(seen, 1, std::memory_order_release);
    }
    asm volatile("" ::"r"(value));
    co_return watch.elapsed();
}

void compare_with_floor(char const* workload, task<duration> (*ours)(std::size_t)) {
    constexpr std::size_t operations = 2'000'000;
    auto const in_one_thread = [](auto body) {
        return [body] { return measured(place::ct, operations, body); };
    };
    compare("sync", workload, {"rondo", in_one_thread(ours)},
            {{"two_atomics", in_one_thread(two_atomic_operations)}});
}

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> const all{
        on(ct, "mutex_uncontended", 2'000'000, mutex_uncontended),
        on(mt, "mutex_contended", 400'000, mutex_contended<false>),
        on(mt, "mutex_contended_yield", 200'000, mutex_contended<true>),
        on(ct, "mutex_contended_yield", 200'000, mutex_contended<true>),
        on(ct, "rwlock_read_uncontended", 2'000'000, rwlock_read_uncontended),
        on(mt, "rwlock_mixed", 400'000, rwlock_mixed<false>),
        on(mt, "rwlock_mixed_yield", 200'000, rwlock_mixed<true>),
        on(ct, "semaphore_uncontended", 2'000'000, semaphore_uncontended),
        on(mt, "semaphore_contended", 400'000, semaphore_contended<false>),
        on(mt, "semaphore_contended_yield", 200'000, semaphore_contended<true>),
    };
    int const failed = run("sync", argc, argv, all);
    if (argc == 1) {
        compare_with_floor("mutex_floor", mutex_uncontended);
        compare_with_floor("rwlock_read_floor", rwlock_read_uncontended);
        compare_with_floor("semaphore_floor", semaphore_uncontended);
    }
    return failed;
}
