// Algorithm
//
// Values are in a block_list; for a bounded channel each of them has a permit of a permit_pool,
// from before it is pushed until it was received. What is left for this file: when the receiver
// sleeps, and who ends what.
//
//   receiver_   awake -> waits        recv() enters the queue and finds nothing
//               waits -> awake        it is granted, or withdrawn
//               any   -> gone         the receiver is destroyed
//   senders_    strong senders. From 0 it never rises: upgrade() fails.
//   owners_     who keeps this memory: the receiver, the senders together, each weak sender.
//
// recv() is granted when the next value is there, or none will come; it takes the value on its own
// turn, in take(). So a grant takes nothing, and a recv() that is stopped, before or after it was
// granted, has nothing to give back.
//
// Invariants
//   I1  no wake-up is lost. A sender sets the ready bit (or takes itself off senders_, or appends a
//       block) and then reads receiver_; the receiver sets `waits` and then reads those. All of
//       these are seq_cst: in their single order one of the two reads comes after the other's
//       write. Either the receiver finds the value and does not sleep, or the sender finds `waits`,
//       takes the lock after the receiver is in the queue, and grants it. (It looks for those
//       things on behalf of a receiver that has set `waits` before them: once is enough.)
//   I2  with `gone` in the place of `waits`: a value that was pushed in time is destroyed by the
//       receiver's destructor or, when that came too early to see it, by the sender itself. It does
//       not stay in the list until the last sender goes (as long as that a client could wait for
//       the answer to a request that nobody will read).
//   I3  what close() lets in is decided by one word: the list's tail_ (unbounded: a push comes
//       before it or is refused), or the pool's (bounded: a permit was taken before it or is
//       refused, and with a permit one may still push). recv() says `closed` when all of that is
//       received.
//   I4  the permit of a value goes back after the value has left the list, so a list has never more
//       values than permits.
//
// Races considered
//   - the last sender pushes and goes, while recv() looks: ended() reads senders_ before the
//     length, so it sees the value or does not see the sender gone.
//   - a permit is dropped after close(): that may be what recv() waits for. The pool says `closed`
//     to whoever puts a permit back after it, who then takes the lock (signal_surely).
//   - recv() is stopped while a sender is about to wake it: the sender holds no pointer to it but
//     looks into the queue, under the lock, and finds nobody.
//   - a sender claims a slot and is held up before it fills it: recv() waits for it although later
//     slots are full. try_recv() waits too: to say `empty` would deny values that were sent before.
#include "rondo/core/parker.hpp"
#include "rondo/sync/detail/mpsc_channel.hpp"

namespace rondo::detail {

void mpsc_end::reach() noexcept {
    // release: pairs with the acquire in reached()
    serve([this] { reached_.store(true, std::memory_order_release); });
}

bool mpsc_base::grant(waiter&) noexcept {
    // relaxed: under the lock, as is every store but that of `gone`, after which nobody comes here
    if (receiver_.load(std::memory_order_relaxed) != waits) {
        receiver_.store(waits);  // seq_cst: I1
    }
    if (!answerable()) return false;
    receiver_.store(awake, std::memory_order_relaxed);  // who finds `waits` only looks in vain
    return true;
}

void mpsc_base::give_back(waiter&) noexcept {
    receiver_.store(awake, std::memory_order_relaxed);  // as in grant()
}

void mpsc_base::signal_to(std::uint32_t receiver) noexcept {
    if (receiver == gone) {
        discard();  // I2
    } else {
        signal_surely();
    }
}

void mpsc_base::signal_surely() noexcept {
    serve([] {});
}

void mpsc_base::sleep() noexcept {
    parker woken;
    waiter sleeper{*this};
    sleeper.wake_with({[](void* p) noexcept { static_cast<parker*>(p)->unpark(); }, &woken});
    if (!sleeper.enter()) woken.park();
}

void mpsc_base::receiver_gone() noexcept {
    receiver_.store(gone);  // seq_cst: I1, I2
    discard();
}

bool mpsc_base::add_sender_if_any() noexcept {
    std::size_t seen = senders_.load(std::memory_order_relaxed);
    do {
        if (seen == 0) return false;
        // relaxed: as in add_sender()
    } while (!senders_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed));
    return true;
}

void mpsc_base::drop_sender() noexcept {
    if (senders_.fetch_sub(1) != 1) return;  // seq_cst: I1
    signal();
    disown(the_senders);
}

void mpsc_base::disown(std::size_t part) noexcept {
    // acq_rel: the last one sees what the others did, and frees it
    if (owners_.fetch_sub(part, std::memory_order_acq_rel) == part) destroy();
}

}  // namespace rondo::detail
