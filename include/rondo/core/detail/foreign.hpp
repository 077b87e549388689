// foreign.hpp: where a coroutine that is not a rondo task is resumed.
//
// The order, for a coroutine with promise P that suspends in one of our awaitables:
//   1. the executor that its promise names: a member `rondo::executor& rondo_executor()`;
//   2. the executor that is current in the thread that suspends it;
//   3. the trampoline: the thread that wakes it, in that thread's outermost wake_scope.
// The choice is made when it suspends, not when it is woken.
#pragma once

#include <concepts>
#include <coroutine>

#include "rondo/core/executor.hpp"

namespace rondo::detail {

template <class Promise>
concept names_executor = requires(Promise& p) {
    { p.rondo_executor() } -> std::same_as<executor&>;
};

// The trampoline as an executor; its timers are default_timers().
executor& trampoline_executor() noexcept;

template <class Promise>
executor& resumption_place(std::coroutine_handle<Promise> h) noexcept {
    if constexpr (names_executor<Promise>) {
        return h.promise().rondo_executor();
    } else {
        executor* const current = executor::current();
        return current != nullptr ? *current : trampoline_executor();
    }
}

// Whether code of that executor may run in this thread now, without a post.
bool runs_here(executor& place) noexcept;

}  // namespace rondo::detail
