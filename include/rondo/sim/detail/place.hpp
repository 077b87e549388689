// place.hpp: where tasks of a world run: the world itself, or a node in it.
#pragma once

#include <chrono>

#include "rondo/core/executor.hpp"
#include "rondo/core/live_tasks.hpp"
#include "rondo/core/timer_wheel.hpp"

namespace rondo::sim::detail {

struct place {
    place(executor& where, time_point start)
        : runs(where), wheel(std::chrono::nanoseconds{1}, start) {}

    executor& runs;
    timer_wheel wheel;
    live_tasks tasks;
    bool halted = false;  // its timers do not fire
};

}  // namespace rondo::sim::detail
