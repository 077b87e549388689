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

// A slot is used again; its generation tells the tasks apart that it has named.
class handle_table {
  public:
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
        slots_[slot] = {nullptr, slots_[slot].generation + 1, free_};
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
        slots_.emplace_back();
        free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }

    std::vector<named> slots_;
    std::uint32_t free_ = 0;
};

}  // namespace detail

}  // namespace rondo::fair
