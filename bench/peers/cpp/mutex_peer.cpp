// A pool as in many books: workers share the receiving end of a channel by putting a mutex around
// it. The one that waits for a job sleeps with the mutex, and all others wait for that.
//
//   mutex_peer empty <workers>
//   mutex_peer start_p50|start_p99 <workers>x<microseconds>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/jobs.hpp"

namespace {

class channel {
  public:
    using message = std::function<void()>;

    void send(message m) {
        {
            std::lock_guard const guard{lock_};
            messages_.push_back(std::move(m));
        }
        sent_.notify_one();
    }
    message receive() {
        std::unique_lock guard{lock_};
        sent_.wait(guard, [this] { return !messages_.empty(); });
        message first = std::move(messages_.front());
        messages_.pop_front();
        return first;
    }

  private:
    std::mutex lock_;
    std::condition_variable sent_;
    std::deque<message> messages_;
};

class mutex_pool {
  public:
    explicit mutex_pool(std::size_t workers) {
        for (std::size_t i = 0; i < workers; ++i) {
            threads_.emplace_back([this] {
                while (auto job = next()) job();
            });
        }
    }
    ~mutex_pool() {
        for (std::size_t i = 0; i < threads_.size(); ++i) jobs_.send(nullptr);
        for (std::thread& t : threads_) t.join();
    }
    void start(channel::message job) { jobs_.send(std::move(job)); }

  private:
    channel::message next() {
        std::lock_guard const receiving{receiver_};
        return jobs_.receive();
    }

    channel jobs_;
    std::mutex receiver_;
    std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: mutex_peer empty <workers> | start_p50|start_p99 <workers>x<us>\n",
                   stderr);
        return 2;
    }
    std::string const workload = argv[1];
    char* rest = nullptr;
    std::size_t const workers = std::strtoul(argv[2], &rest, 10);
    mutex_pool pool{workers};
    if (workload == "empty") {
        rondo::bench::report(argv[1], argv[2], rondo::bench::empty_jobs(pool));
        return 0;
    }
    std::chrono::microseconds const length{*rest == 'x' ? std::atoi(rest + 1) : 1};
    double const quantile = workload == "start_p99" ? 0.99 : 0.5;
    rondo::bench::report(argv[1], argv[2],
                         rondo::bench::submit_to_start(pool, workers, length, quantile));
}
