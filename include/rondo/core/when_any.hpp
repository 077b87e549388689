// when_any.hpp: several awaitables at once, until one has a result; the others are stopped.
//
//   auto r = co_await when_any(requests.recv(), shutdown.wait());   // variant, index() says who
//   auto [i, value] = co_await when_any(std::move(tasks));          // the i-th of a vector
//
// Guarantee      the first to complete wins: its value, or its exception, is the result. The
//                others are asked to stop, and the result comes when they have ended: nothing
//                runs on behind the caller's back.
// Losers         one whose turn has not come yet does not begin. One that waits is withdrawn, and
//                whatever it had been promised goes on to the next in its queue. A wait that is
//                itself a branch, and was granted in the same instant, hands on too: it takes its
//                result only when it has won, so that of several receives one receives. A task goes
//                on until its next wait; what it holds is released by its destructors, and its
//                result destroyed. docs/cancellation.md has a line per operation.
// Stop           a stop of the task reaches all of them; it unwinds when they have ended, unless
//                one completed.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/when_all.hpp"

namespace rondo {

namespace detail {

class any_rule : public fork {
  protected:
    using fork::fork;
    ~any_rule() = default;

  private:
    bool may_complete(std::size_t index) noexcept override {
        return parent_may_complete() && claim_first(index);
    }
    void branch_completed(std::size_t index, bool) noexcept override {
        if (first() == index || claim_first(index)) stop_branches();
    }
    bool has_outcome() const noexcept override { return first() != none; }
};

template <class... Ts>
class any_of final : public static_fork<any_rule, Ts...> {
  public:
    using static_fork<any_rule, Ts...>::static_fork;
    using result = std::variant<unit_t<Ts>...>;

    result await_resume() { return take<0>(); }

  private:
    template <std::size_t I>
    result take() {
        if constexpr (I + 1 < sizeof...(Ts)) {
            if (I != this->first()) return take<I + 1>();
        }
        return result{std::in_place_index<I>, std::get<I>(this->branches_).take_unit()};
    }
};

template <class T>
class any_in final : public dynamic_fork<any_rule, T> {
  public:
    using dynamic_fork<any_rule, T>::dynamic_fork;

    std::pair<std::size_t, unit_t<T>> await_resume() {
        return {this->first(), this->branches_[this->first()].take_unit()};
    }
};

template <class... Ts>
task<std::variant<unit_t<Ts>...>> any_task(task<Ts>... tasks) {
    static_assert((!std::is_reference_v<Ts> && ...),
                  "a branch of when_any returns a value or a pointer");
    forking<any_of<Ts...>, std::tuple<task<Ts>...>> fork{std::tuple{std::move(tasks)...}};
    co_return co_await std::move(fork);
}

}  // namespace detail

template <class... Awaitables>
requires(sizeof...(Awaitables) > 0)
auto when_any(Awaitables... awaitables) {
    return detail::any_task(detail::as_task(std::move(awaitables))...);
}

template <class T>
task<std::pair<std::size_t, detail::unit_t<T>>> when_any(std::vector<task<T>> tasks) {
    static_assert(!std::is_reference_v<T>, "a branch of when_any returns a value or a pointer");
    RONDO_ASSERT(!tasks.empty(), "when_any of nothing would never end");
    detail::forking<detail::any_in<T>, std::vector<task<T>>> fork{std::move(tasks)};
    co_return co_await std::move(fork);
}

}  // namespace rondo
