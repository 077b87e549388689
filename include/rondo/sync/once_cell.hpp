// once_cell.hpp: a value that is made once, by whoever needs it first.
//
//   once_cell<connection> cell;
//   connection const* c = co_await cell.get_or_init([&] { return connect(address); });
//
// Guarantee      one initialiser runs at a time; the first that succeeds makes the value, which
//                does not change after that. Everyone gets a pointer to it, never null.
// Initialiser    a function that gives the value, or gives something to await for it. One that
//                throws, that gives an error (get_or_try_init: an expected), or that is stopped
//                leaves the cell empty, and the next in line runs its own; the exception or error
//                is for its own caller alone. The same if moving the value into the cell throws.
// Recursion      an initialiser that waits for its own cell would wait for ever. It is a
//                programmer's error, and reported: for all that the initialising task awaits, and
//                for the thread of a blocking form. Not seen is one that asks from another flow (a
//                branch of when_all, a spawned task) and waits for that.
// Bounds         a token or a deadline of get_or_init() bounds the initialiser too, which is
//                stopped. In a blocking form it bounds the wait for another one's initialiser.
// Thread safety  every member may be called concurrently, but for take() and get_mut(): their
//                caller is alone with the cell.
// Memory order   what the initialiser did is visible to everyone who gets the value.
// Cancellation   who is stopped while another one initialises leaves the line. Who is stopped while
//                its own initialiser runs unwinds it, and the next runs its own.
// Resumption     on the waiter's executor, never inside the call that ends an initialisation.
// Lifetime       the cell outlives those who wait, and a running set() or get_or_init(), although
//                others may have the value already.
// Cost           get(), and a get_or_init() that finds the value: one acquire load. No lock is held
//                while an initialiser runs or a value is moved.
// Allocation     a get_or_init() that does not find the value takes a recycled frame, as any task;
//                waiting in line takes none.
// Example        examples/sync/connect_once.cpp
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <utility>

#include "rondo/core/detail/thread_state.hpp"
#include "rondo/sync/detail/once_init.hpp"
#include "rondo/sync/detail/once_state.hpp"
#include "rondo/sync/detail/slot.hpp"

namespace rondo {

// Why a value was not set. It comes back.
template <class T>
struct set_error {
    enum class reason : std::uint8_t {
        initialized,   // there is one
        initializing,  // an initialiser runs
    };
    reason why;
    T value;
};

template <class T>
class once_cell {
    using result = T const*;
    template <class F>
    using try_result = std::expected<T const*, typename detail::made_t<F>::error_type>;
    template <class R>
    using bounded = std::expected<R, wait_error>;

  public:
    once_cell() = default;
    explicit once_cell(T value) {
        value_.put(std::move(value));
        state_.publish();
    }
    once_cell(once_cell const&) = delete;
    once_cell& operator=(once_cell const&) = delete;
    ~once_cell() {
        if (initialized()) value_.drop();
    }

    bool initialized() const noexcept { return state_.full(); }
    // Null if there is no value.
    T const* get() const noexcept { return initialized() ? &value_.look() : nullptr; }
    T* get_mut() noexcept { return initialized() ? &value_.edit() : nullptr; }

    std::expected<void, set_error<T>> set(T value) {
        using reason = set_error<T>::reason;
        if (state_.try_claim()) {
            detail::once_claim claim{&state_};  // before the value moves, which may throw
            fill(std::move(claim), std::move(value));
            return {};
        }
        reason const why = initialized() ? reason::initialized : reason::initializing;
        return std::unexpected{set_error<T>{why, std::move(value)}};
    }

    // Takes the value out; the cell is empty then, and may be initialised again. If moving it
    // throws, it stays.
    std::optional<T> take() {
        std::optional<T> taken;  // what all returns name is built in its place, and not moved
        if (initialized()) {
            taken.emplace(std::move(value_.edit()));
            value_.drop();
            state_.reset();
        }
        return taken;
    }

    // The value; makes it if there is none.
    template <class F>
    detail::once_init<result, once_cell, F> get_or_init(F make) {
        return {*this, std::move(make)};
    }
    template <class F>
    task<bounded<result>> get_or_init(F make, stop_token t) {
        return with_stop(get_or_init(std::move(make)), t);
    }
    template <class F>
    task<bounded<result>> get_or_init_until(F make, time_point d, stop_token t = {}) {
        return detail::stopped_by(with_deadline(get_or_init(std::move(make)), d), t);
    }
    template <class F>
    task<bounded<result>> get_or_init_for(F make, clock::duration d, stop_token t = {}) {
        return detail::stopped_by(with_timeout(get_or_init(std::move(make)), d), t);
    }
    template <class F>
    result blocking_get_or_init(F make) {
        return blocking<result>(make);
    }
    template <class F>
    bounded<result> blocking_get_or_init(F make, stop_token t) {
        return blocking<result>(make, t);
    }
    template <class F>
    bounded<result> blocking_get_or_init_until(F make, time_point d, stop_token t = {}) {
        return blocking<result>(make, {d, t});
    }
    template <class F>
    bounded<result> blocking_get_or_init_for(F make, clock::duration d, stop_token t = {}) {
        return blocking<result>(make, {d, t});
    }

    // The same for an initialiser that gives an expected.
    template <class F>
    detail::once_init<try_result<F>, once_cell, F> get_or_try_init(F make) {
        return {*this, std::move(make)};
    }
    template <class F>
    task<bounded<try_result<F>>> get_or_try_init(F make, stop_token t) {
        return with_stop(get_or_try_init(std::move(make)), t);
    }
    template <class F>
    task<bounded<try_result<F>>> get_or_try_init_until(F make, time_point d, stop_token t = {}) {
        return detail::stopped_by(with_deadline(get_or_try_init(std::move(make)), d), t);
    }
    template <class F>
    task<bounded<try_result<F>>> get_or_try_init_for(F make, clock::duration d, stop_token t = {}) {
        return detail::stopped_by(with_timeout(get_or_try_init(std::move(make)), d), t);
    }
    template <class F>
    try_result<F> blocking_get_or_try_init(F make) {
        return blocking<try_result<F>>(make);
    }
    template <class F>
    bounded<try_result<F>> blocking_get_or_try_init(F make, stop_token t) {
        return blocking<try_result<F>>(make, t);
    }
    template <class F>
    bounded<try_result<F>> blocking_get_or_try_init_until(F make, time_point d, stop_token t = {}) {
        return blocking<try_result<F>>(make, {d, t});
    }
    template <class F>
    bounded<try_result<F>> blocking_get_or_try_init_for(F make, clock::duration d,
                                                        stop_token t = {}) {
        return blocking<try_result<F>>(make, {d, t});
    }

    // For detail/once_init.hpp.
    detail::once_state& state() noexcept { return state_; }
    T const& known() const noexcept { return value_.look(); }  // to who has seen that it is there
    void fill(detail::once_claim claim, T value) {
        value_.put(std::move(value));  // if that throws, the claim goes to the next
        claim.publish();
    }

  private:
    detail::once_op turn_of_this_thread() noexcept {
        return detail::once_op{state_, &detail::this_thread()};
    }
    template <class R, class F>
    R blocking(F& make) {
        return detail::blocking_init<R>(*this, blocking_wait(turn_of_this_thread()), make);
    }
    template <class R, class F>
    bounded<R> blocking(F& make, wait_bounds bounds) {
        bounded<detail::once_claim> claim = blocking_wait(turn_of_this_thread(), bounds);
        if (!claim) return std::unexpected{claim.error()};
        return detail::blocking_init<R>(*this, *std::move(claim), make);
    }

    detail::once_state state_;
    detail::slot<T> value_;
};

}  // namespace rondo
