// announcement.hpp: what a proxy says of a connection before it passes it on (PROXY protocol).
//
// Forms          1: "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n", at most 107 bytes; 2: a binary
//                block, at most 4 KiB. UNKNOWN, LOCAL and sockets of other families than those of
//                IP are connections of the proxy itself. What follows the addresses in form 2, its
//                TLVs, must be well formed, and is skipped.
// Strict         one spelling: no leading zeros in ports, no zones in addresses, single spaces.
//                What is not an announcement is known to be none at its first wrong byte.
// Exact          what follows belongs to somebody else, TLS perhaps: `needed` bytes can be read
//                without reading further than the announcement.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <optional>
#include <string_view>

namespace rondo::http::detail {

struct announcement {
    enum class state { incomplete, complete, malformed };

    state is = state::incomplete;
    std::size_t needed = 0;  // more bytes at least, if it is incomplete
    std::size_t size = 0;    // if it is complete
    // Who is at the other end of the proxy; nothing: the proxy itself.
    std::optional<boost::asio::ip::tcp::endpoint> client = {};
};

inline constexpr std::size_t longest_announcement = 4096;

// Of the bytes at the beginning of a connection.
announcement read_announcement(std::string_view bytes);

}  // namespace rondo::http::detail
