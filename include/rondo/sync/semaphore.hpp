// semaphore.hpp: counted permits: how many may do something at a time.
//
//   semaphore limit{10};
//   auto permit = co_await limit.acquire();     // expected<permit, acquire_error>
//   if (!permit) co_return;                     // closed
//   ...                                         // given back when `permit` is destroyed
//
// Guarantee      permits go to those who wait in the order in which they asked. What is given back
//                accrues to the first in line; a large request is not overtaken by small ones,
//                neither by try_acquire().
// Not guaranteed that so many permits will ever be there: a request for more waits until it is
//                stopped, or permits are added, or the semaphore is closed.
// Maximum        adding permits beyond semaphore::maximum, or asking for more, is a programmer's
//                error, and is found before anything is changed.
// Close          refuses those who wait and those who come later. Permits that are held stay valid,
//                and are given back as before.
// Thread safety  every member may be called concurrently, but for the destructor.
// Memory order   what happens before a permit is given back is visible to whom it is granted; what
//                happens before close(), to whom it refuses.
// Cancellation   who is stopped while it waits leaves the line and gives back what it had accrued;
//                those behind it that fit go at once. A permit granted in that instant is not lost:
//                it is in the result, or passed on.
// Resumption     on the waiter's executor, never inside the call that gives back.
// Lifetime       the semaphore outlives its permits and those who wait. An owned permit keeps it
//                alive; acquire() does not: who waits has a shared_ptr of its own to call it by.
//                auto permit = co_await limit->acquire();  std::move(*permit).owned(limit)
// Cost           acquire and release are one compare-exchange each while nobody waits.
// Allocation     none.
// Example        examples/sync/limit_in_flight.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/permit_pool.hpp"

namespace rondo {

enum class acquire_error : std::uint8_t {
    closed,     // the semaphore was closed
    stopped,    // a stop token asked
    timed_out,  // the deadline passed
};

enum class try_acquire_error : std::uint8_t {
    closed,      // the semaphore was closed
    no_permits,  // too few are there, or others are in line
};

class semaphore;
class owned_semaphore_permit;

// Some permits of a semaphore, given back when it is destroyed.
class [[nodiscard("dropping a permit gives it back")]] semaphore_permit {
  public:
    semaphore_permit(detail::permit_pool& from, std::size_t n) noexcept : pool_(&from), count_(n) {}
    semaphore_permit(semaphore_permit&& other) noexcept
        : pool_(other.pool_), count_(std::exchange(other.count_, 0)) {}
    semaphore_permit& operator=(semaphore_permit&& other) noexcept {
        semaphore_permit taken{std::move(other)};
        std::swap(pool_, taken.pool_);
        std::swap(count_, taken.count_);
        return *this;
    }
    ~semaphore_permit() { release(); }

    // How many it stands for; none after a move, release() or forget().
    std::size_t count() const noexcept { return count_; }
    // Gives them back now.
    void release() noexcept {
        if (count_ != 0) pool_->put_back(std::exchange(count_, 0));
    }
    // Never gives them back: the semaphore has so many fewer.
    void forget() noexcept { count_ = 0; }

    // A permit of its own for n of these; nothing, and no change, if there are fewer.
    std::optional<semaphore_permit> split(std::size_t n) noexcept {
        if (n > count_) return std::nullopt;
        count_ -= n;
        return semaphore_permit{*pool_, n};
    }
    // Takes over those of another permit of the same semaphore.
    void merge(semaphore_permit other) noexcept {
        RONDO_ASSERT(pool_ == other.pool_, "permits of one semaphore are merged");
        count_ += std::exchange(other.count_, 0);
    }

    // The same permits, which keep the semaphore alive from now on.
    owned_semaphore_permit owned(std::shared_ptr<semaphore> of) && noexcept;

  private:
    friend owned_semaphore_permit;

    detail::permit_pool* pool_;
    std::size_t count_;
};

// The same, and the semaphore lives as long: for a permit that leaves the scope of its semaphore.
class [[nodiscard("dropping a permit gives it back")]] owned_semaphore_permit {
  public:
    owned_semaphore_permit(std::shared_ptr<semaphore> of, semaphore_permit held) noexcept;
    owned_semaphore_permit(owned_semaphore_permit&&) noexcept = default;
    owned_semaphore_permit& operator=(owned_semaphore_permit&& other) noexcept {
        held_ = std::move(other.held_);  // what it had goes back before its semaphore may go
        semaphore_ = std::move(other.semaphore_);
        return *this;
    }

    std::size_t count() const noexcept { return held_.count(); }
    void release() noexcept { held_.release(); }
    void forget() noexcept { held_.forget(); }
    std::optional<owned_semaphore_permit> split(std::size_t n) noexcept {
        auto part = held_.split(n);
        if (!part) return std::nullopt;
        if (semaphore_ == nullptr) return std::move(*this);  // moved from: all and none are alike
        return owned_semaphore_permit{semaphore_, std::move(*part)};
    }
    void merge(owned_semaphore_permit other) noexcept {
        if (semaphore_ == nullptr) {  // it was moved from, and would not keep it alive
            *this = std::move(other);
        } else {
            held_.merge(std::move(other.held_));
        }
    }

    // Null once it was moved from.
    std::shared_ptr<semaphore> const& owner() const noexcept { return semaphore_; }

  private:
    std::shared_ptr<semaphore> semaphore_;
    semaphore_permit held_;  // goes first
};

class semaphore {
  public:
    static constexpr std::size_t maximum = detail::permit_pool::maximum;

    using permit = semaphore_permit;
    using owned_permit = owned_semaphore_permit;
    using acquired = std::expected<permit, acquire_error>;

    class acquire_op : public detail::permit_pool::request {
      public:
        acquire_op(semaphore& from, std::size_t n) noexcept : request(from.pool_, n) {}
        acquired take() noexcept {
            if (refused()) return std::unexpected{acquire_error::closed};
            return permit{pool(), needed()};
        }
        acquire_error refuse(wait_error why) const noexcept { return reason<acquire_error>(why); }
    };

    explicit semaphore(std::size_t permits) noexcept : pool_(permits) {}

    // Waits its turn for n permits. The result is `acquired` in every form.
    wait<acquire_op> acquire(std::size_t n = 1) noexcept { return acquire_op{*this, n}; }
    bounded_wait<acquire_op> acquire(std::size_t n, stop_token t) noexcept {
        return {acquire_op{*this, n}, t};
    }
    bounded_wait<acquire_op> acquire_until(std::size_t n, time_point d,
                                           stop_token t = {}) noexcept {
        return {acquire_op{*this, n}, {d, t}};
    }
    bounded_wait<acquire_op> acquire_for(std::size_t n, clock::duration d,
                                         stop_token t = {}) noexcept {
        return {acquire_op{*this, n}, {d, t}};
    }
    acquired blocking_acquire(std::size_t n = 1) { return blocking_wait(acquire_op{*this, n}); }
    acquired blocking_acquire(std::size_t n, stop_token t) {
        return blocking_wait(acquire_op{*this, n}, t);
    }
    acquired blocking_acquire_until(std::size_t n, time_point d, stop_token t = {}) {
        return blocking_wait(acquire_op{*this, n}, {d, t});
    }
    acquired blocking_acquire_for(std::size_t n, clock::duration d, stop_token t = {}) {
        return blocking_wait(acquire_op{*this, n}, {d, t});
    }

    std::expected<permit, try_acquire_error> try_acquire(std::size_t n = 1) noexcept;

    // More permits than there were: what permit::forget() took can come back so.
    void add_permits(std::size_t n) noexcept { pool_.put_back(n); }
    // Fewer permits: takes up to n of those that are there; returns how many.
    std::size_t forget_permits(std::size_t n) noexcept { return pool_.forget(n); }
    // How many can be acquired at once: none while somebody waits.
    std::size_t available() const noexcept { return pool_.available(); }

    void close() noexcept { pool_.close(); }
    bool is_closed() const noexcept { return pool_.closed(); }

  private:
    friend owned_semaphore_permit;

    detail::permit_pool pool_;
};

inline auto semaphore::try_acquire(std::size_t n) noexcept
    -> std::expected<permit, try_acquire_error> {
    using enum detail::permit_pool::answer;
    RONDO_ASSERT(n <= maximum, "no more permits than the maximum");
    switch (pool_.try_take(n)) {
        case taken:
            return permit{pool_, n};
        case closed:
            return std::unexpected{try_acquire_error::closed};
        case too_few:
            break;
    }
    return std::unexpected{try_acquire_error::no_permits};
}

inline owned_semaphore_permit semaphore_permit::owned(std::shared_ptr<semaphore> of) && noexcept {
    return owned_semaphore_permit{std::move(of), std::move(*this)};
}
inline owned_semaphore_permit::owned_semaphore_permit(std::shared_ptr<semaphore> of,
                                                      semaphore_permit held) noexcept
    : semaphore_(std::move(of)), held_(std::move(held)) {
    RONDO_ASSERT(semaphore_ != nullptr && held_.pool_ == &semaphore_->pool_,
                 "a permit is kept with its own semaphore");
}

}  // namespace rondo
