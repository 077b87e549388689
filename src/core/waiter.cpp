// The life of a waiter
//
// All decisions are taken under the lock of the queue, so there is one decision and everybody
// agrees on it. "Owner" is the task, thread or foreign coroutine that waits; its frame (or stack)
// contains the waiter. Every line has a scenario of the same name in tests/model/core:
// waiter_model_test.cpp, and enlisting_model_test.cpp from W10 on.
//
//      state    -> state      by          on thread     then
//  W1  idle     -> granted    enter()     owner's       owner goes on, no wake-up; those whom it
//                                                       lets go are woken
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
//  W10 idle     -> enlisted   enlist()    owner's       owner runs on, with a place in line
//  W11 enlisted -> waiting    enter()     owner's       owner suspends
//  W12 enlisted -> decided    serve(),    any           as W3, W4 and W7, but it is not woken:
//                             withdraw(),               enlist() or enter() tells
//                             leave()
//
// (withdrawn = stopped, interrupted or timed_out.)
//
// Who owns the frame
//   idle       the owner: it runs.
//   enlisted   the owner: it runs. Nobody touches the waiter without the lock.
//   waiting    the queue: the owner is suspended. The owner may come back only through leave().
//   decided    whoever decided, from its unlock until its call of the waker; then the executor
//              (or the un-parked thread), which is the owner again. Between the two nobody else
//              may free the frame. Hence:
//   destroyed  a frame may be destroyed while waiting (its awaiter calls leave()), and while
//              decided only if its executor is fenced, so that the wake-up can no longer reach it
//              (then a grant is handed on): see live_tasks::abandon_all(). Short of that a task's
//              frame is never destroyed from outside while it waits: it is stopped, and unwinds on
//              its own executor.
//   hooks      stop hooks and timers that may call withdraw() are removed by the owner after the
//              wake-up and before the frame goes; removal waits for a call that is under way.
//
// Invariants
//   I1  a waiter is in the list if and only if its state is `waiting` or `enlisted`.
//   I2  state_ changes only under the lock.
//   I3  while the lock is free, the first waiter in the list cannot be granted: whoever changed
//       what grant() looks at, or removed the first waiter, has run grant_all() before unlocking.
//       But for serve_in_batches(): between two batches those at the front are owed() a grant, and
//       get it from whoever comes first: the next batch, a serve(), or their withdrawal. In a queue
//       with an order of its own it is choose() that has nobody.
//   I4  a waker is called exactly once for each time enter() returned false and leave() did not
//       return true; never under the lock. Nobody is woken who is only enlisted.
//   I5  after its waker was called a waiter is not touched: it has left the wake list before.
#include "rondo/core/waiter.hpp"

#include "rondo/core/assert.hpp"

namespace rondo {

namespace {

// How many are granted before the lock is let go; in a checked build few enough to be explored.
constexpr int batch = checked_build ? 2 : 32;

bool in_line(wait_state s) noexcept {
    return s == wait_state::waiting || s == wait_state::enlisted;
}

}  // namespace

bool wait_queue::enter(waiter& w, wait_state as) noexcept {
    if (order_ == order::of_its_own) return enter_unordered(w, as);
    wake_list let_go;
    bool more = false;
    {
        std::lock_guard const guard{lock_};
        if (w.state_ == wait_state::enlisted) {  // W11
            w.state_ = as;
            return false;
        }
        if (w.state_ != wait_state::idle) return true;  // W5
        bool const may_pass = waiters_.empty() || owed(w);
        if (!may_pass || !grant(w)) {  // W2, W10; nobody overtakes those in line
            waiters_.push_back(w);
            w.state_ = as;
            return false;
        }
        w.state_ = wait_state::granted;  // W1
        more = grant_batch(let_go);      // I3: they may have waited for this one
    }
    wake(let_go);
    while (more) more = serve_batch();
    return true;
}

bool wait_queue::enter_unordered(waiter& w, wait_state as) noexcept {
    RONDO_ASSERT(as == wait_state::waiting, "who is only enlisted has no place in such an order");
    wake_list let_go;
    bool decided = true;
    {
        std::lock_guard const guard{lock_};
        if (w.state_ != wait_state::idle) return decided;  // W5, unordered
        decided = grant(w);
        if (!decided) waiters_.push_back(w);
        w.state_ = decided ? wait_state::granted : as;  // W1, W2
        let_go = grant_all();  // I3: others may have to go for it; or it is its turn
    }
    wake(let_go);
    return decided;
}

// Takes a waiter that grant() has granted out of the line.
void wait_queue::take_off(waiter& w, wake_list& granted) noexcept {
    bool const sleeps = w.state_ == wait_state::waiting;
    waiters_.remove(w);
    w.state_ = wait_state::granted;    // W3
    if (sleeps) granted.push_back(w);  // else W12
    if (waiters_.empty()) nobody_waits();
}

// Grants from the front while it can, or whom the primitive says. Returns those to be woken, after
// whoever was granted before.
wait_queue::wake_list wait_queue::grant_all(wake_list granted) noexcept {
    if (order_ == order::of_its_own) {
        while (waiter* const chosen = has_waiters() ? choose() : nullptr) {
            take_off(*chosen, granted);
        }
        return granted;
    }
    while (waiter* const first = waiters_.front()) {
        if (!grant(*first)) break;
        take_off(*first, granted);
    }
    return granted;
}

wait_queue::wake_list wait_queue::grant_last() noexcept {
    wake_list granted;
    waiter* const last = waiters_.back();
    if (last != nullptr && grant(*last)) take_off(*last, granted);
    return grant_all(granted);  // I3
}

// True: there may be more to be granted.
bool wait_queue::grant_batch(wake_list& granted) noexcept {
    for (int i = 0; i < batch && has_waiters() && grant(*waiters_.front()); ++i) {
        take_off(*waiters_.front(), granted);
    }
    waiter* const next = waiters_.front();
    return next != nullptr && owed(*next);
}

bool wait_queue::serve_batch() noexcept {
    wake_list granted;
    bool more = false;
    {
        std::lock_guard const guard{lock_};
        more = grant_batch(granted);
    }
    wake(granted);
    return more;
}

// Removes a waiter that waits; returns those whom its leaving lets go.
wait_queue::wake_list wait_queue::take_out(waiter& w) noexcept {
    bool const lets_go = waiters_.front() == &w || order_ == order::of_its_own;
    waiters_.remove(w);
    give_back(w);
    if (waiters_.empty()) nobody_waits();
    return lets_go ? grant_all() : wake_list{};  // I3
}

bool wait_queue::withdraw(waiter& w, wait_state why) noexcept {
    wake_list woken;
    bool withdrawn = true;
    {
        std::lock_guard const guard{lock_};
        if (w.state_ == wait_state::idle) {  // W5
            w.state_ = why;
            return true;
        }
        if (!in_line(w.state_)) return false;  // W6
        if (owed(w) && grant(w)) {             // I3
            take_off(w, woken);
            withdrawn = false;
        } else {
            bool const sleeps = w.state_ == wait_state::waiting;
            w.state_ = why;                   // before give_back(), which may ask
            woken = take_out(w);              // W4
            if (sleeps) woken.push_front(w);  // else W12
        }
    }
    wake(woken);
    return withdrawn;
}

bool wait_queue::leave(waiter& w) noexcept {
    wake_list granted;
    {
        std::lock_guard const guard{lock_};
        if (!in_line(w.state_)) return false;  // W8
        granted = take_out(w);                 // W7
        w.state_ = wait_state::idle;
    }
    wake(granted);
    return true;
}

void wait_queue::wake(wake_list granted) noexcept {
    if (granted.empty()) return;
    if (granted.has_one()) return granted.pop_front()->waker_.wake();  // nobody to be kept back for
    wake_scope const scope;  // so that all are woken before one of them runs
    while (waiter* const w = granted.pop_front()) w->waker_.wake();  // I4, I5
}

}  // namespace rondo
