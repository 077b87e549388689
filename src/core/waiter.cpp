// The life of a waiter
//
// All decisions are taken under the lock of the queue, so there is one decision and everybody
// agrees on it. "Owner" is the task, thread or foreign coroutine that waits; its frame (or stack)
// contains the waiter. Every line has a scenario of the same name in
// tests/model/core/waiter_model_test.cpp.
//
//      state    -> state      by          on thread     then
//  W1  idle     -> granted    enter()     owner's       owner goes on, no wake-up
//  W2  idle     -> waiting    enter()     owner's       owner suspends
//  W3  waiting  -> granted    serve()     any           wake-up after the unlock
//  W4  waiting  -> withdrawn  withdraw()  requester's,  parts are given back; if it was first,
//                                         timer's       followers that fit are granted; all are
//                                                       woken after the unlock
//  W5  idle     -> withdrawn  withdraw()  requester's   enter() returns at once, no wake-up
//  W6  decided  -> same       withdraw()  requester's   nothing: what came first stands
//  W7  waiting  -> idle       leave()     owner's       as W4, but the leaver is not woken
//  W8  decided  -> same       leave()     owner's       nothing: the wake-up is still owed
//  W9  granted  -> (taken)    take() or   owner's       hand_on() if the frame is destroyed
//                             hand_on()                 before it could take
//
// (withdrawn = stopped, interrupted or timed_out.)
//
// Who owns the frame
//   idle       the owner: it runs.
//   waiting    the queue: the owner is suspended. The owner may come back only through leave().
//   decided    whoever decided, from its unlock until its call of the waker; then the executor
//              (or the un-parked thread), which is the owner again. Between the two nobody else
//              may free the frame. Hence:
//   destroyed  a frame may be destroyed while waiting (its awaiter calls leave()), and while
//              decided only if its executor is fenced, so that the wake-up can no longer reach it
//              (then a grant is handed on). A task's frame is never destroyed from outside while
//              it waits: it is stopped, and unwinds on its own executor.
//   hooks      stop hooks and timers that may call withdraw() are removed by the owner after the
//              wake-up and before the frame goes; removal waits for a call that is under way.
//
// Invariants
//   I1  a waiter is in the list if and only if its state is `waiting`.
//   I2  state_ changes only under the lock.
//   I3  while the lock is free, the first waiter in the list cannot be granted: whoever changed
//       what grant() looks at, or removed the first waiter, has run grant_all() before unlocking.
//   I4  a waker is called exactly once for each time enter() returned false and leave() did not
//       return true; never under the lock.
//   I5  after its waker was called a waiter is not touched: its successor is read before.
#include "rondo/core/waiter.hpp"

#include "rondo/core/assert.hpp"

namespace rondo {

waiter::waiter(waiter&& other) noexcept : queue_(other.queue_) {
    RONDO_ASSERT(other.state_ == wait_state::idle, "an operation is moved before it is awaited");
}

void waiter_list::push_back(waiter& w) noexcept {
    waiter* const last = last_;
    w.previous_ = last;
    w.next_ = nullptr;
    if (last != nullptr) {
        last->next_ = &w;
    } else {
        first_ = &w;
    }
    last_ = &w;
}

void waiter_list::remove(waiter& w) noexcept {
    waiter* const previous = w.previous_;
    waiter* const next = w.next_;
    if (previous != nullptr) {
        previous->next_ = next;
    } else {
        first_ = next;
    }
    if (next != nullptr) {
        next->previous_ = previous;
    } else {
        last_ = previous;
    }
}

wait_queue::~wait_queue() {
    RONDO_ASSERT(waiters_.empty(), "a primitive is destroyed after everyone has left it");
}

bool wait_queue::enter(waiter& w) noexcept {
    std::lock_guard const guard{lock_};
    if (w.state_ != wait_state::idle) return true;  // W5
    if (waiters_.empty() && grant(w)) {             // W1; nobody overtakes those in line
        w.state_ = wait_state::granted;
        return true;
    }
    waiters_.push_back(w);  // W2
    w.state_ = wait_state::waiting;
    return false;
}

// Grants from the front while it can. Returns those granted, chained by next_, in their order.
waiter* wait_queue::grant_all() noexcept {
    waiter* chain = nullptr;
    waiter* last = nullptr;
    while (waiter* const first = waiters_.front()) {
        if (!grant(*first)) break;
        waiters_.remove(*first);
        first->state_ = wait_state::granted;  // W3
        first->next_ = nullptr;
        if (last != nullptr) {
            last->next_ = first;
        } else {
            chain = first;
        }
        last = first;
    }
    return chain;
}

// Removes a waiter that waits; returns those whom its leaving lets go.
waiter* wait_queue::take_out(waiter& w) noexcept {
    bool const was_first = waiters_.front() == &w;
    waiters_.remove(w);
    give_back(w);
    return was_first ? grant_all() : nullptr;  // I3
}

bool wait_queue::withdraw(waiter& w, wait_state why) noexcept {
    waiter* granted = nullptr;
    {
        std::lock_guard const guard{lock_};
        if (w.state_ == wait_state::idle) {  // W5
            w.state_ = why;
            return true;
        }
        if (w.state_ != wait_state::waiting) return false;  // W6
        granted = take_out(w);                              // W4
        w.state_ = why;
        w.next_ = granted;
    }
    wake(&w);
    return true;
}

bool wait_queue::leave(waiter& w) noexcept {
    waiter* granted = nullptr;
    {
        std::lock_guard const guard{lock_};
        if (w.state_ != wait_state::waiting) return false;  // W8
        granted = take_out(w);                              // W7
        w.state_ = wait_state::idle;
    }
    wake(granted);
    return true;
}

void wait_queue::wake(waiter* chain) noexcept {
    if (chain == nullptr) return;
    wake_scope const scope;
    while (chain != nullptr) {
        waiter* const w = chain;
        chain = w->next_;  // I5
        w->waker_.wake();  // I4
    }
}

}  // namespace rondo
