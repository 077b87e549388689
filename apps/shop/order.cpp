#include "order.hpp"

#include <boost/json.hpp>
#include <fstream>
#include <optional>
#include <utility>

namespace rondo::shop {

namespace {

namespace json = boost::json;
using problem = std::unexpected<std::string>;

std::string quoted(std::string_view text) { return "'" + std::string{text} + "'"; }

// Of valid UTF-8, which the parser sees to: there 0xc2 begins U+0080 to U+00BF and nothing else.
// The first half of those are control characters too; some terminals take them for an ESC.
bool is_printable(std::string_view text) noexcept {
    unsigned char before = 0;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0)) return false;
        before = byte;
    }
    return true;
}

// A key that is not known is more likely a slip than an addition.
std::optional<std::string> unknown_key(json::object const& o,
                                       std::initializer_list<std::string_view> known) {
    for (auto const& member : o) {
        bool found = false;
        for (std::string_view const k : known) found = found || member.key() == k;
        if (found) continue;
        std::string_view const key{member.key().data(), member.key().size()};
        if (!is_printable(key)) return "unknown key with a control character";
        return "unknown key " + quoted(key);
    }
    return std::nullopt;
}

std::expected<std::string, std::string> text_in(json::object const& o, std::string_view key,
                                                std::size_t longest) {
    json::value const* const v = o.if_contains(key);
    if (v == nullptr) return problem{quoted(key) + " is missing"};
    if (!v->is_string()) return problem{quoted(key) + " is not a text"};
    json::string const& text = v->get_string();
    if (text.empty()) return problem{quoted(key) + " is empty"};
    if (text.size() > longest) {
        return problem{quoted(key) + " has more than " + std::to_string(longest) + " bytes"};
    }
    if (!is_printable({text.data(), text.size()})) {
        return problem{quoted(key) + " has a control character"};
    }
    return std::string{text.data(), text.size()};
}

std::expected<item, std::string> read_item(json::value const& v) {
    if (!v.is_object()) return problem{"an item is not an object"};
    json::object const& o = v.get_object();
    if (auto wrong = unknown_key(o, {"flavour", "grams"})) return problem{*std::move(wrong)};
    auto flavour = text_in(o, "flavour", longest_flavour);
    if (!flavour) return problem{std::move(flavour.error())};
    json::value const* const grams = o.if_contains("grams");
    if (grams == nullptr) return problem{"'grams' is missing"};
    bool const in_range = grams->is_int64() && grams->get_int64() >= 1 &&
                          grams->get_int64() <= static_cast<std::int64_t>(most_grams);
    if (!in_range) {
        return problem{"'grams' is not a whole number from 1 to " + std::to_string(most_grams)};
    }
    return item{*std::move(flavour), static_cast<std::uint32_t>(grams->get_int64())};
}

std::expected<std::vector<item>, std::string> read_items(json::object const& o) {
    json::value const* const v = o.if_contains("items");
    if (v == nullptr) return problem{"'items' is missing"};
    if (!v->is_array()) return problem{"'items' is not a list"};
    json::array const& list = v->get_array();
    if (list.empty() || list.size() > most_items) {
        return problem{"'items' has " + std::to_string(list.size()) + " items; 1 to " +
                       std::to_string(most_items) + " are possible"};
    }
    std::vector<item> items;
    for (json::value const& one : list) {
        auto i = read_item(one);
        if (!i) {
            return problem{"item " + std::to_string(items.size() + 1) + ": " + i.error()};
        }
        items.push_back(*std::move(i));
    }
    return items;
}

}  // namespace

std::expected<order, std::string> parse_order(std::string_view line) {
    json::error_code error;
    json::parse_options options;
    options.max_depth = 4;
    json::value const v = json::parse({line.data(), line.size()}, error, {}, options);
    if (error) return problem{"this is not JSON: " + error.message()};
    if (!v.is_object()) return problem{"an order is an object"};
    json::object const& o = v.get_object();
    if (auto wrong = unknown_key(o, {"id", "card", "items"})) return problem{*std::move(wrong)};
    auto id = text_in(o, "id", longest_name);
    if (!id) return problem{std::move(id.error())};
    auto card = text_in(o, "card", longest_card);
    if (!card) return problem{std::move(card.error())};
    auto items = read_items(o);
    if (!items) return problem{std::move(items.error())};
    return order{*std::move(id), *std::move(card), *std::move(items)};
}

std::expected<std::vector<order_line>, std::string> read_orders(std::string const& file) {
    std::ifstream in{file, std::ios::binary};
    if (!in) return problem{file + ": cannot be read"};
    std::vector<order_line> lines;
    std::string text;
    for (std::uint32_t number = 1; std::getline(in, text); ++number) {
        if (text.ends_with('\r')) text.pop_back();
        if (text.find_first_not_of(" \t") == std::string::npos) continue;
        lines.push_back({number, text, parse_order(text)});
    }
    if (in.bad()) return problem{file + ": cannot be read to its end"};
    return lines;
}

}  // namespace rondo::shop
