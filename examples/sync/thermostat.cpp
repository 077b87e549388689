// A thermostat: one thread measures, tasks want to know: one follows the temperature, one waits
// until it is warm enough.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "rondo/core/block_on.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sync/watch.hpp"

namespace {

// [watch]
rondo::task<int> follow(rondo::watch::receiver<int> temperature) {
    int last = 0;
    for (;;) {
        auto const changed = co_await temperature.changed();
        if (!changed) break;                      // nobody measures any more
        last = *temperature.borrow_and_update();  // the latest: some may have been skipped
        std::printf("it is %d degrees\n", last);
    }
    co_return last;
}
// [/watch]

// [wait_for]
rondo::task<int> wait_until_warm(rondo::watch::receiver<int> temperature) {
    auto const warm = co_await temperature.wait_for([](int degrees) { return degrees >= 20; });
    co_return warm ? **warm : 0;
}
// [/wait_for]

rondo::task<bool> spend_the_morning(rondo::watch::receiver<int> temperature) {
    auto const [last, warm] =
        co_await rondo::when_all(follow(temperature), wait_until_warm(temperature));
    std::printf("warm at %d, at the end %d\n", warm, last);
    co_return warm >= 20 && last == 22;
}

}  // namespace

int main() {
    auto [sensor, reader] = rondo::watch::channel(15);
    std::jthread const measures{[mine = std::move(sensor)] {
        for (int degrees = 16; degrees <= 22; ++degrees) (void)mine.send_replace(degrees);
    }};
    return rondo::block_on(spend_the_morning(std::move(reader))) ? EXIT_SUCCESS : EXIT_FAILURE;
}
