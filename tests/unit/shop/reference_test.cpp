// The options in docs/shop.md against those that the program says it has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "shop_paths.hpp"
#include "support/child_process.hpp"

namespace {

struct option {
    std::string fallback;  // empty: none
    std::string variable;  // of the environment
};
using options = std::map<std::string, option>;

// What stands between two texts, the first time; nothing if they are not there.
std::string between(std::string const& line, std::string const& from, std::string const& to) {
    std::size_t const at = line.find(from);
    if (at == std::string::npos) return "";
    std::size_t const begin = at + from.size();
    return line.substr(begin, line.find(to, begin) - begin);
}

// "  --repeat-ms UINT:UINT in [1 - 3600000]=50 (Env:SHOP_REPEAT_MS)"
options said_of(std::string const& command) {
    rondo::test::child_process help{{SHOP_PROGRAM, command, "--help"}};
    EXPECT_EQ(help.wait(), 0);
    std::istringstream lines{help.said()};
    options all;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("  --")) continue;
        all["--" + between(line, "--", " ")] = {between(line, "=", " "),
                                                between(line, "(Env:", ")")};
    }
    return all;
}

std::vector<std::string> split(std::string const& text, std::string const& by) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
        std::size_t const to = std::min(text.find(by, from), text.size());
        parts.push_back(text.substr(from, to - from));
        from = to + by.size();
    }
    return parts;
}

// "| `--keep-alive-ms`, `--freeze-ms` (robot) | what they are | 500, 1000 |"
std::map<std::string, std::string> documented_for(std::string const& role) {
    std::ifstream document{SHOP_DOCUMENT};
    std::map<std::string, std::string> all;
    for (std::string line; std::getline(document, line);) {
        if (!line.starts_with("| `--")) continue;
        std::vector<std::string> const cells = split(line, " |");
        std::string const roles = between(cells.at(0), "(", ")");
        if (!roles.empty() && roles.find(role) == std::string::npos) continue;
        std::vector<std::string> const fallbacks = split(cells.at(2), ",");
        std::size_t n = 0;
        for (std::string const& name : split(cells.at(0), "`")) {
            if (!name.starts_with("--")) continue;
            std::string& value = all[name];
            for (char const c : fallbacks.at(n)) {
                if (c != ' ' && c != '`') value += c;
            }
            ++n;
        }
        EXPECT_EQ(n, fallbacks.size()) << line;
    }
    return all;
}

TEST(ShopReference, HasTheOptionsOfEachRoleWithTheirDefaults) {
    for (char const* const role : {"gateway", "robot", "screen"}) {
        std::map<std::string, std::string> said;
        for (auto const& [name, o] : said_of(role)) said[name] = o.fallback;
        EXPECT_EQ(documented_for(role), said) << role;
    }
}

TEST(ShopReference, EachOptionOfATimeHasTheVariableThatItSays) {
    for (char const* const role : {"gateway", "robot", "screen"}) {
        for (auto const& [name, o] : said_of(role)) {
            if (!name.ends_with("-ms") && name != "--gone-after") continue;
            std::string variable = "SHOP_";
            for (char const c : name.substr(2)) {
                variable += c == '-' ? '_' : static_cast<char>(std::toupper(c));
            }
            EXPECT_EQ(o.variable, variable) << role << " " << name;
        }
    }
}

TEST(ShopReference, FilesAreLookedForWhereTheRolesWriteThem) {
    for (char const* const command : {"gateway", "robot", "screen", "ledger", "verify"}) {
        EXPECT_EQ(said_of(command)["--state"].variable, "SHOP_STATE") << command;
    }
}

}  // namespace
