// Invariants
//   I1  a timer is in the wheel, or being called (fence_), or free.
//   I2  promised_ is never later than the driver's next look at the wheel: add() compares with
//       it, so a driver that is not woken would have looked in time anyway.
#include "rondo/core/timer_queue.hpp"

#include <mutex>
#include <thread>

#include "rondo/core/parker.hpp"
#include "rondo/core/waker.hpp"

namespace rondo {

bool timer_queue::add(timer& t, time_point deadline) noexcept {
    std::lock_guard const guard{lock_};
    wheel_.insert(t, deadline);
    size_.store(wheel_.size(), std::memory_order_relaxed);
    if (deadline >= promised_) return false;  // I2
    promised_ = deadline;
    return true;
}

bool timer_queue::cancel(timer& t) noexcept {
    std::lock_guard const guard{lock_};
    do {
        if (wheel_.cancel(t)) {
            size_.store(wheel_.size(), std::memory_order_relaxed);
            return true;
        }
    } while (!fence_.ended(&t, lock_));  // I1
    return false;
}

std::size_t timer_queue::fire_due(time_point now) noexcept {
    std::size_t fired = 0;
    // What the timers resume in place runs when this scope closes, after every call has ended: it
    // may cancel timers without waiting for its own.
    wake_scope const scope;
    lock_.lock();
    while (timer_node* const node = wheel_.pop_expired(now)) {
        timer& due = static_cast<timer&>(*node);
        size_.store(wheel_.size(), std::memory_order_relaxed);
        fence_.begin(&due);
        lock_.unlock();
        due.fire(due);
        ++fired;
        lock_.lock();
        if (fence_.end()) {
            lock_.unlock();
            fence_.notify();
            lock_.lock();
        }
    }
    lock_.unlock();
    return fired;
}

bool timer_queue::none() noexcept {
    std::lock_guard const guard{lock_};
    return wheel_.empty();
}

std::optional<time_point> timer_queue::next() noexcept {
    std::lock_guard const guard{lock_};
    std::optional<time_point> const at = wheel_.next_expiry();
    promised_ = at.value_or(time_point::max());  // I2
    return at;
}

namespace {

class timer_thread final : public timer_service {
  public:
    timer_thread() : thread_([this] { run(); }) {}
    ~timer_thread() {
        ending_.store(true, std::memory_order_relaxed);  // ordered by the unpark
        parker_.unpark();
        thread_.join();
    }

    time_point now() const noexcept override { return clock::now(); }
    void add(timer& t, time_point deadline) noexcept override {
        if (queue_.add(t, deadline)) parker_.unpark();
    }
    bool cancel(timer& t) noexcept override { return queue_.cancel(t); }

  private:
    void run() noexcept {
        while (!ending_.load(std::memory_order_relaxed)) {
            queue_.fire_due(clock::now());
            (void)parker_.park_until(queue_.next().value_or(time_point::max()));
        }
    }

    timer_queue queue_{std::chrono::milliseconds{1}, clock::now()};
    parker parker_;
    atomic<bool> ending_{false};
    std::thread thread_;
};

}  // namespace

timer_service& default_timers() {
    static timer_thread service;
    return service;
}

}  // namespace rondo
