// order.hpp: what a customer orders: a line of a file, in JSON.
//
//   {"id": "7", "card": "4242-1", "items": [{"flavour": "lemon", "grams": 250}]}
//
// 1 to 8 items of 1 to 2000 grams each; texts without control characters, as they are printed.
// Every line of a file is read; one that is not an order is reported with its file and line, and
// skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::shop {

inline constexpr std::size_t most_items = 8;
inline constexpr std::uint32_t most_grams = 2000;
inline constexpr std::size_t longest_flavour = 24;
inline constexpr std::size_t longest_card = 32;
inline constexpr std::size_t longest_name = 64;

struct item {
    std::string flavour;
    std::uint32_t grams = 0;

    friend bool operator==(item const&, item const&) = default;
};

struct order {
    std::string id;  // as the customer calls it
    std::string card;
    std::vector<item> items;

    friend bool operator==(order const&, order const&) = default;
};

// The error says what is wrong with it.
std::expected<order, std::string> parse_order(std::string_view line);

struct order_line {
    std::uint32_t number = 0;  // the first is 1
    std::string text;
    std::expected<order, std::string> read;
};

// The lines of a file that are not empty. The error names the file.
std::expected<std::vector<order_line>, std::string> read_orders(std::string const& file);

}  // namespace rondo::shop
