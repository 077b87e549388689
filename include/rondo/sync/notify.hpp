// notify.hpp: wakes one waiter, or all of them, and carries nothing.
//
//   notify changed;
//   co_await changed.notified();       // here
//   changed.notify_one();              // and there
//
// Guarantee      notify_one() is for one: the waiter first in line, or if nobody waits, the next
//                that comes: one notification is stored, a second one is not added to it.
//                notify_last() is the same for the waiter last in line.
//                notify_waiters() is for all: everyone who waits, and every notified() that was
//                made before the call and waits later. It is not stored, and takes nothing that is.
// Not missing it a notified() that is made and not awaited yet hears notify_waiters(), but has no
//                place in line for notify_one(). enable() takes that place while its owner runs on:
//
//                    auto change = changed.notified();
//                    change.enable();
//                    if (!condition()) co_await change;     // nothing was missed in between
//
// Thread safety  every member of notify may be called concurrently; a notified belongs to one
//                owner.
// Memory order   what happens before a notify_...() is visible to whom it reaches; what happens
//                before a notify_waiters() also to a notified() that is made too late to hear it.
// Cancellation   who is stopped while it waits loses its place, and no notification. One that had
//                been notified by notify_one() and goes without having seen it (an enabled
//                notified that is dropped, a coroutine that is destroyed, a branch of when_any that
//                has lost) passes it on: to the first in line, or to the last if it came from
//                notify_last().
// Resumption     on the waiter's executor, never inside notify_...().
// Lifetime       the object outlives those who wait, and a running notify_waiters(); an
//                owned_notified keeps it alive.
// Cost           notify_one() with nobody waiting, and a notified() that finds a stored
//                notification, are one atomic operation each and no lock. notify_waiters() wakes in
//                batches and holds the lock for one batch at a time.
// Allocation     none.
// Example        examples/sync/mailbox.cpp
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <utility>

#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/lent_wait.hpp"

namespace rondo {

class notify;

namespace detail {

// From which call a notification came: whether, and to whom, it is passed on.
enum class notified_by : std::uint8_t { nobody, one, last, all };

class notified_op : public waiter {
  public:
    explicit notified_op(notify& n) noexcept;
    notified_op(notified_op&&) noexcept = default;
    ~notified_op() {
        if (enabled_ && !done_ && !leave() && state() == wait_state::granted) hand_on();
    }

    bool enable() noexcept {
        enabled_ = true;
        settled_ = done_ || enlist();
        return settled_;
    }
    bool ready() noexcept;
    void take() noexcept { done_ = true; }
    void hand_on() noexcept;

  private:
    friend notify;

    notify& notify_;
    std::uint64_t calls_;  // of notify_waiters(), when this was made
    notified_by by_ = notified_by::nobody;
    bool enabled_ = false;
    bool settled_ = false;  // enable() found that it need not wait
    bool asked_ = false;    // once, since it was enabled
    bool done_ = false;     // taken or handed on
};

class notify_owner {
  protected:
    explicit notify_owner(std::shared_ptr<notify> n) noexcept : owned_(std::move(n)) {}
    std::shared_ptr<notify> owned_;
};

class owned_notified_op : notify_owner, public notified_op {
  public:
    explicit owned_notified_op(std::shared_ptr<notify> n) noexcept
        : notify_owner(std::move(n)), notified_op(*owned_) {}
};

}  // namespace detail

// Somebody who waits for one notification, or will. Awaited as it is, or in a bounded form; movable
// until it is enabled or awaited. Awaited again after it has ended, it ends at once and the same.
template <class Op>
class [[nodiscard("it waits when it is awaited")]] basic_notified {
  public:
    // (In place: moving an operation that was only just made costs more than making it.)
    template <class... Args>
    explicit basic_notified(std::in_place_t, Args&&... args) noexcept
        : op_(std::forward<Args>(args)...) {}

    // Takes a place in line now. True: it is notified already, or has ended, and will not wait.
    bool enable() noexcept { return op_.enable(); }

    auto rondo_await(detail::promise_base& task) noexcept { return wait().rondo_await(task); }
    auto rondo_await_alone(detail::promise_base& task) noexcept {
        return wait().rondo_await_alone(task);
    }
    auto operator co_await() noexcept { return wait().operator co_await(); }
    // For Asio, and only before enable().
    template <detail::token_for<Op, detail::no_bounds> Token>
    auto operator()(Token&& token) && {
        return rondo_initiate(std::move(op_), detail::no_bounds{}, std::forward<Token>(token));
    }

    detail::lent_wait<Op> wait() noexcept { return detail::lent_wait<Op>{op_}; }
    detail::lent_bounded_wait<Op> wait(stop_token t) noexcept { return {op_, t}; }
    detail::lent_bounded_wait<Op> wait_until(time_point d, stop_token t = {}) noexcept {
        return {op_, {d, t}};
    }
    detail::lent_bounded_wait<Op> wait_for(clock::duration d, stop_token t = {}) noexcept {
        return {op_, {d, t}};
    }
    void blocking_wait() { detail::blocking_lent_wait(op_); }
    std::expected<void, wait_error> blocking_wait(stop_token t) {
        return detail::blocking_lent_wait(op_, t);
    }
    std::expected<void, wait_error> blocking_wait_until(time_point d, stop_token t = {}) {
        return detail::blocking_lent_wait(op_, {d, t});
    }
    std::expected<void, wait_error> blocking_wait_for(clock::duration d, stop_token t = {}) {
        return detail::blocking_lent_wait(op_, {d, t});
    }

  private:
    Op op_;
};

using notified = basic_notified<detail::notified_op>;
using owned_notified = basic_notified<detail::owned_notified_op>;

class notify final : wait_queue {
    using op = detail::notified_op;

  public:
    notify() = default;

    void notify_one() noexcept { notify_single(detail::notified_by::one); }
    void notify_last() noexcept { notify_single(detail::notified_by::last); }
    void notify_waiters() noexcept;

    // Waits for a notification, stored or to come.
    rondo::notified notified() noexcept { return rondo::notified{std::in_place, *this}; }
    bounded_wait<op> notified(stop_token t) noexcept { return {op{*this}, t}; }
    bounded_wait<op> notified_until(time_point d, stop_token t = {}) noexcept {
        return {op{*this}, {d, t}};
    }
    bounded_wait<op> notified_for(clock::duration d, stop_token t = {}) noexcept {
        return {op{*this}, {d, t}};
    }
    void blocking_notified() { blocking_wait(op{*this}); }
    std::expected<void, wait_error> blocking_notified(stop_token t) {
        return blocking_wait(op{*this}, t);
    }
    std::expected<void, wait_error> blocking_notified_until(time_point d, stop_token t = {}) {
        return blocking_wait(op{*this}, {d, t});
    }
    std::expected<void, wait_error> blocking_notified_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(op{*this}, {d, t});
    }
    // Takes the stored notification, if there is one.
    bool try_notified() noexcept;

    // The same as self->notified(), and keeps the object alive.
    static owned_notified notified_owned(std::shared_ptr<notify> self) noexcept {
        return owned_notified{std::in_place, std::move(self)};
    }

  private:
    friend op;

    bool grant(waiter& w) noexcept override;
    void give_back(waiter& w) noexcept override;
    bool owed(waiter& w) noexcept override;

    void notify_single(detail::notified_by how) noexcept;
    void notify_in_line(detail::notified_by how) noexcept;
    bool grant_in_line(op& waits) noexcept;
    detail::notified_by take(std::uint64_t calls, std::uint64_t or_else) noexcept;

    // The word; see src/sync/notify.cpp.
    static constexpr std::uint64_t stored = 1;
    static constexpr std::uint64_t awaited = 2;
    static constexpr std::uint64_t one_call = 4;
    static constexpr std::uint64_t calls_in(std::uint64_t word) noexcept { return word / one_call; }

    atomic<std::uint64_t> word_{0};
    // What a call hands out to those in line; under the lock, and nobody when it is free.
    detail::notified_by offered_ = detail::notified_by::nobody;
};

inline detail::notified_op::notified_op(notify& n) noexcept
    // acquire: pairs with the release in notify_waiters(). Of a call that is counted it will not
    // hear, so it has to see what came before it. (A count that is too old does no harm.)
    : waiter(n), notify_(n), calls_(notify::calls_in(n.word_.load(std::memory_order_acquire))) {}

}  // namespace rondo
