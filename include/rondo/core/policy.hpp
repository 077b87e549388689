// policy.hpp: what the library's algorithms are made of: atomics, plain cells, parking, identity.
//
// Every algorithm of core and of the modules above it names these and nothing of <atomic>,
// <mutex> or <thread>. An ordinary build makes them the real ones, at no cost. A build with
// RONDO_CHECKED makes them the model checker's, so that the very sources that ship are explored
// (targets rondo::core_checked, ...; a program links one variant or the other, never both).
//
//   atomic<T>              std::atomic<T>
//   cell<T>                plain data that one side writes and another reads later; the checker
//                          reports a race if no happens-before orders the two
//   futex_wait, _until,    the kernel's futex on a 32-bit word; waking a word that is already
//   futex_wake             gone is allowed, it needs only the address
//   spin_pause()           says that this thread polls
//   yield_processor()      the same, and that others may have the processor
//   this_thread()          the calling thread's few words of state (see thread_state.hpp)
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#ifdef RONDO_CHECKED
#include "rondo/check/check.hpp"
#endif

namespace rondo {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

#ifdef RONDO_CHECKED

inline constexpr bool checked_build = true;

template <class T>
using atomic = check::atomic<T>;
template <class T>
using cell = check::cell<T>;
using check::futex_wait;
using check::futex_wait_until;
using check::futex_wake;
using check::spin_pause;
inline void yield_processor() noexcept { spin_pause(); }

#else

inline constexpr bool checked_build = false;

template <class T>
using atomic = std::atomic<T>;

template <class T>
class cell {
  public:
    constexpr cell() = default;
    constexpr cell(T value) : value_(static_cast<T&&>(value)) {}

    T const& read() const noexcept { return value_; }
    T& write() noexcept { return value_; }
    operator T const&() const noexcept { return value_; }
    cell& operator=(T value) {
        value_ = static_cast<T&&>(value);
        return *this;
    }

  private:
    T value_{};
};

// Blocks while the word holds `expected`; may also return for no reason.
void futex_wait(atomic<std::uint32_t> const& word, std::uint32_t expected) noexcept;
// The same, until the deadline: false when it passed.
bool futex_wait_until(atomic<std::uint32_t> const& word, std::uint32_t expected,
                      time_point deadline) noexcept;
void futex_wake(atomic<std::uint32_t> const* word, int how_many) noexcept;

inline void spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

void yield_processor() noexcept;

#endif

}  // namespace rondo
