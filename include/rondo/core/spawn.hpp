// spawn.hpp: start a task that runs on its own, and a handle to wait for its end.
//
//   join_handle<T> h = spawn(executor, task);
//   auto r = co_await h.join();          // expected<T, wait_error>: error when it was stopped
//
// Guarantee      the task starts on the executor, never inside spawn(), and owns itself until it
//                ends: the handle may be destroyed at any time (detach). Its environment has a
//                stop token of its own; request_stop() and a parent token ask through it.
// Exceptions     travel to whoever joins; one that nobody takes goes to executor::unobserved(),
//                when the task has ended and its handle is gone.
// Join           in all forms of a wait; a join that is stopped leaves the task alone. One joiner
//                takes the result; a second one that asks for it is a programmer's error. A task
//                that waits in a join goes on behind those that are queued on its executor.
// Thread safety  spawn() from any thread. request_stop(), ended() and joins of one handle may be
//                called concurrently; moving, detaching and destroying it may not.
// Lifetime       a join may outlive its handle. The executor outlives the task, its handle and its
//                joins: an exception that they leave behind is reported to it.
// Memory         one block for the root beside the task's frame, both recycled.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/detail/root.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/wait.hpp"

namespace rondo {

template <class T>
class join_handle;

namespace detail {

template <class T>
class unbegun;

// A root whose end joiners wait for, in its own queue.
class joined_root : public wait_queue, public root_base {
  public:
    using root_base::root_base;

    bool ended() const noexcept {
        // acquire: pairs with the release in end(); the result is there
        return phase_.load(std::memory_order_acquire) == phase::over;
    }

  protected:
    void end() noexcept {
        leave_executor();
        if (only_owner()) return;  // detached: there is nobody to be told
        // acq_rel: what the task did is visible to whoever joins; pairs with grant()
        if (phase_.exchange(phase::over, std::memory_order_acq_rel) == phase::awaited) serve([] {});
    }

  private:
    // While nobody has waited for the end, ending takes no lock.
    enum class phase : std::uint8_t { alive, awaited, over };

    // Who enters the line says so in the same step in which it sees that the task is alive.
    bool grant(waiter&) noexcept override {
        // acquire: pairs with the exchange in end(), as does the exchange here
        phase seen = phase_.load(std::memory_order_acquire);
        if (seen == phase::alive) {
            phase_.compare_exchange_strong(seen, phase::awaited, std::memory_order_release,
                                           std::memory_order_acquire);
        }
        return seen == phase::over;
    }

    atomic<phase> phase_{phase::alive};
};

template <class T>
using root = root_of<T, joined_root>;

template <class T>
class join_op : public waiter {
  public:
    // Who spawned many joins one after the other: if it went on next each time that one of them
    // has ended it would find the one after it not begun, and wait again. Behind those that are in
    // the queue it finds many that have ended.
    static constexpr bool patient = true;

    explicit join_op(root<T>& r) noexcept : waiter(r), root_(&r) { r.hold(); }
    join_op(join_op&& other) noexcept
        : waiter(static_cast<waiter&&>(other)), root_(std::exchange(other.root_, nullptr)) {}
    ~join_op() {
        if (root_ != nullptr) root_->let_go();
    }

    bool ready() noexcept { return root_->ended(); }
    std::expected<T, wait_error> take() { return root_->outcome(); }
    void hand_on() noexcept {}

  private:
    root<T>* root_;
};

}  // namespace detail

template <class T>
class [[nodiscard("destroying the handle detaches the task")]] join_handle {
    using join_op = detail::join_op<T>;

  public:
    // What a join gives; a bounded one has it, or the reason why it ended first.
    using outcome = std::expected<T, wait_error>;

    join_handle(join_handle&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
    join_handle& operator=(join_handle&& other) noexcept {
        join_handle{std::move(other)}.swap(*this);
        return *this;
    }
    ~join_handle() { detach(); }

    void swap(join_handle& other) noexcept { std::swap(root_, other.root_); }

    // Lets the task run on, unobserved.
    void detach() noexcept {
        if (root_ != nullptr) std::exchange(root_, nullptr)->let_go();
    }
    bool joinable() const noexcept { return root_ != nullptr; }

    void request_stop() noexcept { joined().request_stop(); }
    bool ended() const noexcept { return joined().ended(); }

    wait<join_op> join() noexcept { return join_op{joined()}; }
    bounded_wait<join_op> join(stop_token t) noexcept { return {join_op{joined()}, t}; }
    bounded_wait<join_op> join_until(time_point d, stop_token t = {}) noexcept {
        return {join_op{joined()}, {d, t}};
    }
    bounded_wait<join_op> join_for(clock::duration d, stop_token t = {}) noexcept {
        return {join_op{joined()}, {d, t}};
    }
    outcome blocking_join() { return blocking_wait(join_op{joined()}); }
    std::expected<outcome, wait_error> blocking_join(stop_token t) {
        return blocking_wait(join_op{joined()}, t);
    }
    std::expected<outcome, wait_error> blocking_join_until(time_point d, stop_token t = {}) {
        return blocking_wait(join_op{joined()}, {d, t});
    }
    std::expected<outcome, wait_error> blocking_join_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(join_op{joined()}, {d, t});
    }
    // Nothing while the task has not ended.
    std::optional<outcome> try_join() {
        if (!joined().ended()) return std::nullopt;
        return joined().outcome();
    }

  private:
    friend class detail::unbegun<T>;
    explicit join_handle(detail::root<T>& r) noexcept : root_(&r) {}

    detail::root<T>& joined() const noexcept {
        RONDO_ASSERT(root_ != nullptr, "a join_handle that was detached or moved has no task");
        return *root_;
    }

    detail::root<T>* root_;
};

namespace detail {

// A task that has all that it needs, and does not run yet: for who begins several, or none. One
// that is not begun is destroyed with it.
template <class T>
class unbegun {
  public:
    unbegun(executor& where, task<T> t, stop_token parent)
        : root_(new root<T>{where, std::move(t), parent}) {}

    join_handle<T> begin() noexcept {
        root<T>* const begun = root_.release();
        join_handle<T> handle{*begun};
        begun->begin();
        return handle;
    }

  private:
    std::unique_ptr<root<T>> root_;
};

}  // namespace detail

// The task runs on `where`. A parent token, if there is one, is followed until the task ends; its
// source must live that long.
template <class T>
join_handle<T> spawn(executor& where, task<T> t, stop_token parent = {}) {
    static_assert(!std::is_reference_v<T>, "a spawned task returns a value or a pointer");
    return detail::unbegun<T>{where, std::move(t), parent}.begin();
}

}  // namespace rondo
