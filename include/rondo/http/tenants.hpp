// tenants.hpp: whose request it is.
//
//   tenant_rules rules;
//   rules.key = {*parse_tenant_key("header:x-tenant + route"), *parse_tenant_key("address")};
//   rules.trusted = {*parse_network("10.0.0.0/8")};
//   std::string const who = tenant_of({x->head(), x->peer().address(), "/api"}, rules);
//
// Keys           are tried in order; the first all of whose parts are there names the tenant:
//                header:NAME   a field, if a trusted peer sent it; not if it has two values, of
//                              which one may be the client's own
//                api_key       X-API-Key, or Authorization: Bearer, if it is a key that we know;
//                              the tenant is who it belongs to, so a key is never shown
//                address       of the client: of the peer, or, behind trusted peers, of the last
//                              one in Forwarded or X-Forwarded-For that is not trusted; the first
//                              64 bits of an IPv6 address. If both fields are there and do not
//                              agree, the peer: a proxy that writes one of them may pass the other
//                              one on as the client sent it
//                path:N        the first N segments of the path, decoded; not if servers could
//                              take others for them, as of //acme, /x/../acme or /acme%2Fx
//                route         the name of the route that it takes
//                Several with a + between them make a tuple.
// Nobody         of whom nothing is known is "-".
// Names          are of printable ASCII, at most 64 bytes: other bytes are written as %FF, and a
//                longer one is cut, with a hash of the whole behind it. In a tuple parts are joined
//                by |, and a | or \ inside of one has a \ before it.
// Thread safety  functions of their arguments: rules that nobody changes may be shared.
// Made up        names cannot be by those who are not trusted, but for paths: a key of these alone
//                is for when all paths are known.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rondo/http/head.hpp"

namespace rondo::http {

struct tenant_part {
    enum class kind : std::uint8_t { header, api_key, address, path, route };

    kind what = kind::address;
    std::string name = {};     // of a header
    std::size_t segments = 1;  // of a path

    friend bool operator==(tenant_part const&, tenant_part const&) = default;
};
using tenant_key_parts = std::vector<tenant_part>;

// "address", "header:x-tenant + route"; or what is wrong with it.
std::expected<tenant_key_parts, std::string> parse_tenant_key(std::string_view text);

using network = std::variant<boost::asio::ip::network_v4, boost::asio::ip::network_v6>;

// "10.0.0.0/8", "::1"; or what is wrong with it. "::ffff:10.0.0.0/104" is the same as the first.
std::expected<network, std::string> parse_network(std::string_view text);
bool contains(std::vector<network> const& all, boost::asio::ip::address const& a) noexcept;

struct tenant_rules {
    std::vector<tenant_key_parts> key = {{tenant_part{}}};
    std::vector<network> trusted = {};                              // peers
    std::map<std::string, std::string, std::less<>> api_keys = {};  // key, and whose it is
};

// What is known about a request.
struct request_origin {
    request_head const& head;
    boost::asio::ip::address peer;
    std::string_view route = {};
};

// Of whom the request is, as far as its way can be trusted.
boost::asio::ip::address client_address(request_origin const& r,
                                        std::vector<network> const& trusted);
std::string tenant_of(request_origin const& r, tenant_rules const& rules);

inline constexpr std::size_t longest_tenant = 64;
// A name as tenant_of() would write it.
std::string tenant_name(std::string_view text);

}  // namespace rondo::http
