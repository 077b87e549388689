// block_list.hpp: the values of a channel, many senders to one receiver, in blocks of 32 slots.
//
// Algorithm      (the block list of crossbeam's and Tokio's channels, with a lock where a block
//                ends)
//
//   A push claims the next position by a compare-exchange on tail_, writes the value into the slot
//   of that position, and sets the slot's bit in the block's `ready` word. The receiver reads the
//   slots in order, each once its bit is set. The first position of a block is claimed under a
//   lock, by whoever brings the block: so a block is there before any of its slots is claimed,
//   memory is taken while nothing is claimed yet (a push that throws has changed nothing), and
//   nobody ever spins for another. One push in 32 takes that lock.
//
//   tail_  position << 1, and the lowest bit when nothing may be pushed any more.
//
// Invariants
//   I1  while tail_ is past the first position of a block and not past its last one, current_ is
//       that block. current_ changes under the lock, before the first position is claimed; a push
//       reads tail_, then current_, then claims: had the block changed in between, the claim fails.
//   I2  a slot belongs to who claimed its position until the bit is set, then to the receiver.
//   I3  a sender touches a block only between the claim of one of its slots and setting the bit of
//       it, or under the lock, to append the next one. So a block that the receiver has read to
//       the end, and of which it knows the next one, is the receiver's alone.
//
// Why not fetch_add for the claim: it cannot fail, so whoever is thrown past the end of a block by
// it must find memory or give up the program, and needs a protocol for finding its block (a walk
// from an older one) and for knowing when the walkers are gone. Alone on a cache line both cost the
// same.
//
// Memory         a block that was read becomes the next one, if none is kept for that already. The
//                rest goes to the recycling allocator.
// Failure        push() throws std::bad_alloc and has changed nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "rondo/core/detail/recycled.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/sync/detail/slot.hpp"

namespace rondo::detail {

template <class T>
class block_list {
  public:
    // Few in a checked build, so that small scenarios reach the end of a block.
    static constexpr unsigned slots_per_block = checked_build ? 2 : 32;

    block_list() : head_(new block) { current_.store(head_, std::memory_order_relaxed); }
    ~block_list() {
        delete spare_.load(std::memory_order_relaxed);
        for (block* b = oldest_; b != nullptr;) {
            block* const done = b;
            b = b->next.load(std::memory_order_relaxed);
            delete done;
        }
    }
    block_list(block_list const&) = delete;
    block_list& operator=(block_list const&) = delete;

    // Takes the value. False: closed, and the value is where it was.
    bool push(T& value) {
        // acquire: pairs with the release in open(), for the block (I1)
        std::uint64_t tail = tail_.load(std::memory_order_acquire);
        for (;;) {
            if ((tail & closed_bit) != 0) return false;
            if (offset(tail / one) == 0) {
                if (block* const b = open(tail)) {
                    fill(*b, 0, std::move(value));
                    return true;
                }
                tail = tail_.load(std::memory_order_acquire);
                continue;
            }
            block* const b = current_.load(std::memory_order_relaxed);
            // release: pairs with the acquire in open(): current_ was read before it changes (I1).
            // acquire: as above
            if (tail_.compare_exchange_weak(tail, tail + one, std::memory_order_release,
                                            std::memory_order_acquire)) {
                fill(*b, offset(tail / one), std::move(value));
                return true;
            }
        }
    }

    // Nothing is pushed after this.
    void close() noexcept {
        // relaxed: only the order of changes of tail_ matters
        tail_.fetch_or(closed_bit, std::memory_order_relaxed);
    }

    // What follows is for the receiver.

    // Whether the next value is there. seq_cst: so is the setting of the bit, see fill().
    bool has_next() const noexcept {
        block const* const b = at_end() ? head().next.load() : head_.read();
        return b != nullptr && (b->ready.load() & bit(offset(index_))) != 0;
    }
    // Of which there must be one.
    T pop() noexcept {
        if (at_end()) {
            block* const done = head_;
            oldest_ = step();
            recycle(done);
        }
        T value = head().slots[offset(index_)].take();
        index_ = index_ + 1;
        return value;
    }
    // The slot of the next value, which is left in place, and its block too: for a receiver that is
    // on its way out. Null: it is not there.
    slot<T>* pass_over() noexcept {
        if (!has_next()) return nullptr;
        if (at_end()) step();
        slot<T>* const passed = &head().slots[offset(index_)];
        index_ = index_ + 1;
        return passed;
    }

    // How many were pushed and not received, with those whose push is under way.
    std::size_t length() const noexcept {
        // relaxed: where it matters that nothing is missed, whoever pushed happens before
        return static_cast<std::size_t>(tail_.load(std::memory_order_relaxed) / one - index_);
    }

  private:
    static constexpr std::uint64_t closed_bit = 1;
    static constexpr std::uint64_t one = 2;
    // Position 0 is left out: with it the first block would begin like the others, at offset 0.
    static constexpr std::uint64_t beginning = 1;

    struct block : recycled {
        std::array<slot<T>, slots_per_block> slots;
        atomic<std::uint32_t> ready{0};
        atomic<block*> next{nullptr};
    };

    static unsigned offset(std::uint64_t position) noexcept {
        return static_cast<unsigned>(position % slots_per_block);
    }
    static std::uint32_t bit(unsigned offset) noexcept { return std::uint32_t{1} << offset; }

    static void fill(block& b, unsigned offset, T&& value) noexcept {
        b.slots[offset].put(std::move(value));
        // seq_cst: this comes before the sender's look at whether the receiver sleeps, and the
        // receiver's has_next() after saying that it does: one of them sees the other
        b.ready.fetch_or(bit(offset));
    }

    // Brings the block whose first position is in `tail`, and claims that position. Null: somebody
    // else has, or the list was closed.
    block* open(std::uint64_t tail) {
        // acquire: pairs with the release in recycle()
        block* fresh = spare_.exchange(nullptr, std::memory_order_acquire);
        if (fresh == nullptr) fresh = new block;
        {
            std::lock_guard const guard{opening_};
            // acquire: pairs with the release in push() (I1)
            if (tail_.load(std::memory_order_acquire) == tail) {
                // seq_cst: as in fill(); a receiver at the end of its block looks here first
                current_.load(std::memory_order_relaxed)->next.store(fresh);
                current_.store(fresh, std::memory_order_relaxed);
                // release: pairs with the acquire in push()
                if (tail_.compare_exchange_strong(tail, tail + one, std::memory_order_release,
                                                  std::memory_order_relaxed)) {
                    return fresh;
                }
                return nullptr;  // closed; the block stays in the list, unused
            }
        }
        keep(fresh);
        return nullptr;
    }

    // A block that is nobody's (I3) and as new.
    void keep(block* b) noexcept {
        // acq_rel: pairs with itself, for the one that is deleted, and with the acquire in open()
        delete spare_.exchange(b, std::memory_order_acq_rel);
    }
    void recycle(block* b) noexcept {
        b->ready.store(0, std::memory_order_relaxed);
        b->next.store(nullptr, std::memory_order_relaxed);
        keep(b);
    }

    block& head() const noexcept { return *head_.read(); }
    bool at_end() const noexcept { return index_ == head_end_; }
    // On to the next block, which must be there.
    block* step() noexcept {
        head_ = head().next.load(std::memory_order_relaxed);  // has_next() has acquired it
        head_end_ = head_end_ + slots_per_block;
        return head_;
    }

    static constexpr std::size_t cache_line = 64;

    alignas(cache_line) atomic<std::uint64_t> tail_{beginning * one};
    atomic<block*> current_{nullptr};
    atomic<block*> spare_{nullptr};
    short_lock opening_;

    alignas(cache_line) cell<block*> head_;  // has the slot of index_, or ends before it
    cell<std::uint64_t> index_{beginning};   // the next position to read
    cell<std::uint64_t> head_end_{slots_per_block};
    cell<block*> oldest_{
        head_.read()};  // not recycled yet: head_, or an earlier one after pass_over()
};

}  // namespace rondo::detail
