// restarts.hpp: how often an actor that fails is begun again, and how soon.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "rondo/core/policy.hpp"

namespace rondo::actor {

// By default never: the first failure is the end.
struct restarts {
    unsigned at_most = 0;  // in any span of `within`
    clock::duration within = std::chrono::minutes{1};
    clock::duration delay{0};  // before the first; each further one in
    clock::duration longest_delay = std::chrono::seconds{30};  // the span waits twice as long
};

namespace detail {

// Counts restarts against their limit.
class restart_limit {
  public:
    explicit restart_limit(restarts allowed) noexcept : allowed_(allowed) {}

    // After how long to begin again after a failure at this moment; nothing: give up.
    std::optional<clock::duration> next(time_point now);

  private:
    restarts allowed_;
    // Within the span, the oldest first; no memory before the first failure.
    std::vector<time_point> recent_;
};

}  // namespace detail

}  // namespace rondo::actor
