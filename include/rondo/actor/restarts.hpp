// restarts.hpp: how often an actor that fails is restarted, and how soon.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "rondo/core/policy.hpp"

namespace rondo::actor {

// By default an actor is never restarted: the first failure ends it.
struct restarts {
    // At most this many in any span of `within`; with the next failure in it the actor gives up.
    unsigned at_most = 0;
    clock::duration within = std::chrono::minutes{1};
    // Before the first restart in that span. Before each further one it is twice as long as before
    // the last, up to `longest_delay`.
    clock::duration delay{0};
    clock::duration longest_delay = std::chrono::seconds{30};
};

namespace detail {

// Counts restarts against their limit.
class restart_limit {
  public:
    explicit restart_limit(restarts allowed) noexcept : allowed_(allowed) {}

    // The delay before the restart after a failure at this moment; nothing: give up.
    std::optional<clock::duration> next(time_point now);

  private:
    restarts allowed_;
    // Within the span, the oldest first; no memory before the first failure.
    std::vector<time_point> recent_;
};

}  // namespace detail

}  // namespace rondo::actor
