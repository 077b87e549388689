// gate_permit.hpp: a place behind a gate, and why one was not to be had.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rondo/fair/detail/turnstile.hpp"
#include "rondo/fair/terms.hpp"

namespace rondo::fair {

enum class gate_error : std::uint8_t {
    tenant_full,  // as many of its tenant are in line as may be; or as many as may be in all, and
                  // none has more than its own
    gate_full,    // as many as may be are in line
    evicted,      // it was in line, and another took its place there
    closed,
    stopped,
    timed_out,
};

enum class try_gate_error : std::uint8_t { no_permit, closed };

// Given back when it is destroyed, on any thread; one permit is used by one thread at a time. The
// gate outlives it.
class [[nodiscard("dropping a permit gives it back")]] gate_permit {
  public:
    // For gates.
    gate_permit(detail::turnstile& from, detail::tenant* t, detail::turnstile::price const& said,
                clock::duration waited) noexcept
        : from_(&from), tenant_(t), said_(said), waited_(waited) {}
    gate_permit(gate_permit&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)),
          tenant_(other.tenant_),
          said_(other.said_),
          waited_(other.waited_) {}
    gate_permit& operator=(gate_permit&& other) noexcept {
        gate_permit taken{std::move(other)};
        std::swap(from_, taken.from_);
        std::swap(tenant_, taken.tenant_);
        std::swap(said_, taken.said_);
        std::swap(waited_, taken.waited_);
        return *this;
    }
    ~gate_permit() { release(); }

    // What its tenant has paid, if there was a line.
    std::uint64_t cost() const noexcept { return said_.cost; }
    // How long it took to have it; nothing if there was no line.
    clock::duration waited() const noexcept { return waited_; }

    // Gives it back now: at the cost that was paid, or at what it has come to, up to max_cost.
    void release() noexcept { release(said_.cost); }
    void release(std::uint64_t cost) noexcept {
        detail::turnstile* const from = std::exchange(from_, nullptr);
        if (from == nullptr) return;
        if (tenant_ == nullptr) {
            from->leave_passed();
        } else {
            from->leave_admitted(*tenant_, said_, std::min(cost, max_cost));
        }
    }

  private:
    detail::turnstile* from_;  // null once it was given back
    detail::tenant* tenant_;   // null: it passed by the word
    detail::turnstile::price said_;
    clock::duration waited_;
};

}  // namespace rondo::fair
