// queues.hpp: the scheduler beside a queue that knows no tenants and the deficit round robin of the
// paper over a map, both under one std::mutex and with condition variables; and what is left of the
// scheduler when nothing is decided. One interface for all:
//
//   put(item)          there is room
//   take()             false: empty
//   put_or_wait(item)  waits for room
//   take_or_wait()     waits for an item; none: closed and empty
//   close()            what is there is still taken
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "rondo/core/linked_list.hpp"
#include "rondo/core/short_lock.hpp"
#include "rondo/fair/detail/intake.hpp"
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

// The scheduler's way from thread to thread without the scheduler: the same blocks, the same word
// for producers, the same lock for consumers, and both times. No tenants, limits or order of turns,
// and nobody sleeps: who finds no room, or nothing, looks again. No design that hands each task to
// whoever has the lock can cost less.
class hand_over_queue {
    using node = fair::detail::task_node<item, std::uint64_t>;

  public:
    hand_over_queue(std::size_t room, std::size_t) : room_(room) {}

    // With one thread for both: who finds no room there makes some.
    void put(item i) {
        auto task = make(i);
        while (!intake_.try_leave(*task)) make_room();
        (void)task.release();  // NOLINT(bugprone-unused-return-value): a consumer's now
    }
    bool take() {
        std::unique_ptr<node> const task{first()};
        if (task == nullptr) return false;
        auto const queued_for = clock::now() - task->enqueued_at;
        asm volatile("" ::"r"(queued_for.count()));
        return true;
    }
    void put_or_wait(item i) {
        auto task = make(i);
        while (!intake_.try_leave(*task)) std::this_thread::yield();
        (void)task.release();  // NOLINT(bugprone-unused-return-value): a consumer's now
    }
    bool take_or_wait() {
        for (;;) {
            bool const nothing_comes = closed_.load(std::memory_order_acquire);
            if (take()) return true;
            if (nothing_comes) return false;
            std::this_thread::yield();
        }
    }
    void close() { closed_.store(true, std::memory_order_release); }

  private:
    std::unique_ptr<node> make(item i) {
        auto task = std::make_unique<node>(std::uint64_t{i.tenant}, item{i}, fair::terms{});
        task->owner = &nobody_;
        task->enqueued_at = clock::now();
        return task;
    }
    void make_room() {
        std::lock_guard const guard{lock_};
        collect();
    }
    node* first() {
        std::lock_guard const guard{lock_};
        if (intake_.has_tasks() || intake_.given() == 0) collect();
        fair::detail::entry* const e = tasks_.pop_front();
        if (e == nullptr) return nullptr;
        --held_;
        return static_cast<node*>(e);
    }
    void collect() {
        std::size_t const promised = held_ + intake_.given();
        auto left = intake_.take(std::min(room_ - promised, fair::detail::intake::most_places));
        while (fair::detail::entry* const e = left.pop_front()) {
            tasks_.push_back(*e);
            ++held_;
        }
    }

    fair::detail::tenant nobody_{1};
    fair::detail::intake intake_;
    short_lock lock_;
    linked_list<fair::detail::entry> tasks_;
    std::size_t held_ = 0;
    std::size_t const room_;
    std::atomic<bool> closed_{false};
};

using fifo_queue = locked_queue<first_in_first_out>;
using paper_queue = locked_queue<paper>;

}  // namespace rondo::bench
