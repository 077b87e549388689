#include "rondo/http/detail/buffer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace rondo::http::detail {

namespace {

// Blocks of the usual size that this thread keeps: 4 MiB at most.
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
    std::array<char*, 256> blocks_;
    std::size_t count_ = 0;
};

// Never inlined: a coroutine that asks may have changed threads (docs/compilers.md).
[[gnu::noinline]] kept_blocks& kept() {
    static thread_local kept_blocks blocks;
    asm volatile("" ::: "memory");
    return blocks;
}

char* take_block(std::size_t capacity) {
    if (capacity == buffer::usual) {
        if (char* const block = kept().take()) return block;
    }
    return static_cast<char*>(::operator new(capacity));
}

void give_block(char* block, std::size_t capacity) noexcept {
    if (capacity == buffer::usual && kept().keep(block)) return;
    ::operator delete(block);
}

}  // namespace

void buffer::find_room(std::size_t n) {
    if (begin_ > floor_) {
        std::memmove(block_ + floor_, block_ + begin_, size());
        end_ -= begin_ - floor_;
        begin_ = floor_;
    }
    if (room() >= n || floor_ != 0) return;
    std::size_t const capacity = std::max(usual, (size() + n) <= usual ? usual : 2 * (size() + n));
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
