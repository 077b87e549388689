// handles.hpp: names for queued tasks that stay safe to use when the task has gone.
#pragma once

#include <cstdint>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/fair/detail/tenant.hpp"

namespace rondo::fair {

namespace detail {
class handle_table;
}

// Names one task that was accepted by one scheduler; good for cancel() there, at any time.
class handle {
  public:
    friend bool operator==(handle, handle) = default;

  private:
    friend class detail::handle_table;
    handle(std::uint32_t slot, std::uint32_t generation) noexcept
        : slot_(slot), generation_(generation) {}

    std::uint32_t slot_;
    std::uint32_t generation_;
};

namespace detail {

// A slot is used again; its generation tells the tasks apart that it has named. The one that was
// used last is the next, so a single slot may have all the uses: when its generations have run out
// it is used no more. (16 bytes for each 2^32 tasks.)
class handle_table {
  public:
    static constexpr std::uint32_t last_generation = 0xFFFF'FFFF;

    // Of slots that are new.
    explicit handle_table(std::uint32_t first_generation = 0) noexcept : first_(first_generation) {}

    // Throws std::bad_alloc.
    handle reserve() {
        if (free_ == 0) grow();
        std::uint32_t const slot = free_;
        free_ = slots_[slot].next_free;
        return {slot, slots_[slot].generation};
    }
    void name(handle h, entry& e) noexcept {
        slots_[h.slot_].task = &e;
        e.handle = h.slot_;
    }
    // The task has gone, or was never accepted.
    void release(std::uint32_t slot) noexcept {
        std::uint32_t const generation = slots_[slot].generation;
        if (generation == last_generation) {
            slots_[slot].task = nullptr;
            return;
        }
        slots_[slot] = {nullptr, generation + 1, free_};
        free_ = slot;
    }
    void release(handle h) noexcept { release(h.slot_); }

    entry* find(handle h) const noexcept {
        if (h.slot_ >= slots_.size()) return nullptr;
        named const& s = slots_[h.slot_];
        return s.generation == h.generation_ ? s.task : nullptr;
    }

  private:
    struct named {
        entry* task = nullptr;
        std::uint32_t generation = 0;
        std::uint32_t next_free = 0;  // 0: none
    };

    void grow() {
        if (slots_.empty()) slots_.emplace_back();  // slot 0 means that a task has no handle
        slots_.push_back({nullptr, first_, 0});
        free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }

    std::uint32_t const first_;
    std::vector<named> slots_;
    std::uint32_t free_ = 0;
};

}  // namespace detail

}  // namespace rondo::fair
