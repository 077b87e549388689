// when_all.hpp: several awaitables at once, until all have ended.
//
//   auto [a, b] = co_await when_all(read(x), read(y));       // tuple; void becomes monostate
//   std::vector<int> all = co_await when_all(std::move(tasks));
//
// Guarantee      each runs as a flow of its own on the task's executor; the first starts at once,
//                the others take their turns. The result comes when all have ended.
// Exceptions     the first one stops the others, and one whose turn has not come yet does not
//                begin; when they have ended it is rethrown.
// Stop           a stop of the task reaches all of them; the task unwinds when they have ended,
//                unless every one of them completed.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "rondo/core/detail/as_task.hpp"
#include "rondo/core/detail/fork.hpp"

namespace rondo {

namespace detail {

class all_rule : public fork {
  protected:
    all_rule(promise_base& parent, std::size_t branches) noexcept
        : fork(parent, branches), missing_(branches) {}
    ~all_rule() = default;

  private:
    void branch_completed(std::size_t index, bool threw) noexcept override {
        missing_.fetch_sub(1, std::memory_order_relaxed);  // ordered by branch_ended()
        if (threw && claim_first(index)) stop_branches();
    }
    bool has_outcome() const noexcept override {
        return first() != none || missing_.load(std::memory_order_relaxed) == 0;
    }

    atomic<std::size_t> missing_;
};

template <class... Ts>
class all_of final : public static_fork<all_rule, Ts...> {
  public:
    using static_fork<all_rule, Ts...>::static_fork;

    std::tuple<unit_t<Ts>...> await_resume() {
        if (this->first() != fork::none) rethrow_first(std::index_sequence_for<Ts...>{});
        return std::apply([](auto&... b) { return std::tuple<unit_t<Ts>...>{b.take_unit()...}; },
                          this->branches_);
    }

  private:
    template <std::size_t... Is>
    void rethrow_first(std::index_sequence<Is...>) {
        ((Is == this->first() ? static_cast<void>(std::get<Is>(this->branches_).take_unit())
                              : static_cast<void>(0)),
         ...);
    }
};

template <class T>
class all_in final : public dynamic_fork<all_rule, T> {
  public:
    using dynamic_fork<all_rule, T>::dynamic_fork;

    std::vector<unit_t<T>> await_resume() {
        if (this->first() != fork::none) this->branches_[this->first()].take();
        std::vector<unit_t<T>> results;
        results.reserve(this->branches_.size());
        for (auto& b : this->branches_) results.push_back(b.take_unit());
        return results;
    }
};

// Makes a fork when a task awaits it.
template <class Fork, class Tasks>
class forking {
  public:
    explicit forking(Tasks tasks) noexcept : tasks_(std::move(tasks)) {}
    Fork rondo_await(promise_base& parent) && { return Fork{parent, tasks_}; }

  private:
    Tasks tasks_;
};

template <class... Ts>
task<std::tuple<unit_t<Ts>...>> all_tasks(task<Ts>... tasks) {
    forking<all_of<Ts...>, std::tuple<task<Ts>...>> fork{std::tuple{std::move(tasks)...}};
    co_return co_await std::move(fork);
}

}  // namespace detail

template <class... Awaitables>
requires(sizeof...(Awaitables) > 0)
auto when_all(Awaitables... awaitables) {
    return detail::all_tasks(detail::as_task(std::move(awaitables))...);
}

template <class T>
task<std::vector<detail::unit_t<T>>> when_all(std::vector<task<T>> tasks) {
    static_assert(!std::is_reference_v<T>, "a branch in a vector returns a value or a pointer");
    detail::forking<detail::all_in<T>, std::vector<task<T>>> fork{std::move(tasks)};
    co_return co_await std::move(fork);
}

}  // namespace rondo
