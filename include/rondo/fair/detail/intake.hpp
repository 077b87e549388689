// intake.hpp: where producers leave tasks without the lock of the scheduler.
//
// Guarantee      while it has places, a producer takes one and leaves its task there with one
//                atomic operation. Whoever holds the lock takes all that was left, in the order in
//                which it was left, and says in the same step how many places there are from then
//                on. With none nobody leaves anything: who has said so knows all there is.
// Thread safety  has_places() and try_leave() belong to everybody, the rest to the holder of the
//                lock.
// Memory order   what happens before a task is left is visible to who takes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rondo/core/linked_list.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/fair/detail/tenant.hpp"

namespace rondo::fair::detail {

class intake {
  public:
    // It bounds how long one operation is kept by what others have left.
    static constexpr std::size_t most_places = checked_build ? 2 : 256;
    // For fewer it is not opened: to a queue that is nearly full producers come one by one anyway.
    static constexpr std::size_t fewest_places = checked_build ? 1 : 64;

    // A hint: relaxed, as try_leave() asks again.
    bool has_places() const noexcept { return word_.load(std::memory_order_relaxed) >= one_place; }
    bool try_leave(entry& e) noexcept {
        auto const address = reinterpret_cast<std::uintptr_t>(&e);
        if (address >= one_place) return false;  // of a heap that tags addresses
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        do {
            if (seen < one_place) return false;  // I1
            e.left_before = top(seen);
            // release: pairs with the acquire in take()
        } while (!word_.compare_exchange_weak(seen, places(seen) - one_place + address,
                                              std::memory_order_release,
                                              std::memory_order_relaxed));
        return true;
    }

    bool has_tasks() const noexcept {
        // relaxed: a thread sees what it left itself, and take() acquires what it finds
        return top(word_.load(std::memory_order_relaxed)) != nullptr;
    }
    // How many may have been left since take() at most.
    std::size_t given() const noexcept { return given_; }
    // All that was left; from now on there are so many places.
    linked_chain<entry> take(std::size_t places) noexcept {
        given_ = places;
        // acquire: pairs with the release in try_leave(), that of the last task and, through it,
        // those of all below
        std::uint64_t const left = word_.exchange(places * one_place, std::memory_order_acquire);
        linked_chain<entry> tasks;
        for (entry* e = top(left); e != nullptr; e = e->left_before) {
            e->owner->fetch();
            e->fetch();
            tasks.push_front(*e);
        }
        return tasks;
    }

  private:
    // The word: places * 2^48 + address of the task that was left last.
    // I1  places + tasks = given_: each that is left takes a place. (A thread that looks at an old
    //     word does not get its task in: the exchange fails, unless the word is the same again, and
    //     then so is the task that it names as the last one.)
    static constexpr std::uint64_t one_place = std::uint64_t{1} << 48U;

    static std::uint64_t places(std::uint64_t word) noexcept { return word & ~(one_place - 1); }
    static entry* top(std::uint64_t word) noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): half of the word
        return reinterpret_cast<entry*>(word & (one_place - 1));
    }

    // Producers write the word all the time: nothing of the scheduler's that others read is in the
    // same cache line. (Not aligned: a scheduler may be a local of a coroutine.)
    [[maybe_unused]] std::array<std::byte, 64> before_{};
    atomic<std::uint64_t> word_{0};
    std::size_t given_ = 0;
    [[maybe_unused]] std::array<std::byte, 64> after_{};
};

}  // namespace rondo::fair::detail
