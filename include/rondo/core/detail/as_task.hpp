// as_task.hpp: anything awaitable as a task, for combinators.
#pragma once

#include <type_traits>
#include <utility>

#include "rondo/core/task.hpp"

namespace rondo::detail {

template <class Awaitable>
decltype(auto) awaiter_in_task(Awaitable&& a, promise_base& p) {
    if constexpr (requires { std::forward<Awaitable>(a).rondo_await(p); }) {
        return std::forward<Awaitable>(a).rondo_await(p);
    } else {
        return awaiter_of(std::forward<Awaitable>(a));
    }
}

// What `co_await a` gives inside a task.
template <class Awaitable>
using await_result_t =
    decltype(awaiter_in_task(std::declval<Awaitable>(), std::declval<promise_base&>())
                 .await_resume());

template <class T>
task<T> as_task(task<T> t) {
    return t;
}

template <class Awaitable>
task<await_result_t<Awaitable>> as_task(Awaitable a) {
    co_return co_await std::move(a);
}

template <class Awaitable>
using task_result_t = typename decltype(as_task(std::declval<Awaitable>()))::value_type;

}  // namespace rondo::detail
