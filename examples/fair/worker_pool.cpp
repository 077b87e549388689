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

    std::atomic<int> done{0};
    std::map<std::string, int> waited;  // for how many jobs of batch, at most, in one worker
    std::mutex lock;
    auto const work = [&] {
        for (int batch = 0; auto const job = jobs.blocking_dequeue(); ++done) {
            if (job->tenant == "batch") ++batch;
            std::lock_guard const guard{lock};
            waited[job->tenant] = std::max(waited[job->tenant], batch);
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
    for (auto const& [tenant, behind] : waited) {
        std::printf("%-8s had its last job done when its worker had done %d of batch\n",
                    tenant.c_str(), behind);
    }
    // In each round batch has one job done, premium three and small one. Which of two workers is
    // done first is the system's business, so each counts for itself.
    bool const fair = done == 1040 && waited["premium"] < 20 && waited["small"] < 20;
    return fair ? EXIT_SUCCESS : EXIT_FAILURE;
}
