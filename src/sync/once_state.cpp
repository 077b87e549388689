// Algorithm
//   empty -> busy -> full, or back to empty when whoever made the value gave up. Who finds it busy
//   waits. When it becomes empty again the first in line is asked to make the value; when it is
//   full all go. The value itself is written by the one that made it `busy`, without the lock.
//
// Invariants (while the lock is free)
//   I1  the value is there, and is not changed any more, if the status is full.
//   I2  if the status is empty, nobody in line could make the value: they are asked first.
#include "rondo/sync/detail/once_state.hpp"

#include "rondo/core/assert.hpp"

namespace rondo::detail {

void once_state::claim(void const* who) noexcept {
    status_.store(status::busy, std::memory_order_relaxed);  // the lock orders it
    maker_ = who;
}

bool once_state::try_claim(void const* who) noexcept {
    std::lock_guard const guard{lock()};
    RONDO_ASSERT(now() != status::busy || who == nullptr || maker_ != who,
                 "what initialises a cell does not wait for that cell");
    if (now() != status::empty) return false;  // I2: and then nobody is in line before
    claim(who);
    return true;
}

void once_state::publish() noexcept {
    serve_in_batches([this] {
        maker_ = nullptr;
        // release: pairs with the acquire in full()
        status_.store(status::full, std::memory_order_release);
    });
}

void once_state::abandon() noexcept {
    serve([this] {
        maker_ = nullptr;
        status_.store(status::empty, std::memory_order_relaxed);  // the lock orders it
    });
}

bool once_state::owed(waiter&) noexcept { return now() == status::full; }

bool once_state::grant(waiter& w) noexcept {
    auto& op = static_cast<once_op&>(w);
    if (now() == status::full) return true;
    op.claimed_ = op.maker_ != nullptr && now() == status::empty;
    if (op.claimed_) claim(op.maker_);
    return op.claimed_;
}

}  // namespace rondo::detail
