// Locks and permits, beside Tokio.
//
// *_uncontended       one task, nobody else
// *_contended         eight tasks, which do as many operations together; a semaphore of two permits
// *_contended_yield   the same, and whoever has it gives way before it gives it back
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../support/driver.hpp"
#include "../support/tasks.hpp"
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

}  // namespace

int main(int argc, char** argv) {
    using enum place;
    std::vector<workload> const all{
        on(ct, "semaphore_uncontended", 2'000'000, semaphore_uncontended),
        on(mt, "semaphore_contended", 400'000, semaphore_contended<false>),
        on(mt, "semaphore_contended_yield", 200'000, semaphore_contended<true>),
    };
    return run("sync", argc, argv, all);
}
