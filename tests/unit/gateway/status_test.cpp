// What is made of readings: rates and shares.
#include "rondo/status.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/fair/config.hpp"
#include "rondo/sync/notify.hpp"
#include "support/manual_loop.hpp"

namespace rondo::gateway {
namespace {

using namespace std::chrono_literals;

readings reading(time_point at, std::uint64_t requests, std::chrono::nanoseconds each) {
    readings r;
    r.at = at;
    r.since = time_point{};
    server_reading s{"front", {"127.0.0.1:80"}, 10, nullptr, {}};
    s.report = std::make_unique<http::server::report>();
    s.report->totals.requests = requests;
    s.report->answers[2] = requests;
    s.report->times.record_n(static_cast<std::uint64_t>(each.count()), requests);
    r.servers.push_back(std::move(s));
    return r;
}

TEST(Status, HasNoRatesAtFirst) {
    status const s = compare(reading(time_point{} + 1s, 100, 1ms), nullptr);
    EXPECT_EQ(s.offered, 0);
    EXPECT_EQ(s.p99_ms, 0);
    EXPECT_EQ(s.uptime_s, 1);
    EXPECT_EQ(s.servers.at(0).requests, 100U);
}

TEST(Status, ComparesWhatIsWithWhatWas) {
    readings const then = reading(time_point{} + 1s, 100, 1ms);
    readings now = reading(time_point{} + 3s, 100, 1ms);
    now.servers[0].report->totals.requests = 400;
    now.servers[0].report->answers[2] = 300;
    now.servers[0].report->answers[5] = 100;
    now.servers[0].report->times.record_n(50'000'000, 300);
    status const s = compare(now, &then);
    EXPECT_EQ(s.offered, 150);
    EXPECT_EQ(s.served, 100);
    // Only of those that came since then.
    EXPECT_NEAR(s.p50_ms, 50, 0.5);
}

turns_reading::row tenant(std::string name, std::uint64_t admitted, std::uint64_t cost) {
    turns_reading::row t;
    t.tenant = std::move(name);
    t.admitted = admitted;
    t.cost = cost;
    t.in_flight = 1;
    return t;
}
readings turns_of(std::vector<turns_reading::row> tenants) {
    readings r = reading(time_point{} + 1s, 0, 1ms);
    http::admission nobody{{}};
    r.turns = std::make_unique<turns_reading>(nobody);
    r.turns->tenants = std::move(tenants);
    return r;
}

TEST(Status, SharesAreOfTheCostAsEntitlementIs) {
    readings const then = turns_of({tenant("few and slow", 10, 900), tenant("many", 100, 100)});
    status const s =
        compare(turns_of({tenant("few and slow", 20, 1400), tenant("many", 600, 600)}), &then);
    ASSERT_EQ(s.tenants.size(), 2U);
    for (tenant_status const& t : s.tenants) {
        EXPECT_EQ(t.share, 0.5) << t.name;
        EXPECT_EQ(t.entitled, 0.5) << t.name;
    }
}

// Who has no row in the ledger is "other" already.
TEST(Status, HasOneRowForAllTheOthers) {
    auto const all = [](std::uint64_t admitted) {
        std::vector<turns_reading::row> rows{tenant("other", 100 * admitted, 100 * admitted)};
        for (std::size_t i = 0; i < tenants_shown + 4; ++i) {
            rows.push_back(tenant("t" + std::to_string(i), admitted, admitted));
        }
        return turns_of(std::move(rows));
    };
    readings const then = all(1);
    status const s = compare(all(2), &then);
    ASSERT_EQ(s.tenants.size(), tenants_shown);
    EXPECT_EQ(s.tenants.back().name, "other");
    EXPECT_EQ(s.tenants.back().in_flight, 6U);  // the first, and those that are not shown
    EXPECT_EQ(s.tenants.front().name, "t0");
    double shares = 0;
    double entitled = 0;
    for (tenant_status const& t : s.tenants) {
        shares += t.share;
        entitled += t.entitled;
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_NEAR(entitled, 1, 1e-9);
}

// Asks, and stays until it is told to leave.
task<void> visit(http::admission* at, notify* leave) {
    auto const until = [](notify* n) -> task<void> { co_await n->notified(); };
    http::admission::request r;
    r.tenant = "acme";
    auto asked = at->admit(std::move(r), until(leave));
    auto const got = co_await std::move(asked);
    if (got) co_await leave->notified();
}

TEST(Metrics, CountOnceWhoIsToldThatTheGatewayEnds) {
    test::manual_loop loop;
    notify leave;
    http::admission_settings s;
    s.limits.max_in_flight = 1;
    http::admission turns{std::move(s), 1, 8, &loop.timers()};
    spawn(loop, visit(&turns, &leave)).detach();
    spawn(loop, visit(&turns, &leave)).detach();
    loop.run_ready();
    turns.close();  // one is in, one in line
    spawn(loop, visit(&turns, &leave)).detach();
    loop.run_ready();
    readings r;
    r.turns = std::make_unique<turns_reading>(turns);
    EXPECT_NE(metrics_of(r).find("\nrondo_admission_refused_total{reason=\"draining\"} 2\n"),
              std::string::npos);
    leave.notify_waiters();
    loop.run_ready();
}

TEST(Status, TakesACounterThatBeganAnewForNothing) {
    readings const then = reading(time_point{} + 1s, 100, 1ms);
    readings const now = reading(time_point{} + 2s, 10, 1ms);
    EXPECT_EQ(compare(now, &then).offered, 0);
}

// What it had counted is no longer in the sum; that of the others goes on.
TEST(Status, GoesOnCountingTheOthersWhenAServerIsGone) {
    readings then = reading(time_point{} + 1s, 100, 1ms);
    then.servers.push_back(std::move(reading(then.at, 5000, 1ms).servers[0]));
    then.servers[1].name = "gone";
    readings now = reading(time_point{} + 3s, 100, 1ms);
    now.servers[0].report->totals.requests = 300;
    now.servers[0].report->answers[2] = 300;
    now.servers[0].report->times.record_n(50'000'000, 200);
    status const s = compare(now, &then);
    EXPECT_EQ(s.offered, 100);
    EXPECT_EQ(s.served, 100);
    EXPECT_NEAR(s.p50_ms, 50, 0.5);
}

TEST(Status, AddsUpWeightsThatAreLargeTogether) {
    std::vector<turns_reading::row> rows;
    for (std::size_t i = 0; i < 6000; ++i) {
        rows.push_back(tenant("t" + std::to_string(i), 1, 1));
        rows.back().weight = fair::max_weight;
    }
    readings const r = turns_of(std::move(rows));
    EXPECT_EQ(r.turns->first(tenants_shown).back().weight, (6000 - tenants_shown) * 1'000'000ULL);
}

TEST(Status, SinceGivesWhatWasNotThereBefore) {
    histogram before;
    before.record_n(10, 5);
    before.record_n(1'000'000, 2);
    histogram now = before;
    now.record_n(10, 1);
    now.record_n(77, 3);
    histogram const fresh = since(now, before);
    EXPECT_EQ(fresh.count(), 4U);
    EXPECT_EQ(fresh.min(), 10U);
    EXPECT_EQ(fresh.max(), 77U);
    EXPECT_TRUE(since(now, now).empty());
}

status full() {
    status s;
    s.version = "1.2.3";
    s.config_version = 4;
    s.draining = true;
    s.limit = 32;
    s.in_flight = 16;
    s.tenants = {{.name = "bad\x1b[2Jname", .weight = 2, .entitled = 0.5, .share = 0.25}};
    s.backends = {{.server = "front", .route = "/", .address = "127.0.0.1:9", .set_aside = true}};
    s.servers = {{.name = "front", .addresses = {"127.0.0.1:80"}, .max_connections = 7}};
    return s;
}

TEST(Status, ComesBackFromJson) {
    status const s = full();
    auto const again = from_json(to_json(s));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->tenants.at(0).name, s.tenants[0].name);
    EXPECT_EQ(again->tenants.at(0).entitled, 0.5);
    EXPECT_TRUE(again->draining);
    EXPECT_TRUE(again->backends.at(0).set_aside);
    EXPECT_EQ(again->servers.at(0).addresses, s.servers[0].addresses);
    EXPECT_EQ(to_json(*again), to_json(s));
}

TEST(Status, ComesBackFromJsonWithWhatWasBefore) {
    status const s = full();
    auto const both = all_from_json("[" + to_json(s) + "," + to_json(status{}) + "]");
    ASSERT_TRUE(both.has_value());
    ASSERT_EQ(both->size(), 2U);
    EXPECT_EQ(to_json(both->front()), to_json(s));
    EXPECT_TRUE(all_from_json("[]")->empty());
    for (char const* const wrong : {"", "{}", "[{}]", "[1]", "[", "nonsense"}) {
        EXPECT_FALSE(all_from_json(wrong).has_value()) << wrong;
    }
}

}  // namespace
}  // namespace rondo::gateway
