#include "rondo/core/waker.hpp"

#include "rondo/core/detail/thread_state.hpp"

namespace rondo {

namespace detail {

#ifdef RONDO_CHECKED
thread_state& this_thread() noexcept { return check::thread_storage<thread_state>(); }
#else
[[gnu::noinline]] thread_state& this_thread() noexcept {
    constinit thread_local thread_state state;
    asm volatile("" ::: "memory");
    return state;
}
#endif

}  // namespace detail

wake_scope::wake_scope() noexcept : thread_(detail::this_thread()) { ++thread_.wake_scopes; }

wake_scope::~wake_scope() {
    // The scope stays open while the jobs run: what they wake joins this queue instead of
    // recursing. The jobs belong to no executor.
    if (thread_.wake_scopes == 1 && !thread_.trampoline.empty()) {
        executor::scope const nowhere{nullptr};
        while (job* const j = thread_.trampoline.pop()) j->run(*j);
    }
    --thread_.wake_scopes;
}

void post_to_trampoline(job& j) noexcept {
    wake_scope const scope;
    detail::this_thread().trampoline.push(j);
}

}  // namespace rondo
