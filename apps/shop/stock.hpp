// stock.hpp: what the gateway sells: the file stock.toml.
//
//   [flavour.lemon]
//   capacity = 5000          # grams
//   price = 12.50            # per kilo
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "order.hpp"

namespace rondo::shop {

inline constexpr std::size_t most_flavours = 16;

struct flavour {
    std::string name;
    std::int64_t capacity = 0;  // grams
    std::int64_t cents_per_kilo = 0;

    friend bool operator==(flavour const&, flavour const&) = default;
};

using stock = std::vector<flavour>;

// Every error of the text, as "file:line:column: what is wrong".
std::expected<stock, std::vector<std::string>> parse_stock(std::string_view text,
                                                           std::string const& file);
std::expected<stock, std::vector<std::string>> load_stock(std::string const& file);

flavour const* find(stock const& s, std::string_view name) noexcept;
// In cents, each item rounded up. All flavours are known.
std::int64_t price_of(std::vector<item> const& items, stock const& s) noexcept;

}  // namespace rondo::shop
