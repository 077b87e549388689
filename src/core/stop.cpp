// Algorithm
//   A list of hooks under a short lock. Most sources have one hook at a time, that of the wait in
//   which their task is: that one is in a word instead, and comes and goes without the lock. It is
//   put into the list when there is another one, or stop is requested. request_stop() raises the
//   flag, then takes one hook at a time off the list, calls it without the lock and notes under the
//   lock that it ended. remove() takes a listed hook off; for one that is being called by another
//   thread it waits for the end.
//   A link is not called: the walk goes down into its target, and the link counts as running
//   until everything below it has been called. The way back up is threaded through up_, so the
//   walk needs no recursion and no memory.
//
// Invariants
//   I1  requested_ is raised under the lock; no hook is listed after the walk saw the list empty,
//       because add() refuses under the same lock.
//   I2  a hook is either listed, or running, or done. remove() returns only when it is neither
//       of the first two (or when the calling thread is the one that runs it).
//   I3  after a hook's call the walk touches the source but never the hook: remove() from inside
//       the hook may have ended its life.
//   I4  a target is only touched while its link is running in the source above: whoever destroys
//       the target detaches the link first, and that waits (I2).
//   I5  while the lock is free: only_ is `listed` if and only if the list is not empty or stop was
//       requested. So the hook in the word is the only one, and the first that was registered.
//
// Races considered
//   - a hook is removed while another thread moves it from the word to the list: the removal does
//     not find it in the word, and finds it in the list, under the lock.
//   - a source reached through two ways (its owner and its link): mark_requested() lets one of
//     them walk; the other neither walks nor waits.
//   - remove() on the requesting thread, from a hook or from what a hook resumed: it must not
//     wait for itself. What hooks resume in place is kept back by the wake_scope until the walk
//     is over, so nothing can destroy a source that is being walked.
#include "rondo/core/stop.hpp"

#include <mutex>

#include "rondo/core/assert.hpp"
#include "rondo/core/waker.hpp"

namespace rondo {

stop_source::~stop_source() {
    RONDO_ASSERT(hooks_.empty() && only_.load(std::memory_order_relaxed) <= listed,
                 "a stop_source outlives the hooks registered at it");
}

bool stop_source::add_to_list(stop_hook& hook) noexcept {
    std::lock_guard const guard{lock_};
    if (requested_.load(std::memory_order_relaxed)) return false;  // I1
    list_the_only_one();
    hooks_.push_back(hook);
    return true;
}

void stop_source::list_the_only_one() noexcept {
    // acquire: pairs with the release in add()
    std::uintptr_t const only = only_.exchange(listed, std::memory_order_acquire);
    if (only > listed) hooks_.push_back(*reinterpret_cast<stop_hook*>(only));  // I5
}

void stop_source::unlink(stop_hook& hook) noexcept {
    hooks_.remove(hook);
    bool const may_open = hooks_.empty() && !requested_.load(std::memory_order_relaxed);
    // relaxed: it carries nothing; the list is read under the lock only
    if (may_open) only_.store(nobody, std::memory_order_relaxed);  // I5
}

void stop_source::remove_from_list(stop_hook& hook) noexcept {
    std::lock_guard const guard{lock_};
    do {
        if (hook.linked()) return unlink(hook);
    } while (!fence_.ended(&hook, lock_));  // I2
}

bool stop_source::mark_requested() noexcept {
    std::lock_guard const guard{lock_};
    if (requested_.load(std::memory_order_relaxed)) return false;
    list_the_only_one();  // before the flag: who has seen that is refused
    // release: pairs with the acquire in stop_requested()
    requested_.store(true, std::memory_order_release);
    return true;
}

stop_hook* stop_source::begin_next() noexcept {
    std::lock_guard const guard{lock_};
    stop_hook* const hook = hooks_.front();
    if (hook != nullptr) {
        unlink(*hook);
        fence_.begin(hook);
    }
    return hook;
}

void stop_source::end_current() noexcept {
    lock_.lock();
    bool const awaited = fence_.end();
    lock_.unlock();
    if (awaited) fence_.notify();
}

// The walk goes on at the source that a link leads to, unless that has been asked before.
stop_source* stop_source::descend(stop_link& link) noexcept {
    stop_source* const target = link.target_;
    if (!target->mark_requested()) {
        end_current();  // I3
        return this;
    }
    target->up_ = this;
    return target;
}

void stop_source::call(stop_hook& hook) noexcept {
    hook.call_(hook);
    end_current();  // I3
}

// Everything here has been called: so has the link that led here.
stop_source* stop_source::ascend() noexcept {
    stop_source* const up = up_;
    up->end_current();  // I4: this one may be gone from here on
    return up;
}

bool stop_source::request_stop() noexcept {
    if (!mark_requested()) return false;
    wake_scope const scope;
    stop_source* at = this;
    for (;;) {
        stop_hook* const hook = at->begin_next();
        if (hook == nullptr) {
            if (at == this) return true;
            at = at->ascend();
        } else if (hook->call_ == nullptr) {
            at = at->descend(static_cast<stop_link&>(*hook));
        } else {
            at->call(*hook);
        }
    }
}

}  // namespace rondo
