#include "rondo/core/detail/foreign.hpp"

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
    executor* const current = executor::current();
    return &place == (current != nullptr ? current : &trampoline_executor());
}

}  // namespace rondo::detail
