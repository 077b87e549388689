// local_queue.hpp: jobs that one worker keeps for itself; others may ask how many.
#pragma once

#include <cstddef>

#include "rondo/core/executor.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::detail {

class local_queue {
  public:
    bool empty() const noexcept { return jobs_.empty(); }
    // By any thread; everything else by the one worker.
    std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

    void push(job& j) noexcept {
        jobs_.push(j);
        resize(size() + 1);
    }
    // All of another queue, which has so many.
    void append(job_queue const& others, std::size_t count) noexcept {
        jobs_.append(others);
        resize(size() + count);
    }
    job* pop() noexcept {
        job* const first = jobs_.pop();
        if (first != nullptr) resize(size() - 1);
        return first;
    }

  private:
    void resize(std::size_t now) noexcept { size_.store(now, std::memory_order_relaxed); }

    job_queue jobs_;
    atomic<std::size_t> size_{0};  // relaxed throughout: a figure
};

}  // namespace rondo::detail
