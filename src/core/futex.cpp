// The kernel's side of parking and polling. A checked build does both in the model instead.
#include "rondo/core/policy.hpp"

#ifndef RONDO_CHECKED

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace rondo {

static_assert(sizeof(atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "the kernel reads the word itself");

void futex_wait(atomic<std::uint32_t> const& word, std::uint32_t expected) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

bool futex_wait_until(atomic<std::uint32_t> const& word, std::uint32_t expected,
                      time_point deadline) noexcept {
    auto const since_epoch = deadline.time_since_epoch();
    if (since_epoch.count() <= 0) return false;
    auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    timespec const when{.tv_sec = static_cast<std::time_t>(seconds.count()),
                        .tv_nsec = static_cast<long>((since_epoch - seconds).count())};
    // WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, which is what steady_clock counts here:
    // a wait that is interrupted and repeated does not drift.
    long const result = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, &when,
                                  nullptr, FUTEX_BITSET_MATCH_ANY);
    return !(result == -1 && errno == ETIMEDOUT);
}

void yield_processor() noexcept { ::sched_yield(); }

void futex_wake(atomic<std::uint32_t> const* word, int how_many) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, how_many, nullptr, nullptr, 0);
}

}  // namespace rondo

#endif
