// bytes.hpp: numbers and texts in the body of a message, big endian.
//
//   std::vector<std::byte> body;
//   byte_writer{body}.put(grams).put_text(flavour);
//
//   byte_reader from{body};
//   auto const grams = from.get<std::uint32_t>();
//   std::string const flavour = from.get_text(64);
//   if (!from.complete()) refuse();
//
// Guarantee      a reader never reads beyond its bytes, whatever they are. What is missing reads as
//                zero or empty and makes it fail for good, so that one check at the end is enough.
// Lists          are a length of 16 bits, then the elements. A length from a peer is believed only
//                as far as the bytes go: ask `ok()` in the loop.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/cluster/message.hpp"
#include "rondo/core/assert.hpp"

namespace rondo::cluster {

class byte_writer {
  public:
    explicit byte_writer(std::vector<std::byte>& to) noexcept : to_(to) {}

    template <std::unsigned_integral T>
    byte_writer& put(T value) {
        for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8) {
            to_.push_back(static_cast<std::byte>(value >> shift & 0xffU));
        }
        return *this;
    }
    byte_writer& put(member_run const& r) { return put(r.id).put(r.incarnation); }
    byte_writer& put(epoch const& e) { return put(e.term).put(e.leader); }
    byte_writer& put_bytes(std::span<std::byte const> bytes) {
        put_length(bytes.size());
        to_.insert(to_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    byte_writer& put_text(std::string_view text) {
        return put_bytes(std::as_bytes(std::span{text}));
    }
    byte_writer& put_length(std::size_t length) {
        RONDO_ASSERT(length <= 0xffffU, "what is written has a length of 16 bits");
        return put(static_cast<std::uint16_t>(length));
    }

  private:
    std::vector<std::byte>& to_;
};

class byte_reader {
  public:
    explicit byte_reader(std::span<std::byte const> from) noexcept : from_(from) {}

    template <std::unsigned_integral T>
    T get() noexcept {
        std::uint64_t value = 0;
        for (std::byte const b : take(sizeof(T))) {
            value = value << 8U | std::to_integer<unsigned>(b);
        }
        return static_cast<T>(value);
    }
    member_run get_run() noexcept {
        auto const id = get<std::uint32_t>();
        return {id, get<std::uint64_t>()};
    }
    epoch get_epoch() noexcept {
        auto const term = get<std::uint64_t>();
        return {term, get<std::uint32_t>()};
    }
    // At most so many; more is a failure.
    std::span<std::byte const> get_bytes(std::size_t most = longest_body) noexcept {
        std::size_t const length = get<std::uint16_t>();
        if (length > most) ok_ = false;
        return take(length);
    }
    std::string get_text(std::size_t most = longest_body) {
        std::span const bytes = get_bytes(most);
        return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
    }
    std::size_t get_length() noexcept { return get<std::uint16_t>(); }

    // Nothing was missing so far.
    bool ok() const noexcept { return ok_; }
    // And nothing is left over.
    bool complete() const noexcept { return ok_ && from_.empty(); }
    std::span<std::byte const> rest() const noexcept { return from_; }

  private:
    std::span<std::byte const> take(std::size_t length) noexcept {
        if (length > from_.size()) ok_ = false;
        if (!ok_) return {};
        std::span const taken = from_.first(length);
        from_ = from_.subspan(length);
        return taken;
    }

    std::span<std::byte const> from_;
    bool ok_ = true;
};

}  // namespace rondo::cluster
