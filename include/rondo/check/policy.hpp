// policy.hpp: code that is written once, and runs for real or under the checker.
//
// A class template that takes its atomics, mutexes and waiting from a policy parameter runs for
// real with std_policy, and can be explored with policy:
//
//     template <class Policy>
//     class my_lock { typename Policy::template atomic<std::uint32_t> state_{0}; ... };
//
// Both offer the same names; std_policy adds nothing to what the standard library and the kernel
// do. Real waiting uses the Linux futex.
//
// Example        examples/check/check_your_own_lock.cpp

#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "rondo/check/atomic.hpp"
#include "rondo/check/cell.hpp"
#include "rondo/check/futex.hpp"
#include "rondo/check/mutex.hpp"
#include "rondo/check/thread.hpp"

namespace rondo::check {

struct policy {
    template <class T>
    using atomic = check::atomic<T>;
    template <class T>
    using cell = check::cell<T>;
    using mutex = check::mutex;
    using thread = check::thread;

    static void futex_wait(atomic<std::uint32_t> const& word, std::uint32_t expected) noexcept {
        check::futex_wait(word, expected);
    }
    [[nodiscard]] static bool futex_wait_until(
        atomic<std::uint32_t> const& word, std::uint32_t expected,
        std::chrono::steady_clock::time_point deadline) noexcept {
        return check::futex_wait_until(word, expected, deadline);
    }
    static void futex_wake(atomic<std::uint32_t> const* word, int count) noexcept {
        check::futex_wake(word, count);
    }
    static void spin_pause() noexcept { check::spin_pause(); }

    template <class T>
    static T& thread_storage() {
        return check::thread_storage<T>();
    }
};

// A cell that is not watched for races.
template <class T>
class plain_cell {
  public:
    using value_type = T;

    template <class... Args>
    explicit(sizeof...(Args) != 1) plain_cell(Args&&... args)
        : value_(std::forward<Args>(args)...) {}
    plain_cell(plain_cell const&) = delete;
    plain_cell& operator=(plain_cell const&) = delete;

    [[nodiscard]] T const& read() const noexcept { return value_; }
    [[nodiscard]] T& write() noexcept { return value_; }
    operator T const&() const noexcept { return value_; }
    T const* operator->() const noexcept { return &value_; }
    template <class U = T>
    requires(std::assignable_from<T&, U> && !std::same_as<std::remove_cvref_t<U>, plain_cell>)
    plain_cell& operator=(U&& value) {
        value_ = std::forward<U>(value);
        return *this;
    }

  private:
    T value_{};
};

struct std_policy {
    template <class T>
    using atomic = std::atomic<T>;
    template <class T>
    using cell = plain_cell<T>;
    using mutex = std::mutex;
    using thread = std::thread;

    static void futex_wait(std::atomic<std::uint32_t> const& word, std::uint32_t expected) noexcept;
    [[nodiscard]] static bool futex_wait_until(
        std::atomic<std::uint32_t> const& word, std::uint32_t expected,
        std::chrono::steady_clock::time_point deadline) noexcept;
    static void futex_wake(std::atomic<std::uint32_t> const* word, int count) noexcept;
    static void spin_pause() noexcept;

    template <class T>
    static T& thread_storage() {
        thread_local T storage{};
        return storage;
    }
};

}  // namespace rondo::check
