// watch.hpp: the deadlines of one worker's connections, looked after by one task.
//
// A request sets and clears several deadlines. As timers they would be entered and taken out each
// time; here they are two words of the connection, and a task of the worker looks at all of them
// now and then. Time is that of the next look: a deadline may come so much late, never early.
// If that is overdue, as after a turn that took long or a change of the tick, the clock is read;
// whether it is, a coarse clock says, which costs next to nothing.
//
// Everything belongs to one worker.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

#include "rondo/core/executor.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::http::detail {

class watch;

// Something with deadlines. Linked into a watch while it lives.
class watched {
  public:
    watched(watched const&) = delete;
    watched& operator=(watched const&) = delete;

  protected:
    explicit watched(watch& by) noexcept;
    ~watched();

    static constexpr time_point never = time_point::max();

    // So long from now, at least.
    time_point in(clock::duration d) const noexcept;

    // One of the two below while it lives: who is stopped in a wait does not come back to clear it.
    class deadline {
      public:
        deadline(time_point& by, time_point when) noexcept : by_(by) { by_ = when; }
        ~deadline() { by_ = never; }
        deadline(deadline const&) = delete;
        deadline& operator=(deadline const&) = delete;

      private:
        time_point& by_;
    };

    time_point read_by_ = never;
    time_point write_by_ = never;

  private:
    friend class watch;
    // A deadline has passed. Called once for each look until it is moved; must not end the life of
    // any watched.
    virtual void expired() noexcept = 0;

    watch* by_;
    watched* before_ = nullptr;
    watched* after_ = nullptr;
};

class watch {
  public:
    // Precise to `tick`.
    explicit watch(clock::duration tick) noexcept : tick_(tick), now_(clock::now()) {}
    watch(watch const&) = delete;
    watch& operator=(watch const&) = delete;

    void look() noexcept {
        now_ = clock::now();
        for (watched* w = first_; w != nullptr; w = w->after_) {
            if (w->read_by_ < now_ || w->write_by_ < now_) w->expired();
        }
    }
    template <class F>
    void for_each(F f) noexcept {
        for (watched* w = first_; w != nullptr; w = w->after_) f(*w);
    }

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    time_point now() const noexcept { return now_; }  // as of the last look
    clock::duration tick() const noexcept { return tick_; }
    // A look that is waited for may be that of a longer one before.
    void tick(clock::duration every) noexcept { tick_ = every; }

  private:
    friend class watched;

    // Not before now, and not much after it.
    time_point soon() const noexcept {
        // By as much a coarse clock may be behind: it is moved on 100 times a second at least.
        constexpr clock::duration behind = std::chrono::milliseconds{10};
        time_point const next = later(now_, tick_);
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        clock::duration const coarse =
            std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
        if (time_point{coarse + behind} < next) return next;
        return std::max(next, clock::now());
    }

    clock::duration tick_;
    time_point now_;
    watched* first_ = nullptr;
};

inline watched::watched(watch& by) noexcept : by_(&by), after_(by.first_) {
    if (after_ != nullptr) {
        after_->before_ = this;
    } else {
        by.now_ = clock::now();  // nobody may have looked for long
    }
    by.first_ = this;
}

inline watched::~watched() {
    (before_ != nullptr ? before_->after_ : by_->first_) = after_;
    if (after_ != nullptr) after_->before_ = before_;
}

inline time_point watched::in(clock::duration d) const noexcept { return later(by_->soon(), d); }

}  // namespace rondo::http::detail
