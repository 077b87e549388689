// join_set.hpp: tasks that belong together, joined one by one as they end.
//
//   join_set<page> fetches{executor};
//   for (url const& u : urls) fetches.spawn(fetch(u));
//   for (;;) {
//       auto p = co_await fetches.join_next();       // expected<page, join_error>
//       if (!p && p.error() == join_error::empty) break;
//       ...
//   }
//
// Guarantee      join_next() gives each task's result once, in the order in which they ended. It
//                takes the same whatever the number of tasks: one that ends enters a line.
// Result         the task's value; join_error::task_stopped if it was stopped; an exception is
//                thrown to the joiner. join_error::empty when no task is left: also to those who
//                wait when somebody else joins the last one, and not before: whoever has come
//                first may still leave it to them (see Cancellation).
// Stop           stop_all() asks the tasks that are in the set now; they are joined as usual.
//                shutdown() asks them and those that come until it ends, and waits until none
//                runs; results that are there then are dropped. The set may be used again.
// Destruction    asks the same tasks to stop and does not wait for them: they unwind on their
//                executors. To wait, co_await shutdown() first. Nobody waits in a set that goes.
// Exceptions     of a task that is not joined go to executor::unobserved(), when the task is
//                detached, shut down, or its set is gone.
// Cancellation   a join_next() that is stopped has taken nothing. One that was granted a task and
//                then loses a when_any leaves it to the next in line.
// Thread safety  every member may be called concurrently, but for the destructor.
// Memory order   what a task did is visible to whoever joins it.
// Memory         one block a task beside its frame, as spawn(), and one for the set; recycled.
// Lifetime       executors outlive the tasks and the set.
// Example        examples/core/first_answers.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <type_traits>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/detail/join_group.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/wait.hpp"

namespace rondo {

enum class join_error : std::uint8_t {
    empty,         // the set has no task
    task_stopped,  // the task that ended was stopped
    stopped,       // a stop token asked the join
    timed_out,     // its deadline passed
};

namespace detail {

template <class T>
using set_member = root_of<T, join_member>;

template <class T>
class join_next_op : public group_op {
  public:
    explicit join_next_op(join_group& g) noexcept : group_op(g, wish::next) {}

    bool ready() noexcept { return group().try_join(*this); }
    bool ready_revocably() noexcept { return group().try_grant(*this); }
    std::expected<T, join_error> take() {
        if (member() == nullptr) return std::unexpected{join_error::empty};
        group().join(*this);
        joined const done{static_cast<set_member<T>*>(member())};
        std::expected<T, wait_error> result = done.member->outcome();
        if (!result) return std::unexpected{join_error::task_stopped};
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            return std::move(*result);
        }
    }
    join_error refuse(wait_error why) noexcept { return reason<join_error>(why); }
    void hand_on() noexcept {
        if (member() != nullptr) group().put_back(*member());
    }

  private:
    // The member goes when its result is taken, or thrown.
    struct joined {
        set_member<T>* member;
        explicit joined(set_member<T>* m) noexcept : member(m) {}
        joined(joined const&) = delete;
        joined& operator=(joined const&) = delete;
        ~joined() { member->let_go(); }
    };
};

class shutdown_op : public group_op {
  public:
    explicit shutdown_op(join_group& g) noexcept : group_op(g, wish::silence) {}
    shutdown_op(shutdown_op&&) noexcept = default;  // before it has begun
    ~shutdown_op() {
        if (begun_) group().end_shutdown();
    }

    bool ready() noexcept {
        if (!std::exchange(begun_, true)) group().begin_shutdown();
        return group().try_grant(*this);
    }
    void take() noexcept { group().drop_ended(); }
    void hand_on() noexcept {}

  private:
    bool begun_ = false;
};

}  // namespace detail

template <class T>
class join_set {
    static_assert(!std::is_reference_v<T>, "a spawned task returns a value or a pointer");
    using next_op = detail::join_next_op<T>;

  public:
    // Where tasks run that are spawned without saying where.
    explicit join_set(executor& where) : where_(where), group_(new detail::join_group) {}
    ~join_set() {
        RONDO_ASSERT(!group_->awaited(), "a join_set is destroyed after everyone has left it");
        group_->stop_for_good();
        detach_all();
        group_->let_go();
    }
    join_set(join_set const&) = delete;
    join_set& operator=(join_set const&) = delete;

    void spawn(task<T> t, stop_token parent = {}) { spawn(where_, std::move(t), parent); }
    void spawn(executor& where, task<T> t, stop_token parent = {}) {
        auto* const member = new detail::set_member<T>{where, std::move(t), parent, *group_};
        group_->add(*member);
        member->begin();
    }

    // Tasks that have not been joined.
    std::size_t size() const noexcept { return group_->size(); }
    bool empty() const noexcept { return size() == 0; }

    void stop_all() noexcept { group_->stop_all(); }
    // Lets the tasks run on, unobserved; the set is empty then.
    void detach_all() noexcept { group_->detach_all(); }

    wait<next_op> join_next() noexcept { return next_op{*group_}; }
    bounded_wait<next_op> join_next(stop_token t) noexcept { return {next_op{*group_}, t}; }
    bounded_wait<next_op> join_next_until(time_point d, stop_token t = {}) noexcept {
        return {next_op{*group_}, {d, t}};
    }
    bounded_wait<next_op> join_next_for(clock::duration d, stop_token t = {}) noexcept {
        return {next_op{*group_}, {d, t}};
    }
    std::expected<T, join_error> blocking_join_next() { return blocking_wait(next_op{*group_}); }
    std::expected<T, join_error> blocking_join_next(stop_token t) {
        return blocking_wait(next_op{*group_}, t);
    }
    std::expected<T, join_error> blocking_join_next_until(time_point d, stop_token t = {}) {
        return blocking_wait(next_op{*group_}, {d, t});
    }
    std::expected<T, join_error> blocking_join_next_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(next_op{*group_}, {d, t});
    }
    // Nothing if no task has ended that is not joined yet, or if others wait here: to join the next
    // one, or for a shutdown.
    std::optional<std::expected<T, join_error>> try_join_next() {
        next_op op{*group_};
        if (!op.ready() || op.member() == nullptr) return std::nullopt;
        return op.take();
    }

    // Asks when it is awaited.
    wait<detail::shutdown_op> shutdown() noexcept { return detail::shutdown_op{*group_}; }
    bounded_wait<detail::shutdown_op> shutdown(stop_token t) noexcept {
        return {detail::shutdown_op{*group_}, t};
    }
    bounded_wait<detail::shutdown_op> shutdown_until(time_point d, stop_token t = {}) noexcept {
        return {detail::shutdown_op{*group_}, {d, t}};
    }
    bounded_wait<detail::shutdown_op> shutdown_for(clock::duration d, stop_token t = {}) noexcept {
        return {detail::shutdown_op{*group_}, {d, t}};
    }
    void blocking_shutdown() { blocking_wait(detail::shutdown_op{*group_}); }
    std::expected<void, wait_error> blocking_shutdown(stop_token t) {
        return blocking_wait(detail::shutdown_op{*group_}, t);
    }
    std::expected<void, wait_error> blocking_shutdown_until(time_point d, stop_token t = {}) {
        return blocking_wait(detail::shutdown_op{*group_}, {d, t});
    }
    std::expected<void, wait_error> blocking_shutdown_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(detail::shutdown_op{*group_}, {d, t});
    }

  private:
    executor& where_;
    detail::join_group* const group_;
};

}  // namespace rondo
