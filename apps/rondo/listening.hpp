// listening.hpp: a socket that listens, and outlives the servers that accept from it.
//
// Servers use duplicates of it (http::server_options::door). As long as one is open the system
// keeps the address, and who is queued there is not lost.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "rondo/http/detail/descriptor.hpp"

namespace rondo::gateway {

class listening {
  public:
    using endpoint = boost::asio::ip::tcp::endpoint;

    // Why it cannot be had.
    static std::expected<std::shared_ptr<listening>, std::string> at(endpoint const& where);

    endpoint const& asked_for() const noexcept { return asked_; }  // the port may be 0
    int descriptor() const noexcept { return socket_.get(); }

  private:
    listening(endpoint const& asked, http::detail::descriptor socket) noexcept
        : asked_(asked), socket_(std::move(socket)) {}

    endpoint asked_;
    http::detail::descriptor socket_;
};

using listeners = std::vector<std::shared_ptr<listening>>;

}  // namespace rondo::gateway
