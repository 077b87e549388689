#include "rondo/http/head_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "characters.hpp"
#include "methods.hpp"
#include "rondo/core/assert.hpp"

namespace rondo::http {

namespace {

std::string_view digits(std::uint64_t value, std::array<char, 20>& into) noexcept {
    auto const end = std::to_chars(into.data(), into.data() + into.size(), value).ptr;
    return {into.data(), static_cast<std::size_t>(end - into.data())};
}

}  // namespace

void head_text::add(std::string_view name, std::string_view value) {
    RONDO_ASSERT(all_are(name, in_token), "the name of a field is a token");
    write(name, value, false);
}

void head_text::pass_on(field const& f) { write(f.name, f.value, true); }

void head_text::write(std::string_view name, std::string_view value, bool sound) {
    if (sealed_) return;
    if (name.size() == 4 && same_token(name, "date")) dated_ = true;
    open();
    text_.make_room(name.size() + value.size() + 4);
    char* out = text_.tail();
    out = std::copy(name.begin(), name.end(), out);
    *out++ = ':';
    *out++ = ' ';
    out = sound ? std::copy(value.begin(), value.end(), out) : copy_on_one_line(value, out);
    *out++ = '\r';
    *out++ = '\n';
    text_.commit(name.size() + value.size() + 4);
}

void head_text::add(std::string_view name, std::uint64_t value) {
    std::array<char, 20> text;
    add(name, digits(value, text));
}

void head_text::add_framing(http::framing f) {
    open();
    if (f == http::framing::chunked) text_.append("transfer-encoding: chunked\r\n");
    if (f != http::framing::length) return;
    std::array<char, 20> text;
    text_.append("content-length: ");
    text_.append(digits(length_, text));
    text_.append("\r\n");
}

void head_text::forget() noexcept {
    text_.clear();
    framing_.reset();
    length_ = 0;
    close_ = dated_ = sealed_ = false;
}

void response_text::clear() noexcept {
    forget();
    status_ = 200;
    reason_size_ = 0;
}

void response_text::status(int code, std::string_view reason) noexcept {
    RONDO_ASSERT(code >= 100 && code <= 999, "a status has three digits");
    if (sealed()) return;
    status_ = code;
    reason_size_ = 0;
    for (char const c : reason.substr(0, sizeof reason_)) {
        reason_[reason_size_++] = is(c, in_value) ? c : ' ';
    }
}

detail::buffer& response_text::seal() {
    if (sealed()) return text_;
    complete();
    std::string_view const reason =
        reason_size_ != 0 ? std::string_view{reason_, reason_size_} : reason_phrase(status_);
    std::array<char, room> line;
    char* out = line.data();
    auto const put = [&out](std::string_view text) { out = std::ranges::copy(text, out).out; };
    put("HTTP/1.1 ");
    *out++ = static_cast<char>('0' + status_ / 100);
    *out++ = static_cast<char>('0' + status_ / 10 % 10);
    *out++ = static_cast<char>('0' + status_ % 10);
    *out++ = ' ';
    put(reason);
    put("\r\n");
    auto const size = static_cast<std::size_t>(out - line.data());
    text_.consume(room - size);
    std::memcpy(const_cast<char*>(text_.data().data()), line.data(), size);
    return text_;
}

void request_text::line(std::string_view verb, std::string_view target) {
    RONDO_ASSERT(all_are(verb, in_token) && all_are(target, in_target), "a request line is one");
    forget();
    method_ = method_of(verb);
    text_.append(verb);
    text_.append(" ");
    text_.append(target);
    text_.append(" HTTP/1.1\r\n");
}

detail::buffer& request_text::seal() {
    if (!sealed()) complete();
    return text_;
}

}  // namespace rondo::http
