#include "stock.hpp"

#include <toml++/toml.h>

#include <array>
#include <cmath>
#include <fstream>
#include <utility>

namespace rondo::shop {

namespace {

constexpr std::int64_t most_capacity = 1'000'000'000;
constexpr double highest_price = 1'000'000;

class reader {
  public:
    explicit reader(std::string file) : file_(std::move(file)) {}

    void report(toml::source_region const& at, std::string const& problem) {
        wrong_.push_back(file_ + ":" + std::to_string(at.begin.line) + ":" +
                         std::to_string(at.begin.column) + ": " + problem);
    }
    void report(std::string const& problem) { wrong_.push_back(file_ + ": " + problem); }

    void read(toml::table const& root) {
        for (auto const& [key, node] : root) {
            if (key.str() != "flavour") {
                report(key.source(), "unknown key '" + std::string{key.str()} + "'");
            }
        }
        toml::node const* const flavours = root.get("flavour");
        if (flavours == nullptr || !flavours->is_table() || flavours->as_table()->empty()) {
            return report("there is no flavour; one is [flavour.lemon] with capacity and price");
        }
        if (flavours->as_table()->size() > most_flavours) {
            report(flavours->source(), "more than " + std::to_string(most_flavours) + " flavours");
        }
        for (auto const& [key, node] : *flavours->as_table()) read_one(key, node);
    }

    std::expected<stock, std::vector<std::string>> take() {
        if (!wrong_.empty()) return std::unexpected{std::move(wrong_)};
        return std::move(read_);
    }

  private:
    void read_one(toml::key const& key, toml::node const& node) {
        flavour f{std::string{key.str()}, 0, 0};
        if (f.name.empty() || f.name.size() > longest_flavour) {
            report(key.source(),
                   "the name of a flavour has 1 to " + std::to_string(longest_flavour) + " bytes");
        }
        toml::table const* const t = node.as_table();
        if (t == nullptr) return report(node.source(), "'" + f.name + "' is not a table");
        for (auto const& [k, v] : *t) {
            if (k.str() != "capacity" && k.str() != "price") {
                report(k.source(), "unknown key '" + std::string{k.str()} + "' of '" + f.name +
                                       "'; there are: capacity, price");
            }
        }
        toml::node const* const capacity = t->get("capacity");
        toml::node const* const price = t->get("price");
        if (capacity == nullptr) report(node.source(), "'" + f.name + "' has no capacity");
        if (price == nullptr) report(node.source(), "'" + f.name + "' has no price");
        if (capacity != nullptr) {
            std::int64_t const grams = capacity->is_integer() ? capacity->as_integer()->get() : -1;
            if (grams < 0 || grams > most_capacity) {
                report(capacity->source(), "'capacity' is not a number of grams");
            }
            f.capacity = grams;
        }
        if (price != nullptr) {
            double const per_kilo = price->value<double>().value_or(-1);
            if (!(per_kilo >= 0 && per_kilo <= highest_price)) {
                report(price->source(), "'price' is not a price per kilo");
            } else {
                f.cents_per_kilo = std::llround(per_kilo * 100);
            }
        }
        read_.push_back(std::move(f));
    }

    std::string file_;
    std::vector<std::string> wrong_;
    stock read_;
};

}  // namespace

std::expected<stock, std::vector<std::string>> parse_stock(std::string_view text,
                                                           std::string const& file) {
    reader r{file};
    try {
        r.read(toml::parse(text));
    } catch (toml::parse_error const& e) {
        r.report(e.source(), std::string{e.description()});
    }
    return r.take();
}

std::expected<stock, std::vector<std::string>> load_stock(std::string const& file) {
    std::ifstream in{file, std::ios::binary};
    if (!in) return std::unexpected{std::vector<std::string>{file + ": cannot be read"}};
    std::string text;
    std::array<char, 4096> block;
    while (in.read(block.data(), block.size()) || in.gcount() != 0) {
        text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    }
    if (in.bad()) return std::unexpected{std::vector{file + ": cannot be read to its end"}};
    return parse_stock(text, file);
}

flavour const* find(stock const& s, std::string_view name) noexcept {
    for (flavour const& f : s) {
        if (f.name == name) return &f;
    }
    return nullptr;
}

std::int64_t price_of(std::vector<item> const& items, stock const& s) noexcept {
    std::int64_t cents = 0;
    for (item const& i : items) {
        flavour const* const f = find(s, i.flavour);
        if (f != nullptr) cents += (f->cents_per_kilo * i.grams + 999) / 1000;
    }
    return cents;
}

}  // namespace rondo::shop
