// ratio.hpp: a workload measured in several ways, printed as ratios.
//
// Method         contenders take turns: one run of each per round, and the order moves on by one
//                each round, so that a slow minute of the machine falls on all of them alike. The
//                first round warms up and is not counted. What is printed is the median.
// Output         one pair of lines for each peer, to be read by people and by grep:
//                    ratio core fire_1e5 std_multimap rondo=21.4 peer=148.0 6.92x
//                    spread core fire_1e5 std_multimap rondo=20.9..23.0 peer=141.2..160.3
//                Times are ns per operation; above 1x rondo is the faster one. The spread is the
//                range from the first to the third quartile: ratios that it could explain say
//                nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::bench {

// One way to do the work. run() does it once and returns the ns per operation; what it prepares
// outside of its own measurement does not count.
struct contender {
    std::string name;
    std::function<double()> run;
};

template <typename Body>
double ns_per_operation(std::size_t operations, Body&& body) {
    auto const begin = std::chrono::steady_clock::now();
    std::forward<Body>(body)();
    std::chrono::duration<double, std::nano> const took = std::chrono::steady_clock::now() - begin;
    return took.count() / static_cast<double>(operations);
}

inline double quantile(std::vector<double> const& sorted, double q) {
    return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

inline void compare(char const* module, char const* workload, contender const& ours,
                    std::vector<contender> const& peers, std::size_t rounds = 15) {
    std::vector<contender const*> turns{&ours};
    for (contender const& peer : peers) {
        turns.push_back(&peer);
    }
    std::vector<std::vector<double>> times(turns.size());
    for (std::size_t round = 0; round <= rounds; ++round) {
        for (std::size_t turn = 0; turn < turns.size(); ++turn) {
            std::size_t const who = (round + turn) % turns.size();
            double const ns = turns[who]->run();
            if (round > 0) {
                times[who].push_back(ns);
            }
        }
    }
    for (std::vector<double>& of_one : times) {
        std::ranges::sort(of_one);
    }
    double const rondo = quantile(times[0], 0.5);
    for (std::size_t who = 1; who < turns.size(); ++who) {
        double const peer = quantile(times[who], 0.5);
        std::printf("ratio %s %s %s rondo=%.1f peer=%.1f %.2fx\n", module, workload,
                    turns[who]->name.c_str(), rondo, peer, peer / rondo);
        std::printf("spread %s %s %s rondo=%.1f..%.1f peer=%.1f..%.1f\n", module, workload,
                    turns[who]->name.c_str(), quantile(times[0], 0.25), quantile(times[0], 0.75),
                    quantile(times[who], 0.25), quantile(times[who], 0.75));
    }
    std::fflush(stdout);
}

}  // namespace rondo::bench
