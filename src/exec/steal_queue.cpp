// Algorithm
//   The local run queue of Go and Tokio: a ring whose head is two positions in one word. `head` is
//   the next job to take; `stolen` trails it while a thief copies what lies between the two. All
//   who take a job move `head` by compare-exchange; only the owner moves `tail_`. A thief first
//   moves `head` past its share, which makes the share its own, copies it, and then moves
//   `stolen` up to `head`, which gives the slots back to the owner.
//
// Invariants, in wrapping arithmetic
//   I1  stolen <= head <= tail <= stolen + capacity
//   I2  slots in [head, tail) hold jobs for anybody; in [stolen, head) jobs that the one thief at
//       work copies; all others are the owner's to write.
//   I3  stolen != head exactly while a thief is at work: there is one at most.
//
// Races considered
//   - owner's pop against a thief for the last job: the same compare-exchange, one wins.
//   - push over a slot that a thief still reads: refused, as the room is counted from `stolen`.
//   - a thief that is robbed itself: its queue is empty, but has no room for a share while the
//     other one copies. It takes no more than there is room for, which only it can make less.
//   - a tail older than the head that was read: their difference is negative, there is nothing.
//   - a head so old that the tail is more than the capacity away: a thief's exchange fails and
//     brings a newer one; size() must not take it for nothing.
//   - a position that wraps around and is the same again (ABA): 2^32 jobs would have to pass
//     between a thief's load and its exchange.
//
// Memory order
//   Two edges are needed. Owner to thief: a slot is written before it is read, through tail_.
//   Thief to owner: a slot is read before it is written again, through head_. Everything else on
//   head_ is relaxed: a read-modify-write in between does not break the chain from a thief's
//   release to the owner's acquire.
#include "rondo/exec/detail/steal_queue.hpp"

#include <algorithm>

#include "rondo/core/assert.hpp"

namespace rondo::detail {

namespace {

// A job comes from another core: asking for it a few turns ahead hides the way. It is a part of
// what runs: the root of a task has it in the middle of its 300 bytes, and the turn in which the
// task ends uses nearly all of them. So what lies around the job is asked for too.
void expect_soon([[maybe_unused]] job const* j) noexcept {
#ifndef RONDO_CHECKED
    constexpr std::uintptr_t line = 64;
    std::uintptr_t const at = reinterpret_cast<std::uintptr_t>(j) - 2 * line;  // or nowhere
    for (std::uintptr_t i = 0; i < 5; ++i) {
        __builtin_prefetch(reinterpret_cast<void const*>(at + i * line));
    }
#endif
}
constexpr std::uint32_t turns_ahead = 4;

// How far it is from one position to another; both may be old.
std::int32_t between(std::uint32_t from, std::uint32_t to) noexcept {
    return static_cast<std::int32_t>(to - from);
}

}  // namespace

steal_queue::steal_queue(std::uint32_t start) noexcept
    : head_(pack({start, start})), tail_(start) {}

steal_queue::~steal_queue() {
    RONDO_ASSERT(size() == 0, "a worker's queue is destroyed after its jobs have run");
}

std::uint32_t steal_queue::room_before(std::uint32_t tail) const noexcept {
    // acquire: pairs with the release at the end of steal_into(): its reads of the slots are over
    positions const at = unpack(head_.load(std::memory_order_acquire));
    return capacity - (tail - at.stolen);  // I1
}

void steal_queue::publish(std::uint32_t tail) noexcept {
    // release: pairs with the acquire load in steal_into(). Sequentially consistent on top of it
    // for the one who pushes and then looks for sleepers; see size().
    tail_.store(tail, std::memory_order_seq_cst);
}

job* steal_queue::pop() noexcept {
    std::uint64_t word = head_.load(std::memory_order_relaxed);
    std::uint32_t const tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
        positions const at = unpack(word);
        if (at.head == tail) return nullptr;
        bool const alone = at.stolen == at.head;  // I3
        positions const next{alone ? at.head + 1 : at.stolen, at.head + 1};
        // relaxed: the jobs are the owner's own pushes
        if (head_.compare_exchange_weak(word, pack(next), std::memory_order_relaxed,
                                        std::memory_order_relaxed)) {
            expect_soon(slot(at.head + turns_ahead));
            return slot(at.head);
        }
    }
}

job* steal_queue::steal_into(steal_queue& mine) noexcept {
    std::uint32_t const most = 1 + mine.room_before(mine.tail_.load(std::memory_order_relaxed));
    std::uint64_t word = head_.load(std::memory_order_relaxed);
    positions at{};
    std::uint32_t share = 0;
    for (;;) {
        at = unpack(word);
        // acquire: pairs with the release in publish(): the jobs up to it are in their slots
        std::uint32_t const tail = tail_.load(std::memory_order_acquire);
        std::int32_t const there = between(at.head, tail);
        if (there <= 0 || at.stolen != at.head) return nullptr;  // I3
        share = std::min(static_cast<std::uint32_t>(there - there / 2), most);
        positions const claimed{at.stolen, at.head + share};
        // relaxed: the slots were seen through tail_
        if (head_.compare_exchange_weak(word, pack(claimed), std::memory_order_relaxed,
                                        std::memory_order_relaxed)) {
            break;
        }
    }
    job* const first = slot(at.head);
    std::uint32_t next = at.head + 1;
    std::uint32_t const kept = mine.push_some(share - 1, [&] { return slot(next++).read(); });
    RONDO_ASSERT(kept == share - 1, "a thief takes what it has room for");
    word = pack({at.stolen, at.head + share});
    for (;;) {
        std::uint32_t const head = unpack(word).head;  // the owner may have popped meanwhile
        // release: pairs with the acquire load in room_before(): the slots are free to be written
        if (head_.compare_exchange_weak(word, pack({head, head}), std::memory_order_release,
                                        std::memory_order_relaxed)) {
            return first;
        }
    }
}

std::uint32_t steal_queue::size() const noexcept {
    positions const at = unpack(head_.load(std::memory_order_relaxed));
    // sequentially consistent: pairs with the store in publish(), for the one who says that it
    // sleeps and then looks here
    std::uint32_t const tail = tail_.load(std::memory_order_seq_cst);
    std::int32_t const there = between(at.head, tail);
    return there <= 0 ? 0 : std::min(static_cast<std::uint32_t>(there), capacity);
}

}  // namespace rondo::detail
