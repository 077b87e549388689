// load.hpp: requests of tenants at a server, and what became of them.
//
// Open loop      arrivals are Poisson, from a fixed seed: a request is counted from the moment at
//                which it should have been sent, whatever held up its sender (no coordinated
//                omission). How late the generator itself was is kept beside, for a reader to know
//                what of a time is its own.
// Closed loop    so many clients, each of which asks again when it is answered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/histogram.hpp"
#include "rondo/core/timer_queue.hpp"

namespace rondo::bench {

struct tenant_load {
    std::string name;
    double rate;  // requests a second
};

struct load {
    std::vector<tenant_load> tenants;
    double seconds;
    clock::duration patience = clock::duration::max();  // which a request tells
    std::function<double(double)> times = {};           // by which all rates are changed, at a time
};

struct outcome {
    struct one {
        std::uint32_t tenant;
        int status;  // 0: no answer
        bool evicted;
        clock::duration due;
        clock::duration took;
    };
    std::vector<one> all;  // by the time at which they ended
    histogram lateness;    // of the generator
    std::size_t connections = 0;
};

outcome offer(std::uint16_t port, load const& l);

// How many were answered with 200.
std::uint64_t saturate(std::uint16_t port, std::size_t clients, double seconds);
// One request, and its status.
int ask_once(std::uint16_t port, std::string const& target);

// One tenant has all places, whose requests are never answered, and all of the line. Then one
// request of another comes on a new connection, and takes the place of one in line: how long after
// that it has its answer, so many times; fewer if there is none within a second.
histogram evict(std::uint16_t port, std::size_t places, std::size_t times);

}  // namespace rondo::bench
