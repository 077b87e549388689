#include "listening.hpp"

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>

namespace rondo::gateway {

namespace {

constexpr int backlog = 1024;

}  // namespace

std::expected<std::shared_ptr<listening>, std::string> listening::at(endpoint const& where) {
    namespace net = boost::asio;
    net::io_context nobody;
    net::ip::tcp::acceptor a{nobody};
    boost::system::error_code e;
    (void)a.open(where.protocol(), e);
    if (!e) (void)a.set_option(net::socket_base::reuse_address{true}, e);
    if (!e && where.address().is_v6()) (void)a.set_option(net::ip::v6_only{true}, e);
    if (!e) (void)a.bind(where, e);
    if (!e) (void)a.listen(backlog, e);
    if (e) return std::unexpected{e.message()};
    int const same = ::fcntl(a.native_handle(), F_DUPFD_CLOEXEC, 0);
    if (same < 0) return std::unexpected{std::generic_category().message(errno)};
    return std::shared_ptr<listening>{new listening{where, http::detail::descriptor{same}}};
}

}  // namespace rondo::gateway
