#include "rondo/http/body.hpp"

#include <algorithm>

#include "characters.hpp"

namespace rondo::http {

namespace {

constexpr std::size_t most_digits = 15;
constexpr std::size_t most_extensions = std::size_t{16} * 1024;  // of one body

}  // namespace

char const* reason_of(chunk_error e) noexcept {
    switch (e) {
        case chunk_error::bad_size:
            return "a chunk's size is not a hexadecimal number";
        case chunk_error::too_large:
            return "a chunk's size has too many digits";
        case chunk_error::bad_extension:
            return "a chunk's extension has a control character";
        case chunk_error::extension_too_long:
            return "a chunk's extension is too long";
        case chunk_error::bad_line_end:
            return "a chunk does not end with CRLF";
        case chunk_error::bad_trailer:
            return "the trailer is malformed";
        case chunk_error::trailer_too_long:
            return "the trailer is too long";
    }
    return "";
}

// One byte of the line before a chunk.
std::expected<void, chunk_error> chunk_decoder::in_size_line(char c) noexcept {
    switch (at_) {
        case at::first_digit:
        case at::size:
            if (unsigned const digit = hex_value(c); digit < 16) {
                if (++digits_ > most_digits) return std::unexpected{chunk_error::too_large};
                left_ = left_ * 16 + digit;
                at_ = at::size;
                return {};
            }
            if (at_ == at::first_digit) return std::unexpected{chunk_error::bad_size};
            if (c == '\r') {
                at_ = at::size_lf;
            } else if (c == ';') {
                at_ = at::extension;
            } else {
                return std::unexpected{chunk_error::bad_size};
            }
            return {};
        case at::extension:
            if (c == '\r') {
                at_ = at::size_lf;
                return {};
            }
            if (!is(c, in_value)) return std::unexpected{chunk_error::bad_extension};
            if (++extension_ > most_->chunk_extension || ++extensions_ > most_extensions) {
                return std::unexpected{chunk_error::extension_too_long};
            }
            return {};
        default:  // size_lf
            if (c != '\n') return std::unexpected{chunk_error::bad_line_end};
            at_ = left_ == 0 ? at::trailer : at::data;
            return {};
    }
}

std::expected<chunk_decoder::step, chunk_error> chunk_decoder::next(
    std::string_view input) noexcept {
    std::size_t i = 0;
    while (i < input.size()) {
        switch (at_) {
            case at::data: {
                auto const n =
                    static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - i));
                left_ -= n;
                if (left_ == 0) at_ = at::data_cr;
                return step{i + n, input.substr(i, n), false};
            }
            case at::data_cr:
            case at::data_lf:
                if (input[i] != (at_ == at::data_cr ? '\r' : '\n')) {
                    return std::unexpected{chunk_error::bad_line_end};
                }
                ++i;
                if (at_ == at::data_lf) digits_ = extension_ = 0;
                at_ = at_ == at::data_cr ? at::data_lf : at::first_digit;
                break;
            case at::trailer:
                return in_trailer(input, i);
            case at::end:
                return step{i, {}, true};
            default:
                if (auto const good = in_size_line(input[i]); !good) {
                    return std::unexpected{good.error()};
                }
                ++i;
        }
    }
    return step{i, {}, at_ == at::end};
}

// Nothing of the trailer is consumed before all of it is there.
std::expected<chunk_decoder::step, chunk_error> chunk_decoder::in_trailer(
    std::string_view input, std::size_t from) noexcept {
    std::string_view const rest = input.substr(from);
    for (std::size_t line = seen_;;) {
        std::size_t const lf = rest.find('\n', line);
        if (lf == std::string_view::npos) {
            if (rest.size() > most_->trailer) return std::unexpected{chunk_error::trailer_too_long};
            seen_ = line;
            return step{from, {}, false};
        }
        if (lf >= most_->trailer + 2) return std::unexpected{chunk_error::trailer_too_long};
        if (lf == line || rest[lf - 1] != '\r') return std::unexpected{chunk_error::bad_line_end};
        if (lf == line + 1) {
            trailer_ = rest.substr(0, lf + 1);
            at_ = at::end;
            return step{from + lf + 1, {}, true};
        }
        line = lf + 1;
    }
}

chunk_line::chunk_line(std::uint64_t size) noexcept {
    text_[--from_] = '\n';
    text_[--from_] = '\r';
    do {
        text_[--from_] = "0123456789abcdef"[size % 16];
        size /= 16;
    } while (size != 0);
}

}  // namespace rondo::http
