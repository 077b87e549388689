// pool.hpp: a growing array for the checker's own bookkeeping.
//
// Inside an execution operator new serves the checked program, so the checker must not use it:
// this takes its memory from malloc and keeps it for the next execution. Growing moves the
// elements; no reference survives push().

#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>

namespace rondo::check::detail {

template <class T>
class pool {
    static_assert(std::is_trivially_copyable_v<T>, "elements are moved by realloc");

  public:
    pool() = default;
    pool(pool const&) = delete;
    pool& operator=(pool const&) = delete;
    ~pool() { std::free(data_); }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    void clear() noexcept { size_ = 0; }
    void pop() noexcept { --size_; }

    T& operator[](std::size_t i) noexcept { return data_[i]; }
    T const& operator[](std::size_t i) const noexcept { return data_[i]; }
    T& back() noexcept { return data_[size_ - 1]; }
    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }
    T const* begin() const noexcept { return data_; }
    T const* end() const noexcept { return data_ + size_; }

    // The new element has whatever the memory held: the caller fills it.
    T& push() {
        if (size_ == capacity_) {
            grow();
        }
        return data_[size_++];
    }
    void push(T const& value) { push() = value; }

  private:
    void grow() {
        std::size_t const capacity = capacity_ == 0 ? 64 : 2 * capacity_;
        void* const data = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
        if (data == nullptr) {
            std::abort();
        }
        data_ = static_cast<T*>(data);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace rondo::check::detail
