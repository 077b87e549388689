// job_memory.hpp: memory for jobs, which one thread allocates and another frees.
//
// Guarantee      blocks of at most 128 bytes that any thread freed are handed out again by any
//                other: in steady state no call reaches operator new, also when one thread only
//                submits and others only run. Larger ones are frames (core/frame_allocator.hpp),
//                which are recycled within a thread.
// Cost           a few ns: a thread has two magazines of 64 blocks of each class, and exchanges
//                them for full or empty ones with a depot shared by all, under a lock, once in 64
//                calls.
// Bounds         the depot keeps at most 4 MiB in each of two classes (64 and 128 bytes), a thread
//                at most 24 KiB; what is beyond goes to operator delete.
// Thread exit    an ending thread gives its magazines to the depot.
// Sanitizers     as in frame_allocator.hpp nothing is recycled under ASan, TSan and RONDO_CHECKED.
#pragma once

#include <cstddef>

namespace rondo::detail {

[[nodiscard, gnu::noinline]] void* allocate_job(std::size_t size);
[[gnu::noinline]] void deallocate_job(void* job, std::size_t size) noexcept;

}  // namespace rondo::detail
