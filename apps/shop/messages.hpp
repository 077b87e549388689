// messages.hpp: what the members of a shop ask each other, and what they answer.
//
//   request     from, to                  carries          is answered by
//   prepare     screen, gateway           proposal         ready(authorised), abort(reason)
//   commit      screen, gateway           payment          finished(paid), abort(reason)
//   cancel      screen, gateway           cancellation     ack(ending)
//   delivered   screen, gateway           attempt          ack(ending)
//   remains     screen, gateway                            ready(remains)
//   order       screen, leader            order_request    ready(cup), abort(reason), stale, busy
//   dispatch    leader, robot             order_request    the same
//   keepalive   leader, robot; screens                     yes(presence), stale
//   newleader   leader, robot             levels           ack, stale
//   recover     leader, robot or screen                    ready(holding), stale
//   deliver     screen, robot             attempt          ack, gone
//   discard     screen or leader, robot   attempt          ack, stale
//
// The epoch of the leader is in the head of every message (cluster/message.hpp); `stale` carries
// the one that is known. Elections and tokens have messages of their own (cluster/election.hpp,
// cluster/token_ring.hpp).
//
// Guarantee      unpack() accepts exactly what pack() makes, and never reads beyond the bytes.
//                Bounds of the numbers and lengths are checked: nothing else need be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "order.hpp"
#include "rondo/cluster/bytes.hpp"
#include "rondo/cluster/ledger.hpp"
#include "rondo/cluster/message.hpp"
#include "rondo/cluster/peer.hpp"

namespace rondo::shop {

enum class request : std::uint8_t {
    prepare = 1,
    commit,
    cancel,
    delivered,
    remains,
    order,
    dispatch,
    keepalive,
    newleader,
    recover,
    deliver,
    discard,
};

enum class reply : std::uint8_t {
    ready = 1,
    abort,
    finished,
    ack,
    yes,
    gone,
    stale,
    busy,
    nonsense,  // the request could not be read
};

inline constexpr std::size_t longest_oid = 32;
inline constexpr std::size_t longest_reason = 96;
inline constexpr std::size_t most_unresolved = 8;
inline constexpr std::size_t most_held = 16;

// An order as the whole shop calls it: screen, journal and line, "1-9f3c02ab-12".
using order_id = std::string;
order_id make_order_id(std::uint32_t screen, std::string_view journal, std::uint32_t line);
// The number of the screen it comes from.
std::optional<std::uint32_t> screen_of(std::string_view oid) noexcept;
// Both are of one journal, and the line of the first comes before that of the second.
bool is_before(std::string_view oid, std::string_view other) noexcept;

// What of a flavour is left, for all that the ledger knows.
struct level {
    std::string flavour;
    std::uint64_t left = 0;
    friend bool operator==(level const&, level const&) = default;
};

struct proposal {
    order_id oid;
    std::vector<item> items;
    std::string card;
    std::uint32_t amount = 0;  // of all items, in grams
    friend bool operator==(proposal const&, proposal const&) = default;
};
struct authorised {
    std::uint64_t authorisation = 0;
    std::uint64_t expires_ms = 0;
    friend bool operator==(authorised const&, authorised const&) = default;
};
struct payment {
    order_id oid;
    std::uint64_t attempt = 0;
    std::vector<cluster::take> takes;
    friend bool operator==(payment const&, payment const&) = default;
};
struct cancellation {
    order_id oid;
    std::string reason;
    bool even_if_committed = false;  // then it is refunded
    friend bool operator==(cancellation const&, cancellation const&) = default;
};
struct attempt_at {
    order_id oid;
    std::uint64_t attempt = 0;
    friend bool operator==(attempt_at const&, attempt_at const&) = default;
};
struct ending {
    cluster::standing at = cluster::standing::unknown;
    std::string reason;
    friend bool operator==(ending const&, ending const&) = default;
};
struct why {
    std::string reason;
    friend bool operator==(why const&, why const&) = default;
};
struct remaining {
    std::vector<level> levels;
    std::vector<order_id> unresolved;  // the oldest
    friend bool operator==(remaining const&, remaining const&) = default;
};
struct order_request {
    order_id oid;
    std::uint64_t attempt = 0;
    std::vector<item> items;
    std::vector<level> levels;  // in a dispatch, if they are fresh
    friend bool operator==(order_request const&, order_request const&) = default;
};
struct cup {
    std::uint64_t attempt = 0;
    std::uint32_t robot = 0;
    std::vector<cluster::take> takes;
    friend bool operator==(cup const&, cup const&) = default;
};
struct levels_known {
    std::vector<level> levels;
    friend bool operator==(levels_known const&, levels_known const&) = default;
};
// Of a robot: what it makes. Of a screen: what it waits for, and whether its file is at its end.
struct presence {
    std::optional<attempt_at> current;
    bool done = false;
    friend bool operator==(presence const&, presence const&) = default;
};
struct holding {
    std::vector<attempt_at> held;
    friend bool operator==(holding const&, holding const&) = default;
};
struct known_epoch {
    cluster::epoch highest;
    friend bool operator==(known_epoch const&, known_epoch const&) = default;
};

namespace detail {

void put(cluster::byte_writer& to, proposal const& m);
void put(cluster::byte_writer& to, authorised const& m);
void put(cluster::byte_writer& to, payment const& m);
void put(cluster::byte_writer& to, cancellation const& m);
void put(cluster::byte_writer& to, attempt_at const& m);
void put(cluster::byte_writer& to, ending const& m);
void put(cluster::byte_writer& to, why const& m);
void put(cluster::byte_writer& to, remaining const& m);
void put(cluster::byte_writer& to, order_request const& m);
void put(cluster::byte_writer& to, cup const& m);
void put(cluster::byte_writer& to, levels_known const& m);
void put(cluster::byte_writer& to, presence const& m);
void put(cluster::byte_writer& to, holding const& m);
void put(cluster::byte_writer& to, known_epoch const& m);

// False: out of bounds.
bool get(cluster::byte_reader& from, proposal& m);
bool get(cluster::byte_reader& from, authorised& m);
bool get(cluster::byte_reader& from, payment& m);
bool get(cluster::byte_reader& from, cancellation& m);
bool get(cluster::byte_reader& from, attempt_at& m);
bool get(cluster::byte_reader& from, ending& m);
bool get(cluster::byte_reader& from, why& m);
bool get(cluster::byte_reader& from, remaining& m);
bool get(cluster::byte_reader& from, order_request& m);
bool get(cluster::byte_reader& from, cup& m);
bool get(cluster::byte_reader& from, levels_known& m);
bool get(cluster::byte_reader& from, presence& m);
bool get(cluster::byte_reader& from, holding& m);
bool get(cluster::byte_reader& from, known_epoch& m);

}  // namespace detail

template <class T>
std::vector<std::byte> pack(T const& m) {
    std::vector<std::byte> body;
    cluster::byte_writer to{body};
    detail::put(to, m);
    return body;
}

template <class T>
std::optional<T> unpack(std::span<std::byte const> body) {
    cluster::byte_reader from{body};
    T m;
    if (!detail::get(from, m) || !from.complete()) return std::nullopt;
    return m;
}

constexpr std::uint8_t type(request r) noexcept { return static_cast<std::uint8_t>(r); }

inline bool is(cluster::answer const& a, reply r) noexcept {
    return a.type == static_cast<std::uint8_t>(r);
}
inline cluster::answer answer_with(reply r) {
    return cluster::answer{static_cast<std::uint8_t>(r), {}};
}
template <class T>
cluster::answer answer_with(reply r, T const& m) {
    return cluster::answer{static_cast<std::uint8_t>(r), pack(m)};
}

}  // namespace rondo::shop
