// Algorithm
//
// One word says everything; a lock is taken only where somebody waits. Bits are only ever added:
//
//   sent, left        the sender's answer, one of them. With nobody waiting it comes in the same
//                     step as sender_done, so that an ordinary send() is one compare-exchange.
//   closed            the receiver's. Whether `sent` or `closed` came first decides who has the
//                     value: `sent` is never added to a word with `closed`.
//   sender_done,      the end named has touched this memory for the last time. Whoever adds the
//   receiver_done     second of the two frees it.
//   receiver_waits,   somebody entered the queue of recv() or closed(), at least once: whoever adds
//   sender_waits      what is awaited there takes the lock and looks again.
//
// Invariants
//   I1  the slot holds a value from `sent` until the receiver takes it, and is touched by the
//       sender before `sent` (or after its refusal) and by the receiver after it.
//   I2  an end that finds the other's waits-bit keeps the memory alive until it has woken them: it
//       adds its done-bit only after that. (With done in the same step, a waiter that is stopped
//       meanwhile could free the queue that is about to be looked into.)
//   I3  no wake-up is lost: grant() adds the waits-bit and reads the word in one step, or reads a
//       word in which it is already. If the awaited bit is in the order of changes before that,
//       the waiter is granted; if it is after, whoever added it has read the waits-bit, and takes
//       the lock after the waiter is in the queue.
//
// Races considered
//   send and close      one word, I1.
//   send and drop       the receiver closes first and then looks for a value; a sender that still
//                       got in is seen there, and the value destroyed.
//   stop and send       the stopped recv() takes nothing. A granted one that nobody resumes takes
//                       nothing either: the value stays in its slot.
//   both ends at once   they add their done-bits in some order; the second one frees.
#include "rondo/sync/detail/oneshot_state.hpp"

namespace rondo::detail {

// Somebody waits, or it is too late.
bool oneshot_base::finish_slowly(std::uint32_t how) noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    do {
        if ((seen & closed) != 0) return false;  // I1
        // release: pairs with the acquire in word()
    } while (!word_.compare_exchange_weak(seen, seen | how, std::memory_order_release,
                                          std::memory_order_relaxed));
    receiving_.look_again();
    leave_sender();  // I2
    return true;
}

void oneshot_base::leave_sender() noexcept {
    // acq_rel: pairs with itself in leave_receiver(), and with word(): whoever frees this
    // sees the end of the other's use
    if ((word_.fetch_or(sender_done, std::memory_order_acq_rel) & receiver_done) != 0) destroy();
}

void oneshot_base::leave_receiver() noexcept {
    // acq_rel: as in leave_sender()
    if ((word_.fetch_or(receiver_done, std::memory_order_acq_rel) & sender_done) != 0) destroy();
}

void oneshot_base::close() noexcept {
    // release: pairs with the acquire in word(), for is_closed()
    std::uint32_t const seen = word_.fetch_or(closed, std::memory_order_release);
    if ((seen & sender_waits) != 0) closing_.look_again();
    if ((seen & receiver_waits) != 0) receiving_.look_again();
}

}  // namespace rondo::detail
