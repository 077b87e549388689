// manual_loop.hpp: an executor that a test steps by hand, with a clock that only the test moves.
//
// Jobs run in the order they were posted, timers to the nanosecond. It keeps the exceptions
// that nobody joined. post() may be called by any thread, the rest by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "rondo/core/executor.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/timer_queue.hpp"

namespace rondo::test {

class manual_loop final : public executor, timer_service {
  public:
    void post(job& j) noexcept override {
        std::lock_guard const guard{lock_};
        posted_.push(j);
    }
    timer_service& timers() noexcept override { return *this; }
    void unobserved(std::exception_ptr e) noexcept override { unobserved_.push_back(std::move(e)); }

    // Runs one job, if there is one.
    bool step() noexcept {
        job* next = nullptr;
        {
            std::lock_guard const guard{lock_};
            next = posted_.pop();
        }
        if (next == nullptr) return false;
        executor::scope const here{this};
        next->run(*next);
        return true;
    }

    // Runs what is posted and due, and what that posts; returns how many jobs ran.
    std::size_t run_ready() noexcept {
        std::size_t ran = 0;
        do {
            while (step()) ++ran;
        } while (queue_.fire_due(now_) != 0);
        return ran;
    }

    // Lets time pass and timers fire, but runs no job: for what meets in one instant.
    void pass(clock::duration by) noexcept {
        now_ += by;
        queue_.fire_due(now_);
    }

    // Lets time pass, stopping at each moment at which something is due, and runs everything.
    void advance(clock::duration by) noexcept {
        time_point const until = now_ + by;
        run_ready();
        for (auto next = queue_.next(); next && *next <= until; next = queue_.next()) {
            now_ = std::max(now_, *next);
            run_ready();
        }
        now_ = until;
        run_ready();
    }

    time_point now() const noexcept override { return now_; }
    std::vector<std::exception_ptr> const& unobserved() const noexcept { return unobserved_; }

  private:
    void add(timer& t, time_point deadline) noexcept override { queue_.add(t, deadline); }
    bool cancel(timer& t) noexcept override { return queue_.cancel(t); }

    static constexpr time_point beginning{std::chrono::hours{1}};

    short_lock lock_;
    job_queue posted_;
    time_point now_ = beginning;
    timer_queue queue_{std::chrono::nanoseconds{1}, beginning};
    std::vector<std::exception_ptr> unobserved_;
};

}  // namespace rondo::test
