// buffer.hpp: bytes that come in at the end and are done with at the front, in a recycled block.
//
// Blocks of these two sizes are kept by the thread that gives them back, some of them, for the next
// connection; an idle connection has none.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace rondo::http::detail {

class buffer {
  public:
    static constexpr std::size_t usual = std::size_t{16} * 1024;
    static constexpr std::size_t large = std::size_t{64} * 1024;  // for bodies

    buffer() = default;
    buffer(buffer&& other) noexcept { swap(other); }
    buffer& operator=(buffer&& other) noexcept {
        buffer{std::move(other)}.swap(*this);
        return *this;
    }
    ~buffer() { release(); }

    void swap(buffer& other) noexcept {
        std::swap(block_, other.block_);
        std::swap(capacity_, other.capacity_);
        std::swap(floor_, other.floor_);
        std::swap(begin_, other.begin_);
        std::swap(end_, other.end_);
    }

    // What is there and not done with.
    std::string_view data() const noexcept { return {block_ + begin_, end_ - begin_}; }
    std::size_t size() const noexcept { return end_ - begin_; }
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    void consume(std::size_t n) noexcept {
        begin_ += n;
        if (begin_ == end_) begin_ = end_ = floor_;
    }

    // So many bytes are done with but stay where they are, until unpin().
    void pin(std::size_t n) noexcept {
        begin_ += n;
        floor_ = begin_;
    }
    void unpin() noexcept {
        floor_ = 0;
        if (empty()) begin_ = end_ = 0;
    }

    // Where more goes to; what was written there becomes data by commit().
    char* tail() noexcept { return block_ + end_; }
    std::size_t room() const noexcept { return capacity_ - end_; }
    void commit(std::size_t n) noexcept { end_ += n; }
    // Sees to so much room, by moving the data to the front, or to a larger block. With something
    // pinned it stays in its block, and gets what room there is.
    void make_room(std::size_t n) {
        if (room() < n) find_room(n);
    }
    // The same behind the first n bytes: what is there behind them will be done with.
    void make_room_behind(std::size_t n, std::size_t room) {
        if (size() < n + room) make_room(n + room - size());
    }
    void append(std::string_view text);

    void clear() noexcept { floor_ = begin_ = end_ = 0; }
    // Gives the block back, and what is in it.
    void release() noexcept;
    std::size_t capacity() const noexcept { return capacity_; }

  private:
    void find_room(std::size_t n);

    char* block_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t floor_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace rondo::http::detail
