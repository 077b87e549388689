// door.hpp: where the producers of one tenant wait for room.
#pragma once

#include <cstdint>

#include "rondo/core/linked_list.hpp"
#include "rondo/core/waiter.hpp"

namespace rondo::fair::detail {

class engine;
class tenant;

// A producer that waits for a place.
class producer : public waiter {
  public:
    using waiter::waiter;

  protected:
    bool reserved_ = false;  // a place; else it needs none, as its task is late or this is closed

  private:
    friend class door;
};

enum class reservation : std::uint8_t { made, no_room, closed };

// Its lock is taken before that of the engine, never after it. By its hook it is in one of the
// engine's lists, if somebody waits.
class door final : public wait_queue, public list_hook<door> {
  public:
    door(engine& e, tenant& t) noexcept : engine_(e), tenant_(t) {}

    tenant& of() const noexcept { return tenant_; }
    // Somebody waits, or is being let in. Under the engine's lock.
    bool is_awaited() const noexcept { return linked() || openers_ != 0; }
    // Lets in whoever there is room for, but only one if others wait for room.
    void open() noexcept {
        serve([] {});
    }

  private:
    friend class engine;

    // A grant is a place that is reserved: the producer brings its task later.
    bool grant(waiter&) noexcept override;
    void nobody_waits() noexcept override;

    engine& engine_;
    tenant& tenant_;
    // Under the engine's lock:
    // How many open it: mostly one, but one may yet have to leave when it is its turn again.
    std::uint32_t openers_ = 0;
    std::uint32_t offers_ = 0;  // places that these have for it, and that it has not taken
    bool tenant_full_ = false;  // it waits for its own tenant, not for room in all
};

}  // namespace rondo::fair::detail
