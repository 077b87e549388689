// noted.hpp: a scheduler of numbers that notes what became of them, and producers that wait.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/task.hpp"
#include "rondo/fair/scheduler.hpp"

namespace rondo::fair {

using numbers = scheduler<int, std::string>;
using report = std::pair<disposition, int>;

inline config<std::string> room_for(std::size_t in_all, std::size_t each, backpressure when_full) {
    config<std::string> c;
    c.max_global = in_all;
    c.max_per_tenant = each;
    c.when_full = when_full;
    return c;
}

// A scheduler that notes what was not delivered.
struct noted {
    explicit noted(config<std::string> c)
        : queue(std::move(c), [this](disposition how, numbers::task const& t) {
              told.emplace_back(how, t.payload);
          }) {}

    std::vector<int> drain() {
        std::vector<int> all;
        while (auto const next = queue.try_dequeue()) all.push_back(next->payload);
        return all;
    }

    std::vector<report> told;
    numbers queue;
};

inline rondo::task<enqueue_result<int>> produce(numbers& s, std::string tenant, int n) {
    co_return co_await s.enqueue_wait(std::move(tenant), n);
}

}  // namespace rondo::fair
