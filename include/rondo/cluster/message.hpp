// message.hpp: what goes between the members of a cluster, signed, in one datagram.
//
// Layout, big endian: magic 4, version 1, type 1, cluster 8, source {id 4, incarnation 8},
// destination 4, request {source 4, incarnation 8, sequence 8}, epoch {term 8, id 4}, length 2, the
// body, HMAC-SHA256 of all that with the cluster's key 32. At most 1200 bytes.
//
// Guarantee      decode() accepts exactly what encode() made, with the same key and for the same
//                cluster. Cluster and signature are checked before anything else is believed; what
//                fails is refused with a reason, never asserted.
// Not guarded    against replay: whoever holds an old datagram may send it again. Requests are told
//                apart by their number (peer.hpp), and what must not happen twice needs a key of
//                its own in the body.
// Thread safety  values; the functions may be called concurrently.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

namespace rondo::cluster {

using member_id = std::uint32_t;

// A run of a member: a process that starts again is another one.
struct member_run {
    member_id id = 0;
    std::uint64_t incarnation = 0;

    friend auto operator<=>(member_run const&, member_run const&) = default;
};

struct request_id {
    member_run from;
    std::uint64_t sequence = 0;

    friend auto operator<=>(request_id const&, request_id const&) = default;
};

// Who leads, since when: a higher one is newer.
struct epoch {
    std::uint64_t term = 0;
    member_id leader = 0;

    friend auto operator<=>(epoch const&, epoch const&) = default;
};

struct message {
    std::uint8_t type = 0;
    member_run source;
    member_id destination = 0;
    request_id request;
    cluster::epoch epoch;
    std::vector<std::byte> body;

    friend bool operator==(message const&, message const&) = default;
};

// The pieces of this module number their messages from here on; those of a program are below. (From
// 128 on they are answers.)
inline constexpr std::uint8_t piece_types = 96;

inline constexpr std::size_t longest_message = 1200;
inline constexpr std::size_t message_overhead = 96;
inline constexpr std::size_t longest_body = longest_message - message_overhead;

// What the members of a cluster share.
struct secret {
    std::uint64_t cluster = 0;
    std::array<std::byte, 32> key{};
};

enum class refusal : std::uint8_t {
    wrong_size,  // too short for a message, or too long
    not_ours,    // another magic or version
    other_cluster,
    not_signed,    // with our key
    wrong_length,  // the body's, though it is signed
};
inline constexpr std::size_t refusals = 5;

// The body has at most longest_body bytes.
std::vector<std::byte> encode(message const& m, secret const& s);
std::expected<message, refusal> decode(std::span<std::byte const> datagram, secret const& s);

}  // namespace rondo::cluster
