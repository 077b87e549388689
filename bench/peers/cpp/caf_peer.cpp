// The C++ Actor Framework: what bench/actor measures, with its event-based actors.
//
//   caf_peer ping_pong|send|spawn ct|mt
//
// `ct` is a scheduler with one thread, `mt` with two.
#include <caf/all.hpp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "../../support/jobs.hpp"
#include "../../support/tally.hpp"

namespace {

using caf::actor;
using caf::behavior;
using caf::event_based_actor;

behavior ponger() {
    return {[](int left) -> int {
        rondo::bench::count();
        return left;
    }};
}

behavior pinger(event_based_actor* self, actor const& to, int rounds) {
    self->send(to, rounds);
    return {[self, to](int left) {
        rondo::bench::count();
        if (left > 1) {
            self->send(to, left - 1);
        } else {
            self->send_exit(to, caf::exit_reason::user_shutdown);
            self->quit();
        }
    }};
}

void ping_pong(caf::actor_system& system, int n) {
    auto pong = system.spawn(ponger);
    system.spawn(pinger, pong, n);
}

behavior sink(event_based_actor* self, int expected) {
    return {[self, left = std::make_shared<int>(expected)](int) {
        rondo::bench::count();
        if (--*left == 0) self->quit();
    }};
}

void send(caf::actor_system& system, int n) {
    auto to = system.spawn(sink, n);
    system.spawn([to, n](event_based_actor* self) {
        for (int i = 0; i < n; ++i) self->send(to, i);
    });
}

void spawn(caf::actor_system& system, int n) {
    for (int i = 0; i < n; ++i) {
        system.spawn([](event_based_actor*) { rondo::bench::count(); });
    }
}

template <class Workload>
double measured(std::size_t threads, std::size_t operations, Workload run) {
    return rondo::bench::warm_ns_per_operation(operations, [&](std::size_t n) {
        caf::actor_system_config config;
        config.set("scheduler.max-threads", threads);
        caf::actor_system system{config};
        run(system, static_cast<int>(n));
        system.await_all_actors_done();
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) {
        std::size_t const threads = std::strcmp(argv[2], "mt") == 0 ? 2 : 1;
        if (std::strcmp(argv[1], "ping_pong") == 0) {
            rondo::bench::report(argv[1], argv[2], measured(threads, 300'000, ping_pong));
            return 0;
        }
        if (std::strcmp(argv[1], "send") == 0) {
            rondo::bench::report(argv[1], argv[2], measured(threads, 1'000'000, send));
            return 0;
        }
        if (std::strcmp(argv[1], "spawn") == 0) {
            rondo::bench::report(argv[1], argv[2], measured(threads, 200'000, spawn));
            return 0;
        }
    }
    std::fputs("usage: caf_peer ping_pong|send|spawn ct|mt\n", stderr);
    return 2;
}
