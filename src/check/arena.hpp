// arena.hpp: the memory of one execution.
//
// Algorithm      blocks are cut from one reserved region, each behind a header, and never reused
//                before reset(). A freed block keeps its header: it is quarantined, so that a
//                second delete and a stale pointer are recognised, and addresses repeat exactly
//                from one execution to the next.
// Invariants     I1 headers form a list from last_ to the first block, in order of address.
//                I2 live() is the number of headers in state in_use().

#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo::check::detail {

class arena {
  public:
    enum class freed : std::uint8_t { done, twice, unknown };

    struct block {
        void* address;
        std::size_t bytes;
        std::uint32_t number;  // the how-manieth allocation of the execution
    };

    arena();
    ~arena();
    arena(arena const&) = delete;
    arena& operator=(arena const&) = delete;

    // nullptr when the region is used up.
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
    freed free(void* address) noexcept;
    void reset() noexcept;

    [[nodiscard]] bool contains(void const* address) const noexcept {
        auto const at = reinterpret_cast<std::uintptr_t>(address);
        return at - base_ < capacity;
    }
    [[nodiscard]] std::size_t live() const noexcept { return live_; }
    [[nodiscard]] std::size_t offset(void const* address) const noexcept {
        return reinterpret_cast<std::uintptr_t>(address) - base_;
    }
    // The oldest block still in use; live() must not be 0.
    [[nodiscard]] block oldest() const noexcept;

    static constexpr std::size_t capacity = std::size_t{256} << 20U;

  private:
    // What a header says; other in each execution, so that remains of the last are not believed.
    [[nodiscard]] std::uint32_t in_use() const noexcept { return 2 * epoch_; }
    [[nodiscard]] std::uint32_t released() const noexcept { return 2 * epoch_ + 1; }

    struct header {
        std::uint32_t bytes;
        std::uint32_t previous;  // offset of the previous block's header + 1; 0 for none
        std::uint32_t number;
        std::uint32_t status;
    };
    static_assert(sizeof(header) == 16, "keeps blocks aligned as malloc's are");

    [[nodiscard]] header* header_at(std::size_t offset) const noexcept {
        return reinterpret_cast<header*>(base_ + offset);
    }

    std::uintptr_t base_ = 0;
    std::size_t used_ = 0;
    std::size_t live_ = 0;
    std::uint32_t last_ = 0;
    std::uint32_t count_ = 0;
    std::uint32_t epoch_ = 0x52'4f'4e'44;
};

// The arena that operator new of this OS thread uses; null outside an execution.
extern constinit thread_local arena* current_arena;

// All memory ever handed out by an arena lies in this range, also when no execution runs.
[[nodiscard]] arena* owner_of(void const* address) noexcept;

// Makes a program that explores link the replacement of operator new (see new_delete.cpp).
void require_new_delete() noexcept;

}  // namespace rondo::check::detail
