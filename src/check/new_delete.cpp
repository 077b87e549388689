// new_delete.cpp: replaces operator new and delete of every program that uses the checker.
//
// Inside an execution memory comes from its arena, elsewhere from malloc. operator delete tells
// the two apart by address, because memory may be freed on the other side of the border: what was
// allocated before an execution and is freed in it goes back to malloc.
//
// Linking        explore.cpp calls require_new_delete(), so that a static library cannot leave this
//                file out. All forms are here: one left to the C++ library would mix the two heaps.

#include <cstdlib>
#include <new>

#include "arena.hpp"
#include "execution.hpp"

namespace rondo::check::detail {

void require_new_delete() noexcept {}

namespace {

constexpr std::size_t default_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (current_arena != nullptr) {
        void* const block = current_arena->allocate(bytes, alignment);
        if (block == nullptr) {
            execution::current()->fail(failure::limit, "the scenario ran out of memory");
        }
        return block;
    }
    if (alignment <= default_alignment) {
        return std::malloc(bytes == 0 ? 1 : bytes);
    }
    void* block = nullptr;
    return posix_memalign(&block, alignment, bytes == 0 ? 1 : bytes) == 0 ? block : nullptr;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
    for (;;) {
        if (void* const block = allocate(bytes, alignment); block != nullptr) {
            return block;
        }
        std::new_handler const handler = std::get_new_handler();
        if (handler == nullptr) {
            throw std::bad_alloc();
        }
        handler();
    }
}

void release(void* block) noexcept {
    if (block == nullptr) {
        return;
    }
    if (owner_of(block) == nullptr) {
        std::free(block);
        return;
    }
    // Arena memory freed outside an execution belongs to one that has ended: nothing to do.
    if (execution* const now = execution::current(); now != nullptr) {
        now->release_memory(block);
    }
}

}  // namespace
}  // namespace rondo::check::detail

namespace heap = rondo::check::detail;

void* operator new(std::size_t n) { return heap::allocate_or_throw(n, heap::default_alignment); }
void* operator new[](std::size_t n) { return heap::allocate_or_throw(n, heap::default_alignment); }
void* operator new(std::size_t n, std::align_val_t a) {
    return heap::allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
    return heap::allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, std::nothrow_t const&) noexcept {
    return heap::allocate(n, heap::default_alignment);
}
void* operator new[](std::size_t n, std::nothrow_t const&) noexcept {
    return heap::allocate(n, heap::default_alignment);
}
void* operator new(std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept {
    return heap::allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept {
    return heap::allocate(n, static_cast<std::size_t>(a));
}

void operator delete(void* p) noexcept { heap::release(p); }
void operator delete[](void* p) noexcept { heap::release(p); }
void operator delete(void* p, std::size_t) noexcept { heap::release(p); }
void operator delete[](void* p, std::size_t) noexcept { heap::release(p); }
void operator delete(void* p, std::align_val_t) noexcept { heap::release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { heap::release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { heap::release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { heap::release(p); }
void operator delete(void* p, std::nothrow_t const&) noexcept { heap::release(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { heap::release(p); }
void operator delete(void* p, std::align_val_t, std::nothrow_t const&) noexcept {
    heap::release(p);
}
void operator delete[](void* p, std::align_val_t, std::nothrow_t const&) noexcept {
    heap::release(p);
}
