// What a job costs from an outside thread, and how long it takes until it starts.
//
// pool_empty_N      200 000 jobs that count themselves down, from one thread, on N workers: time
//                   until the last one has run, per job.
// pool_start_Nw_T   submit-to-start with N workers and jobs of T, which come one by one and keep
//                   a quarter of the processors busy: p50 and p99, in ns. Here the workers of a
//                   mutex-around-receive pool queue behind one lock.
//
// Peers: Boost.Asio's thread_pool; a pool whose workers wait for jobs with a mutex in their hands
// (the pattern that this pool replaces); oneTBB and moodycamel's queue where they are installed.
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../support/ratio.hpp"
#include "rondo/core/histogram.hpp"
#include "rondo/core/parker.hpp"
#include "rondo/exec/thread_pool.hpp"

#ifdef RONDO_BENCH_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#endif
#if __has_include(<concurrentqueue/moodycamel/blockingconcurrentqueue.h>)
#include <concurrentqueue/moodycamel/blockingconcurrentqueue.h>
#define RONDO_BENCH_MOODYCAMEL 1
#elif __has_include(<concurrentqueue/blockingconcurrentqueue.h>)
#include <concurrentqueue/blockingconcurrentqueue.h>
#define RONDO_BENCH_MOODYCAMEL 1
#endif

namespace {

using rondo::bench::compare;
using rondo::bench::contender;
using rondo::bench::ns_per_operation;

// --- pools under one interface: start(job) ---

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

class asio_pool {
  public:
    explicit asio_pool(std::size_t workers) : pool_(workers) {}
    ~asio_pool() { pool_.join(); }
    template <class F>
    void start(F f) {
        boost::asio::post(pool_, f);
    }

  private:
    boost::asio::thread_pool pool_;
};

// A channel with one receiving end, shared by putting it behind a mutex: the worker that waits for
// a job sleeps with the mutex, and all others wait for that.
class mutex_around_receive {
  public:
    explicit mutex_around_receive(std::size_t workers) {
        for (std::size_t i = 0; i < workers; ++i) {
            threads_.emplace_back([this] {
                while (auto job = receive()) job();
            });
        }
    }
    ~mutex_around_receive() {
        for (std::size_t i = 0; i < threads_.size(); ++i) start(nullptr);
        for (std::thread& t : threads_) t.join();
    }
    void start(std::function<void()> f) {
        {
            std::lock_guard const guard{channel_};
            jobs_.push_back(std::move(f));
        }
        sent_.notify_one();
    }

  private:
    std::function<void()> receive() {
        std::lock_guard const receiving{receiver_};
        std::unique_lock guard{channel_};
        sent_.wait(guard, [this] { return !jobs_.empty(); });
        auto first = std::move(jobs_.front());
        jobs_.pop_front();
        return first;
    }

    std::mutex receiver_;
    std::mutex channel_;
    std::condition_variable sent_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
};

#ifdef RONDO_BENCH_TBB
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
#endif

#ifdef RONDO_BENCH_MOODYCAMEL
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
#endif

// --- empty jobs ---

constexpr std::size_t jobs = 200'000;

template <class Pool>
contender empty_jobs(char const* name, std::size_t workers) {
    auto pool = std::make_shared<Pool>(workers);
    return {name, [pool] {
                std::atomic<std::size_t> left{jobs};
                rondo::parker done;
                return ns_per_operation(jobs, [&] {
                    for (std::size_t i = 0; i < jobs; ++i) {
                        pool->start([&left, &done] {
                            if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) done.unpark();
                        });
                    }
                    done.park();
                });
            }};
}

void compare_empty_jobs(std::size_t workers) {
    std::vector<contender> peers{empty_jobs<asio_pool>("asio_post", workers),
                                 empty_jobs<mutex_around_receive>("mutex_around_receive", workers)};
#ifdef RONDO_BENCH_TBB
    peers.push_back(empty_jobs<tbb_pool>("tbb_enqueue", workers));
#endif
#ifdef RONDO_BENCH_MOODYCAMEL
    peers.push_back(empty_jobs<moodycamel_pool>("moodycamel", workers));
#endif
    std::string const workload = "pool_empty_" + std::to_string(workers);
    compare("exec", workload.c_str(), empty_jobs<our_pool>("rondo", workers), peers, 9);
}

// --- submit to start ---

using clock = std::chrono::steady_clock;

void work(clock::duration time) {
    auto const until = clock::now() + time;
    while (clock::now() < until) {
    }
}

// The distribution over one run; each job has a place of its own to note when it started.
template <class Pool>
rondo::histogram* submit_to_start(std::size_t workers, std::chrono::microseconds job_time) {
    constexpr std::size_t count = 4000;
    auto const interval = job_time * 4 / std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::chrono::nanoseconds> waited(count);
    {
        Pool pool{workers};
        std::atomic<std::size_t> left{count};
        rondo::parker done;
        auto next = clock::now();
        for (std::size_t i = 0; i < count; ++i) {
            while (clock::now() < next) std::this_thread::yield();
            next += interval;
            auto const submitted = clock::now();
            pool.start([&, submitted, i] {
                waited[i] = clock::now() - submitted;
                work(job_time);
                if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) done.unpark();
            });
        }
        done.park();
    }
    static rondo::histogram h;
    h.reset();
    for (auto const w : waited) h.record(w);
    return &h;
}

// The median over rounds of one quantile.
template <class Pool>
contender start_latency(char const* name, std::size_t workers, std::chrono::microseconds job_time,
                        double q) {
    return {name, [=] {
                return static_cast<double>(submit_to_start<Pool>(workers, job_time)->quantile(q));
            }};
}

void compare_start(std::size_t workers, std::chrono::microseconds job_time) {
    for (double const q : {0.5, 0.99}) {
        std::string const workload = "pool_start_" + std::to_string(workers) + "w_" +
                                     std::to_string(job_time.count()) + "us_p" +
                                     (q == 0.5 ? "50" : "99");
        compare("exec", workload.c_str(), start_latency<our_pool>("rondo", workers, job_time, q),
                {start_latency<mutex_around_receive>("mutex_around_receive", workers, job_time, q)},
                5);
    }
}

}  // namespace

int main() {
#ifndef RONDO_BENCH_TBB
    std::puts("missing exec tbb_enqueue: libtbb-dev is not installed");
#endif
#ifndef RONDO_BENCH_MOODYCAMEL
    std::puts("missing exec moodycamel: libconcurrentqueue-dev is not installed");
#endif
    for (std::size_t const workers : {2U, 8U}) compare_empty_jobs(workers);
    for (std::size_t const workers : {8U, 64U}) {
        for (int const us : {1, 5, 20}) compare_start(workers, std::chrono::microseconds{us});
    }
}
