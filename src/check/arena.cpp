// arena.cpp: see arena.hpp.

#include "arena.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "sanitizers.hpp"

namespace rondo::check::detail {
namespace {

// There is one arena in a process; operator delete asks for it on every call.
constinit std::atomic<arena*> the_arena{nullptr};

// Asking for the same place each time makes addresses repeat between runs of a program as well, so
// that code which orders by address behaves the same in a replay. TSan wants its own places.
void* wished_place() noexcept {
#ifdef RONDO_CHECK_TSAN
    return nullptr;
#else
    return reinterpret_cast<void*>(std::uintptr_t{0x2000'0000'0000});
#endif
}

}  // namespace

constinit thread_local arena* current_arena = nullptr;

arena::arena() {
    void* const region = mmap(wished_place(), capacity, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
        std::perror("rondo::check: cannot reserve the arena");
        std::abort();
    }
    base_ = reinterpret_cast<std::uintptr_t>(region);
    // release: pairs with the acquire load in owner_of(), which reads base_.
    the_arena.store(this, std::memory_order_release);
}

arena::~arena() {
    reset();
    the_arena.store(nullptr, std::memory_order_release);
    munmap(reinterpret_cast<void*>(base_), capacity);
}

void* arena::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > capacity || alignment > capacity) {
        return nullptr;
    }
    alignment = alignment < sizeof(header) ? sizeof(header) : alignment;
    std::size_t const start = (used_ + sizeof(header) + alignment - 1) & ~(alignment - 1);
    std::size_t const end = start + bytes + (bytes == 0 ? 1 : 0);
    if (end > capacity) {
        return nullptr;
    }
    std::size_t const at = start - sizeof(header);
    *header_at(at) = header{static_cast<std::uint32_t>(bytes), last_, count_++, in_use()};
    last_ = static_cast<std::uint32_t>(at + 1);  // I1
    used_ = end;
    ++live_;  // I2
    return reinterpret_cast<void*>(base_ + start);
}

arena::freed arena::free(void* address) noexcept {
    std::size_t const start = offset(address);
    if (start < sizeof(header) || start % sizeof(header) != 0 || start > used_) {
        return freed::unknown;
    }
    header* const freed_block = header_at(start - sizeof(header));
    if (freed_block->status == released()) {
        return freed::twice;
    }
    if (freed_block->status != in_use()) {
        return freed::unknown;
    }
    freed_block->status = released();
    --live_;  // I2
    poison(address, freed_block->bytes);
    return freed::done;
}

void arena::reset() noexcept {
    unpoison(reinterpret_cast<void*>(base_), used_);
    used_ = 0;
    live_ = 0;
    last_ = 0;
    count_ = 0;
    ++epoch_;
}

arena::block arena::oldest() const noexcept {
    block found{};
    for (std::uint32_t at = last_; at != 0; at = header_at(at - 1)->previous) {  // I1
        header const* const block_header = header_at(at - 1);
        if (block_header->status == in_use()) {
            found = {reinterpret_cast<void*>(base_ + at - 1 + sizeof(header)), block_header->bytes,
                     block_header->number};
        }
    }
    return found;
}

arena* owner_of(void const* address) noexcept {
    // acquire: pairs with the release store in the constructor.
    arena* const only = the_arena.load(std::memory_order_acquire);
    return only != nullptr && only->contains(address) ? only : nullptr;
}

}  // namespace rondo::check::detail
