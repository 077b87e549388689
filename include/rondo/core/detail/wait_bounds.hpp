// wait_bounds.hpp: what can end a wait before it is granted: hooks that withdraw a waiter.
//
// All of them are armed before the waiter enters its queue and disarmed by the waiter's owner
// after it was decided. Each may fire at any moment in between, in another thread; what it does
// then is withdraw(), which the queue's lock orders against everything else.
#pragma once

#include <expected>
#include <type_traits>
#include <utility>

#include "rondo/core/executor.hpp"
#include "rondo/core/stop.hpp"
#include "rondo/core/wait_error.hpp"
#include "rondo/core/waiter.hpp"

namespace rondo {

struct wait_bounds {
    time_point deadline = time_point::max();
    stop_token token;
};

namespace detail {

class stop_withdrawal : stop_hook {
  public:
    stop_withdrawal(waiter& w, wait_state why) noexcept
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

    waiter& waiter_;
    wait_state why_;
    stop_token token_;
};

class deadline_withdrawal : timer {
  public:
    explicit deadline_withdrawal(waiter& w) noexcept : timer(&fired), waiter_(w) {}

    void arm(timer_service& timers, time_point at) noexcept {
        if (timers.now() >= at) {
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

    waiter& waiter_;
    timer_service* timers_ = nullptr;
};

// A wait that only its environment can end.
struct no_bounds {
    class hooks {
      public:
        hooks(waiter&, no_bounds) noexcept {}
        stop_token except(stop_token environment) const noexcept { return environment; }
        template <class Timers>
        void arm(Timers) noexcept {}
        void disarm() noexcept {}
    };
};

// The hooks of an explicit token and a deadline.
class bound_hooks {
  public:
    bound_hooks(waiter& w, wait_bounds const& bounds) noexcept
        : bounds_(bounds), stop_(w, wait_state::interrupted), deadline_(w) {}

    // The token at which the environment may stop this wait: not the one that was passed.
    stop_token except(stop_token environment) const noexcept {
        return environment == bounds_.token ? stop_token{} : environment;
    }
    // `timers` is a function: only a wait with a deadline asks for the service.
    template <class Timers>
    void arm(Timers timers) noexcept {
        stop_.arm(bounds_.token);
        if (bounds_.deadline != time_point::max()) deadline_.arm(timers(), bounds_.deadline);
    }
    void disarm() noexcept {
        stop_.disarm();
        deadline_.disarm();
    }

  private:
    wait_bounds const& bounds_;
    stop_withdrawal stop_;
    deadline_withdrawal deadline_;
};

template <class Bounds>
using hooks_of =
    std::conditional_t<std::is_same_v<Bounds, no_bounds>, no_bounds::hooks, bound_hooks>;

template <class Op>
auto refusal(Op& op, wait_error why) {
    if constexpr (requires { op.refuse(why); }) {
        return op.refuse(why);
    } else {
        return why;
    }
}

// The result of a decided operation, in the form its bounds ask for.
template <class Bounds, class Op>
auto result_of(Op& op) {
    using value = decltype(op.take());
    using result = std::expected<value, decltype(refusal(op, wait_error::stopped))>;
    if constexpr (std::is_same_v<Bounds, no_bounds>) {
        return op.take();
    } else if (op.state() == wait_state::interrupted) {
        return result{std::unexpect, refusal(op, wait_error::stopped)};
    } else if (op.state() == wait_state::timed_out) {
        return result{std::unexpect, refusal(op, wait_error::timed_out)};
    } else if constexpr (std::is_void_v<value>) {
        op.take();
        return result{};
    } else {
        return result{op.take()};
    }
}

}  // namespace detail

}  // namespace rondo
