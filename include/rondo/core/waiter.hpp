// waiter.hpp: the one intrusive node through which everything waits, and the queue it waits in.
//
// A primitive (semaphore, channel, ...) derives from wait_queue and says in grant() what a waiter
// needs. An operation of that primitive derives from waiter and lives in the awaiter: in the
// coroutine frame or on a thread's stack. Waiting allocates nothing.
//
// Guarantee      turns: waiters are granted in the order in which they entered; nobody is granted
//                past a waiter that is still there. Granted or withdrawn is decided exactly once,
//                under the queue's lock; what was granted first stays granted. A waiter that
//                leaves gives back what it had been promised in part, and if it was first in line
//                those behind it that now fit are granted at once. (A primitive may except who is
//                owed something whatever its place, may serve the last in line first, and may have
//                an order of its own altogether.)
// Resumption     through the waiter's waker, once, with no lock held. A waiter that was decided
//                inside enter() or left by itself is not woken.
// Thread safety  enter() and leave() belong to the waiter's owner; everything else may be called
//                by any thread.
// Memory order   what happens before the grant is visible to the granted waiter.
//
// The life of a waiter, its states and who owns the frame in each of them, is the page at the
// head of src/core/waiter.cpp.
#pragma once

#include <cstdint>
#include <mutex>

#include "rondo/core/assert.hpp"
#include "rondo/core/linked_list.hpp"
#include "rondo/core/policy.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/core/waker.hpp"

namespace rondo {

class wait_queue;

enum class wait_state : std::uint8_t {
    idle,         // not in the queue and not decided
    enlisted,     // in the queue, and its owner runs on
    waiting,      // in the queue, and its owner sleeps
    granted,      // has what it asked for
    stopped,      // the environment's stop token asked
    interrupted,  // an explicit stop token asked
    timed_out,    // the deadline passed
};

// (Its place in line is the hook.)
class waiter : list_hook<waiter> {
  public:
    explicit waiter(wait_queue& queue) noexcept : queue_(&queue) {}
    // An operation may be moved until it is entered. (Inline: most operations are moved once, new
    // and ready, and then nothing is left of it.)
    waiter(waiter&& other) noexcept : queue_(other.queue_) {
        RONDO_ASSERT(other.state_ == wait_state::idle,
                     "an operation is moved before it is awaited");
    }
    waiter& operator=(waiter&&) = delete;

    // For the owner: before enter(), and again once it was woken.
    wait_state state() const noexcept { return state_; }
    void wake_with(waker w) noexcept { waker_ = w; }

    // True: decided, state() says how; the owner goes on. False: the waker will be called once;
    // the owner must not touch the waiter before that, other than through leave().
    [[nodiscard("who waits must not go on")]] bool enter() noexcept;

    // The same, but the owner runs on: no waker is called, and enlist() or enter() tells when it
    // was decided. Whoever enlisted must leave() before the waiter goes.
    [[nodiscard("a decided waiter waits no more")]] bool enlist() noexcept;

    // Ends the wait as `why` if nothing has ended it yet; false when it was decided already.
    // Before enter() it makes enter() return at once.
    bool withdraw(wait_state why) noexcept;

    // The owner gives up without being woken. False: it had been decided, and the wake-up comes
    // or has come.
    [[nodiscard("a decided waiter is still owed its wake-up")]] bool leave() noexcept;

  protected:
    wait_queue& queue() const noexcept { return *queue_; }

  private:
    friend class wait_queue;
    friend linked_list<waiter>;
    friend linked_chain<waiter>;

    waker waker_;
    wait_queue* queue_;
    cell<wait_state> state_{wait_state::idle};
};

class wait_queue {
  public:
    wait_queue(wait_queue const&) = delete;
    wait_queue& operator=(wait_queue const&) = delete;

  protected:
    // Who is granted next: the first in line, or whoever the primitive says.
    enum class order : std::uint8_t { of_arrival, of_its_own };

    explicit wait_queue(order o = order::of_arrival) noexcept : order_(o) {}
    ~wait_queue() {
        RONDO_ASSERT(waiters_.empty(), "a primitive is destroyed after everyone has left it");
    }

    // These are called under the lock: no blocking, no throwing, no user code, no waking.
    //
    // Takes what the waiter first in line needs, if it is there. May take a part and keep note
    // of it in the waiter (permits accrue to the head).
    virtual bool grant(waiter& first) noexcept = 0;
    // With an order of its own: who in line is let go next, whatever its place; null: nobody. Then
    // grant() is asked once of each that enters, and may make others be let go by it.
    virtual waiter* choose() noexcept { return nullptr; }
    // Takes back the part that a withdrawn waiter had accrued. Its state says why it goes; one that
    // leaves by itself is in line by that.
    virtual void give_back(waiter&) noexcept {}
    // Whether grant() is asked whoever is in line before it: because what it waits for came to all
    // who waited then, or because all in line wait for it. It is asked of a waiter that enters
    // behind others, and of one that is withdrawn.
    virtual bool owed(waiter&) noexcept { return false; }
    // The last in line has gone. A primitive with a fast path opens it again here.
    virtual void nobody_waits() noexcept {}

    // Changes the primitive's state under the lock, grants whoever can be granted then, and
    // wakes them after it. Destroy no user value inside `change`: move it out.
    template <class Change>
    void serve(Change change) noexcept {
        wake_list granted;
        {
            std::lock_guard const guard{lock_};
            change();
            if (has_waiters()) granted = grant_all();
        }
        if (!granted.empty()) wake(granted);
    }

    // The same, but the change is offered first to the waiter last in line.
    template <class Change>
    void serve_last(Change change) noexcept {
        wake_list granted;
        {
            std::lock_guard const guard{lock_};
            change();
            granted = grant_last();
        }
        wake(granted);
    }

    // The same as serve(), for a change that lets many go: grants and wakes a few of them at a
    // time, with the lock free in between. Until it is their turn they are owed() the grant. The
    // primitive outlives the call.
    template <class Change>
    void serve_in_batches(Change change) noexcept {
        wake_list granted;
        bool more = false;
        {
            std::lock_guard const guard{lock_};
            change();
            more = grant_batch(granted);
        }
        wake(granted);
        while (more) more = serve_batch();
    }

    // For the primitive's own reads and changes that can grant nobody anything.
    short_lock& lock() noexcept { return lock_; }
    bool has_waiters() const noexcept { return !waiters_.empty(); }  // under the lock
    waiter* first_in_line() const noexcept { return waiters_.front(); }
    // Whether it is in line and nobody else is.
    bool is_only(waiter const& w) const noexcept {
        return waiters_.front() == &w && waiters_.back() == &w;
    }

  private:
    friend class waiter;

    // Those to be woken, in the order in which they were granted.
    using wake_list = linked_chain<waiter>;

    bool enter(waiter& w, wait_state as) noexcept;
    bool enter_unordered(waiter& w, wait_state as) noexcept;
    bool withdraw(waiter& w, wait_state why) noexcept;
    bool leave(waiter& w) noexcept;
    wake_list take_out(waiter& w) noexcept;
    void take_off(waiter& w, wake_list& granted) noexcept;
    wake_list grant_all(wake_list granted = {}) noexcept;
    wake_list grant_last() noexcept;
    bool grant_batch(wake_list& granted) noexcept;
    bool serve_batch() noexcept;
    static void wake(wake_list granted) noexcept;

    short_lock lock_;
    order const order_;
    linked_list<waiter> waiters_;
};

inline bool waiter::enter() noexcept { return queue_->enter(*this, wait_state::waiting); }
inline bool waiter::enlist() noexcept { return queue_->enter(*this, wait_state::enlisted); }
inline bool waiter::withdraw(wait_state why) noexcept { return queue_->withdraw(*this, why); }
inline bool waiter::leave() noexcept { return queue_->leave(*this); }

}  // namespace rondo
