#include "rondo/actor/restarts.hpp"

#include <algorithm>

namespace rondo::actor::detail {

std::optional<clock::duration> restart_limit::next(time_point now) {
    while (!recent_.empty() && now - recent_.front() >= allowed_.within) recent_.pop_front();
    if (recent_.size() >= allowed_.at_most) return std::nullopt;

    clock::duration delay = std::min(allowed_.delay, allowed_.longest_delay);
    for (std::size_t i = 0; i < recent_.size() && delay < allowed_.longest_delay; ++i) {
        delay = delay > allowed_.longest_delay / 2 ? allowed_.longest_delay : 2 * delay;
        if (delay == clock::duration::zero()) break;
    }
    recent_.push_back(now);
    return delay;
}

}  // namespace rondo::actor::detail
