// gate.hpp: closed until somebody opens it; jobs wait at it, tests wait for it.
#pragma once

#include <condition_variable>
#include <mutex>

namespace rondo::test {

class gate {
  public:
    void open() {
        std::lock_guard const guard{mutex_};
        open_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock guard{mutex_};
        changed_.wait(guard, [this] { return open_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

// Opens when it was counted down to zero.
class countdown {
  public:
    explicit countdown(int from) noexcept : left_(from) {}

    void count() {
        std::lock_guard const guard{mutex_};
        if (--left_ == 0) zero_.notify_all();
    }
    void wait() {
        std::unique_lock guard{mutex_};
        zero_.wait(guard, [this] { return left_ <= 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable zero_;
    int left_;
};

}  // namespace rondo::test
