// steal_queue.hpp: a worker's own jobs: it pushes and pops, others take half.
//
// Guarantee      every job that was pushed is popped or stolen exactly once. The owner pops in the
//                order of its pushes; a thief takes the oldest half.
// Thread safety  push() and pop() by the owner alone; steal_into() and size() by anybody.
// Bound          1024 jobs; push() refuses when there is no room.
// Memory order   what happens before push() is visible to whoever gets the job. push() and size()
//                take part in the single order of sequentially consistent operations: of two
//                threads, one that pushes and then looks whether anybody sleeps, and one that says
//                that it sleeps and then looks at size(), at least one sees the other.
// Allocation     none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "rondo/core/executor.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::detail {

class steal_queue {
  public:
#ifdef RONDO_CHECKED
    static constexpr std::uint32_t capacity = 4;  // the same algorithm, full sooner
#else
    static constexpr std::uint32_t capacity = 1024;
#endif

    // Positions count from `start` and wrap around; where they start makes no difference.
    explicit steal_queue(std::uint32_t start = 0) noexcept;
    ~steal_queue();
    steal_queue(steal_queue const&) = delete;
    steal_queue& operator=(steal_queue const&) = delete;

    // Owner. False when it is full, or will be until a thief has done with what it takes.
    [[nodiscard("a job that was refused has to go elsewhere")]] bool push(job& j) noexcept {
        return push_some(1, [&] { return &j; }) == 1;
    }
    // Owner: the same for as many of `n` jobs as there is room for, which `next` gives one by one;
    // returns how many that were. Others see all of them at once.
    template <class Next>
    std::uint32_t push_some(std::uint32_t n, Next next) noexcept {
        std::uint32_t const tail = tail_.load(std::memory_order_relaxed);
        n = std::min(n, room_before(tail));
        for (std::uint32_t i = 0; i < n; ++i) slot(tail + i) = next();
        if (n != 0) publish(tail + n);
        return n;
    }
    // Owner. Null when it is empty.
    job* pop() noexcept;

    // Thief, itself the owner of `mine`, which is empty: moves half of this queue there, or what
    // there is room for, and returns one of the jobs for it to run now; null when there was nothing
    // to take, or another thief was at it.
    job* steal_into(steal_queue& mine) noexcept;

    // Exact for the owner while nobody steals; for others, what it was a moment ago.
    std::uint32_t size() const noexcept;

  private:
    // `stolen` trails `head` while a thief copies what lies between the two.
    struct positions {
        std::uint32_t stolen;  // everything before it may be overwritten
        std::uint32_t head;    // next to be taken
    };
    static std::uint64_t pack(positions p) noexcept {
        return (std::uint64_t{p.stolen} << 32) | p.head;
    }
    static positions unpack(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
    }
    std::uint32_t room_before(std::uint32_t tail) const noexcept;
    void publish(std::uint32_t tail) noexcept;
    cell<job*>& slot(std::uint32_t position) noexcept { return slots_[position % capacity]; }

    alignas(64) atomic<std::uint64_t> head_;
    alignas(64) atomic<std::uint32_t> tail_;
    std::array<cell<job*>, capacity> slots_{};
};

}  // namespace rondo::detail
