// driver.hpp: what a worker of a runtime sleeps in, and hears from the world through.
//
// The runtime's is an io_context (src/exec/io_driver.cpp); the model checker's is a parker.
//
// Contract
//   poll()    runs the completions that are there; does not wait.
//   park()    sleeps until completions have run, somebody has called unpark(), or it is time; may
//             also return for no reason. An unpark() that came since the last park() ends it at
//             once.
//   unpark()  by any thread; what happens before it is visible after the park() that it ends.
//             poll() and park() belong to the worker.
#pragma once

#include "rondo/core/policy.hpp"

namespace rondo::detail {

class driver {
  public:
    virtual void poll() noexcept = 0;
    virtual void park(time_point until) noexcept = 0;
    virtual void unpark() noexcept = 0;

  protected:
    ~driver() = default;
};

}  // namespace rondo::detail
