// http_date.hpp: dates as HTTP writes them, in seconds since 1970.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rondo::http::detail {

// "Sun, 06 Nov 1994 08:49:37 GMT", as text of its own.
class http_date {
  public:
    explicit http_date(std::int64_t seconds) noexcept;
    std::string_view text() const noexcept { return {text_.data(), text_.size()}; }

  private:
    std::array<char, 29> text_;
};

// That form and the two that are obsolete: "Sunday, 06-Nov-94 08:49:37 GMT" and
// "Sun Nov  6 08:49:37 1994". What day of the week it was is not checked.
std::optional<std::int64_t> parse_http_date(std::string_view text) noexcept;

}  // namespace rondo::http::detail
