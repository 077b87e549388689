// barrier.hpp: nobody passes before all have arrived; again and again.
//
//   barrier round{3};
//   auto const arrived = co_await round.arrive_and_wait();
//   if (arrived.is_leader()) sum_up();                     // one of the three
//
// Guarantee      a generation is complete when as many have arrived as the barrier has parties; all
//                of them pass then, and the next generation begins. The last to arrive is its
//                leader; it does not wait. A barrier of 0 parties is one of 1: nobody waits.
// Cancellation   an arrival that is stopped, or whose time is over, is withdrawn: it does not count
//                for its generation, which waits for another one. Once the generation is complete
//                it has passed, whatever asks it to stop.
// Thread safety  every member may be called concurrently.
// Memory order   what happens before any arrival of a generation is visible to all who pass with
//                it.
// Resumption     on the waiter's executor, never inside the last arrival.
// Lifetime       the barrier outlives everyone's arrive_and_wait(), the leader's too: who passed
//                earlier must not destroy it while the leader is still waking others.
// Cost           an arrival takes the lock once; the last one wakes the others in batches.
// Allocation     none.
// Example        examples/sync/rounds.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>

#include "rondo/core/wait.hpp"

namespace rondo {

class barrier;

class barrier_passage {
  public:
    // True for one of each generation.
    bool is_leader() const noexcept { return leader_; }

  private:
    friend barrier;
    explicit barrier_passage(bool leader) noexcept : leader_(leader) {}

    bool leader_;
};

class barrier final : wait_queue {
    class arrival;

  public:
    explicit barrier(std::size_t parties) noexcept : parties_(parties == 0 ? 1 : parties) {}

    wait<arrival> arrive_and_wait() noexcept;
    bounded_wait<arrival> arrive_and_wait(stop_token t) noexcept;
    bounded_wait<arrival> arrive_and_wait_until(time_point d, stop_token t = {}) noexcept;
    bounded_wait<arrival> arrive_and_wait_for(clock::duration d, stop_token t = {}) noexcept;
    barrier_passage blocking_arrive_and_wait();
    std::expected<barrier_passage, wait_error> blocking_arrive_and_wait(stop_token t);
    std::expected<barrier_passage, wait_error> blocking_arrive_and_wait_until(time_point d,
                                                                              stop_token t = {});
    std::expected<barrier_passage, wait_error> blocking_arrive_and_wait_for(clock::duration d,
                                                                            stop_token t = {});
    // Arrives only as the last one, who does not wait; else it has not arrived.
    std::optional<barrier_passage> try_arrive_and_wait() noexcept;

    std::size_t parties() const noexcept { return parties_; }

  private:
    bool grant(waiter& w) noexcept override;
    void give_back(waiter& w) noexcept override;
    bool owed(waiter& w) noexcept override;

    bool completes() const noexcept {
        // relaxed: a hint; it is looked at again under the lock, which orders it
        return arrived_.load(std::memory_order_relaxed) + 1 == parties_;
    }
    bool try_complete() noexcept;
    void complete() noexcept;

    std::size_t const parties_;
    atomic<std::size_t> arrived_{0};  // and not passed; changes under the lock
    std::uint64_t generation_ = 0;    // under the lock
};

class barrier::arrival : public waiter {
  public:
    explicit arrival(barrier& b) noexcept : waiter(b), barrier_(b) {}

    bool ready() noexcept {
        leader_ = barrier_.completes() && barrier_.try_complete();
        return leader_;
    }
    barrier_passage take() const noexcept { return barrier_passage{leader_}; }
    void hand_on() noexcept {}  // it was counted, and the others have passed

  private:
    friend barrier;

    barrier& barrier_;
    std::uint64_t generation_ = 0;
    bool counted_ = false;
    bool leader_ = false;
};

inline wait<barrier::arrival> barrier::arrive_and_wait() noexcept { return arrival{*this}; }
inline bounded_wait<barrier::arrival> barrier::arrive_and_wait(stop_token t) noexcept {
    return {arrival{*this}, t};
}
inline bounded_wait<barrier::arrival> barrier::arrive_and_wait_until(time_point d,
                                                                     stop_token t) noexcept {
    return {arrival{*this}, {d, t}};
}
inline bounded_wait<barrier::arrival> barrier::arrive_and_wait_for(clock::duration d,
                                                                   stop_token t) noexcept {
    return {arrival{*this}, {d, t}};
}
inline barrier_passage barrier::blocking_arrive_and_wait() { return blocking_wait(arrival{*this}); }
inline std::expected<barrier_passage, wait_error> barrier::blocking_arrive_and_wait(stop_token t) {
    return blocking_wait(arrival{*this}, t);
}
inline std::expected<barrier_passage, wait_error> barrier::blocking_arrive_and_wait_until(
    time_point d, stop_token t) {
    return blocking_wait(arrival{*this}, {d, t});
}
inline std::expected<barrier_passage, wait_error> barrier::blocking_arrive_and_wait_for(
    clock::duration d, stop_token t) {
    return blocking_wait(arrival{*this}, {d, t});
}

inline std::optional<barrier_passage> barrier::try_arrive_and_wait() noexcept {
    if (!completes() || !try_complete()) return std::nullopt;
    return barrier_passage{true};
}

}  // namespace rondo
