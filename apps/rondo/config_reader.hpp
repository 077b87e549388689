// config_reader.hpp: takes values out of a parsed TOML file and notes everything that is wrong.
//
// Each function returns what it could read; a value that is wrong is reported and left at its
// default, so that the rest of the file is read as well.
#pragma once

#include <toml++/toml.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"

namespace rondo::gateway {

class config_reader {
  public:
    explicit config_reader(std::filesystem::path folder) : folder_(std::move(folder)) {}

    void report(position at, std::string problem, std::string advice = {});
    void report(toml::node const& at, std::string problem, std::string advice = {});
    bool clean() const noexcept { return found_.empty(); }
    std::vector<diagnostic> take();

    static position where(toml::node const& n);

    // Reports the keys that this section does not have.
    void check_keys(toml::table const& t, std::string_view section);
    // Null if it is not there; then a required one is reported.
    toml::node const* required(toml::table const& t, std::string_view section,
                               std::string_view key);

    std::optional<std::string> text(toml::node const& n, std::string_view key);
    std::optional<std::int64_t> number(
        toml::node const& n, std::string_view key, std::int64_t least,
        std::int64_t most = std::numeric_limits<std::uint32_t>::max());
    std::optional<bool> boolean(toml::node const& n, std::string_view key);
    // "250ms", "10s", "5m", "2h", and more than nothing.
    std::optional<std::chrono::milliseconds> duration(toml::node const& n, std::string_view key);
    std::optional<std::string> word(toml::node const& n, std::string_view key,
                                    std::span<std::string_view const> known);
    std::optional<address> address_of(toml::node const& n, std::string_view key);
    toml::table const* table(toml::node const& n, std::string_view key);
    toml::array const* filled_list(toml::node const& n, std::string_view key);
    // One that can be opened.
    std::optional<std::filesystem::path> directory(toml::node const& n, std::string_view key);
    std::optional<std::filesystem::path> file(toml::node const& n, std::string_view key);

    // "wrong type": what was expected, and what is there.
    void wrong_type(toml::node const& n, std::string_view key, std::string_view expected);

  private:
    std::filesystem::path folder_;
    std::vector<diagnostic> found_;
};

}  // namespace rondo::gateway
