// forwarding.hpp: which fields of a message a proxy passes on, and what it adds to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/http/head.hpp"
#include "rondo/http/head_text.hpp"
#include "rondo/http/message.hpp"

namespace rondo::http::detail {

// Which fields are about one connection only: those that RFC 9110 (7.6.1) names, also if they are
// spelled with '_' in place of '-', and those that Connection lists.
class hop_fields {
  public:
    explicit hop_fields(fields const& all);
    bool has(std::string_view name) const noexcept;

  private:
    // By Connection, but for the usual words; in order, as it may list thousands.
    std::vector<std::string_view> listed_;
};

// What a proxy knows about the way that a request came.
struct hop {
    std::string_view peer;  // addresses, without ports
    std::string_view local;
    std::string_view via;              // the name of the proxy
    std::string_view request_id = {};  // empty: the client's, or a new one
    bool secure = false;
};

// "for=192.0.2.1;by=192.0.2.2;host=example.com;proto=https". A value is quoted if it is not a
// token; an IPv6 address gets its brackets.
std::string forwarded_element(hop const& h, std::string_view host);

// What fields of that name say, with `own` behind it. What cannot be appended to, because a quote
// in it does not end, is left out.
std::string appended(fields const& all, std::string_view name, std::string_view own);

// Letters, digits and some marks, at most 128 of them.
bool is_request_id(std::string_view text) noexcept;
// 32 hexadecimal digits, at random.
std::string make_request_id();

// What a connection may become by Upgrade. Anything else would be a way around all that is done to
// requests: through a tunnel of h2c go as many as one likes, which nobody scans, routes or counts.
inline constexpr std::string_view tunnel_protocol = "websocket";
bool asks_for_tunnel(request_head const& from) noexcept;

// How many may forward an OPTIONS or TRACE, we among them; nothing if it does not say, or if the
// request is another one (RFC 9110, 7.6.2).
std::optional<std::uint64_t> max_forwards(request_head const& from) noexcept;

// The fields of a request as they go to the upstream: without those of the connection, with Host,
// Forwarded, X-Forwarded-For, -Host and -Proto, Via and X-Request-Id, and one less in Max-Forwards,
// which is not 0. A client's X_Forwarded_For does not go on: some readers take it for the same.
// Framing is left to the caller.
void add_request_fields(request_text& to, request_head const& from, hop const& h);
// The fields after its last chunk: without those of the connection, and without those that are
// written anew in the head, as some upstreams put the two together.
std::vector<field> request_trailer(request_head const& head, fields const& trailer);
// The fields of a response as they go to the client, with Via.
void add_response_fields(response_text& to, response_head const& from, std::string_view via);
// The fields after its last chunk: without the same ones.
std::vector<field> response_trailer(response_head const& head, fields const& trailer);

}  // namespace rondo::http::detail
