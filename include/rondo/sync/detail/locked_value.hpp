// locked_value.hpp: what a lock protects; nothing for a lock of void.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace rondo::detail {

template <class T>
class locked_value {
  public:
    template <class... Args>
    explicit locked_value(std::in_place_t, Args&&... args) : value_(std::forward<Args>(args)...) {}

    T* get() noexcept { return &value_; }

  private:
    T value_;
};

template <>
class locked_value<void> {
  public:
    explicit locked_value(std::in_place_t) noexcept {}
    void* get() noexcept { return nullptr; }
};

template <class T, class... Args>
concept value_from =
    std::is_constructible_v<T, Args...> || (std::is_void_v<T> && sizeof...(Args) == 0);

}  // namespace rondo::detail
