// What a job costs from an outside thread, and how long it takes until it starts.
//
// pool_empty_N        jobs that count themselves down, from one thread, on N workers: time until
//                     the last one has run, per job.
// pool_start_NxT_pQ   submit-to-start with N workers and jobs of T microseconds, which come one by
//                     one and keep a quarter of the processors busy: a quantile, in ns. Here the
//                     workers of a mutex-around-receive pool queue behind one lock.
#include <cstddef>
#include <string>
#include <vector>

#include "../support/driver.hpp"
#include "../support/jobs.hpp"
#include "rondo/exec/thread_pool.hpp"

namespace {

using rondo::bench::workload;

class our_pool {
  public:
    explicit our_pool(std::size_t workers) : pool_({.workers = workers, .capacity = 1 << 20}) {}
    template <class F>
    void start(F f) {
        (void)pool_.blocking_execute(f);
    }

  private:
    rondo::thread_pool pool_;
};

workload empty_jobs(std::size_t workers) {
    std::string const n = std::to_string(workers);
    return {"pool_empty_" + n,
            [workers] {
                our_pool pool{workers};
                return rondo::bench::empty_jobs(pool);
            },
            {{"crossbeam", "rust_pools_peer", "crossbeam", n},
             {"rayon", "rust_pools_peer", "rayon", n},
             {"rust_mutex_receive", "rust_pools_peer", "mutex_receive", n},
             {"mutex_around_receive", "mutex_peer", "empty", n},
             {"tbb_enqueue", "tbb_peer", "empty", n},
             {"asio_post", "asio_peer", "empty", n},
             {"moodycamel", "moodycamel_peer", "empty", n}}};
}

workload submit_to_start(std::size_t workers, int us, double quantile) {
    std::string const param = std::to_string(workers) + "x" + std::to_string(us);
    std::string const q = quantile == 0.5 ? "p50" : "p99";
    return {"pool_start_" + param + "_" + q,
            [=] {
                our_pool pool{workers};
                return rondo::bench::submit_to_start(pool, workers, std::chrono::microseconds{us},
                                                     quantile);
            },
            {{"mutex_around_receive", "mutex_peer", "start_" + q, param}},
            false};
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<workload> all{empty_jobs(2), empty_jobs(8)};
    for (std::size_t const workers : {8U, 64U}) {
        for (int const us : {1, 5, 20}) {
            for (double const quantile : {0.5, 0.99}) {
                all.push_back(submit_to_start(workers, us, quantile));
            }
        }
    }
    return rondo::bench::run("exec", argc, argv, all);
}
