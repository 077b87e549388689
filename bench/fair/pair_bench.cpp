// What it costs to enqueue a task and to deliver it, beside a queue that knows no tenants and the
// deficit round robin of the paper over a map, both under one std::mutex.
//
//   fill_drain_<n>      1e6 tasks of n tenants enqueued, then all of them delivered
//   interleaved_<n>     one enqueued, one delivered, n tenants in turn; at most one is queued
//   shards_<s>          as fill_drain_10000, with so many shards
//   threads_<s>         2 producers and 2 consumers, 1000 tenants, at most 1024 queued
//
// Costs are 1, the quantum is 10, and there are no deadlines. FIFO is what fairness is paid with;
// it measures no queue time either.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../support/ratio.hpp"
#include "rondo/fair/scheduler.hpp"

namespace {

using rondo::bench::contender;
using rondo::bench::ns_per_operation;

constexpr std::uint64_t quantum = 10;

// What a task is for all of them.
struct item {
    std::uint64_t tenant;
    std::uint64_t number;
};

class fair_queue {
  public:
    fair_queue(std::size_t room, std::size_t shards) : queue_(settings(room, shards)) {}

    void put(item i) {
        if (!queue_.enqueue(i.tenant, i)) std::abort();
    }
    bool take() { return queue_.try_dequeue().has_value(); }
    void put_or_wait(item i) { (void)queue_.blocking_enqueue(i.tenant, i); }
    bool take_or_wait() { return queue_.blocking_dequeue().has_value(); }
    void close() { queue_.close_drain(); }

  private:
    static rondo::fair::config<std::uint64_t> settings(std::size_t room, std::size_t shards) {
        rondo::fair::config<std::uint64_t> c;
        c.max_global = c.max_per_tenant = room;
        c.shards = shards;
        c.quantum = quantum;
        return c;
    }

    rondo::fair::scheduler<item> queue_;
};

// A queue under a mutex; what Order keeps is its business.
template <class Order>
class locked_queue {
  public:
    locked_queue(std::size_t room, std::size_t) : room_(room) {}

    void put(item i) {
        std::lock_guard const guard{lock_};
        order_.put(i);
    }
    bool take() {
        std::lock_guard const guard{lock_};
        if (order_.empty()) return false;
        order_.take();
        return true;
    }
    void put_or_wait(item i) {
        std::unique_lock guard{lock_};
        not_full_.wait(guard, [this] { return order_.size() < room_; });
        order_.put(i);
        not_empty_.notify_one();
    }
    bool take_or_wait() {
        std::unique_lock guard{lock_};
        not_empty_.wait(guard, [this] { return !order_.empty() || closed_; });
        if (order_.empty()) return false;
        order_.take();
        not_full_.notify_one();
        return true;
    }
    void close() {
        std::lock_guard const guard{lock_};
        closed_ = true;
        not_empty_.notify_all();
    }

  private:
    std::mutex lock_;
    std::condition_variable not_empty_;
    std::condition_variable not_full_;
    Order order_;
    std::size_t room_;
    bool closed_ = false;
};

class first_in_first_out {
  public:
    bool empty() const { return items_.empty(); }
    std::size_t size() const { return items_.size(); }
    void put(item i) { items_.push_back(i); }
    void take() { items_.pop_front(); }

  private:
    std::deque<item> items_;
};

// As in the paper: a list of active flows, a map of all. Flows stay in the map.
class paper {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    void put(item i) {
        flow& f = flows_[i.tenant];
        f.items.push_back(i);
        ++size_;
        if (f.items.size() == 1) {
            f.deficit = quantum;
            active_.push_back(&f);
        }
    }
    void take() {
        for (;;) {
            flow* const f = active_.front();
            if (f->deficit == 0) {
                f->deficit += quantum;
                active_.splice(active_.end(), active_, active_.begin());
                continue;
            }
            --f->deficit;
            f->items.pop_front();
            --size_;
            if (f->items.empty()) active_.pop_front();
            return;
        }
    }

  private:
    struct flow {
        std::deque<item> items;
        std::uint64_t deficit = 0;
    };
    std::unordered_map<std::uint64_t, flow> flows_;
    std::list<flow*> active_;
    std::size_t size_ = 0;
};

template <class Queue>
double fill_drain(std::size_t tenants, std::size_t shards) {
    constexpr std::size_t tasks = 1'000'000;
    Queue q{tasks, shards};
    return ns_per_operation(tasks, [&] {
        for (std::uint64_t i = 0; i < tasks; ++i) q.put({i % tenants, i});
        for (std::size_t i = 0; i < tasks; ++i) {
            if (!q.take()) std::abort();
        }
    });
}

template <class Queue>
double interleaved(std::size_t tenants) {
    constexpr std::size_t tasks = 300'000;
    Queue q{tasks, 1};
    return ns_per_operation(tasks, [&] {
        for (std::uint64_t i = 0; i < tasks; ++i) {
            q.put({i % tenants, i});
            if (!q.take()) std::abort();
        }
    });
}

template <class Queue>
double threads(std::size_t shards) {
    constexpr std::size_t each = 50'000;
    Queue q{1024, shards};
    return ns_per_operation(2 * each, [&] {
        std::vector<std::jthread> consumers;
        for (int c = 0; c < 2; ++c) {
            consumers.emplace_back([&q] {
                while (q.take_or_wait()) {
                }
            });
        }
        {
            std::vector<std::jthread> producers;
            for (int p = 0; p < 2; ++p) {
                producers.emplace_back([&q] {
                    for (std::uint64_t i = 0; i < each; ++i) q.put_or_wait({i % 1000, i});
                });
            }
        }
        q.close();
    });
}

using fifo_queue = locked_queue<first_in_first_out>;
using paper_queue = locked_queue<paper>;

}  // namespace

int main() {
    using rondo::bench::compare;
    constexpr std::size_t rounds = 5;
    for (std::size_t const n : {1U, 100U, 10'000U}) {
        std::string const name = "fill_drain_" + std::to_string(n);
        compare("fair", name.c_str(), {"rondo", [n] { return fill_drain<fair_queue>(n, 1); }},
                {{"fifo", [n] { return fill_drain<fifo_queue>(n, 1); }},
                 {"mutex_map_drr", [n] { return fill_drain<paper_queue>(n, 1); }}},
                rounds);
    }
    for (std::size_t const n : {1U, 100U, 10'000U}) {
        std::string const name = "interleaved_" + std::to_string(n);
        compare("fair", name.c_str(), {"rondo", [n] { return interleaved<fair_queue>(n); }},
                {{"fifo", [n] { return interleaved<fifo_queue>(n); }},
                 {"mutex_map_drr", [n] { return interleaved<paper_queue>(n); }}},
                rounds);
    }
    for (std::size_t const s : {4U, 16U}) {
        std::string const name = "shards_" + std::to_string(s);
        compare("fair", name.c_str(), {"rondo", [s] { return fill_drain<fair_queue>(10'000, s); }},
                {{"one_shard", [] { return fill_drain<fair_queue>(10'000, 1); }}}, rounds);
    }
    for (std::size_t const s : {1U, 4U, 16U}) {
        std::string const name = "threads_" + std::to_string(s);
        compare("fair", name.c_str(), {"rondo", [s] { return threads<fair_queue>(s); }},
                {{"fifo", [] { return threads<fifo_queue>(1); }},
                 {"mutex_map_drr", [] { return threads<paper_queue>(1); }}},
                rounds);
    }
}
