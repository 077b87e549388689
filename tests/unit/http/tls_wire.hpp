// tls_wire.hpp: a client over TLS that says a record when it is told to, or a part of one; and a
// certificate for a server to show it.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "wire.hpp"

namespace rondo::test {

// With a certificate that was issued by nobody else.
inline std::shared_ptr<boost::asio::ssl::context> server_secrets() {
    auto secrets =
        std::make_shared<boost::asio::ssl::context>(boost::asio::ssl::context::tls_server);
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const shown = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(shown), 0);
    X509_gmtime_adj(X509_getm_notAfter(shown), 3600);
    X509_set_pubkey(shown, key);
    bool const done = X509_sign(shown, key, EVP_sha256()) != 0 &&
                      SSL_CTX_use_certificate(secrets->native_handle(), shown) == 1 &&
                      SSL_CTX_use_PrivateKey(secrets->native_handle(), key) == 1;
    X509_free(shown);
    EVP_PKEY_free(key);
    if (!done) throw std::runtime_error{"cannot make a certificate"};
    return secrets;
}

// Trusts whoever answers.
class tls_wire {
  public:
    explicit tls_wire(unsigned short port)
        : below_(port), trusting_(SSL_CTX_new(TLS_client_method())), engine_(SSL_new(trusting_)) {
        SSL_set_bio(engine_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_connect_state(engine_);
        while (SSL_do_handshake(engine_) != 1) {
            below_.say(written());
            if (!more()) throw std::runtime_error{"no handshake"};
        }
        below_.say(written());
    }
    tls_wire(tls_wire const&) = delete;
    tls_wire& operator=(tls_wire const&) = delete;
    ~tls_wire() {
        SSL_free(engine_);
        SSL_CTX_free(trusting_);
    }

    wire const& below() const noexcept { return below_; }
    // What has to be said below for that text; once, and before what comes after it.
    std::string record_of(std::string_view text) {
        SSL_write(engine_, text.data(), static_cast<int>(text.size()));
        return written();
    }
    void say(std::string_view text) { below_.say(record_of(text)); }

    // Up to so much of what comes; nothing at the end.
    std::string hear_some(std::size_t most) {
        std::string some(most, '\0');
        for (;;) {
            int const n = SSL_read(engine_, some.data(), static_cast<int>(most));
            if (n > 0) {
                some.resize(static_cast<std::size_t>(n));
                return some;
            }
            if (SSL_get_error(engine_, n) != SSL_ERROR_WANT_READ || !more()) return {};
        }
    }
    std::string hear_all() {
        std::string all;
        for (;;) {
            std::string const some = hear_some(std::size_t{64} * 1024);
            if (some.empty()) return all;
            all += some;
        }
    }
    std::string hear(std::size_t size) {
        std::string all;
        while (all.size() < size) {
            std::string const some = hear_some(size - all.size());
            if (some.empty()) break;
            all += some;
        }
        return all;
    }

  private:
    // What the engine wants to be said.
    std::string written() {
        BIO* const out = SSL_get_wbio(engine_);
        std::string text(BIO_ctrl_pending(out), '\0');
        BIO_read(out, text.data(), static_cast<int>(text.size()));
        return text;
    }
    bool more() {
        char some[16384];
        ssize_t const n = ::recv(below_.fd(), some, sizeof some, 0);
        if (n <= 0) return false;
        BIO_write(SSL_get_rbio(engine_), some, static_cast<int>(n));
        return true;
    }

    wire below_;
    SSL_CTX* trusting_;
    SSL* engine_;
};

}  // namespace rondo::test
