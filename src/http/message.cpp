#include "rondo/http/message.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "characters.hpp"

namespace rondo::http {

namespace {

constexpr std::uint64_t each = 0x0101'0101'0101'0101U;

std::uint64_t word_at(std::string_view text, std::size_t i) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    return word;
}

// Eight bytes at a time: those that differ do so in the one bit by which cases do, and are letters.
bool same_letters_in_words(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t const differ = a ^ b;
    if (differ == 0) return true;
    if ((differ & ~(0x20 * each)) != 0) return false;
    std::uint64_t const lower = (a | 0x20 * each) & 0x7f * each;
    std::uint64_t const from_a = lower + (0x80 - 'a') * each;
    std::uint64_t const above_z = lower + (0x7f - 'z') * each;
    std::uint64_t const letters = from_a & ~above_z & ~a;  // in the highest bit of each
    return ((differ << 2U) & ~letters) == 0;
}

}  // namespace

bool detail::same_letters(std::string_view a, std::string_view b) noexcept {
    constexpr std::size_t word = sizeof(std::uint64_t);
    if (a.size() >= word) {
        for (std::size_t i = 0; i + word < a.size(); i += word) {
            if (!same_letters_in_words(word_at(a, i), word_at(b, i))) return false;
        }
        std::size_t const last = a.size() - word;
        return same_letters_in_words(word_at(a, last), word_at(b, last));
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i] && to_lower(a[i]) != to_lower(b[i])) return false;
    }
    return true;
}

bool lists_token(std::string_view list, std::string_view token) noexcept {
    bool found = false;
    for_each_token(list, [&](std::string_view t) { found = found || same_token(t, token); });
    return found;
}

std::optional<std::string_view> fields::find(std::string_view name) const noexcept {
    for (field const& f : all_) {
        if (same_token(f.name, name)) return f.value;
    }
    return std::nullopt;
}

namespace {

struct phrase {
    int status;
    std::string_view text;
};
constexpr phrase phrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

}  // namespace

std::string_view reason_phrase(int status) noexcept {
    auto const* const p = std::ranges::lower_bound(phrases, status, {}, &phrase::status);
    return p != std::ranges::end(phrases) && p->status == status ? p->text : "";
}

}  // namespace rondo::http
