#include "rondo/http/detail/buffer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace rondo::http::detail {

namespace {

template <std::size_t Most>
class kept_blocks {
  public:
    ~kept_blocks() {
        while (count_ != 0) ::operator delete(blocks_[--count_]);
    }
    char* take() noexcept { return count_ == 0 ? nullptr : blocks_[--count_]; }
    bool keep(char* block) noexcept {
        if (count_ == blocks_.size()) return false;
        blocks_[count_++] = block;
        return true;
    }

  private:
    std::array<char*, Most> blocks_;
    std::size_t count_ = 0;
};

// What this thread keeps: 4 MiB of the usual size and 1 MiB of the large one at most.
struct kept_by_thread {
    kept_blocks<256> usual;
    kept_blocks<16> large;
};

// Never inlined: a coroutine that asks may have changed threads (docs/compilers.md).
[[gnu::noinline]] kept_by_thread& kept() {
    static thread_local kept_by_thread blocks;
    asm volatile("" ::: "memory");
    return blocks;
}

char* take_block(std::size_t capacity) {
    char* block = nullptr;
    if (capacity == buffer::usual) block = kept().usual.take();
    if (capacity == buffer::large) block = kept().large.take();
    return block != nullptr ? block : static_cast<char*>(::operator new(capacity));
}

void give_block(char* block, std::size_t capacity) noexcept {
    if (capacity == buffer::usual && kept().usual.keep(block)) return;
    if (capacity == buffer::large && kept().large.keep(block)) return;
    ::operator delete(block);
}

std::size_t capacity_for(std::size_t n) noexcept {
    if (n <= buffer::usual) return buffer::usual;
    return n <= buffer::large ? buffer::large : 2 * n;
}

}  // namespace

void buffer::find_room(std::size_t n) {
    if (begin_ > floor_) {
        std::memmove(block_ + floor_, block_ + begin_, size());
        end_ -= begin_ - floor_;
        begin_ = floor_;
    }
    if (room() >= n || floor_ != 0) return;
    std::size_t const capacity = capacity_for(size() + n);
    char* const larger = take_block(capacity);
    if (block_ != nullptr) {
        std::memcpy(larger, block_, size());
        give_block(block_, capacity_);
    }
    block_ = larger;
    capacity_ = capacity;
}

void buffer::append(std::string_view text) {
    if (text.empty()) return;
    make_room(text.size());
    std::memcpy(tail(), text.data(), text.size());
    commit(text.size());
}

void buffer::release() noexcept {
    if (block_ != nullptr) give_block(block_, capacity_);
    block_ = nullptr;
    capacity_ = floor_ = begin_ = end_ = 0;
}

}  // namespace rondo::http::detail
