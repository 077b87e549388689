// oneTBB's side of bench/exec.
//
//   tbb_peer empty <workers>        task_arena::enqueue from outside
//   tbb_peer spawn_join mt          a thousand tasks of a task_group, then wait(); caller + 1
//   worker
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <cstdlib>
#include <cstring>

#include "../../support/jobs.hpp"

namespace {

class tbb_pool {
  public:
    explicit tbb_pool(std::size_t workers)
        : limit_(tbb::global_control::max_allowed_parallelism, workers + 1),
          arena_(static_cast<int>(workers), 0) {}
    template <class F>
    void start(F f) {
        arena_.enqueue(f);
    }

  private:
    tbb::global_control limit_;
    tbb::task_arena arena_;
};

double spawn_join() {
    constexpr std::size_t operations = 300'000, together = 1000;
    tbb::global_control const limit{tbb::global_control::max_allowed_parallelism, 2};
    tbb::task_arena arena{2};
    return rondo::bench::warm_ns_per_operation(operations, [&](std::size_t n) {
        arena.execute([n] {
            for (std::size_t done = 0; done < n; done += together) {
                tbb::task_group group;
                for (std::size_t i = 0; i < together; ++i) group.run([] { rondo::bench::count(); });
                group.wait();
            }
        });
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "empty") == 0) {
        tbb_pool pool{std::strtoul(argv[2], nullptr, 10)};
        rondo::bench::report(argv[1], argv[2], rondo::bench::empty_jobs(pool));
    } else if (argc == 3 && std::strcmp(argv[1], "spawn_join") == 0) {
        rondo::bench::report(argv[1], argv[2], spawn_join());
    } else {
        std::fputs("usage: tbb_peer empty <workers> | spawn_join mt\n", stderr);
        return 2;
    }
}
