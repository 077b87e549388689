// characters.hpp: what the grammar of HTTP/1.1 says of single bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rondo::http {

enum character : std::uint8_t {
    in_token = 1,   // of a field name
    in_method = 2,  // upper case letters, - and _
    in_target = 4,  // visible ASCII but #
    in_value = 8,   // visible, space, tab, and the bytes above ASCII
    in_host = 16,   // of a name, an address or a port
};

constexpr std::array<std::uint8_t, 256> make_characters() noexcept {
    std::array<std::uint8_t, 256> table{};
    auto const add = [&table](std::string_view bytes, std::uint8_t what) {
        for (char const c : bytes) table[static_cast<unsigned char>(c)] |= what;
    };
    for (unsigned c = 'a'; c <= 'z'; ++c) table[c] |= in_token | in_host;
    for (unsigned c = 'A'; c <= 'Z'; ++c) table[c] |= in_token | in_host | in_method;
    for (unsigned c = '0'; c <= '9'; ++c) table[c] |= in_token | in_host;
    add("!#$%&'*+-.^_`|~", in_token);
    add("-_", in_method);
    add("-._~!$&'()*+;=%:[]", in_host);
    for (unsigned c = 0x21; c <= 0x7e; ++c) table[c] |= in_target | in_value;
    table['#'] &= static_cast<std::uint8_t>(~in_target);
    add(" \t", in_value);
    for (unsigned c = 0x80; c <= 0xff; ++c) table[c] |= in_value;
    return table;
}

inline constexpr std::array<std::uint8_t, 256> characters = make_characters();

constexpr bool is(char c, character what) noexcept {
    return (characters[static_cast<unsigned char>(c)] & what) != 0;
}

// How many bytes at the front can be of a value. Most are looked at eight at a time: a word is fine
// if none of its bytes is below a space or DEL, and a tab is left to the table.
inline std::size_t values_at_front(std::string_view text) noexcept {
    constexpr std::uint64_t each = 0x0101'0101'0101'0101U;
    constexpr std::uint64_t top = 0x80 * each;
    std::size_t n = 0;
    for (std::uint64_t word = 0; text.size() - n >= sizeof word; n += sizeof word) {
        std::memcpy(&word, text.data() + n, sizeof word);
        std::uint64_t const no_del = word ^ (0x7f * each);
        std::uint64_t const below_space = (word - ' ' * each) & ~word;
        std::uint64_t const stops = (below_space | ((no_del - each) & ~no_del)) & top;
        if (stops == 0) continue;
        // The lowest one is exact; those above it may be borrowed.
        if constexpr (std::endian::native == std::endian::little) {
            n += static_cast<std::size_t>(std::countr_zero(stops)) / 8;
        }
        break;
    }
    while (n != text.size() && is(text[n], in_value)) ++n;
    return n;
}

// Whether there is at least one, and all are.
constexpr bool all_are(std::string_view text, character what) noexcept {
    std::uint8_t all = text.empty() ? 0 : what;
    for (char const c : text) all &= characters[static_cast<unsigned char>(c)];
    return all != 0;
}

constexpr char to_lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Its value, or 16.
constexpr unsigned hex_value(char c) noexcept {
    if (is_digit(c)) return static_cast<unsigned>(c - '0');
    char const l = to_lower(c);
    return l >= 'a' && l <= 'f' ? static_cast<unsigned>(l - 'a') + 10 : 16;
}

// For some reader.
constexpr bool ends_a_line(char c) noexcept { return c == '\r' || c == '\n' || c == '\0'; }

// The value of a field, with spaces for what would end its line; behind it.
inline char* copy_on_one_line(std::string_view value, char* out) noexcept {
    if (values_at_front(value) == value.size()) return std::copy(value.begin(), value.end(), out);
    return std::ranges::replace_copy_if(value, out, ends_a_line, ' ').out;
}

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

constexpr std::string_view without_space(std::string_view text) noexcept {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

// Of a list that commas separate, without the empty ones.
template <class F>
constexpr void for_each_token(std::string_view list, F&& f) {
    while (!list.empty()) {
        std::size_t const comma = std::min(list.find(','), list.size());
        std::string_view const token = without_space(list.substr(0, comma));
        if (!token.empty()) f(token);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
}

}  // namespace rondo::http
