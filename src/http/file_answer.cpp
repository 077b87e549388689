#include "rondo/http/detail/file_answer.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "characters.hpp"
#include "rondo/http/detail/http_date.hpp"

namespace rondo::http::detail {

namespace {

// The value of a field that may come once.
std::optional<std::string_view> only(fields const& all, std::string_view name) noexcept {
    std::optional<std::string_view> value;
    for (field const& f : all) {
        if (!same_token(f.name, name)) continue;
        if (value) return std::nullopt;
        value = f.value;
    }
    return value;
}

enum class comparison : std::uint8_t { weak, strong };

// Whether a list of entity tags, or "*", has this one. What follows a tag that is malformed is not
// looked at.
bool lists_tag(std::string_view list, std::string_view tag, comparison c) noexcept {
    if (without_space(list) == "*") return true;
    while (true) {
        while (!list.empty() &&
               (list.front() == ' ' || list.front() == '\t' || list.front() == ',')) {
            list.remove_prefix(1);
        }
        bool const weak = list.starts_with("W/");
        if (weak) list.remove_prefix(2);
        if (!list.starts_with('"')) return false;
        std::size_t const end = list.find('"', 1);
        if (end == std::string_view::npos) return false;
        if (list.substr(0, end + 1) == tag && !(weak && c == comparison::strong)) return true;
        list.remove_prefix(end + 1);
    }
}

bool any_lists_tag(fields const& all, std::string_view name, std::string_view tag,
                   comparison c) noexcept {
    return std::ranges::any_of(all, [&](field const& f) {
        return same_token(f.name, name) && lists_tag(f.value, tag, c);
    });
}

std::optional<std::int64_t> only_date(fields const& all, std::string_view name) noexcept {
    auto const value = only(all, name);
    return value ? parse_http_date(*value) : std::nullopt;
}

// 412 or 304, or 0 if the conditions let the request pass.
int refused_by_condition(fields const& asked, file_facts const& f, std::string_view tag) noexcept {
    if (asked.has("if-match")) {
        if (!any_lists_tag(asked, "if-match", tag, comparison::strong)) return 412;
    } else if (auto const since = only_date(asked, "if-unmodified-since")) {
        if (f.modified_s > *since) return 412;
    }
    if (asked.has("if-none-match")) {
        if (any_lists_tag(asked, "if-none-match", tag, comparison::weak)) return 304;
    } else if (auto const since = only_date(asked, "if-modified-since")) {
        if (f.modified_s <= *since) return 304;
    }
    return 0;
}

// Whether the client's part belongs to this file: always, if it does not say.
bool range_applies(fields const& asked, file_facts const& f, std::string_view tag) noexcept {
    if (!asked.has("if-range")) return true;
    auto const condition = only(asked, "if-range");
    if (!condition) return false;
    if (condition->starts_with('"')) return *condition == tag;
    return parse_http_date(*condition) == f.modified_s;
}

struct byte_range {
    std::optional<std::uint64_t> first;
    std::optional<std::uint64_t> last;  // without a first: so many at the end
};

// False if there are other characters than digits. A number that is too large is the largest.
bool read_position(std::string_view text, std::optional<std::uint64_t>& position) noexcept {
    if (text.empty()) return true;
    std::uint64_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) return false;
    position = error == std::errc::result_out_of_range ? UINT64_MAX : value;
    return true;
}

// Nothing if it is not one well-formed range of bytes.
std::optional<byte_range> read_range(std::string_view value) noexcept {
    std::size_t const equals = value.find('=');
    if (equals == std::string_view::npos || !same_token(value.substr(0, equals), "bytes")) {
        return std::nullopt;
    }
    std::string_view const part = without_space(value.substr(equals + 1));
    std::size_t const dash = part.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    byte_range r;
    if (!read_position(part.substr(0, dash), r.first)) return std::nullopt;
    if (!read_position(part.substr(dash + 1), r.last)) return std::nullopt;
    bool const backwards = r.first && r.last && *r.last < *r.first;
    if ((!r.first && !r.last) || backwards) return std::nullopt;
    return r;
}

file_answer part_of(byte_range const& r, std::uint64_t size) noexcept {
    if (!r.first) {
        if (*r.last == 0) return {.status = 416};
        std::uint64_t const length = std::min(*r.last, size);
        return {.status = 206, .offset = size - length, .length = length};
    }
    if (*r.first >= size) return {.status = 416};
    std::uint64_t const last = std::min(r.last.value_or(size - 1), size - 1);
    return {.status = 206, .offset = *r.first, .length = last - *r.first + 1};
}

// A weight of 0 to 1 with three decimals: is it above 0? What is malformed is not.
bool weighs_something(std::string_view parameters) noexcept {
    std::string_view const p = without_space(parameters);
    if (p.empty()) return true;
    if (!p.starts_with("q=") && !p.starts_with("Q=")) return false;
    std::string_view const q = without_space(p.substr(2));
    if (!q.starts_with('0')) return q.starts_with('1');
    return q.find_first_of("123456789") != std::string_view::npos;
}

}  // namespace

void entity_tag::put(std::string_view s) noexcept {
    std::ranges::copy(s, text_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += s.size();
}

void entity_tag::put_number(std::uint64_t n) noexcept {
    auto const end = std::to_chars(text_.data() + size_, text_.data() + text_.size(), n, 16).ptr;
    size_ = static_cast<std::size_t>(end - text_.data());
}

entity_tag::entity_tag(file_facts const& f) noexcept {
    put("\"");
    put_number(static_cast<std::uint64_t>(f.modified_s));
    put(".");
    put_number(f.modified_ns);
    put("-");
    put_number(f.size);
    put(f.compressed ? "-gz\"" : "\"");
}

file_answer answer_for(http::method m, fields const& asked, file_facts const& f) noexcept {
    entity_tag const tag{f};
    int const refused = refused_by_condition(asked, f, tag.text());
    if (refused != 0) return {.status = refused};
    file_answer const whole{.status = 200, .offset = 0, .length = f.size};
    // A range is for GET alone (RFC 9110, 14.2).
    if (m != method::get || f.size == 0) return whole;
    auto const value = only(asked, "range");
    if (!value || !range_applies(asked, f, tag.text())) return whole;
    auto const range = read_range(*value);
    return range ? part_of(*range, f.size) : whole;
}

bool accepts_gzip(fields const& asked) noexcept {
    std::optional<bool> named;
    std::optional<bool> any;
    for (field const& f : asked) {
        if (!same_token(f.name, "accept-encoding")) continue;
        for_each_token(f.value, [&](std::string_view item) {
            std::size_t const semicolon = item.find(';');
            std::string_view const coding = without_space(item.substr(0, semicolon));
            bool const wanted =
                semicolon == std::string_view::npos || weighs_something(item.substr(semicolon + 1));
            if (same_token(coding, "gzip") || same_token(coding, "x-gzip")) named = wanted;
            if (coding == "*") any = wanted;
        });
    }
    return named.value_or(any.value_or(false));
}

}  // namespace rondo::http::detail
