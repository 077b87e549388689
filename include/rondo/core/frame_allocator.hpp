// frame_allocator.hpp: memory for coroutine frames, recycled per thread.
//
// Guarantee      a frame of at most 2 KiB that a thread frees is the next one of its size class
//                that this thread allocates: in steady state no call reaches operator new. Blocks
//                are aligned for any type without extended alignment.
// Bounds         a thread keeps at most 64 KiB in each of 32 classes (multiples of 64 bytes), so
//                never more than 2 MiB; what is beyond goes to operator delete. Larger frames are
//                never kept.
// Thread safety  both functions may be called from any thread, and a frame may be freed on another
//                thread than it came from: it joins the cache of the thread that frees it. A thread
//                that only allocates thus gets no help from one that only frees.
// Thread exit    an ending thread gives its cache back. Frames freed later on that thread (by
//                destructors of its thread-locals) go straight to operator delete.
// Failure        allocate_frame() throws std::bad_alloc, as operator new does.
// Sanitizers     under ASan, TSan and RONDO_CHECKED nothing is recycled, so that a use of a dead
//                frame is caught: poisoning a cached block would catch it only until the block is
//                handed out again, which with a LIFO cache is the very next spawn, whereas the
//                sanitizer's own quarantine holds it back and knows both stacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo {

// Both are called from coroutine bodies, where clang may carry the address of a thread-local
// across a suspension and so into another thread. They are never inlined, for that reason.
[[nodiscard, gnu::noinline]] void* allocate_frame(std::size_t size);
[[gnu::noinline]] void deallocate_frame(void* frame, std::size_t size) noexcept;

// What the calling thread has done. Counted off the fast path: recycled allocations are those the
// caller made less `system_allocations`.
struct frame_allocator_stats {
    bool recycling;                    // false in the builds named under Sanitizers
    std::uint64_t system_allocations;  // blocks taken from operator new
    std::uint64_t system_frees;        // blocks given to operator delete
    std::size_t cached_blocks;         // waiting in this thread's cache, now
    std::size_t cached_bytes;
};

[[nodiscard, gnu::noinline]] frame_allocator_stats this_thread_frame_stats() noexcept;

}  // namespace rondo
