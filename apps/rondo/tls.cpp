#include "tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <boost/asio/ssl/error.hpp>
#include <string>
#include <string_view>

namespace rondo::gateway {

namespace {

namespace net = boost::asio;
namespace ssl = net::ssl;

// What the client offers by ALPN; without any of ours it is served all the same.
int choose_protocol(SSL*, unsigned char const** out, unsigned char* out_size,
                    unsigned char const* offered, unsigned offered_size, void*) noexcept {
    static constexpr std::array<unsigned char, 9> ours{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    unsigned char* chosen = nullptr;
    int const agreed =
        SSL_select_next_proto(&chosen, out_size, ours.data(), ours.size(), offered, offered_size);
    if (agreed != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

void set_defaults(ssl::context& c) {
    SSL_CTX* const raw = c.native_handle();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_options(
        raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    // Of TLS 1.2 only what has forward secrecy and authenticates what it encrypts.
    SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(raw, &choose_protocol, nullptr);
}

// Otherwise OpenSSL would ask for one at the terminal or on stdin, and wait: also in a reload.
std::string no_passphrase(std::size_t, ssl::context::password_purpose) { return {}; }

diagnostic wrong(certificate const& c, std::filesystem::path const& file,
                 boost::system::error_code const& why, std::string advice) {
    return {c.at, "cannot use '" + file.string() + "': " + why.message(), std::move(advice)};
}

}  // namespace

std::expected<std::unique_ptr<tls_certificates>, std::vector<diagnostic>> tls_certificates::load(
    std::vector<certificate> const& of) {
    std::unique_ptr<tls_certificates> all{new tls_certificates};
    std::vector<diagnostic> found;
    for (certificate const& c : of) {
        ssl::context& context = all->contexts_.emplace_back(ssl::context::tls_server);
        set_defaults(context);
        boost::system::error_code error;
        (void)context.set_password_callback(&no_passphrase, error);
        (void)context.use_certificate_chain_file(c.chain.string(), error);
        if (error) {
            found.push_back(wrong(c, c.chain, error, "it is a certificate in PEM, then its chain"));
            continue;
        }
        (void)context.use_private_key_file(c.key.string(), ssl::context::pem, error);
        // Only a key of the same kind was compared with the certificate until here.
        if (!error && SSL_CTX_check_private_key(context.native_handle()) != 1) {
            error = {static_cast<int>(ERR_get_error()), net::error::get_ssl_category()};
        }
        ERR_clear_error();
        if (error) {
            found.push_back(wrong(c, c.key, error,
                                  "it is the certificate's key, in PEM, without a passphrase"));
        }
    }
    if (!found.empty()) return std::unexpected{std::move(found)};
    SSL_CTX* const first = all->context().native_handle();
    SSL_CTX_set_tlsext_servername_callback(first, &choose);
    SSL_CTX_set_tlsext_servername_arg(first, all.get());
    return all;
}

int tls_certificates::choose(SSL* connection, int*, void* self) noexcept {
    char const* const name = SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
    if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
    for (ssl::context& c : static_cast<tls_certificates*>(self)->contexts_) {
        X509* const certificate = SSL_CTX_get0_certificate(c.native_handle());
        if (X509_check_host(certificate, name, 0, 0, nullptr) == 1) {
            SSL_set_SSL_CTX(connection, c.native_handle());
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_NOACK;
}

}  // namespace rondo::gateway
