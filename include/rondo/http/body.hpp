// body.hpp: the chunked coding, read piece by piece and written piece by piece.
//
//   chunk_decoder decoder{limits};
//   auto step = decoder.next(buffer);      // expected<step, head_error>
//   use(step->data); buffer.remove_prefix(step->consumed);
//
// Guarantee      strict: a size is 1 to 15 hexadecimal digits and nothing else but a capped
//                extension; lines end with CRLF. Data is given out as views of the buffer as it
//                comes, in pieces of any size, however the input is cut.
// Trailer        is waited for as a whole, up to a limit, and scanned as fields are.
// Allocation     none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "rondo/http/head.hpp"

namespace rondo::http {

enum class chunk_error : std::uint8_t {
    bad_size,
    too_large,  // more digits than a size may have
    bad_extension,
    extension_too_long,
    bad_line_end,
    bad_trailer,
    trailer_too_long,
};
char const* reason_of(chunk_error e) noexcept;

class chunk_decoder {
  public:
    struct step {
        std::size_t consumed = 0;  // bytes of the input that are done with
        std::string_view data;     // of the body; a view of the input
        bool ended = false;        // the body and its trailer are complete
    };

    explicit chunk_decoder(limits const& most) noexcept : most_(&most) {}

    // The next piece. One without data has consumed what it could: more input is needed, which
    // begins with what was not consumed.
    std::expected<step, chunk_error> next(std::string_view input) noexcept;

    // The trailer, with the empty line that ends it, as a view of the input that ended the body.
    std::string_view trailer() const noexcept { return trailer_; }

  private:
    enum class at : std::uint8_t {
        first_digit,
        size,
        extension,
        size_lf,
        data,
        data_cr,
        data_lf,
        trailer,
        end,
    };

    std::expected<void, chunk_error> in_size_line(char c) noexcept;
    std::expected<step, chunk_error> in_trailer(std::string_view input, std::size_t from) noexcept;

    limits const* most_;
    at at_ = at::first_digit;
    std::uint64_t left_ = 0;
    std::size_t digits_ = 0;
    std::size_t extension_ = 0;
    std::size_t extensions_ = 0;  // of the whole body
    std::size_t seen_ = 0;        // of the trailer
    std::string_view trailer_;
};

// The line before a chunk, as text of its own.
class chunk_line {
  public:
    explicit chunk_line(std::uint64_t size) noexcept;
    std::string_view text() const noexcept { return {text_.data() + from_, text_.size() - from_}; }

  private:
    std::array<char, 18> text_{};
    std::size_t from_ = 18;
};

inline constexpr std::string_view after_chunk = "\r\n";
inline constexpr std::string_view last_chunk = "0\r\n";  // then the trailer and an empty line

}  // namespace rondo::http
