// mutex.hpp: a value that one at a time may use; or, as mutex<>, just the turn.
//
//   mutex<config> shared{defaults};
//   auto locked = co_await shared.lock();       // mutex_guard<config>
//   locked->retries = 3;                        // unlocked when the guard is destroyed
//
// For critical sections that wait, and for sharing between tasks, coroutines and threads. Where
// nothing inside waits and only threads share, std::mutex does as well.
//
// Guarantee      the lock goes to those who wait in the order in which they asked; unlocking hands
//                it over, and nobody who comes meanwhile overtakes, neither by try_lock().
// Not guaranteed that a holder is ever interrupted: who locks twice waits for itself. There is no
//                poisoning: an exception that unwinds a guard unlocks.
// Thread safety  every member, but for the constructor, destructor, into_inner() and get_mut(). A
//                guard may be destroyed by another thread than the one that locked.
// Memory order   what happens before an unlock is visible after the lock that follows it.
// Cancellation   who is stopped while it waits leaves the line; the lock is never lost: one granted
//                in that instant is in the result, or passed on.
// Resumption     on the waiter's executor, never inside the unlock.
// Exceptions     those of T's constructor and move.
// Lifetime       the mutex outlives its guards and those who wait; an owned guard keeps it alive.
//                Whoever locked last may destroy it right after its guard.
// Cost           lock and unlock are one compare-exchange each while nobody waits.
// Allocation     none.
// Example        examples/sync/shared_account.cpp
#pragma once

#include <expected>
#include <optional>
#include <type_traits>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/locked_value.hpp"
#include "rondo/sync/detail/permit_pool.hpp"
#include "rondo/sync/guard.hpp"

namespace rondo {

template <class T = void>
class mutex {
  public:
    using guard = mutex_guard<T>;
    using locked = std::expected<guard, wait_error>;

    class lock_op : public detail::permit_pool::request {
      public:
        explicit lock_op(mutex& m) noexcept : request(m.pool_, 1), mutex_(&m) {}
        bool ready() noexcept { return mutex_->take(); }
        guard take() noexcept { return mutex_->locked_now(); }

      private:
        mutex* mutex_;
    };

    template <class... Args>
    requires(detail::value_from<T, Args...>)
    explicit mutex(Args&&... args) : value_(std::in_place, std::forward<Args>(args)...) {}

    // Waits its turn. The result is the guard; of a bounded form, `locked`.
    wait<lock_op> lock() noexcept { return lock_op{*this}; }
    bounded_wait<lock_op> lock(stop_token t) noexcept { return {lock_op{*this}, t}; }
    bounded_wait<lock_op> lock_until(time_point d, stop_token t = {}) noexcept {
        return {lock_op{*this}, {d, t}};
    }
    bounded_wait<lock_op> lock_for(clock::duration d, stop_token t = {}) noexcept {
        return {lock_op{*this}, {d, t}};
    }
    guard blocking_lock() { return blocking_wait(lock_op{*this}); }
    locked blocking_lock(stop_token t) { return blocking_wait(lock_op{*this}, t); }
    locked blocking_lock_until(time_point d, stop_token t = {}) {
        return blocking_wait(lock_op{*this}, {d, t});
    }
    locked blocking_lock_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(lock_op{*this}, {d, t});
    }

    // Nothing if somebody has it, or is in line for it.
    std::optional<guard> try_lock() noexcept {
        if (!take()) return std::nullopt;
        return locked_now();
    }

    // The value, without a lock: for who is alone with the mutex. That nobody has it is asserted.
    std::add_lvalue_reference_t<T> get_mut() noexcept
    requires(!std::is_void_v<T>)
    {
        RONDO_ASSERT(pool_.available() == 1, "nobody has the mutex");
        return *value_.get();
    }
    auto into_inner() && -> T
    requires(!std::is_void_v<T>)
    {
        return std::move(get_mut());
    }

  private:
    friend detail::lock_access;

    bool take() noexcept { return pool_.try_take(1, 1) == detail::permit_pool::answer::taken; }
    guard locked_now() noexcept { return guard{detail::mutex_hold{pool_}, value_.get()}; }

    detail::permit_pool pool_{1};
    [[no_unique_address]] detail::locked_value<T> value_;
};

mutex() -> mutex<void>;
template <class T>
mutex(T) -> mutex<T>;

}  // namespace rondo
