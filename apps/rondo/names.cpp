#include "names.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

namespace rondo::gateway {

namespace net = boost::asio;
using net::ip::tcp;

std::expected<tcp_addresses, std::string> ask_the_system(address const& a) {
    net::io_context context;
    tcp::resolver by{context};
    boost::system::error_code error;
    auto const found =
        by.resolve(a.host, std::to_string(a.port), tcp::resolver::numeric_service, error);
    if (error) return std::unexpected{error.message()};
    tcp_addresses all;
    for (auto const& entry : found) all.push_back(entry.endpoint());
    return all;
}

std::expected<tcp::endpoint, diagnostic> look_up(address const& a, resolver const& ask,
                                                 std::optional<tcp::endpoint> const& before) {
    auto const found = ask(a);
    if (!found || found->empty()) {
        std::string const why = found ? "it has no address" : found.error();
        return std::unexpected{diagnostic{
            .at = a.at, .problem = "cannot find '" + a.host + "': " + why, .advice = ""}};
    }
    if (before && std::ranges::count(*found, *before) != 0) return *before;
    auto const four = std::ranges::find(*found, tcp::v4(), &tcp::endpoint::protocol);
    return four != found->end() ? *four : found->front();
}

bool is_a_name(address const& a) {
    boost::system::error_code error;
    (void)net::ip::make_address(a.host, error);
    return error.failed();
}

}  // namespace rondo::gateway
