// permit_pool.hpp: counted permits, taken in turns: what semaphore, mutex, rwlock and bounded
// channels stand on.
//
// Guarantee      permits go to requests in the order in which they came. What is put back accrues
//                to the first in line until it has all that it asked for; nobody overtakes it, not
//                by try_take() either. One that leaves gives back what it had accrued.
// Cost           taking and putting back are one compare-exchange each while nobody waits. The
//                lock is taken only where somebody waits, or has to.
// Close          refuses all requests, those in line too; permits can still be put back.
// Memory order   what happens before put_back() is visible after the take that it served; what
//                happens before close(), to whom it refuses.
// Thread safety  everything but the destructor. It may be destroyed by whoever was served last,
//                even while the put_back() that served it is about to return.
// Allocation     none.
//
// States, invariants and races are at the head of src/sync/permit_pool.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/core/assert.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/waiter.hpp"

namespace rondo::detail {

class permit_pool final : wait_queue {
  public:
    static constexpr std::size_t maximum = SIZE_MAX >> 3;

    enum class answer : std::uint8_t { taken, too_few, closed };

    explicit permit_pool(std::size_t permits) noexcept : word_(permits * one) {
        RONDO_ASSERT(permits <= maximum, "no more permits than the maximum");
    }

    answer try_take(std::size_t n) noexcept {
        // acquire: pairs with the release in close()
        return take(n, word_.load(std::memory_order_acquire));
    }
    // The same, supposing that `likely` are there: if so, it is one compare-exchange and no more.
    answer try_take(std::size_t n, std::size_t likely) noexcept { return take(n, likely * one); }

    // More than the maximum at a time is a programmer's error, found before any is added.
    void put_back(std::size_t n) noexcept { put_back_to(n, word_.load(std::memory_order_relaxed)); }
    void put_back(std::size_t n, std::size_t likely) noexcept { put_back_to(n, likely * one); }

    // Takes up to n for ever; returns how many.
    std::size_t forget(std::size_t n) noexcept;

    void close() noexcept;
    bool closed() const noexcept {
        // acquire: pairs with the release in close()
        return (word_.load(std::memory_order_acquire) & closed_bit) != 0;
    }
    // How many can be taken at once: none while somebody waits.
    std::size_t available() const noexcept { return word_.load(std::memory_order_relaxed) / one; }

    class request;

  private:
    // The word
    //   n * one                n permits are there and nobody waits
    //   waiting_bit            somebody waits; the word changes only under the lock, what is put
    //                          back goes to spare_
    //   n * one + closed_bit   closed; n permits are there
    // and, while close() holds the lock, waiting_bit + closed_bit.
    static constexpr std::size_t closed_bit = 1;
    static constexpr std::size_t waiting_bit = 2;
    static constexpr std::size_t one = 4;

    // `seen` is what the word holds, or is likely to.
    answer take(std::size_t n, std::size_t seen) noexcept {
        do {
            if ((seen & closed_bit) != 0) return answer::closed;
            if (seen < n * one) return answer::too_few;  // I2: also when somebody waits
            // acquire: pairs with the release in add() and nobody_waits(), and with that in
            // close() when it fails
        } while (!word_.compare_exchange_weak(seen, seen - n * one, std::memory_order_acquire,
                                              std::memory_order_acquire));
        return answer::taken;
    }

    void put_back_to(std::size_t n, std::size_t seen) noexcept {
        if (!add(n, seen)) put_back_in_line(n);
    }

    // False: somebody waits, nothing was added.
    bool add(std::size_t n, std::size_t seen) noexcept {
        do {
            if ((seen & waiting_bit) != 0) return false;
            RONDO_ASSERT(n <= maximum - seen / one, "no more permits than the maximum");
            // release: pairs with the acquire in take() and line_up()
        } while (!word_.compare_exchange_weak(seen, seen + n * one, std::memory_order_release,
                                              std::memory_order_relaxed));
        return true;
    }

    void put_back_in_line(std::size_t n) noexcept;
    bool line_up(request& r) noexcept;
    bool grant(waiter& first) noexcept override;
    void give_back(waiter& w) noexcept override;
    void nobody_waits() noexcept override;

    atomic<std::size_t> word_;
    cell<std::size_t> spare_;  // under the lock: put back, and not yet given to anybody
};

// A request for n permits. An operation derives from it and adds what it gives.
class permit_pool::request : public waiter {
  public:
    request(permit_pool& from, std::size_t n) noexcept : waiter(from), needed_(n), missing_(n) {
        RONDO_ASSERT(n <= maximum, "no more permits than the maximum");
    }

    bool ready() noexcept { return settled(pool().try_take(needed_)); }
    void hand_on() noexcept {
        if (!refused_) pool().put_back(needed_);
    }

    // Once it is ready or granted: whether the pool was closed before, and it has nothing.
    bool refused() const noexcept { return refused_; }

  protected:
    bool settled(answer a) noexcept {
        refused_ = a == answer::closed;
        return a != answer::too_few;
    }

    permit_pool& pool() const noexcept { return static_cast<permit_pool&>(queue()); }
    std::size_t needed() const noexcept { return needed_; }

  private:
    friend permit_pool;

    bool refused_ = false;
    std::size_t needed_;
    std::size_t missing_;
};

}  // namespace rondo::detail
