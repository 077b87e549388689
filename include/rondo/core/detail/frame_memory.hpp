// frame_memory.hpp: the frame allocator in the form of a standard allocator.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "rondo/core/frame_allocator.hpp"

namespace rondo::detail {

template <class T>
struct frame_memory {
    using value_type = T;
    using is_always_equal = std::true_type;

    frame_memory() = default;
    template <class U>
    frame_memory(frame_memory<U> const&) noexcept {}

    T* allocate(std::size_t n) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        return static_cast<T*>(allocate_frame(n * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t n) noexcept { deallocate_frame(memory, n * sizeof(T)); }

    friend bool operator==(frame_memory const&, frame_memory const&) = default;
};

}  // namespace rondo::detail
