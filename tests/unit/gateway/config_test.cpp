#include "rondo/config.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rondo::gateway {
namespace {

using namespace std::chrono_literals;

std::filesystem::path const folder = BROKEN_CONFIGS;  // it has a directory called site

config good(std::string_view text) {
    config_result loaded = parse(text, folder);
    if (loaded) return *std::move(loaded);
    for (diagnostic const& d : loaded.error()) ADD_FAILURE() << to_string(d, "text");
    return {};
}

std::vector<backend> backends(std::string_view forward) {
    config const c =
        good("[[server]]\nlisten = '127.0.0.1:80'\nforward = " + std::string{forward} + "\n");
    if (c.servers.empty()) return {};
    return std::get<forward_to>(c.servers[0].routes[0].target).backends;
}

TEST(Config, HasDefaults) {
    config const c = good("[[server]]\nlisten = '127.0.0.1:8080'\nserve = 'site'\n");
    EXPECT_EQ(c.shutdown_grace, 10s);
    EXPECT_EQ(c.log, log_level::info);
    ASSERT_EQ(c.servers.size(), 1U);
    server_config const& s = c.servers[0];
    EXPECT_EQ(s.name, "127.0.0.1:8080");
    EXPECT_EQ(s.max_connections, 1024U);
    EXPECT_FALSE(s.max_connections_per_address);
    EXPECT_TRUE(s.certificates.empty());
    EXPECT_EQ(s.limits.header, 10s);
    EXPECT_EQ(s.limits.idle, 60s);
    EXPECT_EQ(s.limits.connect, 5s);
    EXPECT_EQ(s.limits.response, 60s);
    ASSERT_EQ(s.routes.size(), 1U);
    EXPECT_EQ(s.routes[0].uri, "/");
    EXPECT_EQ(std::get<serve_from>(s.routes[0].target).root, folder / "site");
    EXPECT_FALSE(std::get<serve_from>(s.routes[0].target).not_found);
}

TEST(Config, TakesOneAddressToListenAtOrSeveral) {
    config const c = good(R"(
        [[server]]
        listen = "127.0.0.1:8080"
        serve = "site"
        [[server]]
        listen = ["127.0.0.1:8081", "[::1]:8081"]
        name = "both"
        serve = "site"
    )");
    ASSERT_EQ(c.servers.size(), 2U);
    EXPECT_EQ(c.servers[0].listen, (std::vector<address>{{"127.0.0.1", 8080}}));
    EXPECT_EQ(c.servers[1].listen, (std::vector<address>{{"127.0.0.1", 8081}, {"::1", 8081}}));
    EXPECT_EQ(c.servers[1].name, "both");
}

TEST(Config, ReadsDeadlinesOfAdmission) {
    config const c = good(R"(
        [admission]
        max_in_flight = 36
        deadline = { header = "x-timeout", default = "2s", max = "10s", reserve = "80ms" }
        [[server]]
        listen = "127.0.0.1:8080"
        serve = "site"
    )");
    ASSERT_TRUE(c.admission);
    EXPECT_EQ(c.admission->deadline_header, "x-timeout");
    EXPECT_EQ(c.admission->deadline_default, 2s);
    EXPECT_EQ(c.admission->deadline_max, 10s);
    EXPECT_EQ(c.admission->deadline_reserve, 80ms);
}

TEST(Config, ReadsAllOfAdmission) {
    config const c = good(R"(
        [admission]
        max_in_flight = 36
        max_in_flight_per_tenant = 9
        max_queued = 480
        when_full = "reject"
        max_wait = "150ms"
        cost = "bytes"
        bytes_per_cost = 1000
        turns = false
        [tenants]
        key = ["header:x-tenant + route", "api_key"]
        trusted = ["10.0.0.0/8"]
        default_weight = 3
        max_queued = 50
        idle_time = "1m"
        [[tenant]]
        name = "acme"
        weight = 4
        api_key = "secret"
        [[tenant]]
        name = "zeta"
        [[server]]
        listen = "127.0.0.1:8080"
        serve = "site"
    )");
    ASSERT_TRUE(c.admission);
    http::admission_settings const& s = *c.admission;
    EXPECT_EQ(s.limits.max_in_flight, 36U);
    EXPECT_EQ(s.limits.max_in_flight_per_tenant, 9U);
    EXPECT_EQ(s.limits.max_queued, 480U);
    EXPECT_EQ(s.limits.max_queued_per_tenant, 50U);
    EXPECT_EQ(s.limits.when_full, fair::backpressure::reject);
    EXPECT_EQ(s.limits.max_wait, 150ms);
    EXPECT_EQ(s.cost, http::cost_by::bytes);
    EXPECT_EQ(s.bytes_per_cost, 1000U);
    EXPECT_FALSE(s.turns);
    ASSERT_EQ(s.tenants.key.size(), 2U);
    EXPECT_EQ(s.tenants.key[0].size(), 2U);
    EXPECT_EQ(s.tenants.key[0][0].name, "x-tenant");
    EXPECT_EQ(s.tenants.trusted.size(), 1U);
    EXPECT_EQ(s.default_weight, 3U);
    EXPECT_EQ(s.idle_time, 1min);
    using weights = std::vector<std::pair<std::string, std::uint32_t>>;
    EXPECT_EQ(s.weights, (weights{{"acme", 4}, {"zeta", 3}}));
    ASSERT_EQ(s.tenants.api_keys.size(), 1U);
    EXPECT_EQ(s.tenants.api_keys.at("secret"), "acme");
}

TEST(Config, HasDefaultsOfAdmission) {
    config const c = good("[admission]\n[[server]]\nlisten='a:1'\nserve='site'\n");
    ASSERT_TRUE(c.admission);
    http::admission_settings const& s = *c.admission;
    EXPECT_EQ(s.limits.max_in_flight, 1024U);
    EXPECT_GE(s.limits.max_in_flight_per_tenant, s.limits.max_in_flight);  // no limit
    EXPECT_EQ(s.limits.max_queued, 10'000U);
    EXPECT_EQ(s.limits.max_queued_per_tenant, 1000U);
    EXPECT_EQ(s.limits.when_full, fair::backpressure::evict_longest);
    EXPECT_EQ(s.limits.max_wait, clock::duration::max());
    EXPECT_EQ(s.cost, http::cost_by::fixed);
    EXPECT_EQ(s.bytes_per_cost, 16'384U);
    EXPECT_TRUE(s.turns);
    EXPECT_EQ(s.default_weight, 1U);
    EXPECT_EQ(s.idle_time, 10min);
    EXPECT_EQ(s.deadline_header, "");
    EXPECT_EQ(s.deadline_default, clock::duration::max());
}

TEST(Config, TakesForwardInEveryForm) {
    using list = std::vector<backend>;
    EXPECT_EQ(backends("'a:1'"), (list{{{"a", 1}, 1}}));
    EXPECT_EQ(backends("['a:1', 'b:2']"), (list{{{"a", 1}, 1}, {{"b", 2}, 1}}));
    EXPECT_EQ(backends("[{ address = 'a:1', weight = 3 }, { address = 'b:2' }]"),
              (list{{{"a", 1}, 3}, {{"b", 2}, 1}}));
    EXPECT_EQ(
        backends("{ algorithm = 'WRR', backends = ['a:1', { address = 'b:2', weight = 0 }] }"),
        (list{{{"a", 1}, 1}, {{"b", 2}, 0}}));
    EXPECT_EQ(backends("{ backends = ['a:1'] }"), (list{{{"a", 1}, 1}}));
    EXPECT_EQ(backends("{ address = 'a:1', weight = 2 }"), (list{{{"a", 1}, 2}}));
}

TEST(Config, TakesConnectionsAsAnotherNameOfTheLimit) {
    EXPECT_EQ(good("[[server]]\nlisten='a:1'\nserve='site'\nmax_connections=7\n")
                  .servers.at(0)
                  .max_connections,
              7U);
    EXPECT_EQ(good("[[server]]\nlisten='a:1'\nserve='site'\nconnections=8\n")
                  .servers.at(0)
                  .max_connections,
              8U);
}

TEST(Config, TakesTheShortFormWithAPath) {
    config const c = good("[[server]]\nlisten='a:1'\nuri='/api'\nforward='b:2'\n");
    EXPECT_EQ(c.servers.at(0).routes.at(0).uri, "/api");
}

// A request is compared in its plain form, so it would get to no other route.
TEST(Config, TakesAPathInItsPlainFormOnly) {
    auto const server = [](std::string const& uri) {
        return "[[server]]\nlisten = '127.0.0.1:80'\nserve = 'site'\nuri = '" + uri + "'\n";
    };
    for (char const* const uri : {"/a/../b", "/a/./b", "/a//b", "/a/.."}) {
        EXPECT_FALSE(parse(server(uri), folder)) << uri;
    }
    for (char const* const uri : {"/a.b", "/.well-known", "/a/", "/..."}) {
        EXPECT_TRUE(parse(server(uri), folder)) << uri;
    }
}

TEST(Config, KeepsTheOrderOfRoutes) {
    config const c = good(R"(
        [[server]]
        listen = "127.0.0.1:8080"
        match = [
            { uri = "/api/v2", forward = "b:2" },
            { uri = "/api", forward = ["a:1", "b:1"] },
            { uri = "/", serve = "site", not_found = "index.html" },
        ]
    )");
    auto const& routes = c.servers.at(0).routes;
    ASSERT_EQ(routes.size(), 3U);
    EXPECT_EQ(routes[0].uri, "/api/v2");
    EXPECT_EQ(std::get<forward_to>(routes[1].target).backends.size(), 2U);
    EXPECT_EQ(std::get<serve_from>(routes[2].target).not_found, "index.html");
}

TEST(Config, TakesCertificatesOneOrSeveral) {
    config const c = good(R"(
        [[server]]
        listen = "127.0.0.1:1"
        serve = "site"
        tls = { certificate = "site/index.html", key = "site/index.html" }
        [[server]]
        listen = "127.0.0.1:2"
        serve = "site"
        [[server.tls]]
        certificate = "site/index.html"
        key = "site/index.html"
        [[server.tls]]
        certificate = "site/index.html"
        key = "site/index.html"
    )");
    EXPECT_EQ(c.servers.at(0).certificates.size(), 1U);
    EXPECT_EQ(c.servers.at(1).certificates.size(), 2U);
    EXPECT_EQ(c.servers.at(1).certificates[1].at.line, 12U);
}

TEST(Config, TakesDurationsInEveryUnit) {
    config const c = good(R"(
        [gateway]
        shutdown_grace = "2m"
        log = "off"
        [[server]]
        listen = "127.0.0.1:1"
        serve = "site"
        timeouts = { header = "250ms", idle = "1h", connect = "3s" }
    )");
    EXPECT_EQ(c.shutdown_grace, 2min);
    EXPECT_EQ(c.log, log_level::off);
    EXPECT_EQ(c.servers.at(0).limits.header, 250ms);
    EXPECT_EQ(c.servers.at(0).limits.idle, 1h);
    EXPECT_EQ(c.servers.at(0).limits.connect, 3s);
    EXPECT_EQ(c.servers.at(0).limits.response, 60s);
}

TEST(Config, OfAFileThatIsNotThereSaysSo) {
    config_result const loaded = load(folder / "none.toml");
    ASSERT_FALSE(loaded.has_value());
    ASSERT_EQ(loaded.error().size(), 1U);
    EXPECT_EQ(loaded.error()[0].problem, "cannot read it: No such file or directory");
    EXPECT_EQ(load(folder).error().at(0).problem, "cannot read it: Is a directory");
}

// The memory of a process can be opened as a file, and nothing be read from its beginning: as of a
// disk with a fault.
TEST(Config, OfAFileThatCannotBeReadSaysSo) {
    config_result const loaded = load("/proc/self/mem");
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().at(0).problem, "cannot read it: Input/output error");
    EXPECT_FALSE(admin_of("/proc/self/mem").has_value());
}

TEST(Config, OfBytesThatAreNoTextIsRefused) {
    EXPECT_FALSE(parse(std::string_view{"\xff\xfe\x00[", 4}, folder).has_value());
    EXPECT_FALSE(parse("", folder).has_value());
}

}  // namespace
}  // namespace rondo::gateway
