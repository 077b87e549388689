// docs/gateway.md against the table of keys, and the examples against the reader.
#include <gtest/gtest.h>

#include <boost/asio/ip/address.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/config.hpp"
#include "rondo/http/tenants.hpp"

namespace rondo::gateway {
namespace {

std::string text_of(std::filesystem::path const& file) {
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::filesystem::path const sources = SOURCES;

// The part of the reference about one section.
std::string part_about(std::string const& reference, std::string_view section) {
    std::size_t const from = reference.find("### `" + std::string{section} + "`\n");
    if (from == std::string::npos) return "";
    return reference.substr(from, reference.find("\n#", from + 1) - from);
}

TEST(Reference, HasEveryKeyAsItIsRead) {
    std::string const reference = text_of(sources / "docs/gateway.md");
    for (key_info const& k : keys()) {
        std::string const row = "| `" + std::string{k.name} + "` | " + std::string{k.value} +
                                " | " + std::string{k.fallback} + " | " + std::string{k.meaning} +
                                " |\n";
        EXPECT_NE(part_about(reference, k.section).find(row), std::string::npos)
            << k.section << " lacks: " << row;
    }
}

TEST(Reference, HasNoOtherKeys) {
    std::string const reference = text_of(sources / "docs/gateway.md");
    std::set<std::string_view> sections;
    for (key_info const& k : keys()) sections.insert(k.section);
    std::size_t rows = 0;
    for (std::string_view const section : sections) {
        std::string const part = part_about(reference, section);
        for (std::size_t at = 0; (at = part.find("\n| `", at)) != std::string::npos; ++at) ++rows;
    }
    EXPECT_EQ(rows, keys().size());
}

// tools/snippets sees to it that texts show them as they are.
TEST(Reference, ShowsExamplesThatAreFine) {
    for (char const* name : {"first.toml", "rondo.toml"}) {
        config_result const loaded = load(sources / "examples/gateway" / name);
        EXPECT_TRUE(loaded.has_value()) << to_string(loaded.error().at(0), name);
    }
}

TEST(Reference, ShowsATenantByTheNameThatRequestsHave) {
    config_result const loaded = load(sources / "examples/gateway/rondo.toml");
    ASSERT_TRUE(loaded.has_value() && loaded->admission.has_value());
    http::admission_settings const& s = *loaded->admission;
    ASSERT_EQ(s.weights.size(), 1U);
    std::string const name = s.weights.front().first;
    std::vector<http::field> const said{{"X-Tenant", name}};
    http::request_head head;
    head.path = "/api";
    head.fields = http::fields{said};
    auto const peer = boost::asio::ip::make_address("127.0.0.1");
    EXPECT_EQ(http::tenant_of({head, peer, "/api"}, s.tenants), name);
}

}  // namespace
}  // namespace rondo::gateway
