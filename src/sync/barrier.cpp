// Algorithm
//   Whoever arrives enters the queue, and is counted there, under the lock. The one that makes the
//   count complete begins the next generation, does not wait, and the queue lets go all who
//   remember an older generation. A withdrawn arrival is subtracted, under the same lock.
//
// Invariants (while the lock is free)
//   I1  arrived_ is the number of waiters in line that remember the present generation; it is less
//       than parties_.
//   I2  waiters of an older generation are in line only while the leader lets them go in batches.
//       They have passed: a stop comes too late for them.
//
// Races considered
//   - a stop before the arrival entered: it never counted. A stop after that: the lock decides.
//   - those who pass first may arrive at the next generation while others of this one are still in
//     line: they queue behind them, and are counted for their own.
#include "rondo/sync/barrier.hpp"

namespace rondo {

void barrier::complete() noexcept {
    arrived_.store(0, std::memory_order_relaxed);  // the lock orders it
    ++generation_;
}

bool barrier::try_complete() noexcept {
    bool completed = false;
    serve_in_batches([&] {
        completed = completes();
        if (completed) complete();
    });
    return completed;
}

// Those who arrive are counted in grant(), wherever they are in line.
bool barrier::owed(waiter& w) noexcept {
    auto const& a = static_cast<arrival&>(w);
    return !a.counted_ || a.generation_ != generation_;
}

bool barrier::grant(waiter& w) noexcept {
    auto& a = static_cast<arrival&>(w);
    if (a.counted_) return a.generation_ != generation_;  // I2
    a.counted_ = true;
    a.generation_ = generation_;
    a.leader_ = completes();
    if (a.leader_) {
        complete();
    } else {
        arrived_.store(arrived_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    return a.leader_;
}

void barrier::give_back(waiter& w) noexcept {
    // One of an older generation that left has passed (I2).
    if (static_cast<arrival&>(w).generation_ != generation_) return;
    arrived_.store(arrived_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);  // I1
}

}  // namespace rondo
