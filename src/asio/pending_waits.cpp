// The end of a context
//
//   Asio shuts a context's services down from the newest to the oldest, so this one before the
//   scheduler: what is posted meanwhile is still accepted, and destroyed with the scheduler. And
//   before the strands, which would destroy it at once, in the thread that posts; so the service of
//   the strands is made no later than this one.
//   shutdown() takes each listed wait off the list and lets it leave its queue. A wait that was
//   decided at that moment is owed a wake-up by a thread that is between its decision and its
//   post; shutdown() waits until it has posted.
//
// Invariants
//   I1  a wait is listed until shutdown() or its hand_over takes it off; only one of them finds
//       it listed, and the other one leaves the list alone.
//   I2  owed_ counts the waits whose hand_over has not ended. The wait itself may be gone when it
//       ends, so the count is not kept there.
//   I3  after its decrement of owed_ a hand_over touches nothing but the address of that word.
//
// Races considered
//   - shutdown() inside a hand_over: cannot be, a waker runs no user code.
//   - a handler that is destroyed here releases something and so grants another wait of this
//     context: that one is handed over as usual, no lock is held.
#include "rondo/asio/detail/pending_waits.hpp"

#include <boost/asio/detail/strand_executor_service.hpp>
#include <mutex>
#include <utility>

namespace rondo::asio::detail {

pending_waits::pending_waits(boost::asio::execution_context& context) : service(context) {
    boost::asio::use_service<boost::asio::detail::strand_executor_service>(context);
}

void pending_waits::add(pending_wait& w) noexcept {
    owed_.fetch_add(1, std::memory_order_relaxed);  // ordered by the queue that w enters
    std::lock_guard const guard{lock_};
    waits_.push_front(w);
}

void pending_waits::remove(pending_wait& w) noexcept {
    std::lock_guard const guard{lock_};
    if (w.linked()) waits_.remove(w);  // I1
}

pending_wait* pending_waits::take_first() noexcept {
    std::lock_guard const guard{lock_};
    return waits_.pop_front();  // I1
}

void pending_waits::settle() noexcept {
    // release: pairs with the acquire operations in shutdown()
    std::uint32_t const owed = owed_.fetch_sub(1, std::memory_order_release);
    if (owed == (closing | 1U)) futex_wake(&owed_, 1);  // I3
}

void pending_waits::shutdown() noexcept {
    while (pending_wait* const w = take_first()) {
        if (w->abandon()) settle();
    }
    // acquire: pairs with the release in settle()
    std::uint32_t owed = owed_.fetch_or(closing, std::memory_order_acquire) | closing;
    while (owed != closing) {
        futex_wait(owed_, owed);
        owed = owed_.load(std::memory_order_acquire);
    }
}

}  // namespace rondo::asio::detail
