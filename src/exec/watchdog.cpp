#ifndef RONDO_CHECKED

#include "rondo/exec/detail/watchdog.hpp"

#include <utility>

namespace rondo::detail {

watchdog::watchdog(team const& watched, live_tasks const& others, clock::duration longest,
                   report tell)
    : team_(watched),
      others_(others),
      longest_(longest),
      report_(std::move(tell)),
      seen_(watched.runners().size()),
      thread_([this] { run(); }) {}

watchdog::~watchdog() {
    ending_.store(true, std::memory_order_relaxed);  // relaxed: ordered by the unpark
    parker_.unpark();
    thread_.join();
}

void watchdog::run() noexcept {
    while (!ending_.load(std::memory_order_relaxed)) {
        for (std::size_t i = 0; i < seen_.size(); ++i) look(*team_.runners()[i], seen_[i]);
        (void)parker_.park_until(clock::now() + longest_ / 2);
    }
}

void watchdog::look(runner const& r, sighting& last) noexcept {
    job const* const running = r.running();
    std::uint64_t const turns = r.turns.get();
    time_point const now = clock::now();
    if (running == nullptr || running != last.running || turns != last.turns) {
        last = {running, turns, now, false};
        return;
    }
    auto const held = std::chrono::duration_cast<std::chrono::milliseconds>(now - last.since);
    if (held < longest_ || last.reported) return;
    last.reported = true;
    try {
        report_(r.index(), held, origin_of(running));
    } catch (...) {  // a hook that fails costs the report
    }
}

// A task in the list is alive as long as the list is locked: its address is not another's.
std::string watchdog::origin_of(job const* running) const {
    std::string name;
    auto const compare = [&](live_task const& t) {
        if (t.is(running)) name = t.origin().function_name();
    };
    team_.for_each_task(compare);
    others_.for_each(compare);
    return name;
}

}  // namespace rondo::detail

#endif
