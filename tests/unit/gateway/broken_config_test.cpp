// Every file of tests/unit/gateway/broken, each of which says at its end what is wrong with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rondo/config.hpp"

namespace rondo::gateway {
namespace {

std::filesystem::path const folder = BROKEN_CONFIGS;

std::vector<std::string> names_of_broken_files() {
    std::vector<std::string> names;
    for (auto const& entry : std::filesystem::directory_iterator{folder}) {
        if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

// The lines "# <line>:<column>: ..." of a file, without "# ".
std::vector<std::string> expected_in(std::filesystem::path const& file) {
    std::vector<std::string> expected;
    std::ifstream in{file};
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("# ")) expected.push_back(line.substr(2));
    }
    return expected;
}

// Messages name the folder; the expectations call it @.
std::string without_folder(std::string text) {
    std::string const place = folder.string() + "/";
    for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos;) {
        text.replace(at, place.size(), "@/");
    }
    return text;
}

class BrokenConfig : public testing::TestWithParam<std::string> {};

TEST_P(BrokenConfig, IsRefusedWithEveryErrorAtItsPlace) {
    std::filesystem::path const file = folder / (GetParam() + ".toml");
    config_result const loaded = load(file);
    ASSERT_FALSE(loaded.has_value());

    std::vector<std::string> said;
    for (diagnostic const& d : loaded.error()) {
        said.push_back(without_folder(to_string(d, "").substr(1)));
    }
    std::vector<std::string> const expected = expected_in(file);
    EXPECT_EQ(said, expected);
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenConfig, testing::ValuesIn(names_of_broken_files()),
                         [](auto const& file) { return file.param; });

TEST(BrokenConfigs, AreTwentyAtLeast) { EXPECT_GE(names_of_broken_files().size(), 20U); }

}  // namespace
}  // namespace rondo::gateway
