// A new configuration while requests wait their turn; and what /metrics says of turns.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "held_upstream.hpp"
#include "running.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using test::wire;

std::string with_turns(held_upstream const& up, std::string_view admission,
                       std::string_view tenants = {}) {
    return "[admin]\nlisten = '127.0.0.1:0'\n" + std::string{admission} + std::string{tenants} +
           "[[server]]\nlisten = '127.0.0.1:0'\nforward = '" + up.address() + "'\n";
}

std::string const by_header = "[tenants]\nkey = ['header:x-tenant']\ntrusted = ['127.0.0.1']\n";

// Requests that wait, one after the other.
std::vector<wire> line_up(running const& r, std::string_view tenant, std::size_t first,
                          std::size_t last) {
    std::vector<wire> all;
    for (std::size_t n = first; n <= last; ++n) {
        all.push_back(r.connect());
        all.back().send(get("/", tenant));
        await_line(r, "rondo_admission_queued " + std::to_string(n));
    }
    return all;
}

TEST(TurnsReload, LoweredLimitsDropNobodyInLineAndHoldForWhoComes) {
    held_upstream up;
    running r{with_turns(up, "[admission]\nmax_in_flight = 2\n", by_header)};
    wire one = r.connect();
    one.send(get("/", "acme"));
    wire two = r.connect();
    two.send(get("/", "acme"));
    up.await_request();
    up.await_request();
    std::vector<wire> waiting = line_up(r, "acme", 1, 3);
    ASSERT_TRUE(
        r.reload(with_turns(up, "[admission]\nmax_in_flight = 1\nmax_queued = 1\n", by_header)));
    wire more = r.connect();
    more.send(get("/", "acme"));
    EXPECT_EQ(status_of(more.read_to_end()), "429");
    await_line(r, "rondo_admission_in_flight 2");
    await_line(r, "rondo_admission_limit 1");
    up.let_go(1);  // there is still as many as may be: nobody is let in
    await_line(r, "rondo_admission_in_flight 1");
    await_line(r, "rondo_admission_queued 3");
    up.let_go(4);
    for (wire* const w : {&one, &two, &waiting[0], &waiting[1], &waiting[2]}) {
        EXPECT_EQ(status_of(w->read_to_end()), "200");
    }
}

TEST(TurnsReload, RaisedLimitsLetInWhoWaits) {
    held_upstream up;
    running r{with_turns(up, "[admission]\nmax_in_flight = 1\n", by_header)};
    wire in = r.connect();
    in.send(get("/", "acme"));
    up.await_request();
    std::vector<wire> waiting = line_up(r, "acme", 1, 2);
    ASSERT_TRUE(r.reload(with_turns(up, "[admission]\nmax_in_flight = 3\n", by_header)));
    up.await_request();
    up.await_request();
    up.let_go(3);
    EXPECT_EQ(status_of(in.read_to_end()), "200");
    for (wire& w : waiting) EXPECT_EQ(status_of(w.read_to_end()), "200");
}

TEST(TurnsReload, TurnsThatAreNewAreForWhoComes) {
    held_upstream up;
    running r{with_turns(up, "")};
    wire before = r.connect();
    before.send(get("/", "acme"));
    up.await_request();
    ASSERT_TRUE(r.reload(with_turns(up, "[admission]\nmax_in_flight = 1\n", by_header)));
    wire in = r.connect();
    in.send(get("/", "acme"));
    up.await_request();  // though one from before is being answered
    std::vector<wire> waiting = line_up(r, "acme", 1, 1);
    up.let_go(3);
    EXPECT_EQ(status_of(before.read_to_end()), "200");
    EXPECT_EQ(status_of(in.read_to_end()), "200");
    EXPECT_EQ(status_of(waiting[0].read_to_end()), "200");
}

TEST(TurnsReload, ATenantThatIsRemovedKeepsItsPlaceInLineAndHasTheUsualWeight) {
    held_upstream up;
    std::string const admission = "[admission]\nmax_in_flight = 1\n";
    running r{with_turns(up, admission, by_header + "[[tenant]]\nname = 'acme'\nweight = 4\n")};
    wire in = r.connect();
    in.send(get("/", "acme"));
    up.await_request();
    std::vector<wire> waiting = line_up(r, "acme", 1, 2);
    await_line(r, "rondo_tenant_weight{tenant=\"acme\"} 4");
    ASSERT_TRUE(
        r.reload(with_turns(up, admission, by_header + "[[tenant]]\nname = 'zeta'\nweight = 2\n")));
    await_line(r, "rondo_tenant_weight{tenant=\"acme\"} 1");
    await_line(r, "rondo_admission_queued 2");
    up.let_go(3);
    EXPECT_EQ(status_of(in.read_to_end()), "200");
    for (wire& w : waiting) EXPECT_EQ(status_of(w.read_to_end()), "200");
}

TEST(TurnsReload, WithoutAdmissionNobodyNewWaitsAndThoseInLineAreServed) {
    held_upstream up;
    running r{with_turns(up, "[admission]\nmax_in_flight = 1\n", by_header)};
    wire in = r.connect();
    in.send(get("/", "acme"));
    up.await_request();
    std::vector<wire> waiting = line_up(r, "acme", 1, 1);
    ASSERT_TRUE(r.reload(with_turns(up, "")));
    wire free = r.connect();
    free.send(get("/", "acme"));
    up.await_request();  // though one is in, and another waits
    up.let_go(3);
    EXPECT_EQ(status_of(free.read_to_end()), "200");
    EXPECT_EQ(status_of(in.read_to_end()), "200");
    EXPECT_EQ(status_of(waiting[0].read_to_end()), "200");
}

TEST(TurnsMetrics, AreThoseThatAreDescribedAndNoOthers) {
    held_upstream up;
    running r{with_turns(up, "[admission]\n", by_header)};
    up.let_go(1);
    EXPECT_EQ(status_of(r.ask("/", "X-Tenant: acme\r\n")), "200");
    std::string const page = "\n" + body_of(r.ask_admin("/metrics"));
    std::ifstream in{SOURCES "/docs/metrics.md"};
    std::string const text{std::istreambuf_iterator<char>{in}, {}};
    std::string_view const row = "\n| `rondo_";
    std::size_t described = 0;
    for (std::size_t at = 0; (at = text.find(row, at)) != std::string::npos; ++at) {
        std::size_t const from = at + row.size() - 6;
        std::string const name = text.substr(from, text.find('`', from) - from);
        EXPECT_NE(page.find("\n# TYPE " + name + " "), std::string::npos) << name;
        ++described;
    }
    std::size_t shown = 0;
    for (std::size_t at = 0; (at = page.find("\n# TYPE rondo_", at)) != std::string::npos; ++at) {
        std::string const name = page.substr(at + 8, page.find(' ', at + 8) - at - 8);
        EXPECT_NE(text.find("\n| `" + name + "` |"), std::string::npos) << name;
        ++shown;
    }
    EXPECT_EQ(described, shown);
    EXPECT_GT(shown, 20U);
}

}  // namespace
}  // namespace rondo::gateway
