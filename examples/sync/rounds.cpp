// Three workers compute in rounds: nobody begins a round before all have ended the last one, and
// whoever comes last sums up. One of them gives up; the others go on when a substitute has come.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/sync/barrier.hpp"

namespace {

using namespace std::chrono_literals;

struct computation {
    // [barrier]
    rondo::barrier round{3};
    std::array<int, 3> parts{};
    int sum = 0;

    rondo::task<void> work(std::size_t who, int rounds) {
        for (int i = 1; i <= rounds; ++i) {
            parts.at(who) += i;
            auto const computed = co_await round.arrive_and_wait();
            if (computed.is_leader()) sum = std::accumulate(parts.begin(), parts.end(), 0);
            co_await round.arrive_and_wait();  // the sum is there for all
            std::printf("worker %zu, round %d: the sum is %d\n", who, i, sum);
        }
    }
    // [/barrier]

    rondo::task<void> run() {
        rondo::environment const& env = co_await rondo::this_environment();
        auto impatient = rondo::spawn(*env.where, [](rondo::barrier* at) -> rondo::task<bool> {
            auto const passage = co_await at->arrive_and_wait_for(1ms);
            co_return passage.has_value();
        }(&round));
        auto const passed = co_await impatient.join();
        std::printf("one who waited alone %s\n", *passed ? "passed" : "gave up");
        if (*passed) std::abort();
        co_await rondo::when_all(work(0, 2), work(1, 2), work(2, 2));
    }
};

}  // namespace

int main() {
    computation c;
    rondo::block_on(c.run());
    return c.sum == 9 ? EXIT_SUCCESS : EXIT_FAILURE;
}
