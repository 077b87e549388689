// A proxy that picks the next backend: round robin, then by weight, from several threads.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "rondo/sync/ring.hpp"

int main() {
    // [ring]
    rondo::ring<std::string> backends{{"alpha", "beta", "gamma"}};
    std::string order;
    for (int i = 0; i < 4; ++i) order += backends.next_ref() + ' ';
    // [/ring]
    std::printf("round robin:  %s\n", order.c_str());

    // [weighted_ring]
    // alpha takes five of seven requests; delta is being drained and takes none.
    rondo::weighted_ring<std::string> by_weight{
        {{"alpha", 50}, {"beta", 10}, {"gamma", 10}, {"delta", 0}}};
    std::string cycle;
    for (int i = 0; i < 7; ++i) cycle += by_weight.next_ref() + ' ';
    // [/weighted_ring]
    std::printf("by weight:    %s\n", cycle.c_str());

    std::vector<std::atomic<int>> requests(by_weight.size());
    {
        std::vector<std::jthread> workers;
        for (int w = 0; w < 4; ++w) {
            workers.emplace_back([&] {
                for (int i = 0; i < 700; ++i) ++requests[by_weight.next_index()];
            });
        }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        std::printf("%-6s served %4d of 2800\n", by_weight[i].c_str(), requests[i].load());
    }

    bool const right = order == "alpha beta gamma alpha " &&
                       cycle == "alpha alpha beta alpha alpha gamma alpha " &&
                       requests[0] == 2000 && requests[1] == 400 && requests[2] == 400 &&
                       requests[3] == 0;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
