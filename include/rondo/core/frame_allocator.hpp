// frame_allocator.hpp: recycled memory for coroutine frames and for jobs.
//
// Guarantee      what any thread has freed is handed out again, to the same thread first: the
//                frame that a thread freed last is the next one of its size class that it
//                allocates. In steady state no call reaches operator new, also when one thread
//                only allocates and another one only frees. Blocks are aligned for any type
//                without extended alignment.
// Cost           a dozen instructions. A thread has two magazines of up to 64 blocks for each of 32
//                classes (multiples of 64 bytes), and exchanges them for full or empty ones with
//                a depot shared by all, under a lock, once in 64 calls at most.
// Bounds         a thread keeps at most 64 KiB of each class, so never more than 2 MiB, the depot
//                16 MiB in all; what is beyond goes to operator delete. Larger frames than 2 KiB
//                are never kept.
// Thread safety  all functions may be called from any thread, and a frame may be freed on another
//                thread than it came from.
// Thread exit    an ending thread gives its full magazines to the depot and the rest to the system.
//                Frames freed later on that thread (by destructors of its thread-locals) go
//                straight to operator delete.
// Failure        allocate_frame() throws std::bad_alloc, as operator new does.
// Sanitizers     under ASan, TSan and RONDO_CHECKED nothing is recycled, so that a use of a dead
//                frame is caught: poisoning a cached block would catch it only until the block is
//                handed out again, which is the very next spawn, whereas the sanitizer's own
//                quarantine holds it back and knows both stacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo {

// Both are called from coroutine bodies, where clang may carry the address of a thread-local
// across a suspension and so into another thread. They are never inlined, for that reason.
[[nodiscard, gnu::noinline]] void* allocate_frame(std::size_t size);
[[gnu::noinline]] void deallocate_frame(void* frame, std::size_t size) noexcept;

// Gives what the depot keeps to the system: for a program that is past its peak.
void trim_frames() noexcept;

// What the calling thread has done. Counted off the fast path: recycled allocations are those the
// caller made less `system_allocations`.
struct frame_allocator_stats {
    bool recycling;                    // false in the builds named under Sanitizers
    std::uint64_t system_allocations;  // blocks taken from operator new
    std::uint64_t system_frees;        // blocks given to operator delete
    std::size_t cached_blocks;         // in this thread's magazines, now
    std::size_t cached_bytes;
    std::size_t depot_bytes;  // in the depot, which all threads share, now
};

[[nodiscard, gnu::noinline]] frame_allocator_stats this_thread_frame_stats() noexcept;

}  // namespace rondo
