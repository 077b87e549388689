// A server that ends gracefully: workers are told, finish what they have begun, and say so. One of
// them does not, and the report names it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/shutdown.hpp"

namespace {

using namespace std::chrono_literals;

// [shutdown]
// Looks for the notification between two requests.
rondo::task<void> serve(rondo::shutdown::subscription end, int* served) {
    while (!end.try_receive()) {
        co_await rondo::sleep_for(1ms);  // a request
        ++*served;
    }
    std::printf("%s has served %s requests\n", end.name().c_str(), *served > 0 ? "its" : "no");
    end.acknowledge();
}

// Waits for the notification in whatever it waits for.
rondo::task<void> listen(rondo::shutdown::subscription end) {
    auto const slept = co_await rondo::sleep_for(1h, end.token());
    std::printf("%s was told while it waited\n", slept ? "nobody" : end.name().c_str());
}

// Does not care.
rondo::task<void> dawdle(rondo::shutdown::subscription const* end) {
    co_await rondo::sleep_for(1h);
    std::printf("%s is never done\n", end->name().c_str());
}

rondo::task<std::vector<std::string>> run() {
    rondo::environment const& env = co_await rondo::this_environment();
    rondo::shutdown::notifier end;
    int served = 0;
    rondo::shutdown::subscription const careless = end.subscribe("dawdler");
    rondo::spawn(*env.where, serve(end.subscribe("worker"), &served)).detach();
    rondo::spawn(*env.where, listen(end.subscribe("listener"))).detach();
    auto dawdler = rondo::spawn(*env.where, dawdle(&careless));

    co_await rondo::sleep_for(5ms);
    auto const told = end.send();
    std::printf("%zu were told\n", told.value_or(0));
    auto const all = co_await end.collect_acknowledgements_for(100ms);
    dawdler.request_stop();
    (void)co_await dawdler.join();
    if (all) co_return std::vector<std::string>{};
    co_return all.error().who;
}
// [/shutdown]

}  // namespace

int main() {
    std::vector<std::string> const missing = rondo::block_on(run());
    for (std::string const& name : missing) std::printf("%s did not answer\n", name.c_str());
    return missing == std::vector<std::string>{"dawdler"} ? EXIT_SUCCESS : EXIT_FAILURE;
}
