#include "listening.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace rondo::gateway {

namespace {

constexpr int backlog = 1024;

}  // namespace

// By hand: an acceptor needs an io_context, which throws if there are no descriptors left.
std::expected<std::shared_ptr<listening>, std::string> listening::at(endpoint const& where) {
    int const kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    http::detail::descriptor s{::socket(where.protocol().family(), kind, IPPROTO_TCP)};
    auto const set = [&s](int level, int option) {
        int const on = 1;
        return ::setsockopt(s.get(), level, option, &on, sizeof on) == 0;
    };
    bool const fine = s && set(SOL_SOCKET, SO_REUSEADDR) &&
                      (where.address().is_v4() || set(IPPROTO_IPV6, IPV6_V6ONLY)) &&
                      ::bind(s.get(), where.data(), static_cast<socklen_t>(where.size())) == 0 &&
                      ::listen(s.get(), backlog) == 0;
    if (!fine) return std::unexpected{std::generic_category().message(errno)};
    return std::shared_ptr<listening>{new listening{where, std::move(s)}};
}

}  // namespace rondo::gateway
