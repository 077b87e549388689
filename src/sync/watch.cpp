// Algorithm
//   A version says which value is the current one; whoever changes the value advances it, while the
//   value is locked, so that one who looks at the value knows its version. A receiver remembers the
//   version that it has seen, and waits for another one.
//   The version shares a word with a bit that says whether somebody waits: a sender learns with the
//   very addition whether it has to wake, and takes no lock of the queue if not.
//
// Invariants (while the lock of the queue is free)
//   I1  `awaited` is set if and only if somebody is in line, or is being let go in batches.
//   I2  nobody is in line for a version that was followed by another one, but for those whom the
//       sender is about to let go: it has seen `awaited`.
//
// Memory order
//   The word changes only by read-modify-write operations: they form one release sequence, and an
//   acquire that reads a version sees what came before it and before every earlier one. In grant()
//   it is read relaxed: the receiver reads it again when it takes its result.
//
// Races considered
//   - a receiver enters as a sender advances: `awaited` is set by an exchange that fails if the
//     version has changed. So the receiver sees the version, or the sender sees the bit.
//   - the last sender goes as a receiver enters: the same, with `closed`.
#include "rondo/sync/detail/watch_state.hpp"

namespace rondo::detail {

void watch_base::drop_sender() noexcept {
    // acq_rel: the last one tells what all did before they went
    if (senders_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        // release: pairs with the acquire in word()
        bool const waited_for = (word_.fetch_or(closed, std::memory_order_release) & awaited) != 0;
        if (waited_for) announce();
    }
    disown();
}

void watch_base::disown() noexcept {
    // acq_rel: the last owner destroys what the others have used
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
}

bool watch_base::owed(waiter& w) noexcept {
    return answers(word_.load(std::memory_order_relaxed), static_cast<watch_change&>(w).seen_);
}

bool watch_base::grant(waiter& w) noexcept {
    if (has_waiters()) {
        if (!owed(w)) return false;
        if (is_only(w)) word_.fetch_and(~awaited, std::memory_order_relaxed);  // I1
        return true;
    }
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (!answers(word, static_cast<watch_change&>(w).seen_)) {
        if (word_.compare_exchange_weak(word, word | awaited, std::memory_order_relaxed,
                                        std::memory_order_relaxed)) {
            return false;  // I1: it is in line as soon as we return
        }
    }
    return true;
}

void watch_base::give_back(waiter&) noexcept {
    if (!has_waiters()) word_.fetch_and(~awaited, std::memory_order_relaxed);  // I1
}

}  // namespace rondo::detail
