// queues.hpp: the scheduler beside a queue that knows no tenants and the deficit round robin of the
// paper over a map, both under one std::mutex and with condition variables. One interface for all:
//
//   put(item)          there is room
//   take()             false: empty
//   put_or_wait(item)  waits for room
//   take_or_wait()     waits for an item; none: closed and empty
//   close()            what is there is still taken
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "rondo/fair/scheduler.hpp"

namespace rondo::bench {

inline constexpr std::uint64_t quantum = 10;

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
    void put_or_wait(item i) {
        if (!queue_.blocking_enqueue(i.tenant, i)) std::abort();
    }
    bool take_or_wait() { return queue_.blocking_dequeue().has_value(); }
    void close() { queue_.close_drain(); }

  private:
    static fair::config<std::uint64_t> settings(std::size_t room, std::size_t shards) {
        fair::config<std::uint64_t> c;
        c.max_global = c.max_per_tenant = room;
        c.shards = shards;
        c.quantum = quantum;
        return c;
    }

    fair::scheduler<item> queue_;
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

using fifo_queue = locked_queue<first_in_first_out>;
using paper_queue = locked_queue<paper>;

}  // namespace rondo::bench
