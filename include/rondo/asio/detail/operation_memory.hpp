// operation_memory.hpp: the memory of one operation of Asio, in the frame of the task that awaits
// it.
//
// Asio takes an operation's memory from its handler's associated allocator and gives it back before
// it calls the handler, so one block serves an operation after the other: the way to the context,
// the operation itself, each step of a composed one. A second block at the same time, and one that
// is too large, come from the frame allocator.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "rondo/core/frame_allocator.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::asio::detail {

class operation_memory {
  public:
    operation_memory() = default;
    operation_memory(operation_memory const&) = delete;
    operation_memory& operator=(operation_memory const&) = delete;

    void* allocate(std::size_t size) {
        // acquire: pairs with the release in deallocate()
        if (size <= sizeof block_ && !taken_.exchange(true, std::memory_order_acquire)) {
            return block_;
        }
        return allocate_frame(size);
    }
    void deallocate(void* memory, std::size_t size) noexcept {
        if (memory != block_) return deallocate_frame(memory, size);
        // release: pairs with the acquire in allocate(); steps may run in different threads
        taken_.store(false, std::memory_order_release);
    }

  private:
    alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) std::byte block_[256];
    atomic<bool> taken_{false};
};

// The same as a standard allocator.
template <class T>
class operation_allocator {
  public:
    using value_type = T;

    explicit operation_allocator(operation_memory& from) noexcept : from_(&from) {}
    template <class U>
    operation_allocator(operation_allocator<U> const& other) noexcept : from_(other.from_) {}

    T* allocate(std::size_t n) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        return static_cast<T*>(from_->allocate(n * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t n) noexcept { from_->deallocate(memory, n * sizeof(T)); }

    friend bool operator==(operation_allocator const&, operation_allocator const&) = default;

  private:
    template <class U>
    friend class operation_allocator;

    operation_memory* from_;
};

}  // namespace rondo::asio::detail
