// waker.hpp: two words that say how to make a waiter run again.
//
// Guarantee      wake() schedules and returns: it never runs the waiter in place, never blocks,
//                never throws. It is called once per wait, with no lock held.
// Where it goes  a rondo task: to its executor. A plain thread: un-parked. An Asio operation: to
//                its associated executor. A foreign coroutine: to the executor its promise names,
//                else the executor that was current when it suspended, else the trampoline.
// Trampoline     for coroutines that belong nowhere: resumed by the thread that woke them, one
//                after the other, in the outermost wake_scope of that thread, after every lock
//                is released. A chain of a million such coroutines needs the stack of one.
#pragma once

#include "rondo/core/executor.hpp"

namespace rondo {

class waker {
  public:
    using function = void (*)(void*) noexcept;

    constexpr waker() = default;
    constexpr waker(function f, void* context) noexcept : function_(f), context_(context) {}

    void wake() const noexcept { function_(context_); }

  private:
    function function_ = nullptr;
    void* context_ = nullptr;
};

// Open while a thread fires wakers. The outermost one runs what went to the trampoline when it
// closes: hold no lock then.
class [[nodiscard("it acts until the end of its scope")]] wake_scope {
  public:
    wake_scope() noexcept;
    ~wake_scope();
    wake_scope(wake_scope const&) = delete;
    wake_scope& operator=(wake_scope const&) = delete;

  private:
    detail::thread_state& thread_;
};

// Runs the job at the end of this thread's outermost wake_scope; if there is none, of the one that
// this opens.
void post_to_trampoline(job& j) noexcept;

}  // namespace rondo
