#include "rondo/core/detail/foreign.hpp"

#include "rondo/core/detail/thread_state.hpp"
#include "rondo/core/timer_queue.hpp"
#include "rondo/core/waker.hpp"

namespace rondo::detail {

namespace {

class trampoline final : public executor {
  public:
    void post(job& j) noexcept override { post_to_trampoline(j); }
    timer_service& timers() noexcept override { return default_timers(); }
};

}  // namespace

executor& trampoline_executor() noexcept {
    constinit static trampoline instance;
    return instance;
}

bool runs_here(executor& place) noexcept {
    thread_state const& thread = this_thread();
    if (&place != &trampoline_executor()) return thread.current == &place;
    // Outside of a wake_scope what the code posts would run at once, inside post().
    return thread.current == nullptr && thread.wake_scopes > 0;
}

}  // namespace rondo::detail
