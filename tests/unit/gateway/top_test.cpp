// The page of `rondo top`.
#include "rondo/top.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::gateway {
namespace {

status busy() {
    status s;
    s.version = "1.2.3";
    s.config_version = 4;
    s.uptime_s = 3725;
    s.connections = 41;
    s.offered = 200;
    s.served = 150;
    s.in_flight = 16;
    s.limit = 32;
    s.queued = 12;
    s.capacity = 5000;
    s.wait_p50_ms = 1.5;
    s.wait_p99_ms = 25;
    s.p50_ms = 7;
    s.p99_ms = 2400;
    s.tenants = {{"noisy", 1, 0.25, 0.75, 9, 11, 30, 500}, {"quiet", 3, 0.75, 0.25, 7, 1, 2, 20}};
    s.servers = {{"front", {"127.0.0.1:80", "[::1]:80"}, 41, 1024, 9876, 5, 200, 7, 2400}};
    s.backends = {{"front", "/api", "127.0.0.1:9001", 3, false, 7000, 0, 120},
                  {"front", "/api", "127.0.0.1:9002", 1, true, 2800, 6, 0}};
    return s;
}

past once(status s) {
    past p;
    p.add(std::move(s));
    return p;
}

std::string joined(lines const& page) {
    std::string all;
    for (std::string const& line : page) all += line + '\n';
    return all;
}
std::string page(past const& p, terminal const& on) { return joined(page_of(p, on)); }

std::string line_with(past const& p, terminal const& on, std::string_view what) {
    for (std::string const& line : page_of(p, on)) {
        if (line.find(what) != std::string::npos) return line;
    }
    return {};
}

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

void expect_all(std::string const& text, std::vector<std::string> const& parts) {
    for (std::string const& part : parts) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
}

TEST(Top, ShowsWhatTheDashboardShows) {
    std::string const text = page(once(busy()), {.columns = 160});
    expect_all(text, {"rondo 1.2.3", "running", "configuration 4", "up 1 h 2 min"});
    expect_all(text, {"offered        200", "served         150", "16 of 32", "12 of 5000",
                      "connections       41", "refused          520"});
    expect_all(text, {"wait   p50  1.5 ms  p99 25.0 ms", "answer p50  7.0 ms  p99  2.40 s"});
    expect_all(text, {"weight", "entitled", "share", "in flight", "queued", "p99", "refused"});
    expect_all(text, {"noisy              1    25.0%  75.0%", "quiet              3    75.0%"});
    expect_all(text, {"listens at", "127.0.0.1:80, [::1]:80", "41 of 1024"});
    std::string const backend = line_with(once(busy()), {.columns = 160}, ":9002");
    EXPECT_EQ(backend, "127.0.0.1:9002  set aside front  /api        1       0      2800        6");
}

TEST(Top, SaysHowFarTheEndIs) {
    status s = busy();
    s.draining = true;
    s.servers.push_back(s.servers.front());
    expect_all(page(once(s), {}), {"draining", "ending: 41 connections open   10 requests not"});
    EXPECT_EQ(page(once(busy()), {}).find("ending"), std::string::npos);
}

TEST(Top, SaysThatNobodyWaitsWhereThereAreNoTurns) {
    status s = busy();
    s.limit = s.capacity = s.queued = 0;
    s.tenants.clear();
    std::string const text = page(once(s), {});
    expect_all(text, {"16, no limit", "answer p50", "connections"});
    for (char const* const part : {"queued", "wait", "refused", "tenant"}) {
        EXPECT_EQ(text.find(part), std::string::npos) << part << "\n" << text;
    }
}

// --- over time ---------------------------------------------------------------------------------

// So wide that each second has a column of its own.
constexpr terminal every_second{.columns = 240};

TEST(Top, ShowsSharesOverTimeOnOneScale) {
    past p;
    for (int i = 0; i < 4; ++i) {
        status s = busy();
        s.tenants[0].share = i < 2 ? 1 : 0.5;
        s.tenants[1].share = i < 2 ? 0 : 0.5;
        p.add(s);
    }
    expect_all(page(p, every_second), {"to 100% over 4 s", "to 200/s over 4 s"});
    expect_all(line_with(p, every_second, "noisy"), {" @@== "});
    EXPECT_NE(line_with(p, {.columns = 240, .unicode = true}, "quiet").find("  ▄▄ "),
              std::string::npos);
}

// Tenants come and go, and change places.
TEST(Top, ShowsNothingOfATenantWhileItWasNotThere) {
    past p;
    p.add(busy());
    status s = busy();
    std::ranges::reverse(s.tenants);
    p.add(s);
    s.tenants.erase(s.tenants.begin());  // "quiet"
    p.add(s);
    p.add(busy());
    expect_all(line_with(p, every_second, "noisy"), {" ****"});
    expect_all(line_with(p, every_second, "quiet"), {" :: :"});
}

TEST(Top, ShowsWhatIsOfferedBesideWhatIsServed) {
    past p;
    for (double const n : {0., 100., 200.}) {
        status s = busy();
        s.offered = n;
        s.served = n / 2;
        p.add(s);
    }
    expect_all(line_with(p, every_second, "offered "), {" =@"});
    expect_all(line_with(p, every_second, "served"), {" :="});
    expect_all(page(p, every_second), {"to 200/s over 3 s"});
}

TEST(Top, HasAScaleThatIsEasyToRead) {
    auto const scale_of = [](double offered) {
        status s = busy();
        s.offered = offered;
        s.served = 0;
        std::string const line = line_with(once(s), every_second, "over 1 s");
        return line.substr(line.find("to "), line.find(" over") - line.find("to "));
    };
    EXPECT_EQ(scale_of(0), "to 1/s");
    EXPECT_EQ(scale_of(742), "to 1000/s");
    EXPECT_EQ(scale_of(12'345), "to 20k/s");
}

TEST(Top, RemembersTwoMinutes) {
    past p;
    for (std::size_t i = 0; i < past::remembered + 30; ++i) {
        status s = busy();
        s.offered = static_cast<double>(i);
        p.add(s);
    }
    EXPECT_EQ(p.size(), 120U);
    series const s = p.each([](status const& one) { return one.offered; });
    EXPECT_EQ(s.values.front(), 30);
    EXPECT_EQ(s.values.back(), 149);
    EXPECT_EQ(s.number_of_last, 149U);
}

// --- terminals ---------------------------------------------------------------------------------

// As many as there can be: 20 and "other".
past crowded() {
    status s = busy();
    s.draining = true;
    s.tenants.assign(20,
                     {"2001:db8:1234:5678::/64", 100, 1, 1, 100'000, 100'000, 99'999, 1'000'000});
    s.tenants.push_back({.name = "other"});
    s.backends.assign(30, s.backends[0]);
    s.backends.push_back(busy().backends[1]);
    s.servers.assign(9, s.servers[0]);
    past p;
    for (std::size_t i = 0; i < past::remembered; ++i) p.add(s);
    return p;
}

TEST(Top, ShowsAllColumnsButTheMeterOn80Columns) {
    std::string const text = page(once(busy()), {.columns = 80, .rows = 23});
    expect_all(text,
               {"tenant        weight entitled  share to 100%    in flight queued     p99 refused",
                "health    server route  weight   per s  requests failures", "listens at",
                "connections   per s  requests     p50     p99", "refused          520"});
    EXPECT_EQ(text.find("| entitled"), std::string::npos);
}

TEST(Top, FitsAnyTerminal) {
    past const p = crowded();
    for (bool const unicode : {false, true}) {
        for (std::size_t columns = 1; columns <= 200; ++columns) {
            for (std::size_t const rows : {1U, 5U, 10U, 17U, 23U, 50U}) {
                lines const shown =
                    page_of(p, {.columns = columns, .rows = rows, .unicode = unicode});
                EXPECT_LE(shown.size(), rows) << columns;
                for (std::string const& line : shown) {
                    EXPECT_LE(characters(line), columns) << line;
                }
            }
        }
    }
}

TEST(Top, UsesAllRowsThatThereAre) {
    for (std::size_t rows = 17; rows <= 75; ++rows) {
        EXPECT_EQ(page_of(crowded(), {.columns = 80, .rows = rows}).size(), rows);
    }
    EXPECT_EQ(page_of(crowded(), {.columns = 80}).size(), 8U + 23 + 33 + 11);
}

TEST(Top, SaysHowManyRowsItDoesNotShow) {
    std::string const text = page(crowded(), {.columns = 80, .rows = 23});
    expect_all(text, {"tenant 3/21", "backend 3/31", "server 3/9"});
    EXPECT_EQ(page(crowded(), {.columns = 80}).find("21"), std::string::npos);
}

TEST(Top, ShowsABackendThatIsSetAsideBeforeOthersIfNotAllHaveRoom) {
    std::string const cut = page(crowded(), {.columns = 80, .rows = 23});
    EXPECT_LT(cut.find(":9002"), cut.find(":9001"));
    std::string const all = page(crowded(), {.columns = 80});
    EXPECT_LT(all.find(":9001"), all.find(":9002"));
}

TEST(Top, ShowsWholeAddressesAndHowManyMoreThereAre) {
    status s = busy();
    s.servers[0].addresses = {"127.0.0.1:8080", "127.0.0.1:8081", "[::1]:8080"};
    auto const at = [&s](std::size_t columns) {
        return line_with(once(s), {.columns = columns}, "of 1024");
    };
    expect_all(at(120), {"front      127.0.0.1:8080, 127.0.0.1:8081, [::1]:8080   41 of"});
    expect_all(at(92), {"front      127.0.0.1:8080, 127.0.0.1:8081 +1"});
    expect_all(at(80), {"front      127.0.0.1:8080 +2 "});
    s.servers[0].addresses = {"[2001:db8:1234:5678:9abc:def0:1234:5678]:8080"};
    expect_all(at(80), {"front      [2001:db8:1~5678]:8080   41 of"});
    s.servers[0].addresses = {};
    expect_all(at(80), {"front                        41 of"});
}

TEST(Top, KeepsWhoAndHowMuchOnANarrowTerminal) {
    std::string const text = page(once(busy()), {.columns = 40});
    expect_all(text,
               {"entitled  share queued\n", "noisy            25.0%  75.0%     11", "set aside"});
}

TEST(Top, IsAsciiUnlessTheTerminalShowsMore) {
    auto const is_ascii = [](std::string const& text) {
        return std::ranges::all_of(text,
                                   [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
    };
    EXPECT_TRUE(is_ascii(page(crowded(), {.columns = 200})));
    EXPECT_FALSE(is_ascii(page(crowded(), {.columns = 200, .unicode = true})));
}

TEST(Top, LetsNoNameCommandTheTerminal) {
    status s = busy();
    std::string const evil = "\x1b[2Jx\x9b\n日";
    s.version = s.tenants[0].name = s.servers[0].name = s.servers[0].addresses[0] = evil;
    s.backends[0].address = s.backends[0].server = s.backends[0].route = evil;
    s.limit = 16;
    std::string const text = page(once(s), {.columns = 160});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x9b'), std::string::npos);
    EXPECT_EQ(page_of(once(s), {}).size(), page_of(once(busy()), {}).size());
    EXPECT_NE(text.find("?[2Jx???"), std::string::npos) << text;
}

TEST(Top, SurvivesNumbersThatNoGatewayHas) {
    status s = busy();
    s.uptime_s = s.offered = s.wait_p99_ms = s.tenants[0].share = 1e300;
    s.served = s.tenants[1].share = s.tenants[1].entitled = -1e300;
    s.limit = s.in_flight = s.servers[0].requests = UINT64_MAX;
    for (std::size_t const columns : {40U, 80U, 200U}) {
        for (std::string const& line : page_of(once(s), {.columns = columns})) {
            EXPECT_LE(characters(line), columns) << line;
        }
    }
}

TEST(Top, MarksWhatIsWrong) {
    terminal const colours{.columns = 100, .colours = true};
    std::string const aside = line_with(once(busy()), colours, ":9002");
    EXPECT_NE(aside.find("\x1b[31mset aside\x1b[0m"), std::string::npos) << aside;
    EXPECT_NE(aside.find("\x1b[31m       6\x1b[0m"), std::string::npos) << aside;
    EXPECT_EQ(line_with(once(busy()), colours, ":9001").find('\x1b'), std::string::npos);
    EXPECT_EQ(page(once(busy()), {.columns = 100}).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace rondo::gateway
