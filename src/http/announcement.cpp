#include "rondo/http/detail/announcement.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace rondo::http::detail {

namespace net = boost::asio;
using net::ip::tcp;

namespace {

using state = announcement::state;
using namespace std::string_view_literals;

constexpr std::string_view word = "PROXY "sv;
constexpr std::string_view signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::size_t shortest_text = 15;  // "PROXY UNKNOWN\r\n"
constexpr std::size_t longest_text = 107;
constexpr std::size_t fixed_block = 16;

announcement malformed() { return {.is = state::malformed}; }
announcement incomplete(std::size_t needed) { return {.needed = needed}; }
announcement complete(std::size_t size, std::optional<tcp::endpoint> client = {}) {
    return {.is = state::complete, .size = size, .client = std::move(client)};
}

// Whether it begins as this does, as far as it goes.
bool may_be(std::string_view bytes, std::string_view wanted) {
    std::size_t const n = std::min(bytes.size(), wanted.size());
    return bytes.substr(0, n) == wanted.substr(0, n);
}

// --- form 1 ------------------------------------------------------------------------------------

// The text up to the next space, which goes with it; nothing: it is empty.
std::optional<std::string_view> take_word(std::string_view& rest) {
    std::size_t const end = std::min(rest.find(' '), rest.size());
    if (end == 0) return std::nullopt;
    std::string_view const taken = rest.substr(0, end);
    bool const last = end == rest.size();
    rest.remove_prefix(last ? end : end + 1);
    if (!last && rest.empty()) return std::nullopt;  // it ends with a space
    return taken;
}

std::optional<net::ip::address> take_address(std::string_view& rest, bool v6) {
    auto const text = take_word(rest);
    if (!text || text->find('%') != std::string_view::npos) return std::nullopt;
    boost::system::error_code e;
    auto a = net::ip::make_address(std::string{*text}, e);
    if (e || a.is_v6() != v6) return std::nullopt;
    return a;
}

std::optional<std::uint16_t> take_port(std::string_view& rest) {
    auto const text = take_word(rest);
    if (!text || (text->size() > 1 && text->front() == '0')) return std::nullopt;
    std::uint16_t port = 0;
    auto const* const end = std::to_address(text->end());
    auto const read = std::from_chars(std::to_address(text->begin()), end, port);
    if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    return port;
}

announcement read_line(std::string_view line, std::size_t size) {
    line.remove_prefix(word.size());
    auto const family = take_word(line);
    if (family == "UNKNOWN"sv) return complete(size);  // whatever follows
    if (family != "TCP4"sv && family != "TCP6"sv) return malformed();
    bool const v6 = family == "TCP6"sv;
    auto const from = take_address(line, v6);
    auto const to = from ? take_address(line, v6) : from;
    auto const from_port = to ? take_port(line) : std::nullopt;
    auto const to_port = from_port ? take_port(line) : from_port;
    if (!to_port || !line.empty()) return malformed();
    return complete(size, tcp::endpoint{*from, *from_port});
}

announcement read_text(std::string_view bytes) {
    if (bytes.size() < shortest_text) return incomplete(shortest_text - bytes.size());
    std::size_t const end = bytes.substr(0, longest_text).find('\n');
    if (end == std::string_view::npos) {
        return bytes.size() < longest_text ? incomplete(1) : malformed();
    }
    std::string_view const line = bytes.substr(0, end);
    if (!line.ends_with('\r')) return malformed();
    return read_line(line.substr(0, line.size() - 1), end + 1);
}

// --- form 2 ------------------------------------------------------------------------------------

std::uint8_t byte_at(std::string_view bytes, std::size_t i) {
    return static_cast<std::uint8_t>(bytes[i]);
}
std::uint16_t number_at(std::string_view bytes, std::size_t i) {
    return static_cast<std::uint16_t>(byte_at(bytes, i) << 8U | byte_at(bytes, i + 1));
}

// A type, a length of two bytes and so much.
bool are_fields(std::string_view rest) {
    while (!rest.empty()) {
        if (rest.size() < 3) return false;
        std::size_t const all = std::size_t{3} + number_at(rest, 1);
        if (rest.size() < all) return false;
        rest.remove_prefix(all);
    }
    return true;
}

// Addresses of `Size` bytes, then two ports, then fields.
template <class Address, std::size_t Size>
announcement read_addresses(std::string_view block, std::size_t size) {
    constexpr std::size_t all = 2 * Size + 4;
    if (block.size() < all || !are_fields(block.substr(all))) return malformed();
    typename Address::bytes_type raw;
    static_assert(sizeof raw == Size);
    std::ranges::transform(block.substr(0, Size), raw.begin(),
                           [](char c) { return static_cast<unsigned char>(c); });
    return complete(size, tcp::endpoint{Address{raw}, number_at(block, 2 * Size)});
}

announcement read_block(std::string_view bytes) {
    if (bytes.size() < fixed_block) return incomplete(fixed_block - bytes.size());
    std::uint8_t const version_and_command = byte_at(bytes, 12);
    if (version_and_command != 0x20 && version_and_command != 0x21) return malformed();
    std::size_t const size = fixed_block + number_at(bytes, 14);
    if (size > longest_announcement) return malformed();
    if (bytes.size() < size) return incomplete(size - bytes.size());
    if (version_and_command == 0x20) return complete(size);  // local
    std::string_view const block = bytes.substr(fixed_block, size - fixed_block);
    switch (byte_at(bytes, 13)) {
        case 0x00:  // not specified
        case 0x31:  // a stream of UNIX
            return complete(size);
        case 0x11:
            return read_addresses<net::ip::address_v4, 4>(block, size);
        case 0x21:
            return read_addresses<net::ip::address_v6, 16>(block, size);
        default:
            return malformed();
    }
}

}  // namespace

announcement read_announcement(std::string_view bytes) {
    if (bytes.empty()) return incomplete(shortest_text);
    if (may_be(bytes, word)) return read_text(bytes);
    if (!may_be(bytes, signature)) return malformed();
    // The first bytes that are read may be those of either form.
    return read_block(bytes);
}

}  // namespace rondo::http::detail
