// recycled.hpp: objects that come and go with tasks, jobs and messages, in memory that is used
// again.
//
// Derive from it, and `new` takes the memory from the frame allocator: freed on any thread, it
// serves the next one of its size.
//
// Alignment   frames are aligned for types without extended alignment. One with such has its place
//             in a frame that is larger by as much: at the first multiple of its alignment after
//             the beginning of the frame, which is noted in the word before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "rondo/core/frame_allocator.hpp"

namespace rondo::detail {

class recycled {
  public:
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void* operator new(std::size_t size, std::align_val_t alignment) {
        auto const step = static_cast<std::size_t>(alignment);
        void* const frame = allocate_frame(size + step);
        std::byte* const object =
            static_cast<std::byte*>(frame) + step - reinterpret_cast<std::uintptr_t>(frame) % step;
        std::memcpy(object - sizeof frame, &frame, sizeof frame);
        return object;
    }
    static void operator delete(void* memory, std::size_t size) noexcept {
        deallocate_frame(memory, size);
    }
    static void operator delete(void* memory, std::size_t size,
                                std::align_val_t alignment) noexcept {
        void* frame = nullptr;
        std::memcpy(&frame, static_cast<std::byte*>(memory) - sizeof frame, sizeof frame);
        deallocate_frame(frame, size + static_cast<std::size_t>(alignment));
    }

  protected:
    ~recycled() = default;
};

}  // namespace rondo::detail
