// fork.hpp: several flows below one task, which goes on when all of them have ended.
//
// Guarantee      the parent is resumed (or unwound) by the last branch to end, on the common
//                executor. Branches follow the parent's stop token, and stop_branches() asks them
//                too. No branch outlives the fork. A branch whose turn comes when another one has
//                already settled the outcome does not begin: it could only take something from
//                somewhere to drop it.
// Budget         the first branch runs in the parent's turn and the parent goes on in the last
//                one's, each with what is left of that turn: a fork of always-ready branches
//                cannot keep a worker, whatever its size.
// Memory order   what branches did is visible to the parent.
#pragma once

#include <coroutine>
#include <cstddef>
#include <deque>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rondo/core/task.hpp"

namespace rondo::detail {

class fork : suspension {
  public:
    fork(promise_base& parent, std::size_t branches) noexcept
        : parent_(parent), running_(branches) {
        link_.attach(parent.env().stop);
    }
    fork(fork const&) = delete;
    fork& operator=(fork const&) = delete;

    environment branch_environment(flow& f) noexcept {
        return {parent_.env().where, stop_.token(), &f};
    }
    flow& parent_flow() const noexcept { return *parent_.env().flow; }

    // The branch that calls this has not ended yet, which keeps the fork alive meanwhile.
    void stop_branches() noexcept { stop_.request_stop(); }

    // A branch has ended, in the turn of that flow: says what runs now. The fork may be gone when
    // this returns.
    unwound branch_ended(flow const& turn) noexcept {
        // acq_rel: the last branch sees what all the others did, and so does the parent
        if (running_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
            return unwound::resume(std::noop_coroutine());
        }
        link_.detach();
        parent_flow().gone_on();
        parent_flow().share_turn_of(turn);
        return has_outcome() ? unwound::resume(parent_.handle()) : unwound::further(parent_);
    }

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    // True for the first branch that asks.
    bool claim_first(std::size_t index) noexcept {
        std::size_t expected = none;
        // relaxed: the parent reads it after branch_ended(), which orders it
        return first_.compare_exchange_strong(expected, index, std::memory_order_relaxed,
                                              std::memory_order_relaxed);
    }
    std::size_t first() const noexcept { return first_.load(std::memory_order_relaxed); }
    bool settled() const noexcept { return first() != none; }

    // For continuation::may_complete().
    virtual bool may_complete(std::size_t) noexcept { return true; }

    // Whether the parent has something to go on with; else it was stopped, and unwinds.
    virtual bool has_outcome() const noexcept = 0;
    // A branch has a result, and has not ended yet.
    virtual void branch_completed(std::size_t index, bool threw) noexcept = 0;

  protected:
    ~fork() = default;

    // The parent waits from now on; before the first branch can end.
    void suspend_parent() noexcept { parent_flow().suspend_at(*this); }
    // Around the fork there may be another one.
    bool parent_may_complete() noexcept { return parent_.may_complete(); }

  private:
    task_trace describe() const override {
        task_trace trace = trace_from(parent_, task_trace::activity::forked);
        describe_branches(trace.branches);
        return trace;
    }
    // Adds those that have not ended.
    virtual void describe_branches(std::vector<task_trace>& to) const = 0;

    promise_base& parent_;
    stop_source stop_;
    stop_link link_{stop_};
    atomic<std::size_t> running_;
    atomic<std::size_t> first_{none};
};

template <class T>
struct branch_of {
    fork& parent;
    std::size_t index;
    task<T>&& child;
};

template <class T>
class branch final : public kept_result<T>, resumption {
  public:
    explicit branch(branch_of<T> b) noexcept
        : fork_(b.parent),
          index_(b.index),
          flow_(fork_.parent_flow()),
          env_(fork_.branch_environment(flow_)),
          child_(std::move(b.child)) {}

    // Begins in the turn of the parent.
    std::coroutine_handle<> start() noexcept {
        flow_.share_turn_of(fork_.parent_flow());
        return child_.start(*this, env_);
    }
    // Begins in a turn of its own.
    void post() noexcept {
        flow_.suspend_at(*this);
        flow_.post();
    }

    void trace_into(std::vector<task_trace>& traces) const {
        if (auto const* const first = child_.promise()) {
            traces.push_back(trace_of(flow_, first, first->position()));
        }
    }

  private:
    task_trace describe() const override {
        return trace_from(*child_.promise(), task_trace::activity::not_begun);
    }
    std::coroutine_handle<> on_turn() noexcept override {
        if (!fork_.settled()) return child_.start(*this, env_);
        {
            task<T> const unbegun{std::move(child_)};
        }
        return end();
    }
    bool may_complete() noexcept override { return fork_.may_complete(index_); }
    std::coroutine_handle<> completed() noexcept override {
        // Its parameters go now: another branch may wait for what they hold.
        {
            task<T> const done{std::move(child_)};
        }
        fork_.branch_completed(index_, this->has_exception());
        return end();
    }
    unwound stopped() noexcept override {
        child_.forget();
        return fork_.branch_ended(flow_);
    }
    std::coroutine_handle<> end() noexcept {
        unwound const next = fork_.branch_ended(flow_);
        return next.frame() != nullptr ? next.frame()->unwind() : next.next();
    }

    fork& fork_;
    std::size_t index_;
    flow flow_;
    environment env_;
    task<T> child_;
};

// Branches of different types.
template <class Rule, class... Ts>
class static_fork : public Rule {
  public:
    static_fork(promise_base& parent, std::tuple<task<Ts>...>& tasks) noexcept
        : static_fork(parent, tasks, std::index_sequence_for<Ts...>{}) {}

    bool await_ready() const noexcept { return sizeof...(Ts) == 0; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        // The first branch runs at once, in this turn, and cannot end before the others are
        // posted: so the fork is there for all of this.
        this->suspend_parent();
        return std::apply(
            [](auto& first, auto&... rest) {
                (rest.post(), ...);
                return first.start();
            },
            branches_);
    }

  protected:
    std::tuple<branch<Ts>...> branches_;

  private:
    void describe_branches(std::vector<task_trace>& to) const override {
        std::apply([&to](auto const&... b) { (b.trace_into(to), ...); }, branches_);
    }

    template <std::size_t... Is>
    static_fork(promise_base& parent, std::tuple<task<Ts>...>& tasks,
                std::index_sequence<Is...>) noexcept
        : Rule(parent, sizeof...(Ts)),
          branches_(branch_of<Ts>{*this, Is, std::move(std::get<Is>(tasks))}...) {}
};

// Any number of branches of one type.
template <class Rule, class T>
class dynamic_fork : public Rule {
  public:
    dynamic_fork(promise_base& parent, std::vector<task<T>>& tasks) : Rule(parent, tasks.size()) {
        for (task<T>& t : tasks)
            branches_.emplace_back(branch_of<T>{*this, branches_.size(), std::move(t)});
    }

    bool await_ready() const noexcept { return branches_.empty(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        this->suspend_parent();
        for (std::size_t i = 1; i < branches_.size(); ++i) branches_[i].post();
        return branches_.front().start();
    }

  protected:
    std::deque<branch<T>> branches_;

  private:
    void describe_branches(std::vector<task_trace>& to) const override {
        for (branch<T> const& b : branches_) b.trace_into(to);
    }
};

}  // namespace rondo::detail
