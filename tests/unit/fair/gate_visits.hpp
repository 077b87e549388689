// gate_visits.hpp: callers of a gate, with a loop and a clock of the test's.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/fair/gate.hpp"
#include "rondo/fair/gate_limits.hpp"
#include "rondo/fair/gate_permit.hpp"
#include "support/manual_loop.hpp"

namespace rondo::fair {

using door = gate<int>;

inline gate_config<int> places(std::size_t in_flight) {
    gate_config<int> c;
    c.max_in_flight = in_flight;
    return c;
}

// A caller in a task of its own: what it got, and when.
struct visit {
    int tenant = 0;
    std::optional<std::expected<gate_permit, gate_error>> got;
    time_point at{};

    bool waits() const { return !got.has_value(); }
    bool in() const { return got && got->has_value(); }
    gate_error why() const { return got->error(); }
};

class GateTest : public testing::Test {
  public:
    test::manual_loop loop;
    std::vector<int> order;  // of tenants let in

    task<void> come(door* g, visit* v, std::uint64_t cost, clock::duration patience) {
        auto got = co_await g->acquire_for(v->tenant, patience, cost);
        v->at = loop.now();
        if (got) order.push_back(v->tenant);
        v->got.emplace(std::move(got));
    }
    join_handle<void> enter(door& g, visit& v, std::uint64_t cost = 1,
                            clock::duration patience = clock::duration::max()) {
        auto task = spawn(loop, come(&g, &v, cost, patience));
        loop.run_ready();
        return task;
    }
    // So many visits of a tenant, waiting.
    std::vector<visit> line(door& g, int tenant, std::size_t callers, std::uint64_t cost = 1) {
        std::vector<visit> all(callers);
        for (visit& v : all) {
            v.tenant = tenant;
            enter(g, v, cost).detach();
        }
        return all;
    }
    // Whoever is let in goes, until so many have come.
    void come_and_go(std::initializer_list<std::vector<visit>*> lines, std::size_t visits) {
        while (order.size() < visits) {
            std::size_t const before = order.size();
            loop.run_ready();
            ASSERT_GT(order.size(), before);
            for (auto* const all : lines) {
                for (visit& v : *all) {
                    if (v.in()) (*v.got)->release();
                }
            }
        }
    }
    gate_config<int> at_the_loop(gate_config<int> c) {
        c.time = &loop.timers();
        return c;
    }
};

}  // namespace rondo::fair
