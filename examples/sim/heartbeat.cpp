// A heartbeat that stays in rhythm when one beat takes long.
//
// By the clock of the simulator, so that an hour takes no time; the same code runs on any executor.
#include <chrono>
#include <cstdio>
#include <vector>

#include "rondo/core/interval.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/world.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::duration_cast;
using std::chrono::minutes;

// [interval]
// Six beats, ten minutes apart. The second one takes 25 minutes: what is missed is left out, and
// the rhythm kept.
rondo::task<std::vector<rondo::time_point>> beat() {
    rondo::interval every{10min, rondo::missed_ticks::skip};
    std::vector<rondo::time_point> due;
    for (int i = 0; i < 6; ++i) {
        rondo::time_point const tick = co_await every.tick();
        due.push_back(tick);
        if (i == 1) co_await rondo::sleep_for(25min);
    }
    co_return due;
}
// [/interval]

}  // namespace

int main() {
    rondo::sim::world world;
    auto const due = world.block_on(beat());
    if (!due) return 1;
    std::printf("beats at minute");
    std::vector<minutes> at;
    for (rondo::time_point const t : *due) {
        at.push_back(duration_cast<minutes>(t.time_since_epoch()));
        std::printf(" %d", static_cast<int>(at.back().count()));
    }
    // 20 came late, at 35; 30 was left out.
    bool const in_rhythm = at == std::vector<minutes>{0min, 10min, 20min, 40min, 50min, 60min};
    std::printf("\n%-4s the rhythm was kept\n", in_rhythm ? "ok" : "NOT");
    return in_rhythm ? 0 : 1;
}
