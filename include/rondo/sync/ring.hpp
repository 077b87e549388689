// ring.hpp: values that are handed out in turn, to whoever asks: one each, or by weight.
//
//   ring<address> backends{{a, b, c}};
//   address const& next = backends.next_ref();            // a, b, c, a, ...
//
//   weighted_ring<address> by_weight{{{a, 5}, {b, 1}, {c, 1}}};
//   address const& one = by_weight.next_ref();            // a, a, b, a, a, c, a, and again
//
// Guarantee      ring: every value has its turn once a round, over all threads together, also
//                where the counter starts over.
//                weighted_ring: in a cycle every value has as many turns as its weight, spread
//                evenly: at no point of the cycle has a value had a whole turn more or less than
//                its share by then.
// Zero weights   a value of weight 0 has no turn: it stays in the ring and is never handed out.
// Refused        an empty ring, weights that are all 0, more values with a weight than
//                longest_cycle: programmer's errors.
// Memory         weights are divided by their greatest common divisor. A cycle that would still be
//                longer than longest_cycle is cut down to about that, every weight in proportion,
//                but none that is not 0 to less than one turn. So n values need at most
//                longest_cycle + n turns, of 4 bytes each; and where a cycle is cut down, a share
//                is off by less than n / longest_cycle (for n up to 256).
// Thread safety  every member may be called concurrently; the values are not changed.
// Memory order   none: what comes before a call is not thereby visible after another.
// Cost           a turn is one atomic addition; in a ring of one nothing.
// Example        examples/sync/backends.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rondo/core/assert.hpp"
#include "rondo/core/round_robin.hpp"

namespace rondo {

namespace detail {

template <class T>
concept clones = requires(T const& value) {
    { value.clone() } -> std::convertible_to<T>;
};

template <class T>
concept copies_or_clones = std::copy_constructible<T> || clones<T>;

template <copies_or_clones T>
T copy_of(T const& value) {
    if constexpr (std::copy_constructible<T>) {
        return value;
    } else {
        return value.clone();
    }
}

// The turns of a cycle, as indices into the weights.
std::vector<std::uint32_t> interleave(std::span<std::uint32_t const> weights,
                                      std::uint32_t longest_cycle);

}  // namespace detail

template <class T>
class ring {
  public:
    // As if `taken` turns had been taken before.
    explicit ring(std::vector<T> values, std::uint64_t taken = 0)
        : values_(std::move(values)), turns_(size_of(values_), taken) {}
    ring(ring const&) = delete;
    ring& operator=(ring const&) = delete;

    std::size_t next_index() noexcept { return turns_.next(); }
    T const& next_ref() noexcept { return values_[next_index()]; }
    // What cannot be copied is cloned, by its member clone().
    T next_copy()
    requires detail::copies_or_clones<T>
    {
        return detail::copy_of(next_ref());
    }

    std::size_t size() const noexcept { return values_.size(); }
    T const& operator[](std::size_t index) const noexcept { return values_[index]; }
    std::span<T const> values() const noexcept { return values_; }
    // After so many turns the counter starts over, with a new round.
    std::uint64_t starts_over_at() const noexcept { return turns_.starts_over_at(); }

  private:
    static std::size_t size_of(std::vector<T> const& values) noexcept {
        RONDO_ASSERT(!values.empty(), "a ring has at least one value");
        return values.size();
    }

    std::vector<T> const values_;
    round_robin turns_;
};

template <class T>
class weighted_ring {
  public:
    static constexpr std::uint32_t longest_cycle = std::uint32_t{1} << 16;

    explicit weighted_ring(std::vector<std::pair<T, std::uint32_t>> weighted)
        : cycle_(cycle_of(weighted)) {
        values_.reserve(weighted.size());
        for (auto& [value, weight] : weighted) values_.push_back(std::move(value));
    }
    weighted_ring(weighted_ring const&) = delete;
    weighted_ring& operator=(weighted_ring const&) = delete;

    std::size_t next_index() noexcept { return cycle_.next_ref(); }
    T const& next_ref() noexcept { return values_[next_index()]; }
    T next_copy()
    requires detail::copies_or_clones<T>
    {
        return detail::copy_of(next_ref());
    }

    std::size_t size() const noexcept { return values_.size(); }
    T const& operator[](std::size_t index) const noexcept { return values_[index]; }
    std::span<T const> values() const noexcept { return values_; }
    // The turns of a cycle, in order, as indices of values.
    std::span<std::uint32_t const> cycle() const noexcept { return cycle_.values(); }

  private:
    static std::vector<std::uint32_t> cycle_of(
        std::vector<std::pair<T, std::uint32_t>> const& weighted) {
        std::vector<std::uint32_t> weights;
        weights.reserve(weighted.size());
        for (auto const& [value, weight] : weighted) weights.push_back(weight);
        return detail::interleave(weights, longest_cycle);
    }

    ring<std::uint32_t> cycle_;
    std::vector<T> values_;
};

}  // namespace rondo
