// tls_wire.hpp: a client over TLS, byte by byte, and a certificate to show it.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "running.hpp"
#include "support/child_process.hpp"

namespace rondo::gateway {

// Trusts whoever answers.
class tls_wire {
  public:
    explicit tls_wire(std::uint16_t port) {
        stream_.next_layer().connect({boost::asio::ip::address_v4::loopback(), port});
        stream_.handshake(boost::asio::ssl::stream_base::client);
    }
    // The common name of the certificate that it was shown.
    std::string shown() {
        X509* const certificate = SSL_get1_peer_certificate(stream_.native_handle());
        std::array<char, 256> name{};
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                                  static_cast<int>(name.size()));
        X509_free(certificate);
        return name.data();
    }

    void send(std::string_view bytes) {
        boost::system::error_code ignored;
        boost::asio::write(stream_, boost::asio::buffer(bytes), ignored);
    }
    std::string read_until(std::string_view end) {
        while (got_.find(end) == std::string::npos && more()) {
        }
        std::size_t const at = got_.find(end);
        return take(at == std::string::npos ? got_.size() : at + end.size());
    }
    std::string read(std::size_t n) {
        while (got_.size() < n && more()) {
        }
        return take(std::min(n, got_.size()));
    }
    std::string read_to_end() {
        while (more()) {
        }
        return take(got_.size());
    }
    // A head, and a body of the length that it says.
    std::string read_message() {
        std::string message = read_until("\r\n\r\n");
        std::string const length = field_of(message, "content-length");
        return length.empty() ? message : message + read(std::stoul(length));
    }
    std::string ask(std::string_view target = "/") {
        send("GET " + std::string{target} + " HTTP/1.1\r\nHost: h\r\n\r\n");
        return read_message();
    }
    // Whether the end that was read was said to be one; otherwise it may be somebody else's.
    bool was_closed() const noexcept { return ended_by_ == boost::asio::error::eof; }

    void close() {
        boost::system::error_code ignored;
        (void)stream_.next_layer().close(ignored);
    }

  private:
    bool more() {
        std::array<char, std::size_t{16} * 1024> block;
        std::size_t const n = stream_.read_some(boost::asio::buffer(block), ended_by_);
        got_.append(block.data(), n);
        return !ended_by_;
    }
    std::string take(std::size_t n) {
        std::string taken = got_.substr(0, n);
        got_.erase(0, n);
        return taken;
    }

    boost::asio::io_context context_;
    boost::asio::ssl::context trusting_{boost::asio::ssl::context::tls_client};
    boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_{context_, trusting_};
    boost::system::error_code ended_by_;
    std::string got_;
};

// For that name, in place of the one that was there: site.pem and site.key.
inline void issue_certificate(test::scratch_directory const& in, std::string const& name) {
    std::string const at = (in.path() / "site").string();
    test::child_process issuer{{"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                                "/CN=" + name, "-keyout", at + ".key", "-out", at + ".pem"}};
    ASSERT_EQ(issuer.wait(), 0) << issuer.said();
}

}  // namespace rondo::gateway
