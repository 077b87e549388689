#include "config_reader.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace rondo::gateway {

namespace {

std::string_view type_of(toml::node const& n) {
    switch (n.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "a list";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "a whole number";
        case toml::node_type::floating_point:
            return "a fraction";
        case toml::node_type::boolean:
            return "a boolean";
        default:
            return "a date or time";
    }
}

struct unit {
    std::string_view name;
    std::int64_t milliseconds;
};
constexpr auto units =
    std::to_array<unit>({{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}});
constexpr std::int64_t longest_ms = 24LL * 3'600'000;

// What open() says about it; nothing if it can be read.
std::error_code cannot_read(std::filesystem::path const& p, int flags) {
    int const fd = ::open(p.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0) return {errno, std::generic_category()};
    ::close(fd);
    return {};
}

}  // namespace

void config_reader::report(position at, std::string problem, std::string advice) {
    auto const later = std::ranges::upper_bound(found_, at, {}, &diagnostic::at);
    found_.insert(later, {at, std::move(problem), std::move(advice)});
}

void config_reader::report(toml::node const& at, std::string problem, std::string advice) {
    report(where(at), std::move(problem), std::move(advice));
}

std::vector<diagnostic> config_reader::take() { return std::move(found_); }

position config_reader::where(toml::node const& n) {
    return {n.source().begin.line, n.source().begin.column};
}

void config_reader::check_keys(toml::table const& t, std::string_view section) {
    std::vector<std::string_view> known;
    for (key_info const& k : keys()) {
        if (k.section == section) known.push_back(k.name);
    }
    for (auto const& [key, value] : t) {
        if (std::ranges::find(known, key.str()) != known.end()) continue;
        position const at{key.source().begin.line, key.source().begin.column};
        report(at, fmt::format("unknown key '{}' in {}", key.str(), section),
               suggest(key.str(), known));
    }
}

toml::node const* config_reader::required(toml::table const& t, std::string_view section,
                                          std::string_view key) {
    toml::node const* const n = t.get(key);
    if (n == nullptr) report(t, fmt::format("{} has no '{}'", section, key), "it needs one");
    return n;
}

void config_reader::wrong_type(toml::node const& n, std::string_view key,
                               std::string_view expected) {
    report(n, fmt::format("'{}' is {}", key, type_of(n)), fmt::format("it takes {}", expected));
}

std::optional<std::string> config_reader::text(toml::node const& n, std::string_view key) {
    if (auto const* const s = n.as_string()) return s->get();
    wrong_type(n, key, "a string");
    return std::nullopt;
}

std::optional<std::int64_t> config_reader::number(toml::node const& n, std::string_view key,
                                                  std::int64_t least, std::int64_t most) {
    auto const* const value = n.as_integer();
    if (value == nullptr) {
        wrong_type(n, key, "a whole number");
        return std::nullopt;
    }
    if (value->get() < least || value->get() > most) {
        report(n, fmt::format("'{}' is {}", key, value->get()),
               fmt::format("it is a number from {} to {}", least, most));
        return std::nullopt;
    }
    return value->get();
}

std::optional<bool> config_reader::boolean(toml::node const& n, std::string_view key) {
    auto const value = n.value_exact<bool>();
    if (!value) wrong_type(n, key, "true or false");
    return value;
}

std::optional<std::chrono::milliseconds> config_reader::duration(toml::node const& n,
                                                                 std::string_view key) {
    std::string_view const form = "a duration such as \"250ms\", \"10s\", \"5m\" or \"2h\"";
    auto const* const s = n.as_string();
    if (s == nullptr) {
        wrong_type(n, key, form);
        return std::nullopt;
    }
    std::string_view const written = s->get();
    std::int64_t count = 0;
    auto const [end, error] =
        std::from_chars(written.data(), written.data() + written.size(), count);
    std::string_view const rest = written.substr(static_cast<std::size_t>(end - written.data()));
    auto const* const u = std::ranges::find(units, rest, &unit::name);
    if (error != std::errc{} || u == units.end()) {
        report(n, fmt::format("'{}' is \"{}\"", key, written), fmt::format("it takes {}", form));
        return std::nullopt;
    }
    if (count <= 0 || count > longest_ms / u->milliseconds) {
        report(n, fmt::format("'{}' is \"{}\"", key, written),
               "it is more than nothing and at most \"24h\"");
        return std::nullopt;
    }
    return std::chrono::milliseconds{count * u->milliseconds};
}

std::optional<std::string> config_reader::word(toml::node const& n, std::string_view key,
                                               std::span<std::string_view const> known) {
    auto s = text(n, key);
    if (!s || std::ranges::find(known, *s) != known.end()) return s;
    report(n, fmt::format("'{}' is \"{}\"", key, *s), suggest(*s, known));
    return std::nullopt;
}

std::optional<address> config_reader::address_of(toml::node const& n, std::string_view key) {
    auto const s = text(n, key);
    if (!s) return std::nullopt;
    auto parsed = parse_address(*s);
    if (parsed) {
        parsed->at = where(n);
        return *std::move(parsed);
    }
    report(n, parsed.error().problem, parsed.error().advice);
    return std::nullopt;
}

toml::table const* config_reader::table(toml::node const& n, std::string_view key) {
    if (n.is_table()) return n.as_table();
    wrong_type(n, key, "a table");
    return nullptr;
}

toml::array const* config_reader::filled_list(toml::node const& n, std::string_view key) {
    auto const* const list = n.as_array();
    if (list == nullptr) {
        wrong_type(n, key, "a list");
        return nullptr;
    }
    if (list->empty()) {
        report(n, fmt::format("'{}' is empty", key), "it needs one at least");
        return nullptr;
    }
    return list;
}

std::optional<std::filesystem::path> config_reader::directory(toml::node const& n,
                                                              std::string_view key) {
    auto const s = text(n, key);
    if (!s) return std::nullopt;
    std::filesystem::path p = folder_ / *s;
    if (auto const error = cannot_read(p, O_DIRECTORY)) {
        report(n, fmt::format("cannot read the directory '{}': {}", p.string(), error.message()),
               error == std::errc::not_a_directory ? "name the folder it is in" : "");
        return std::nullopt;
    }
    return p;
}

std::optional<std::filesystem::path> config_reader::file(toml::node const& n,
                                                         std::string_view key) {
    auto const s = text(n, key);
    if (!s) return std::nullopt;
    std::filesystem::path p = folder_ / *s;
    auto error = cannot_read(p, 0);
    bool const folder = !error && std::filesystem::is_directory(p, error);
    if (folder) error = {EISDIR, std::generic_category()};
    if (error) {
        report(n, fmt::format("cannot read the file '{}': {}", p.string(), error.message()));
        return std::nullopt;
    }
    return p;
}

}  // namespace rondo::gateway
