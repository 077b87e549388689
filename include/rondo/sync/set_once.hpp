// set_once.hpp: a value that is set once, and that others wait for.
//
//   set_once<config> settings;
//   config const* c = co_await settings.wait();       // here, and wherever it is needed
//   settings.set(read_config());                      // there, once
//
// Guarantee      the first set() wins; the value does not change after that. Everyone who waits,
//                and everyone who comes later, gets a pointer to it, never null.
// Errors         a set() that comes too late gives its value back. If moving the value into its
//                place throws, nothing was set.
// Thread safety  every member may be called concurrently, but for take(): its caller is alone.
// Memory order   what happens before set() is visible to everyone who gets the value.
// Cancellation   who is stopped while it waits leaves the line; there is nothing to lose.
// Resumption     on the waiter's executor, never inside set().
// Lifetime       the object outlives those who wait, and a running set().
// Cost           get(), and a wait() that finds the value: one acquire load. set() wakes in
//                batches. No lock is held while a value is moved.
// Allocation     none.
// Example        examples/sync/settings.cpp
#pragma once

#include <expected>
#include <optional>
#include <tuple>
#include <utility>

#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/once_state.hpp"
#include "rondo/sync/detail/slot.hpp"

namespace rondo {

template <class T>
class set_once {
    class wait_op : public detail::once_op {
      public:
        explicit wait_op(set_once& s) noexcept : once_op(s.state_), set_(s) {}
        T const* take() const noexcept { return set_.get(); }

      private:
        set_once& set_;
    };

  public:
    set_once() = default;
    explicit set_once(T value) { std::ignore = set(std::move(value)); }
    set_once(set_once const&) = delete;
    set_once& operator=(set_once const&) = delete;
    ~set_once() {
        if (initialized()) value_.drop();
    }

    // The value comes back if there is one already, or one is being set.
    std::expected<void, T> set(T value) {
        if (!state_.try_claim()) return std::unexpected{std::move(value)};
        detail::once_claim claim{&state_};
        value_.put(std::move(value));
        claim.publish();
        return {};
    }

    bool initialized() const noexcept { return state_.full(); }
    // Null if there is no value yet.
    T const* get() const noexcept { return initialized() ? &value_.look() : nullptr; }

    // Waits until there is one.
    rondo::wait<wait_op> wait() noexcept { return wait_op{*this}; }
    bounded_wait<wait_op> wait(stop_token t) noexcept { return {wait_op{*this}, t}; }
    bounded_wait<wait_op> wait_until(time_point d, stop_token t = {}) noexcept {
        return {wait_op{*this}, {d, t}};
    }
    bounded_wait<wait_op> wait_for(clock::duration d, stop_token t = {}) noexcept {
        return {wait_op{*this}, {d, t}};
    }
    T const* blocking_wait() { return rondo::blocking_wait(wait_op{*this}); }
    std::expected<T const*, wait_error> blocking_wait(stop_token t) {
        return rondo::blocking_wait(wait_op{*this}, t);
    }
    std::expected<T const*, wait_error> blocking_wait_until(time_point d, stop_token t = {}) {
        return rondo::blocking_wait(wait_op{*this}, {d, t});
    }
    std::expected<T const*, wait_error> blocking_wait_for(clock::duration d, stop_token t = {}) {
        return rondo::blocking_wait(wait_op{*this}, {d, t});
    }

    // Takes the value out; another one can be set then. If moving it throws, it stays.
    std::optional<T> take() {
        std::optional<T> taken;  // what all returns name is built in its place, and not moved
        if (initialized()) {
            taken.emplace(std::move(value_.edit()));
            value_.drop();
            state_.reset();
        }
        return taken;
    }

  private:
    detail::once_state state_;
    detail::slot<T> value_;
};

}  // namespace rondo
