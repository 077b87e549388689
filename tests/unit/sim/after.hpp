// after.hpp: virtual sleeping for the tests of the simulator.
#pragma once

#include "rondo/core/this_task.hpp"

namespace rondo::test {

// In a world this takes no real time.
inline auto after(clock::duration span) { return sleep_for(span); }

}  // namespace rondo::test
