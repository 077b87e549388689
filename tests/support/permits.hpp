// permits.hpp: the smallest primitive with turns: a counted pool, granted in order, with accrual.
//
// It exists to test the wait protocol of core in every world before sync stands on it: a waiter
// asks for n permits; what is released accrues to the one first in line.
#pragma once

#include <cstddef>
#include <utility>

#include "rondo/core/wait.hpp"

namespace rondo::test {

class permits final : wait_queue {
  public:
    class permit;
    class acquire_op;

    explicit permits(std::size_t available) noexcept : available_(available) {}

    wait<acquire_op> acquire(std::size_t n = 1) noexcept { return acquire_op{*this, n}; }
    bounded_wait<acquire_op> acquire(std::size_t n, stop_token token) noexcept {
        return {acquire_op{*this, n}, token};
    }
    bounded_wait<acquire_op> acquire_until(std::size_t n, time_point deadline,
                                           stop_token token = {}) noexcept {
        return {acquire_op{*this, n}, {deadline, token}};
    }
    bounded_wait<acquire_op> acquire_for(std::size_t n, clock::duration patience,
                                         stop_token token = {}) noexcept {
        return {acquire_op{*this, n}, {patience, token}};
    }
    permit blocking_acquire(std::size_t n = 1);
    std::expected<permit, wait_error> blocking_acquire(std::size_t n, stop_token token);
    std::expected<permit, wait_error> blocking_acquire_until(std::size_t n, time_point deadline,
                                                             stop_token token = {});
    std::expected<permit, wait_error> blocking_acquire_for(std::size_t n, clock::duration patience,
                                                           stop_token token = {});

    void release(std::size_t n = 1) noexcept {
        serve([&] { available_ = available_ + n; });
    }

    std::size_t available() noexcept {
        std::lock_guard const guard{lock()};
        return available_;
    }
    bool awaited() noexcept {
        std::lock_guard const guard{lock()};
        return has_waiters();
    }

    class acquire_op : public waiter {
      public:
        acquire_op(permits& from, std::size_t n) noexcept
            : waiter(from), from_(from), needed_(n), missing_(n) {}

        bool ready() noexcept {
            std::lock_guard const guard{from_.lock()};
            if (from_.has_waiters() || from_.available_ < needed_) return false;
            from_.available_ = from_.available_ - needed_;
            return true;
        }
        permit take() noexcept;
        void hand_on() noexcept { from_.release(needed_); }

      private:
        friend permits;
        permits& from_;
        std::size_t needed_;
        std::size_t missing_;
    };

    class [[nodiscard("dropping a permit releases it")]] permit {
      public:
        permit(permits& from, std::size_t n) noexcept : from_(&from), count_(n) {}
        permit(permit&& other) noexcept
            : from_(std::exchange(other.from_, nullptr)), count_(other.count_) {}
        permit& operator=(permit&&) = delete;
        ~permit() {
            if (from_ != nullptr) from_->release(count_);
        }
        void forget() noexcept { from_ = nullptr; }

      private:
        permits* from_;
        std::size_t count_;
    };

  private:
    bool grant(waiter& first) noexcept override {
        auto& op = static_cast<acquire_op&>(first);
        std::size_t const part = op.missing_ < available_.read() ? op.missing_ : available_.read();
        available_ = available_ - part;
        op.missing_ -= part;
        return op.missing_ == 0;
    }
    void give_back(waiter& w) noexcept override {
        auto& op = static_cast<acquire_op&>(w);
        available_ = available_ + (op.needed_ - op.missing_);
        op.missing_ = op.needed_;
    }

    cell<std::size_t> available_;
};

inline permits::permit permits::acquire_op::take() noexcept { return permit{from_, needed_}; }

inline permits::permit permits::blocking_acquire(std::size_t n) {
    return blocking_wait(acquire_op{*this, n});
}
inline std::expected<permits::permit, wait_error> permits::blocking_acquire(std::size_t n,
                                                                            stop_token token) {
    return blocking_wait(acquire_op{*this, n}, token);
}
inline std::expected<permits::permit, wait_error> permits::blocking_acquire_until(
    std::size_t n, time_point deadline, stop_token token) {
    return blocking_wait(acquire_op{*this, n}, {deadline, token});
}
inline std::expected<permits::permit, wait_error> permits::blocking_acquire_for(
    std::size_t n, clock::duration patience, stop_token token) {
    return blocking_wait(acquire_op{*this, n}, {patience, token});
}

}  // namespace rondo::test
