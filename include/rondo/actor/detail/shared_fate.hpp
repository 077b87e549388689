// shared_fate.hpp: actors that begin again together: the objects of all of them are one generation.
#pragma once

#include <mutex>

#include "rondo/core/short_lock.hpp"
#include "rondo/sync/cancellation.hpp"

namespace rondo::actor::detail {

// Thread safety  every member may be called concurrently.
class shared_fate {
  public:
    // Cancelled when this generation ends.
    cancellation_token generation() const noexcept {
        std::lock_guard const guard{lock_};
        return now_;
    }

    // Ends this generation, unless that is over: who fails when another has is begun again anyway.
    void end(cancellation_token const& generation) {
        cancellation_token next;
        {
            std::lock_guard const guard{lock_};
            if (now_ != generation) return;
            std::swap(now_, next);
        }
        generation.cancel();
    }

  private:
    mutable short_lock lock_;
    cancellation_token now_;  // under the lock
};

}  // namespace rondo::actor::detail
