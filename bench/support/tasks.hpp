// tasks.hpp: where the tasks of a workload run, the same for bench/exec and bench/sync.
//
// `mt` is a runtime of two workers; `ct` the calling thread, with core's run_loop. A workload runs
// once with a tenth of its operations and then for the record, each time on a new runtime, as a
// task of it. So do the peers'.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "driver.hpp"
#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/exec/runtime.hpp"
#include "tally.hpp"

namespace rondo::bench {

enum class place : bool { ct, mt };

using duration = clock::duration;

// Since the last reading.
class stopwatch {
  public:
    duration elapsed() const { return clock::now() - begin_; }

  private:
    time_point begin_ = clock::now();
};

// `body(n)` is a task that does n operations and returns how long they took: ns per operation.
template <class Body>
double measured(place where, std::size_t operations, Body body) {
    auto const once = [&](std::size_t n) -> duration {
        if (where == place::ct) return rondo::block_on(body(n));
        runtime rt{{.workers = 2}};
        return rt.block_on(body(n));
    };
    (void)once(operations / 10);
    forget_counts();
    std::chrono::duration<double, std::nano> const took = once(operations);
    return took.count() / static_cast<double>(operations);
}

// A workload that Tokio has under the same name, and others perhaps.
template <class Body>
workload on(place where, std::string const& name, std::size_t operations, Body body,
            std::vector<peer> const& others = {}) {
    std::string const param = where == place::mt ? "mt" : "ct";
    std::vector<peer> peers{{"tokio", "tokio_peer", name, param}};
    peers.insert(peers.end(), others.begin(), others.end());
    return {name + "_" + param, [=] { return measured(where, operations, body); }, peers,
            where == place::mt};
}

// On the executor of the task that calls it, as tokio::spawn.
template <class T>
join_handle<T> spawn_here(environment const& env, task<T> t) {
    return rondo::spawn(*env.where, std::move(t));
}

template <class T>
task<void> join_all(std::vector<join_handle<T>>& handles) {
    for (auto& handle : handles) (void)co_await handle.join();
}

}  // namespace rondo::bench
