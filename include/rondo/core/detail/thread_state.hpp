// thread_state.hpp: the few words core keeps per thread.
#pragma once

#include "rondo/core/executor.hpp"

namespace rondo::detail {

struct thread_state {
    executor* current = nullptr;  // whose job this thread runs
    job_queue trampoline;         // woken here, belonging nowhere
    int wake_scopes = 0;          // how many are open
};

// The calling thread's own. Its address is the thread's identity while the thread lives.
// Never inlined: a coroutine may have changed threads since the address was last computed, and
// compilers keep addresses of thread-locals across a suspension.
thread_state& this_thread() noexcept;

}  // namespace rondo::detail
