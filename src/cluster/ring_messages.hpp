// ring_messages.hpp: the messages of a token ring, and what they are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "rondo/cluster/bytes.hpp"
#include "rondo/cluster/token_ring.hpp"

namespace rondo::cluster::ring_message {

// After those of elections.
inline constexpr std::uint8_t keep_alive = piece_types + 2;
inline constexpr std::uint8_t dead = piece_types + 3;  // ROBOTDEAD
inline constexpr std::uint8_t handshake = piece_types + 4;
inline constexpr std::uint8_t commit = piece_types + 5;  // RING_COMMIT
inline constexpr std::uint8_t join = piece_types + 6;
inline constexpr std::uint8_t token = piece_types + 7;

// Answers; each but a report begins with the ring that the member is in, or has promised.
inline constexpr std::uint8_t yes = piece_types + 2;  // also ACK
inline constexpr std::uint8_t stale = piece_types + 3;
inline constexpr std::uint8_t later = piece_types + 4;  // ask again
inline constexpr std::uint8_t report = piece_types + 5;

inline void put(byte_writer& w, ring_epoch const& e) { w.put(e.number).put(e.coordinator); }
inline void put(byte_writer& w, token_place const& p) {
    w.put(p.gen.count).put(p.gen.maker).put(p.hop);
}
inline ring_epoch get_ring(byte_reader& r) noexcept {
    auto const number = r.get<std::uint64_t>();
    return {number, r.get_run()};
}
inline token_place get_place(byte_reader& r) noexcept {
    auto const count = r.get<std::uint64_t>();
    member_run const maker = r.get_run();
    return {{count, maker}, r.get<std::uint64_t>()};
}

inline std::vector<std::byte> of_ring(ring_epoch const& e) {
    std::vector<std::byte> body;
    byte_writer w{body};
    put(w, e);
    return body;
}
inline answer answer_with(std::uint8_t type, ring_epoch const& e) { return {type, of_ring(e)}; }
// That an answer begins with; no ring if it is not there.
inline ring_epoch ring_in(answer const& a) noexcept {
    byte_reader r{a.body};
    ring_epoch const e = get_ring(r);
    return r.ok() ? e : ring_epoch{};
}

}  // namespace rondo::cluster::ring_message
