// file_answer.hpp: which answer a request for a file gets: by what was asked and what is there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rondo/http/message.hpp"

namespace rondo::http::detail {

struct file_facts {
    std::uint64_t size = 0;
    std::int64_t modified_s = 0;  // since 1970
    std::uint32_t modified_ns = 0;
    bool compressed = false;  // it is the .gz of what was asked for
};

// A strong one: another size, another time to the nanosecond, or another coding is another tag.
class entity_tag {
  public:
    explicit entity_tag(file_facts const& f) noexcept;
    std::string_view text() const noexcept { return {text_.data(), size_}; }  // with its quotes

  private:
    void put(std::string_view s) noexcept;
    void put_number(std::uint64_t n) noexcept;

    std::array<char, 64> text_{};
    std::size_t size_ = 0;
};

struct file_answer {
    int status = 200;          // 200, 206, 304, 412 or 416
    std::uint64_t offset = 0;  // of the part that is sent, with 200 and 206
    std::uint64_t length = 0;
};

// For GET and HEAD, by RFC 9110:
//   - conditions in its order (13.2.2). A date that is none, or a field that comes twice where it
//     may not, is not there;
//   - one range of bytes. Several are answered with the whole, as are those of an empty file, of
//     another unit, and those that are malformed; one that begins behind the end gets a 416.
file_answer answer_for(http::method m, fields const& asked, file_facts const& f) noexcept;

// Whether the client takes gzip: it is named, or '*' is, with a weight above 0.
bool accepts_gzip(fields const& asked) noexcept;

}  // namespace rondo::http::detail
