// A pool of plain threads that serves tenants in turn: the one with a thousand jobs does not keep
// the others waiting.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rondo/fair/scheduler.hpp"

int main() {
    // [worker_pool]
    rondo::fair::config<std::string> config;
    config.quantum = 1;
    config.tenants = {{"premium", {.weight = 3}}};
    rondo::fair::scheduler<int, std::string> jobs{config};

    for (int i = 0; i < 1000; ++i) (void)jobs.enqueue("batch", i);
    for (int i = 0; i < 30; ++i) (void)jobs.enqueue("premium", i);
    for (int i = 0; i < 10; ++i) (void)jobs.enqueue("small", i);
    jobs.close_drain();  // nothing else will come

    std::atomic<int> position{0};
    std::map<std::string, int> last;  // when each tenant had its last job done
    std::mutex lock;
    auto const work = [&] {
        while (auto const job = jobs.blocking_dequeue()) {
            int const now = ++position;
            std::lock_guard const guard{lock};
            last[job->tenant] = std::max(last[job->tenant], now);
        }
    };
    // [/worker_pool]
    {
        std::vector<std::jthread> const workers = [&] {
            std::vector<std::jthread> all;
            for (int i = 0; i < 3; ++i) all.emplace_back(work);
            return all;
        }();
    }
    for (auto const& [tenant, at] : last) {
        std::printf("%-8s had its last job done as number %d of %d\n", tenant.c_str(), at,
                    position.load());
    }
    // In each round batch has one job done, premium three and small one.
    bool const fair = position == 1040 && last["premium"] < 70 && last["small"] < 70;
    return fair ? EXIT_SUCCESS : EXIT_FAILURE;
}
