// deadline_watch.hpp: where the holder of a timer waits for a deadline before the one it knows.
#pragma once

#include "rondo/core/waiter.hpp"

namespace rondo::fair::detail {

class engine;

// Its lock is taken before that of the engine, never after it.
class deadline_watch final : public wait_queue {
  public:
    explicit deadline_watch(engine& e) noexcept : engine_(e) {}

    class earlier_op : public waiter {
      public:
        earlier_op(deadline_watch& w, time_point than) noexcept
            : waiter(w), watch_(&w), than_(than) {}

        bool ready() noexcept { return watch_->comes_before(than_); }
        void take() noexcept {}
        void hand_on() noexcept {}

      private:
        friend class deadline_watch;
        deadline_watch* watch_;
        time_point than_;
    };

    void look() noexcept {
        serve([] {});
    }

  private:
    bool grant(waiter& first) noexcept override {
        return comes_before(static_cast<earlier_op&>(first).than_);
    }
    bool comes_before(time_point than) noexcept;

    engine& engine_;
};

}  // namespace rondo::fair::detail
