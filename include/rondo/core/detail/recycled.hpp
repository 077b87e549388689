// recycled.hpp: objects that come and go with tasks, jobs and messages, in memory that is used
// again.
//
// Derive from it, and `new` takes the memory from the frame allocator: freed on any thread, it
// serves the next one of its size. Types with extended alignment go to the system.
#pragma once

#include <cstddef>
#include <new>

#include "rondo/core/frame_allocator.hpp"

namespace rondo::detail {

class recycled {
  public:
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void* operator new(std::size_t size, std::align_val_t alignment) {
        return ::operator new(size, alignment);
    }
    static void operator delete(void* memory, std::size_t size) noexcept {
        deallocate_frame(memory, size);
    }
    static void operator delete(void* memory, std::size_t size,
                                std::align_val_t alignment) noexcept {
        ::operator delete(memory, size, alignment);
    }

  protected:
    ~recycled() = default;
};

}  // namespace rondo::detail
