// A gate per route: the tenant is (customer, route), so that a customer's exports do not hold up
// its own logins. Logins are worth more, and whoever has the most queued gives way when it is full.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>

#include "rondo/fair/scheduler.hpp"

int main() {
    // [route_gate]
    namespace fair = rondo::fair;
    using route = std::tuple<std::string, std::string>;
    using gate = fair::scheduler<int, route>;

    fair::config<route> config;
    config.max_global = 50;
    config.quantum = 10;
    config.when_full = fair::backpressure::evict_longest;
    config.entitlement_of = [](route const& r) {
        return fair::entitlement{.weight = std::get<1>(r) == "/login" ? 5U : 1U};
    };
    std::map<route, int> evicted;
    gate requests{config, [&](fair::disposition, gate::task const& r) { ++evicted[r.tenant]; }};

    for (int i = 0; i < 200; ++i) {
        (void)requests.enqueue({"acme", "/export"}, i, {.cost = 10});
        if (i % 20 == 0) (void)requests.enqueue({"acme", "/login"}, i);
        if (i % 50 == 0) (void)requests.enqueue({"zeta", "/login"}, i);
    }
    std::map<route, int> served;
    while (auto const next = requests.try_dequeue()) ++served[next->tenant];
    // [/route_gate]

    for (auto const& [who, count] : served) {
        auto const& [customer, path] = who;
        std::printf("%s %-7s %2d served, %3d evicted\n", customer.c_str(), path.c_str(), count,
                    evicted[who]);
    }
    bool const right = served[{"acme", "/login"}] == 10 && served[{"zeta", "/login"}] == 4 &&
                       evicted[{"acme", "/login"}] == 0;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
