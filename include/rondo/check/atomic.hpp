// atomic.hpp: std::atomic's interface over the checker's memory model.
//
// Guarantee      inside an execution a load may return any value that the memory model allows, not
//                only the newest; the search covers each of them in some execution. docs/check.md
//                describes the model. Its limits: modification order and the total order of seq_cst
//                follow execution order, and no load reads a store that is executed after it.
// Errors         using the object after its destruction, or in a thread that does not see its
//                construction, ends the execution with a report. So does destroying it while
//                another thread's access is not ordered before the destruction.
// Outside        an execution it is a plain variable, for one thread.
// Not offered    fences, wait/notify (see futex.hpp), conversion operators, is_lock_free.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rondo/check/detail/engine.hpp"

namespace rondo::check {

template <class T>
class atomic {
    static_assert(std::is_trivially_copyable_v<T>, "atomic<T> copies T as bytes");
    static_assert(sizeof(T) <= sizeof(std::uint64_t), "the model's words have 64 bits");

    using where = std::source_location;
    using order = std::memory_order;

  public:
    using value_type = T;

    atomic(where at = where::current()) noexcept : atomic(T{}, at) {}
    atomic(T value, where at = where::current()) noexcept {
        detail::atomic_created(word_, encode(value), at);
    }
    atomic(atomic const&) = delete;
    atomic& operator=(atomic const&) = delete;
    ~atomic() { detail::object_destroyed(word_, detail::object_kind::atomic); }

    [[nodiscard]] T load(order o = order::seq_cst, where at = where::current()) const noexcept {
        return decode(detail::atomic_load(word_, o, at));
    }

    void store(T value, order o = order::seq_cst, where at = where::current()) noexcept {
        detail::atomic_store(word_, encode(value), o, at);
    }

    T exchange(T value, order o = order::seq_cst, where at = where::current()) noexcept {
        return modify(detail::rmw::exchange, encode(value), o, at);
    }

    bool compare_exchange_strong(T& expected, T desired, order success, order failure,
                                 where at = where::current()) noexcept {
        return compare_exchange(expected, desired, false, success, failure, at);
    }
    bool compare_exchange_strong(T& expected, T desired, order o = order::seq_cst,
                                 where at = where::current()) noexcept {
        return compare_exchange(expected, desired, false, o, without_release(o), at);
    }
    bool compare_exchange_weak(T& expected, T desired, order success, order failure,
                               where at = where::current()) noexcept {
        return compare_exchange(expected, desired, true, success, failure, at);
    }
    bool compare_exchange_weak(T& expected, T desired, order o = order::seq_cst,
                               where at = where::current()) noexcept {
        return compare_exchange(expected, desired, true, o, without_release(o), at);
    }

    T fetch_add(T operand, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    {
        return modify(detail::rmw::add, encode(operand), o, at);
    }
    T fetch_sub(T operand, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    {
        return modify(detail::rmw::sub, encode(operand), o, at);
    }
    T fetch_add(std::ptrdiff_t n, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_pointer_v<T>)
    {
        return modify(detail::rmw::add, bytes(n), o, at);
    }
    T fetch_sub(std::ptrdiff_t n, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_pointer_v<T>)
    {
        return modify(detail::rmw::sub, bytes(n), o, at);
    }
    T fetch_and(T operand, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    {
        return modify(detail::rmw::bit_and, encode(operand), o, at);
    }
    T fetch_or(T operand, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    {
        return modify(detail::rmw::bit_or, encode(operand), o, at);
    }
    T fetch_xor(T operand, order o = order::seq_cst, where at = where::current()) noexcept
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    {
        return modify(detail::rmw::bit_xor, encode(operand), o, at);
    }

    // For futex.hpp, which waits on the word, and for label().
    detail::atomic_word const& word() const noexcept { return word_; }

  private:
    static constexpr std::uint64_t mask =
        sizeof(T) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * (sizeof(T) % 8))) - 1;

    static std::uint64_t encode(T const& value) noexcept {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof(T));
        return bits;
    }
    static T decode(std::uint64_t bits) noexcept {
        T value;
        std::memcpy(&value, &bits, sizeof(T));
        return value;
    }
    static std::uint64_t bytes(std::ptrdiff_t n) noexcept
    requires(std::is_pointer_v<T>)
    {
        return static_cast<std::uint64_t>(n) * sizeof(std::remove_pointer_t<T>);
    }

    static constexpr order without_release(order o) noexcept {
        if (o == order::acq_rel) {
            return order::acquire;
        }
        return o == order::release ? order::relaxed : o;
    }

    T modify(detail::rmw operation, std::uint64_t operand, order o, where at) noexcept {
        return decode(detail::atomic_rmw(word_, operation, operand, mask, o, at));
    }

    bool compare_exchange(T& expected, T desired, bool weak, order success, order failure,
                          where at) noexcept {
        std::uint64_t bits = encode(expected);
        bool const exchanged = detail::atomic_compare_exchange(word_, bits, encode(desired), weak,
                                                               success, failure, at);
        if (!exchanged) {
            expected = decode(bits);
        }
        return exchanged;
    }

    detail::atomic_word word_;
};

// Names the object in traces; `text` must outlive the execution (a string literal does).
template <class T>
void label(atomic<T> const& object, char const* text) noexcept {
    detail::object_labelled(object.word(), text);
}

}  // namespace rondo::check
