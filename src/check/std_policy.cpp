// std_policy.cpp: real waiting, through the futex system call.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "rondo/check/policy.hpp"

namespace rondo::check {
namespace {

// The bitset form, because its timeout is absolute and on the monotonic clock, which is
// steady_clock. Returns whether it was something else than the timeout that ended the wait.
bool wait(std::atomic<std::uint32_t> const& word, std::uint32_t expected,
          timespec const* deadline) noexcept {
    static_assert(sizeof(word) == sizeof(std::uint32_t), "the kernel looks at 32 bits");
    long const result =
        syscall(SYS_futex, static_cast<void const*>(&word), FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
                expected, deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
    return result == 0 || errno != ETIMEDOUT;
}

}  // namespace

void std_policy::futex_wait(std::atomic<std::uint32_t> const& word,
                            std::uint32_t expected) noexcept {
    wait(word, expected, nullptr);
}

bool std_policy::futex_wait_until(std::atomic<std::uint32_t> const& word, std::uint32_t expected,
                                  std::chrono::steady_clock::time_point deadline) noexcept {
    auto const since_boot = deadline.time_since_epoch();
    auto const seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    timespec at{};
    at.tv_sec = static_cast<std::time_t>(seconds.count());
    at.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since_boot - seconds).count());
    if (at.tv_sec < 0) {
        at = {};
    }
    return wait(word, expected, &at);
}

void std_policy::futex_wake(std::atomic<std::uint32_t> const* word, int count) noexcept {
    syscall(SYS_futex, static_cast<void const*>(word), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count,
            nullptr, nullptr, 0);
}

void std_policy::spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace rondo::check
