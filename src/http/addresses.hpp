// addresses.hpp: whose an address is, for whoever counts or names clients by theirs.
#pragma once

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstdint>

namespace rondo::http::detail {

// An IPv4 address as such, also if it comes in the clothes of IPv6.
inline boost::asio::ip::address plain(boost::asio::ip::address const& a) {
    namespace ip = boost::asio::ip;
    if (a.is_v6() && a.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, a.to_v6());
    return a;
}

// An address, and of IPv6 the network of 64 bits that one client has at least: who may take any
// address of it would have no limit otherwise.
inline boost::asio::ip::address owner_of(boost::asio::ip::address const& who) {
    boost::asio::ip::address a = plain(who);
    if (a.is_v4()) return a;
    auto bytes = a.to_v6().to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
    return boost::asio::ip::address_v6{bytes};
}

}  // namespace rondo::http::detail
