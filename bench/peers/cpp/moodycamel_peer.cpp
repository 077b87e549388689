// A pool over moodycamel's blocking queue.
//
//   moodycamel_peer empty <workers>
#include <concurrentqueue/blockingconcurrentqueue.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "../../support/jobs.hpp"

namespace {

class moodycamel_pool {
  public:
    explicit moodycamel_pool(std::size_t workers) {
        for (std::size_t i = 0; i < workers; ++i) {
            threads_.emplace_back([this] {
                std::function<void()> job;
                for (;;) {
                    jobs_.wait_dequeue(job);
                    if (!job) return;
                    job();
                }
            });
        }
    }
    ~moodycamel_pool() {
        for (std::size_t i = 0; i < threads_.size(); ++i) jobs_.enqueue(nullptr);
        for (std::thread& t : threads_) t.join();
    }
    template <class F>
    void start(F f) {
        jobs_.enqueue(f);
    }

  private:
    moodycamel::BlockingConcurrentQueue<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 || std::strcmp(argv[1], "empty") != 0) {
        std::fputs("usage: moodycamel_peer empty <workers>\n", stderr);
        return 2;
    }
    moodycamel_pool pool{std::strtoul(argv[2], nullptr, 10)};
    rondo::bench::report(argv[1], argv[2], rondo::bench::empty_jobs(pool));
}
