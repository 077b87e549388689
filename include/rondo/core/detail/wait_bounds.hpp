// wait_bounds.hpp: what can end a wait before it is granted: hooks that withdraw a waiter.
//
// All of them are armed before the waiter enters its queue and disarmed by the waiter's owner
// after it was decided. Each may fire at any moment in between, in another thread; what it does
// then is withdraw(), which the queue's lock orders against everything else. (A remote_wait is
// withdrawn by the same hooks, and has an order of its own.)
#pragma once

#include <expected>
#include <type_traits>
#include <utility>

#include "rondo/core/executor.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/wait_error.hpp"
#include "rondo/core/waiter.hpp"

namespace rondo {

// Until when: a moment, or so long after it began; else for ever.
class time_limit {
  public:
    constexpr time_limit() = default;
    constexpr time_limit(time_point moment) noexcept : ticks_(moment.time_since_epoch()) {}
    constexpr time_limit(clock::duration patience) noexcept : ticks_(patience), relative_(true) {}

    constexpr bool unlimited() const noexcept { return ticks_ == clock::duration::max(); }
    time_point seen_from(time_point beginning) const noexcept {
        return relative_ ? later(beginning, ticks_) : time_point{ticks_};
    }

  private:
    clock::duration ticks_ = clock::duration::max();
    bool relative_ = false;
};

// What a caller sets to a wait.
struct wait_bounds {
    wait_bounds(stop_token asks) noexcept : token(asks) {}
    wait_bounds(time_limit end, stop_token asks) noexcept : limit(end), token(asks) {}
    wait_bounds(time_point deadline, stop_token asks = {}) noexcept
        : limit(deadline), token(asks) {}
    wait_bounds(clock::duration patience, stop_token asks = {}) noexcept
        : limit(patience), token(asks) {}

    time_limit limit;
    stop_token token;
};

namespace detail {

template <class Waiter>
class stop_withdrawal : stop_hook {
  public:
    stop_withdrawal(Waiter& w, wait_state why) noexcept
        : stop_hook(&fired), waiter_(w), why_(why) {}

    void arm(stop_token token) noexcept {
        token_ = token;
        if (token.add(*this)) return;
        token_ = {};
        waiter_.withdraw(why_);
    }
    void disarm() noexcept { std::exchange(token_, stop_token{}).remove(*this); }

  private:
    static void fired(stop_hook& hook) noexcept {
        auto& self = static_cast<stop_withdrawal&>(hook);
        self.waiter_.withdraw(self.why_);
    }

    Waiter& waiter_;
    wait_state why_;
    stop_token token_;
};

template <class Waiter>
class deadline_withdrawal : timer {
  public:
    explicit deadline_withdrawal(Waiter& w) noexcept : timer(&fired), waiter_(w) {}

    void arm(timer_service& timers, time_limit limit) noexcept {
        time_point const now = timers.now();
        time_point const at = limit.seen_from(now);
        if (now >= at) {
            waiter_.withdraw(wait_state::timed_out);
            return;
        }
        timers_ = &timers;
        timers.add(*this, at);
    }
    void disarm() noexcept {
        if (timers_ == nullptr) return;
        timers_->cancel(*this);
        timers_ = nullptr;
    }

  private:
    static void fired(timer& t) noexcept {
        static_cast<deadline_withdrawal&>(t).waiter_.withdraw(wait_state::timed_out);
    }

    Waiter& waiter_;
    timer_service* timers_ = nullptr;
};

// A wait that only its environment can end.
struct no_bounds {};

// The token at which the environment may stop a wait with these bounds: not the one in them.
inline stop_token token_beside(no_bounds, stop_token environment) noexcept { return environment; }
inline stop_token token_beside(wait_bounds const& bounds, stop_token environment) noexcept {
    return environment == bounds.token ? stop_token{} : environment;
}

template <class Waiter>
class no_hooks {
  public:
    no_hooks(Waiter&, no_bounds) noexcept {}
    stop_token except(stop_token environment) const noexcept { return environment; }
    template <class Timers>
    void arm(Timers) noexcept {}
    void disarm() noexcept {}
};

// The hooks of an explicit token and a deadline.
template <class Waiter>
class bound_hooks {
  public:
    bound_hooks(Waiter& w, wait_bounds const& bounds) noexcept
        : bounds_(bounds), stop_(w, wait_state::interrupted), deadline_(w) {}

    stop_token except(stop_token environment) const noexcept {
        return token_beside(bounds_, environment);
    }
    // `timers` is a function: only a wait with a deadline asks for the service.
    template <class Timers>
    void arm(Timers timers) noexcept {
        stop_.arm(bounds_.token);
        if (!bounds_.limit.unlimited()) deadline_.arm(timers(), bounds_.limit);
    }
    void disarm() noexcept {
        stop_.disarm();
        deadline_.disarm();
    }

  private:
    wait_bounds const& bounds_;
    stop_withdrawal<Waiter> stop_;
    deadline_withdrawal<Waiter> deadline_;
};

template <class Bounds, class Waiter = waiter>
using hooks_of =
    std::conditional_t<std::is_same_v<Bounds, no_bounds>, no_hooks<Waiter>, bound_hooks<Waiter>>;

// Whether an operation is ready, asked by one that may have to hand on what it has then.
template <class Op>
bool ready_revocably(Op& op) noexcept {
    if constexpr (requires { op.ready_revocably(); }) {
        return op.ready_revocably();
    } else {
        return op.ready();
    }
}

// What a bounded wait gives: expected<R, E>, where R is what take() gives and E what refuse() does.
// If R is an expected with that E itself, it is R: one result with one list of errors.
template <class R, class E>
struct expected_of {
    using type = std::expected<R, E>;
};
template <class V, class E>
struct expected_of<std::expected<V, E>, E> {
    using type = std::expected<V, E>;
};

template <class Op>
struct bounded_result {
    using type = std::expected<decltype(std::declval<Op&>().take()), wait_error>;
    static wait_error refusal(Op&, wait_error why) noexcept { return why; }
};
template <class Op>
requires requires(Op& op, wait_error why) { op.refuse(why); }
struct bounded_result<Op> {
    using error = decltype(std::declval<Op&>().refuse(wait_error::stopped));
    using type = expected_of<decltype(std::declval<Op&>().take()), error>::type;
    static error refusal(Op& op, wait_error why) { return op.refuse(why); }
};

// The result of a decided operation, in the form its bounds ask for.
template <class Bounds, class Op>
auto result_of(Op& op) {
    using bounded = bounded_result<Op>;
    using result = bounded::type;
    if constexpr (std::is_same_v<Bounds, no_bounds>) {
        return op.take();
    } else if (op.state() == wait_state::interrupted) {
        return result{std::unexpect, bounded::refusal(op, wait_error::stopped)};
    } else if (op.state() == wait_state::timed_out) {
        return result{std::unexpect, bounded::refusal(op, wait_error::timed_out)};
    } else if constexpr (std::is_void_v<decltype(op.take())>) {
        op.take();
        return result{};
    } else {
        return result{op.take()};
    }
}

}  // namespace detail

}  // namespace rondo
