// watch.hpp: the current value of something, for many who want to know when it changes.
//
//   auto [tx, rx] = watch::channel<config>(first);
//   tx.send(next);                                    // never waits for receivers
//   while (co_await rx.changed()) apply(*rx.borrow_and_update());
//
// Guarantee      a receiver sees the latest value; of values that follow each other quickly it may
//                miss all but the last. changed() ends when there is a value that this receiver has
//                not marked as seen. A value is seen by changed(), borrow_and_update() and
//                wait_for(); a new receiver has seen the current one, a copied one what its
//                original had.
// Close          when the last sender has gone: changed() then still reports a value that was not
//                seen, and `closed` after that. The last value can be borrowed as long as there is
//                a receiver. Without receivers send() gives its value back, and the others still
//                work.
// Borrowing      borrow() locks the value for others who want to change it: keep the ref for a
//                moment, not across a wait, and do not borrow twice at once in one thread. So the
//                task of wait_for() is awaited by one that uses the value at once; a branch of
//                when_any(), a spawned task or asio::run() would keep it locked while others run,
//                and are refused at compile time.
// Functions      given to send_modify(), send_if_modified() and wait_for() are called with the
//                value locked: they must not use the channel.
// Exceptions     of such a function go to the caller. What it had done to the value stays, and the
//                receivers are not told. std::bad_alloc from send(): nothing was changed.
// Values         old ones are moved out and destroyed without a lock: a destructor may use the
//                channel. A value moves without throwing (asserted at compile time).
// Thread safety  a sender may be used by many threads at once; a receiver belongs to one at a time.
// Memory order   what happens before a value is sent is visible to who sees that value, or a later
//                one; what happens before the last sender goes, to who is told `closed`; what
//                happens before receivers go, to who is told by closed().
// Cancellation   a changed() that is stopped has marked nothing as seen.
// Resumption     on the waiter's executor, never inside send().
// Cost           a send() is a lock of the value and one addition; it takes the lock of the queue
//                only if somebody waits, and wakes in batches.
// Allocation     one recycled block for the channel and one for each value that is sent;
//                send_modify() and changed() take none, wait_for() a recycled frame.
// Lifetime       an end outlives its waits and refs; a receiver that waits is not moved.
// Example        examples/sync/thermostat.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/slot.hpp"
#include "rondo/sync/detail/watch_state.hpp"

namespace rondo::watch {

enum class changed_error : std::uint8_t {
    closed,  // no sender is left, and the last value has been seen
    stopped,
    timed_out,
};

enum class try_changed_error : std::uint8_t {
    unchanged,  // not yet
    closed,     // as above
};

template <class T>
class sender;
template <class T>
class receiver;

template <class T>
struct ends {
    watch::sender<T> sender;
    watch::receiver<T> receiver;
};

template <class T>
[[nodiscard("a channel is its two ends")]] ends<T> channel(T first);

// The current value, which nobody changes as long as this lives.
template <class T>
class [[nodiscard("the value is locked until this is gone")]] ref {
  public:
    ref(ref&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), changed_(other.changed_) {}
    ref& operator=(ref&&) = delete;
    ~ref() {
        if (state_ != nullptr) state_->lock().unlock_shared();
    }

    T const& operator*() const noexcept { return state_->value(); }
    T const* operator->() const noexcept { return &state_->value(); }
    // Whether the receiver had not seen it before.
    bool has_changed() const noexcept { return changed_; }

  private:
    friend sender<T>;
    friend receiver<T>;
    explicit ref(detail::watch_state<T>& locked) noexcept : state_(&locked) {
        state_->lock().lock_shared();
    }

    detail::watch_state<T>* state_;
    bool changed_ = false;
};

}  // namespace rondo::watch

template <class T>
inline constexpr bool rondo::detail::turn_bound<rondo::watch::ref<T>> = true;

namespace rondo::watch {

// Counted as a sender. A copy is another one.
template <class T>
class [[nodiscard("dropping the last sender closes the channel")]] sender {
    using state_type = detail::watch_state<T>;

    using closed_op = detail::nobody_left_op;

  public:
    // A channel without receivers so far.
    explicit sender(T first) : state_(new state_type(std::move(first))) {
        static_assert(detail::is_message<T>, "a message is an object that moves without throwing");
    }
    sender(sender const& other) noexcept : state_(&other.state()) { state_->add_sender(); }
    sender(sender&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    sender& operator=(sender other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~sender() {
        if (state_ != nullptr) state_->drop_sender();
    }

    // Makes it the current value; it comes back if there is no receiver.
    std::expected<void, T> send(T value) const {
        if (receiver_count() == 0) return std::unexpected{std::move(value)};
        (void)send_replace(std::move(value));
        return {};
    }
    // The same whether there are receivers or not; gives the value that was there.
    T send_replace(T value) const { return state().replace(std::move(value)); }
    // Changes the value in its place.
    template <class F>
    void send_modify(F change) const {
        state().modify([&](T& value) {
            change(value);
            return true;
        });
    }
    // The same; receivers are told if `change` returns true.
    template <class F>
    bool send_if_modified(F change) const {
        return state().modify(change);
    }

    ref<T> borrow() const noexcept { return ref<T>{state()}; }

    // Whether there is no receiver.
    bool is_closed() const noexcept { return state().receivers().empty(); }
    // Waits until there is none. As subscribe() makes one, there may be one again when it ends, and
    // a moment without may pass unseen.
    wait<closed_op> closed() const noexcept { return closing(); }
    bounded_wait<closed_op> closed(stop_token t) const noexcept { return {closing(), t}; }
    bounded_wait<closed_op> closed_until(time_point d, stop_token t = {}) const noexcept {
        return {closing(), {d, t}};
    }
    bounded_wait<closed_op> closed_for(clock::duration d, stop_token t = {}) const noexcept {
        return {closing(), {d, t}};
    }
    void blocking_closed() const { blocking_wait(closing()); }
    std::expected<void, wait_error> blocking_closed(stop_token t) const {
        return blocking_wait(closing(), t);
    }
    std::expected<void, wait_error> blocking_closed_until(time_point d, stop_token t = {}) const {
        return blocking_wait(closing(), {d, t});
    }
    std::expected<void, wait_error> blocking_closed_for(clock::duration d,
                                                        stop_token t = {}) const {
        return blocking_wait(closing(), {d, t});
    }

    receiver<T> subscribe() const noexcept { return receiver<T>{state()}; }
    std::size_t receiver_count() const noexcept { return state().receivers().size(); }
    std::size_t sender_count() const noexcept { return state().sender_count(); }
    bool same_channel(sender const& other) const noexcept { return state_ == other.state_; }

  private:
    state_type& state() const noexcept {
        RONDO_ASSERT(state_ != nullptr, "a sender that was moved has no channel");
        return *state_;
    }
    closed_op closing() const noexcept { return closed_op{state().receivers()}; }

    state_type* state_;
};

// Remembers which version of the value it has seen. A copy has seen the same.
template <class T>
class [[nodiscard("a receiver is there to receive")]] receiver {
    using state_type = detail::watch_state<T>;

    class changed_op : public detail::watch_change {
      public:
        explicit changed_op(receiver& r) noexcept : watch_change(r.state()), receiver_(r) {}

        // Now: the receiver may have been used since this was made.
        bool ready() noexcept { return watch_change::ready(receiver_.seen_); }
        std::expected<void, changed_error> take() noexcept {
            std::uint64_t const version = state_type::version_in(this->channel_.word());
            if (version == this->seen_) return std::unexpected{changed_error::closed};
            receiver_.seen_ = version;
            return {};
        }
        changed_error refuse(wait_error why) const noexcept { return reason<changed_error>(why); }

      private:
        receiver& receiver_;
    };
    using changed_result = std::expected<void, changed_error>;
    using found = std::expected<ref<T>, changed_error>;

  public:
    receiver(receiver const& other) noexcept : state_(&other.state()), seen_(other.seen_) {
        state_->add_receiver();
    }
    receiver(receiver&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), seen_(other.seen_) {}
    receiver& operator=(receiver other) noexcept {
        std::swap(state_, other.state_);
        std::swap(seen_, other.seen_);
        return *this;
    }
    ~receiver() {
        if (state_ != nullptr) state_->drop_receiver();
    }

    // The current value; borrow_and_update() also marks it as seen.
    ref<T> borrow() const noexcept {
        ref<T> current{state()};
        current.changed_ = state_type::version_in(state().word()) != seen_;
        return current;
    }
    ref<T> borrow_and_update() noexcept {
        ref<T> current = borrow();
        mark_unchanged();  // nobody advances the version while we borrow
        return current;
    }

    // Whether there is a value that was not seen; or that no sender is left.
    std::expected<bool, changed_error> has_changed() const noexcept {
        std::uint64_t const word = state().word();
        if ((word & state_type::closed) != 0) return std::unexpected{changed_error::closed};
        return state_type::version_in(word) != seen_;
    }
    // Lets the current value count as not seen, or as seen.
    void mark_changed() noexcept {
        seen_ = state_type::version_in(state().word()) - state_type::step;
    }
    void mark_unchanged() noexcept { seen_ = state_type::version_in(state().word()); }

    // Waits for a value that was not seen, and marks it as seen.
    wait<changed_op> changed() noexcept { return changed_op{*this}; }
    bounded_wait<changed_op> changed(stop_token t) noexcept { return {changed_op{*this}, t}; }
    bounded_wait<changed_op> changed_until(time_point d, stop_token t = {}) noexcept {
        return {changed_op{*this}, {d, t}};
    }
    bounded_wait<changed_op> changed_for(clock::duration d, stop_token t = {}) noexcept {
        return {changed_op{*this}, {d, t}};
    }
    changed_result blocking_changed() { return blocking_wait(changed_op{*this}); }
    changed_result blocking_changed(stop_token t) { return blocking_wait(changed_op{*this}, t); }
    changed_result blocking_changed_until(time_point d, stop_token t = {}) {
        return blocking_wait(changed_op{*this}, {d, t});
    }
    changed_result blocking_changed_for(clock::duration d, stop_token t = {}) {
        return blocking_wait(changed_op{*this}, {d, t});
    }
    std::expected<void, try_changed_error> try_changed() noexcept {
        changed_op op{*this};
        if (!op.ready()) return std::unexpected{try_changed_error::unchanged};
        if (!op.take()) return std::unexpected{try_changed_error::closed};
        return {};
    }

    // Waits for a value of which `is_right(value)` is true, be it the current one, and borrows it.
    // Values that come meanwhile are marked as seen. To be awaited directly: see Borrowing.
    template <class F>
    task<found> wait_for(F is_right) {
        return look_for(std::move(is_right), stop_token{});
    }
    template <class F>
    task<found> wait_for(F is_right, stop_token t) {
        return look_for(std::move(is_right), t);
    }
    template <class F>
    task<found> wait_for_until(F is_right, time_point d, stop_token t = {}) {
        return look_for(std::move(is_right), {d, t});
    }
    template <class F>
    task<found> wait_for_for(F is_right, clock::duration d, stop_token t = {}) {
        return look_for(std::move(is_right), {d, t});
    }
    template <class F>
    found blocking_wait_for(F is_right) {
        return blocking_look_for(is_right, stop_token{});
    }
    template <class F>
    found blocking_wait_for(F is_right, stop_token t) {
        return blocking_look_for(is_right, t);
    }
    template <class F>
    found blocking_wait_for_until(F is_right, time_point d, stop_token t = {}) {
        return blocking_look_for(is_right, {d, t});
    }
    template <class F>
    found blocking_wait_for_for(F is_right, clock::duration d, stop_token t = {}) {
        return blocking_look_for(is_right, {d, t});
    }

    bool same_channel(receiver const& other) const noexcept { return state_ == other.state_; }

  private:
    friend sender<T>;
    explicit receiver(state_type& s) noexcept : state_(&s) {
        s.add_receiver();
        mark_unchanged();
    }

    state_type& state() const noexcept {
        RONDO_ASSERT(state_ != nullptr, "a receiver that was moved has no channel");
        return *state_;
    }

    template <class F>
    task<found> look_for(F is_right, wait_bounds bounds) {
        if (!bounds.limit.unlimited()) {  // one limit for all the waits
            environment const& env = co_await this_environment();
            bounds.limit = bounds.limit.seen_from(env.timers().now());
        }
        for (;;) {
            {
                ref<T> current = borrow_and_update();
                if (is_right(*current)) co_return found{std::move(current)};
            }
            bounded_wait<changed_op> change{changed_op{*this}, bounds};
            changed_result const changed = co_await std::move(change);
            if (!changed) co_return std::unexpected{changed.error()};
        }
    }
    template <class F>
    found blocking_look_for(F& is_right, wait_bounds bounds) {
        if (!bounds.limit.unlimited()) bounds.limit = bounds.limit.seen_from(clock::now());
        for (;;) {
            {
                ref<T> current = borrow_and_update();
                if (is_right(*current)) return found{std::move(current)};
            }
            changed_result const changed = blocking_wait(changed_op{*this}, bounds);
            if (!changed) return std::unexpected{changed.error()};
        }
    }

    state_type* state_;
    std::uint64_t seen_ = 0;
};

template <class T>
ends<T> channel(T first) {
    sender<T> s{std::move(first)};
    receiver<T> r = s.subscribe();
    return {std::move(s), std::move(r)};
}

}  // namespace rondo::watch
