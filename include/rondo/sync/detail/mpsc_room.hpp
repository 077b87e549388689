// mpsc_room.hpp: the limit of a bounded mpsc channel, and what holds or waits for room in it.
#pragma once

#include <cstddef>
#include <utility>

#include "rondo/core/assert.hpp"
#include "rondo/sync/detail/mpsc_channel.hpp"
#include "rondo/sync/detail/permit_pool.hpp"

namespace rondo::detail {

// A permit for each value that has its place, from before it is pushed until it was received.
class limited_room {
  public:
    using limit = std::size_t;
    static constexpr bool limited = true;

    explicit limited_room(std::size_t size) noexcept : pool_(size), size_(size) {}

    permit_pool& pool() noexcept { return pool_; }
    void give_back(std::size_t n) noexcept { pool_.put_back(n); }
    void close() noexcept { pool_.close(); }

    std::size_t size() const noexcept { return size_; }
    std::size_t free() const noexcept { return pool_.available(); }
    // Whether nobody holds any; if the pool is closed, nobody will.
    bool all_back() const noexcept { return free() == size_; }

  private:
    permit_pool pool_;
    std::size_t const size_;
};

template <class T>
using bounded_channel = mpsc_channel<T, limited_room>;

// Room that was taken and is not used yet.
template <class T>
class held_room {
  public:
    held_room(bounded_channel<T>& c, std::size_t n) noexcept : channel_(&c), count_(n) {}
    held_room(held_room&& other) noexcept
        : channel_(other.channel_), count_(std::exchange(other.count_, 0)) {}
    held_room& operator=(held_room other) noexcept {
        std::swap(channel_, other.channel_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~held_room() {
        if (count_ == 0) return;
        permit_pool& pool = channel_->room().pool();
        pool.put_back(count_);
        // With that a closed channel may have ended.
        if (pool.closed()) channel_->signal_surely();
    }

    std::size_t count() const noexcept { return count_; }

    // As mpsc_channel::push(); uses room for one if it succeeds.
    bool push(T& value) {
        RONDO_ASSERT(count_ != 0, "a permit is good for one value");
        if (!channel_->push(value)) return false;
        --count_;
        return true;
    }
    held_room split_one() noexcept {
        --count_;
        return {*channel_, 1};
    }

  private:
    bounded_channel<T>* channel_;
    std::size_t count_;
};

// A request for room that knows its channel.
template <class T>
class mpsc_request : public permit_pool::request {
  public:
    mpsc_request(bounded_channel<T>& c, std::size_t n) noexcept
        : request(c.room().pool(), n), channel_(&c) {}

    void hand_on() noexcept {
        if (!refused()) (void)room();
    }

  protected:
    // What was granted.
    held_room<T> room() const noexcept { return {*channel_, needed()}; }

  private:
    bounded_channel<T>* channel_;
};

}  // namespace rondo::detail
