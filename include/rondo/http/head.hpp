// head.hpp: the strict scan of a header block. It is the parser; there is no second one.
//
//   head_search search;
//   switch (search.look(buffer, limits)) { ... }        // is the block complete?
//   auto head = scan_request(block, limits, table);     // expected<request_head, head_error>
//
// Guarantee      whatever two readers could understand differently is refused: see docs/http.md for
//                each rule. What is accepted has one framing, which is decided here. At least as
//                strict as the stricter of nginx and HAProxy.
// Views          of the block and of the table that the caller lends; nothing is copied.
// Allocation     none.
// Thread safety  functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "rondo/http/message.hpp"

namespace rondo::http {

struct limits {
    std::size_t head = std::size_t{32} * 1024;   // bytes of a header block
    std::size_t target = std::size_t{8} * 1024;  // bytes of a request's target
    std::size_t fields = 100;
    std::size_t chunk_extension = 256;  // bytes after the size of a chunk
    std::size_t trailer = std::size_t{4} * 1024;
};

enum class head_error : std::uint8_t {
    bad_start_line,
    bad_method,
    method_not_implemented,  // CONNECT
    bad_target,
    above_root,  // dot segments that lead out of the root
    target_too_long,
    bad_version,
    version_not_supported,
    bare_cr_or_lf,
    folded_line,
    bad_field_name,
    space_before_colon,
    bad_field_value,
    too_many_fields,
    head_too_large,
    no_host,
    repeated_host,
    bad_host,
    repeated_length,
    bad_length,
    length_and_coding,
    repeated_coding,
    bad_coding,
    coding_not_implemented,
    coding_in_1_0,
    bad_expectation,
    bad_status,
};
// What a client is told, and why.
int status_of(head_error e) noexcept;
char const* reason_of(head_error e) noexcept;

struct request_head {
    std::string_view verb;  // as it was sent
    http::method method = http::method::other;
    std::string_view target;  // as it was sent
    std::string_view path;    // of the target, with the query; "*" of OPTIONS
    std::string_view host;    // with the port, if it was sent
    std::uint8_t minor = 1;   // of HTTP/1.minor
    http::framing framing = framing::none;
    std::uint64_t length = 0;  // of the body, if it is framing::length
    bool keep_alive = true;
    bool expects_continue = false;
    std::string_view upgrade;  // the protocols asked for by Upgrade, if Connection says so too
    http::fields fields;
};

struct response_head {
    int status = 0;
    std::string_view reason;
    std::uint8_t minor = 1;
    http::framing framing = framing::none;
    std::uint64_t length = 0;
    bool keep_alive = true;
    std::string_view upgrade;
    http::fields fields;
};

// Looks for the end of a header block in a buffer that grows.
class head_search {
  public:
    enum class found : std::uint8_t { nothing_yet, complete, error };

    // The buffer begins with the block; bytes that were seen are not looked at again.
    found look(std::string_view buffer, limits const& most) noexcept;

    std::size_t skip() const noexcept { return skip_; }      // an empty line before it
    std::size_t length() const noexcept { return length_; }  // with the empty line that ends it
    head_error error() const noexcept { return error_; }
    void reset() noexcept { *this = {}; }

  private:
    found refuse(head_error e) noexcept;

    std::size_t seen_ = 0;
    std::size_t line_ = 0;  // where the line begins that is not complete
    std::size_t skip_ = 0;
    std::size_t length_ = 0;
    head_error error_ = head_error::bad_start_line;
    bool first_line_ended_ = false;
};

// `block` ends with the empty line. The fields go to the front of `table`, whose size is a limit
// too.
std::expected<request_head, head_error> scan_request(std::string_view block, limits const& most,
                                                     std::span<field> table) noexcept;
// `to_head`: it answers a HEAD, and so has no body.
std::expected<response_head, head_error> scan_response(std::string_view block, limits const& most,
                                                       std::span<field> table,
                                                       bool to_head) noexcept;
// The fields after the last chunk; `block` ends with the empty line, and may be that alone. Those
// that would change what the head said are refused.
std::expected<http::fields, head_error> scan_trailer(std::string_view block,
                                                     std::span<field> table) noexcept;

}  // namespace rondo::http
