// cell.hpp: plain data, watched for races.
//
// Guarantee      a read and a write, or two writes, by different threads with no happens-before
//                between them end the execution with a report that names both threads. This holds
//                in every explored execution, whichever of the two comes first. Construction and
//                destruction count as writes.
// Scheduling     accesses are not scheduling points: races are found by vector clocks, so
//                interleaving accesses would gain nothing.
// Limits         only the calls are checked: a reference that is kept from read() or write() and
//                used later is not seen.

#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check {

template <class T>
class cell {
    using where = std::source_location;

  public:
    using value_type = T;

    cell() : value_() { created(); }

    template <class First, class... Rest>
    requires(std::constructible_from<T, First, Rest...> &&
             !(sizeof...(Rest) == 0 && std::same_as<std::remove_cvref_t<First>, cell>))
    explicit(sizeof...(Rest) == 0 && !std::convertible_to<First, T>)
        cell(First&& first, Rest&&... rest)
        : value_(std::forward<First>(first), std::forward<Rest>(rest)...) {
        created();
    }

    cell(cell const&) = delete;
    cell& operator=(cell const&) = delete;
    ~cell() { detail::object_destroyed(tracked_, detail::object_kind::cell); }

    [[nodiscard]] T const& read(where at = where::current()) const noexcept {
        detail::cell_read(tracked_, at);
        return value_;
    }

    [[nodiscard]] T& write(where at = where::current()) noexcept {
        detail::cell_written(tracked_, at);
        return value_;
    }

    // Operators cannot take a source location, so traces do not say where these were called.
    operator T const&() const noexcept { return read(where{}); }
    T const* operator->() const noexcept { return &read(where{}); }

    template <class U = T>
    requires(std::assignable_from<T&, U> && !std::same_as<std::remove_cvref_t<U>, cell>)
    cell& operator=(U&& value) {
        write(where{}) = std::forward<U>(value);
        return *this;
    }

    detail::tracked const& record() const noexcept { return tracked_; }

  private:
    void created() noexcept {
        detail::object_created(tracked_, detail::object_kind::cell, where{});
    }

    T value_;
    detail::tracked tracked_;
};

template <class T>
void label(cell<T> const& object, char const* text) noexcept {
    detail::object_labelled(object.record(), text);
}

}  // namespace rondo::check
