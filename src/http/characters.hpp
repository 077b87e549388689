// characters.hpp: what the grammar of HTTP/1.1 says of single bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

constexpr std::string_view without_space(std::string_view text) noexcept {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

}  // namespace rondo::http
