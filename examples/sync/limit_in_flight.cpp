// Twenty requests, three at a time. A large one has to wait until all three permits are its own,
// and is not overtaken meanwhile; closing the semaphore turns away whoever has not begun.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/environment.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/semaphore.hpp"

namespace {

using namespace std::chrono_literals;

struct traffic {
    int now = 0;
    int most = 0;
    int served = 0;
    int turned_away = 0;
};

// [acquire]
// `weight` permits for as long as the request takes; given back at the end of the scope.
rondo::task<void> request(rondo::semaphore& limit, int weight, traffic& seen) {
    auto const permit = co_await limit.acquire(static_cast<std::size_t>(weight));
    if (!permit) {
        ++seen.turned_away;  // closed
        co_return;
    }
    seen.now += weight;
    seen.most = std::max(seen.most, seen.now);
    co_await rondo::sleep_for(1ms);
    seen.now -= weight;
    ++seen.served;
}
// [/acquire]

rondo::task<void> run(traffic& seen) {
    rondo::environment const& here = co_await rondo::this_environment();
    rondo::semaphore limit{3};
    std::vector<rondo::join_handle<void>> requests;
    for (int i = 0; i < 20; ++i) {
        requests.push_back(spawn(*here.where, request(limit, i == 6 ? 3 : 1, seen)));
    }
    while (seen.served < 12) co_await rondo::sleep_for(100us);
    limit.close();
    for (auto& r : requests) (void)co_await r.join();
}

}  // namespace

int main() {
    traffic seen;
    rondo::block_on(run(seen));
    std::printf("at most %d at a time, %d served, %d turned away\n", seen.most, seen.served,
                seen.turned_away);
    bool const right = seen.most == 3 && seen.now == 0 && seen.served >= 12 &&
                       seen.served + seen.turned_away == 20 && seen.turned_away > 0;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
