// rwlock.hpp: a value that many may read at a time, or one may write.
//
//   rwlock<routes> table{load()};
//   auto reading = co_await table.read();       // read_guard<routes>: shared, const
//   auto writing = co_await table.write();      // write_guard<routes>: alone
//   auto still = std::move(writing).downgrade();
//
// Guarantee      turns: who waits is let in in the order in which it asked. A writer that waits is
//                not overtaken by readers that come later, so it is not starved; readers that
//                follow each other in line go together.
// Not guaranteed that a reader may read again while it reads: with a writer in line between the two
//                it waits for itself.
// Readers        at most `max_readers`, by default 2^29 - 1; more wait.
// Thread safety  every member, but for the constructor, destructor, into_inner() and get_mut(). A
//                guard may be destroyed by another thread than the one that locked.
// Memory order   what happens before a writer unlocks is visible to the readers and the writer
//                after it, what happens before a reader unlocks, to the writer after it.
// Cancellation   who is stopped while it waits leaves the line. If that was a writer, the readers
//                behind it go at once. A lock granted in that instant is in the result, or passed
//                on.
// Resumption     on the waiter's executor, never inside the unlock.
// Exceptions     those of T's constructor and move.
// Lifetime       the lock outlives its guards and those who wait; an owned guard keeps it alive.
// Cost           to lock and to unlock is one compare-exchange each while nobody waits.
// Allocation     none.
// Example        examples/sync/route_table.cpp
#pragma once

#include <cstddef>
#include <cstdint>
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

// How many may read at a time: rwlock<T> lock{max_readers{4}, value};
struct max_readers {
    std::size_t count;
};

// A reader takes one permit of a pool, a writer all of them.
template <class T = void>
class rwlock {
  public:
    using read_guard = rondo::read_guard<T>;
    using write_guard = rondo::write_guard<T>;
    using read_locked = std::expected<read_guard, wait_error>;
    using write_locked = std::expected<write_guard, wait_error>;

    class read_op : public detail::permit_pool::request {
      public:
        explicit read_op(rwlock& l) noexcept : request(l.pool_, 1), lock_(&l) {}
        read_guard take() noexcept { return lock_->reading_now(); }

      private:
        rwlock* lock_;
    };
    class write_op : public detail::permit_pool::request {
      public:
        explicit write_op(rwlock& l) noexcept : request(l.pool_, l.all_), lock_(&l) {}
        bool ready() noexcept { return lock_->take_all(); }
        write_guard take() noexcept { return lock_->writing_now(); }

      private:
        rwlock* lock_;
    };

    template <class... Args>
    requires(detail::value_from<T, Args...>)
    explicit rwlock(Args&&... args)
        : rwlock(max_readers{UINT32_MAX >> 3}, std::forward<Args>(args)...) {}
    template <class... Args>
    requires(detail::value_from<T, Args...>)
    explicit rwlock(max_readers most, Args&&... args)
        : all_(most.count), pool_(most.count), value_(std::in_place, std::forward<Args>(args)...) {
        RONDO_ASSERT(all_ > 0, "somebody may read");
    }

    // Waits its turn to read. The result is the guard; of a bounded form, `read_locked`.
    wait<read_op> read() noexcept { return read_op{*this}; }
    bounded_wait<read_op> read(stop_token t) noexcept { return {read_op{*this}, t}; }
    bounded_wait<read_op> read_until(time_point d, stop_token t = {}) noexcept {
        return {read_op{*this}, {d, t}};
    }
    bounded_wait<read_op> read_for(clock::duration d, stop_token t = {}) noexcept {
        return {read_op{*this}, {d, t}};
    }
    read_guard blocking_read() { return blocking_wait(read_op{*this}); }
    read_locked blocking_read(stop_token t) { return blocking_wait(read_op{*this}, t); }
    read_locked blocking_read_until(time_point d, stop_token t = {}) {
        return blocking_wait(read_op{*this}, {d, t});
    }
    read_locked blocking_read_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(read_op{*this}, {d, t});
    }

    // Waits its turn to write. The result is the guard; of a bounded form, `write_locked`.
    wait<write_op> write() noexcept { return write_op{*this}; }
    bounded_wait<write_op> write(stop_token t) noexcept { return {write_op{*this}, t}; }
    bounded_wait<write_op> write_until(time_point d, stop_token t = {}) noexcept {
        return {write_op{*this}, {d, t}};
    }
    bounded_wait<write_op> write_for(clock::duration d, stop_token t = {}) noexcept {
        return {write_op{*this}, {d, t}};
    }
    write_guard blocking_write() { return blocking_wait(write_op{*this}); }
    write_locked blocking_write(stop_token t) { return blocking_wait(write_op{*this}, t); }
    write_locked blocking_write_until(time_point d, stop_token t = {}) {
        return blocking_wait(write_op{*this}, {d, t});
    }
    write_locked blocking_write_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(write_op{*this}, {d, t});
    }

    // Nothing if somebody writes or is in line, or if so many read already.
    std::optional<read_guard> try_read() noexcept {
        if (pool_.try_take(1) != detail::permit_pool::answer::taken) return std::nullopt;
        return reading_now();
    }
    // Nothing if somebody reads or writes.
    std::optional<write_guard> try_write() noexcept {
        if (!take_all()) return std::nullopt;
        return writing_now();
    }

    // The value, without a lock: for who is alone with the rwlock. That nobody has it is asserted.
    std::add_lvalue_reference_t<T> get_mut() noexcept
    requires(!std::is_void_v<T>)
    {
        RONDO_ASSERT(pool_.available() == all_, "nobody has the rwlock");
        return *value_.get();
    }
    auto into_inner() && -> T
    requires(!std::is_void_v<T>)
    {
        return std::move(get_mut());
    }

  private:
    friend detail::lock_access;

    bool take_all() noexcept {
        return pool_.try_take(all_, all_) == detail::permit_pool::answer::taken;
    }
    read_guard reading_now() noexcept { return read_guard{detail::read_hold{pool_}, value_.get()}; }
    write_guard writing_now() noexcept {
        return write_guard{detail::write_hold{pool_, all_}, value_.get()};
    }

    std::size_t all_;
    detail::permit_pool pool_;
    [[no_unique_address]] detail::locked_value<T> value_;
};

rwlock() -> rwlock<void>;
rwlock(max_readers) -> rwlock<void>;
template <class T>
rwlock(T) -> rwlock<T>;
template <class T>
rwlock(max_readers, T) -> rwlock<T>;

}  // namespace rondo
