// counted_new.hpp: counts the allocations of a program, or lets one fail: replaces the global
// operator new, or listens to the sanitizer's (which do not fail).
//
// Include it in one file of a program of its own.
//
//   allocation_count const during;
//   ...
//   EXPECT_EQ(during.count(), 0);
//
//   granted_before_it = 3;          // if not the next one but the fourth
//   next_allocation_fails = true;   // of this thread; not when sanitized
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/sanitized.hpp"

namespace rondo::test {

inline std::atomic<long> allocations{0};

// What happened since it was made.
class allocation_count {
  public:
    long count() const { return allocations.load(std::memory_order_relaxed) - start_; }

  private:
    long start_ = allocations.load(std::memory_order_relaxed);
};

}  // namespace rondo::test

#ifdef RONDO_TEST_SANITIZED

// The sanitizers bring an operator new of their own, and tell of every allocation.
#include <sanitizer/allocator_interface.h>

namespace rondo::test {

inline void on_malloc(void const volatile*, std::size_t) {
    allocations.fetch_add(1, std::memory_order_relaxed);
}
inline void on_free(void const volatile*) {}

[[maybe_unused]] inline int const installed =
    __sanitizer_install_malloc_and_free_hooks(&on_malloc, &on_free);

}  // namespace rondo::test

#else

namespace rondo::test {

inline thread_local bool next_allocation_fails = false;
inline thread_local int granted_before_it = 0;

inline void* count_allocation(std::size_t size, std::size_t alignment) {
    if (next_allocation_fails && granted_before_it-- == 0) {
        next_allocation_fails = false;
        granted_before_it = 0;
        throw std::bad_alloc{};
    }
    allocations.fetch_add(1, std::memory_order_relaxed);
    std::size_t const whole = (size + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, whole);
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
}

}  // namespace rondo::test

void* operator new(std::size_t size) {
    return rondo::test::count_allocation(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return rondo::test::count_allocation(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

#endif
