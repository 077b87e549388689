// names.hpp: which address a name has.
//
// A name may have several addresses, in an order that changes from answer to answer. The one that
// was taken before is taken again as long as the name has it; otherwise the first IPv4 address, as
// what listens for a name often listens there only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "address.hpp"
#include "diagnostic.hpp"
#include "rondo/core/policy.hpp"

namespace rondo::gateway {

using tcp_addresses = std::vector<boost::asio::ip::tcp::endpoint>;
// All addresses of a name, or why there are none. It may block.
using resolver = std::function<std::expected<tcp_addresses, std::string>(address const&)>;

// As the system finds them: files, DNS.
std::expected<tcp_addresses, std::string> ask_the_system(address const& a);

// Who knows names, and how often it is asked again.
struct name_service {
    resolver ask = ask_the_system;
    clock::duration every = std::chrono::seconds{30};
};

// The one to take.
std::expected<boost::asio::ip::tcp::endpoint, diagnostic> look_up(
    address const& a, resolver const& ask = ask_the_system,
    std::optional<boost::asio::ip::tcp::endpoint> const& before = std::nullopt);

// Whether it has to be looked up.
bool is_a_name(address const& a);

}  // namespace rondo::gateway
