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

// A wait in a task of its own: it takes its result only if the combinator still wants it.
template <class Wait>
class wait_alone {
  public:
    explicit wait_alone(Wait&& w) noexcept : wait_(std::move(w)) {}
    auto rondo_await(promise_base& task) && noexcept {
        return std::move(wait_).rondo_await_alone(task);
    }

  private:
    Wait wait_;
};

template <class Awaitable>
task<await_result_t<Awaitable>> as_task(Awaitable a) {
    if constexpr (requires(promise_base& task) { std::move(a).rondo_await_alone(task); }) {
        wait_alone<Awaitable> only{std::move(a)};
        co_return co_await std::move(only);
    } else {
        co_return co_await std::move(a);
    }
}

}  // namespace rondo::detail
