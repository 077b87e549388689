#include "rondo/actor/restarts.hpp"

#include <algorithm>

namespace rondo::actor::detail {

std::optional<clock::duration> restart_limit::next(time_point now) {
    auto const is_over = [&](time_point restart) { return now - restart >= allowed_.within; };
    recent_.erase(recent_.begin(), std::ranges::find_if_not(recent_, is_over));
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
