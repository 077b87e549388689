// tls.hpp: the certificates of a server.
//
// TLS 1.2 and 1.3. With several certificates the name that the client asks for (SNI) chooses: the
// first whose names have it; the very first one if none has, or if the client does not say.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <expected>
#include <memory>
#include <vector>

#include "config.hpp"
#include "diagnostic.hpp"

namespace rondo::gateway {

class tls_certificates {
  public:
    // `of` is not empty.
    static std::expected<std::unique_ptr<tls_certificates>, std::vector<diagnostic>> load(
        std::vector<certificate> const& of);

    tls_certificates(tls_certificates const&) = delete;
    tls_certificates& operator=(tls_certificates const&) = delete;

    boost::asio::ssl::context& context() noexcept { return contexts_.front(); }

  private:
    tls_certificates() = default;

    static int choose(SSL* connection, int* alert, void* self) noexcept;

    std::vector<boost::asio::ssl::context> contexts_;
};

}  // namespace rondo::gateway
