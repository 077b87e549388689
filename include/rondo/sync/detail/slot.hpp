// slot.hpp: room for one value that is built and destroyed by hand.
//
// The room itself is a cell, so that a checked build sees every touch of it: two threads that reach
// for one slot without an order between them are reported, whatever the value is.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "rondo/core/policy.hpp"

namespace rondo::detail {

// What a channel can carry.
template <class T>
inline constexpr bool is_message =
    std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T> &&
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>;

template <class T>
class slot {
  public:
    static constexpr bool moves_without_throwing = std::is_nothrow_move_constructible_v<T>;

    void put(T&& value) noexcept(moves_without_throwing) {
        ::new (room_.write().bytes) T(std::move(value));
    }

    // Moves the value out; the room is empty then. (If a move could throw, it might be this one or
    // the next of what is returned, and nobody could tell whether the value is still here.)
    T take() noexcept
    requires moves_without_throwing
    {
        T& stored = value();
        T taken = std::move(stored);
        std::destroy_at(&stored);
        return taken;
    }
    void drop() noexcept { std::destroy_at(&value()); }

    T const& look() const noexcept {
        return *std::launder(reinterpret_cast<T const*>(room_.read().bytes));
    }
    T& edit() noexcept { return value(); }

  private:
    struct room {
        room() noexcept {}  // leaves the bytes alone, where `= default` would clear them
        alignas(T) std::byte bytes[sizeof(T)];
    };

    T& value() noexcept { return *std::launder(reinterpret_cast<T*>(room_.write().bytes)); }

    cell<room> room_;
};

}  // namespace rondo::detail
