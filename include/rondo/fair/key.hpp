// key.hpp: what names a tenant: an integer, a string, or a pair or tuple of such.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

namespace rondo::fair {

// Spreads keys over tables of any size: std::hash of an integer is often the integer itself.
template <class Key>
struct key_hash {
    std::size_t operator()(Key const& key) const noexcept { return spread(std::hash<Key>{}(key)); }
    // The finalizer of MurmurHash3.
    static constexpr std::size_t spread(std::uint64_t h) noexcept {
        h = (h ^ (h >> 33U)) * 0xff51'afd7'ed55'8ccdU;
        h = (h ^ (h >> 33U)) * 0xc4ce'b9fe'1a85'ec53U;
        return static_cast<std::size_t>(h ^ (h >> 33U));
    }
};

template <class... Parts>
struct key_hash<std::tuple<Parts...>> {
    std::size_t operator()(std::tuple<Parts...> const& key) const noexcept {
        std::size_t h = 0;
        std::apply(
            [&](Parts const&... part) {
                ((h = key_hash<std::size_t>::spread(h * 31 + key_hash<Parts>{}(part))), ...);
            },
            key);
        return h;
    }
};

template <class A, class B>
struct key_hash<std::pair<A, B>> {
    std::size_t operator()(std::pair<A, B> const& key) const noexcept {
        std::size_t const first = key_hash<std::size_t>::spread(key_hash<A>{}(key.first));
        return key_hash<std::size_t>::spread(first * 31 + key_hash<B>{}(key.second));
    }
};

template <class Key>
concept tenant_key = std::copyable<Key> && std::equality_comparable<Key> &&
                     std::is_nothrow_move_constructible_v<Key> && requires(Key const& key) {
                         { key_hash<Key>{}(key) } -> std::same_as<std::size_t>;
                     };

}  // namespace rondo::fair
