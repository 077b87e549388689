// cancellation.hpp: an owned token through which something, and all that was derived from it, is
// cancelled.
//
//   cancellation_token all;
//   spawn(..., serve(all.child_token()));       // one of many
//   all.cancel();                               // reaches each of them
//
// Guarantee      cancel() reaches the token, its copies, its children and theirs, once; never its
//                parent or its siblings. It cannot be undone: a child of a cancelled token is
//                cancelled from the beginning. A token that goes cancels nothing, and its children
//                are still reached by its parent.
// Stop tokens    token() is core's stop_token, for everything that takes one: waits, spawn(),
//                with_stop(). It may be used as long as a copy of this token lives.
// Thread safety  every member may be called concurrently, on copies or on one object.
// Memory order   what happens before cancel() is visible to who finds it cancelled.
// Resumption     of who waits in cancelled(): on its executor, never inside cancel(). The hooks of
//                token() are called by cancel(), the parent's before its children's. They may drop
//                tokens, these too.
// Cancellation   a cancelled() that is stopped had nothing to lose.
// Cost           is_cancelled() is one load. A child is one recycled block, which keeps that of its
//                parent; cancel() needs no recursion and no memory, however deep the tree is.
// Example        examples/sync/cancel_tree.cpp
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <type_traits>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/core/with_timeout.hpp"
#include "rondo/sync/detail/cancellation_node.hpp"

namespace rondo {

class drop_guard;

class cancellation_token {
    // Keeps what it waits at alive, so it may outlive the token.
    class cancelled_op;

  public:
    cancellation_token() : node_(new detail::cancellation_node(nullptr)) {}
    cancellation_token(cancellation_token const& other) noexcept : node_(&other.node()) {
        node_->hold();
    }
    cancellation_token(cancellation_token&& other) noexcept
        : node_(std::exchange(other.node_, nullptr)) {}
    cancellation_token& operator=(cancellation_token other) noexcept {
        std::swap(node_, other.node_);
        return *this;
    }
    ~cancellation_token() {
        if (node_ != nullptr) node_->let_go();
    }

    // Is cancelled with this one, or alone.
    cancellation_token child_token() const {
        return cancellation_token{*new detail::cancellation_node(&node())};
    }

    void cancel() const noexcept { node().cancel(); }
    bool is_cancelled() const noexcept { return node().cancelled(); }

    // Waits until it is.
    wait<cancelled_op> cancelled() const noexcept;
    bounded_wait<cancelled_op> cancelled(stop_token t) const noexcept;
    bounded_wait<cancelled_op> cancelled_until(time_point d, stop_token t = {}) const noexcept;
    bounded_wait<cancelled_op> cancelled_for(clock::duration d, stop_token t = {}) const noexcept;
    void blocking_cancelled() const;
    std::expected<void, wait_error> blocking_cancelled(stop_token t) const;
    std::expected<void, wait_error> blocking_cancelled_until(time_point d, stop_token t = {}) const;
    std::expected<void, wait_error> blocking_cancelled_for(clock::duration d,
                                                           stop_token t = {}) const;

    stop_token token() const noexcept { return node().token(); }
    operator stop_token() const noexcept { return token(); }

    // Runs it until it ends or this is cancelled, which stops it. If this is cancelled already, it
    // does not begin.
    template <class Awaitable>
    auto run_until_cancelled(Awaitable awaitable) const {
        return run(*this, detail::as_task(std::move(awaitable)));
    }

    // Cancels when it is destroyed.
    rondo::drop_guard drop_guard() const noexcept;

    // Copies are equal.
    friend bool operator==(cancellation_token const&, cancellation_token const&) = default;

  private:
    friend std::hash<cancellation_token>;
    explicit cancellation_token(detail::cancellation_node& held) noexcept : node_(&held) {}

    detail::cancellation_node& node() const noexcept {
        RONDO_ASSERT(node_ != nullptr, "a token that was moved is none");
        return *node_;
    }

    template <class T>
    static task<std::expected<T, wait_error>> run(cancellation_token until, task<T> child) {
        if (until.is_cancelled()) co_return std::unexpected{wait_error::stopped};
        auto bounded = with_stop(std::move(child), until.token());
        co_return co_await std::move(bounded);
    }

    detail::cancellation_node* node_;
};

class cancellation_token::cancelled_op : public waiter {
  public:
    explicit cancelled_op(detail::cancellation_node& n) noexcept : waiter(n), node_(&n) {
        n.hold();
    }
    cancelled_op(cancelled_op&& other) noexcept
        : waiter(static_cast<waiter&&>(other)), node_(std::exchange(other.node_, nullptr)) {}
    ~cancelled_op() {
        if (node_ != nullptr) node_->let_go();
    }

    bool ready() const noexcept { return node_->cancelled(); }
    void take() const noexcept {}
    void hand_on() noexcept {}

  private:
    detail::cancellation_node* node_;
};

class [[nodiscard("it cancels when it is destroyed")]] drop_guard {
  public:
    explicit drop_guard(cancellation_token t) noexcept : token_(std::move(t)), armed_(true) {}
    drop_guard(drop_guard&& other) noexcept
        : token_(std::move(other.token_)), armed_(std::exchange(other.armed_, false)) {}
    drop_guard& operator=(drop_guard&&) = delete;
    ~drop_guard() {
        if (armed_) token_.cancel();
    }

    cancellation_token const& token() const noexcept { return token_; }
    // Does not cancel any more; gives the token.
    cancellation_token disarm() noexcept {
        armed_ = false;
        return token_;
    }

  private:
    cancellation_token token_;
    bool armed_;
};

inline rondo::drop_guard cancellation_token::drop_guard() const noexcept {
    return rondo::drop_guard{*this};
}

inline wait<cancellation_token::cancelled_op> cancellation_token::cancelled() const noexcept {
    return cancelled_op{node()};
}
inline bounded_wait<cancellation_token::cancelled_op> cancellation_token::cancelled(
    stop_token t) const noexcept {
    return {cancelled_op{node()}, t};
}
inline bounded_wait<cancellation_token::cancelled_op> cancellation_token::cancelled_until(
    time_point d, stop_token t) const noexcept {
    return {cancelled_op{node()}, {d, t}};
}
inline bounded_wait<cancellation_token::cancelled_op> cancellation_token::cancelled_for(
    clock::duration d, stop_token t) const noexcept {
    return {cancelled_op{node()}, {d, t}};
}
inline void cancellation_token::blocking_cancelled() const { blocking_wait(cancelled_op{node()}); }
inline std::expected<void, wait_error> cancellation_token::blocking_cancelled(stop_token t) const {
    return blocking_wait(cancelled_op{node()}, t);
}
inline std::expected<void, wait_error> cancellation_token::blocking_cancelled_until(
    time_point d, stop_token t) const {
    return blocking_wait(cancelled_op{node()}, {d, t});
}
inline std::expected<void, wait_error> cancellation_token::blocking_cancelled_for(
    clock::duration d, stop_token t) const {
    return blocking_wait(cancelled_op{node()}, {d, t});
}

}  // namespace rondo

template <>
struct std::hash<rondo::cancellation_token> {
    std::size_t operator()(rondo::cancellation_token const& t) const noexcept {
        return std::hash<void const*>{}(t.node_);
    }
};
