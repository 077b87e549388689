// message.hpp: what requests and responses are made of: methods, fields, and how things fail.
//
// Everything here is a view: names and values point into the buffer of the connection that read
// them, and are valid until the exchange that they belong to has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rondo::http {

enum class method : std::uint8_t { get, head, post, put, del, options, patch, trace, other };

// The length of a body, and how the other side knows it.
enum class framing : std::uint8_t {
    none,         // there is no body
    length,       // so many bytes
    chunked,      // until the last chunk
    until_close,  // of a response only: until the connection ends
};

struct field {
    std::string_view name;
    std::string_view value;  // without white space around it
};

namespace detail {
bool same_letters(std::string_view a, std::string_view b) noexcept;  // they are as long
}

// Whether two names, or tokens, are the same: upper and lower case are.
inline bool same_token(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && detail::same_letters(a, b);
}
// Whether a comma-separated list has that token.
bool lists_token(std::string_view list, std::string_view token) noexcept;

// The fields of a message in the order in which they came.
class fields {
  public:
    fields() = default;
    explicit fields(std::span<field const> all) noexcept : all_(all) {}

    // The first of that name.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    std::string_view value_or(std::string_view name, std::string_view otherwise) const noexcept {
        return find(name).value_or(otherwise);
    }
    bool has(std::string_view name) const noexcept { return find(name).has_value(); }

    std::size_t size() const noexcept { return all_.size(); }
    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
    auto begin() const noexcept { return all_.begin(); }
    auto end() const noexcept { return all_.end(); }

  private:
    std::span<field const> all_;
};

// How an exchange can fail, whose fault it is, and whether it may be tried again elsewhere.
enum class failure_kind : std::uint8_t {
    closed,     // the other side closed the connection, or reset it
    timed_out,  // it did not answer, read or write in time
    malformed,  // it broke the protocol
    too_large,  // it sent more than a limit allows
    refused,    // the connection could not be made
    stopped,    // the server or client is being shut down
    misused,    // an answer after the answer, more or less than the length that was promised
    other,
};
enum class party : std::uint8_t { client, us, upstream };

struct failure {
    failure_kind kind;
    party source;
    // The other side has certainly not begun to act upon the request, or it may be repeated.
    bool retry_safe = false;
    char const* reason = "";  // plain words, for a log and for a body
};

// Whether it is followed by another, which is the answer: 1xx, but for 101.
constexpr bool is_interim(int status) noexcept { return status < 200 && status != 101; }

// The standard phrase of a status, "" if there is none.
std::string_view reason_phrase(int status) noexcept;

}  // namespace rondo::http
