// Turns between tenants in the gateway, by its configuration.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "held_upstream.hpp"
#include "rondo/access_log.hpp"
#include "rondo/sync/semaphore.hpp"
#include "running.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

using test::wire;

std::string config_for(held_upstream const& up) {
    return "[admission]\nmax_in_flight = 1\nmax_queued = 10\n"
           "[admission.deadline]\nheader = 'x-timeout'\n"
           "[tenants]\nkey = ['header:x-tenant']\ntrusted = ['127.0.0.1']\nmax_queued = 1\n"
           "[[server]]\nlisten = '127.0.0.1:0'\nmatch = [\n"
           "  { uri = '/free', forward = '" +
           up.address() + "', admission = false },\n  { uri = '/', forward = '" + up.address() +
           "' },\n]\n";
}

TEST(GatewayTurns, HoldATenantToItsLineAndLetOthersWait) {
    held_upstream up;
    running r{config_for(up)};
    wire in = r.connect();
    in.send(get("/", "noisy"));
    up.await_request();
    // One of two more waits, the other is told that there are too many.
    wire second = r.connect();
    wire third = r.connect();
    second.send(get("/", "noisy"));
    third.send(get("/", "noisy"));
    wire late = r.connect();
    std::string with_deadline = get("/", "quiet");
    with_deadline.insert(with_deadline.size() - 2, "X-Timeout: 20ms\r\n");
    late.send(with_deadline);
    EXPECT_EQ(status_of(late.read_to_end()), "504");
    wire free = r.connect();
    free.send(get("/free", "noisy"));
    up.await_request();  // it did not wait its turn
    up.let_go(3);
    EXPECT_EQ(status_of(free.read_to_end()), "200");
    EXPECT_EQ(status_of(in.read_to_end()), "200");
    std::string const one = status_of(second.read_to_end());
    std::string const other = status_of(third.read_to_end());
    EXPECT_EQ(one < other ? one + other : other + one, "200429");
}

// The route that takes no turns is for its own paths, as every backend reads them.
TEST(GatewayTurns, AreNotGotAroundByAnotherSpellingOfAPath) {
    held_upstream up;
    running r{"[admin]\nlisten = '127.0.0.1:0'\n" + config_for(up)};
    wire in = r.connect();
    in.send(get("/", "first"));
    up.await_request();
    std::vector<wire> others;
    for (char const* const path : {"/slow/../x", "/%73low", "/slow%2ffree", "//slow"}) {
        others.push_back(r.connect());
        others.back().send(get(path, path));
        await_line(r, "rondo_admission_queued " + std::to_string(others.size()));
    }
    std::vector<wire> of_two_routes;
    for (char const* const path :
         {"/slow/x\\..\\..\\free", "/slow/x%2f..%2f..%2ffree", "/slow/../free", "//free",
          "/free/../slow", "/free/%2e%2e/slow", "/free/..%2fslow", "/slow/..//%66ree"}) {
        of_two_routes.push_back(r.connect());
        of_two_routes.back().send(get(path, path));
    }
    wire free = r.connect();
    free.send(get("/%66ree/./x//y%2f", "first"));
    up.await_request();
    up.let_go(100);
    EXPECT_EQ(status_of(free.read_to_end()), "200");
    for (wire& w : of_two_routes) {
        std::string const told = w.read_to_end();
        EXPECT_EQ(status_of(told), "400");
        EXPECT_EQ(body_of(told), "the path could be read as that of two routes\n");
    }
    for (wire& w : others) EXPECT_EQ(status_of(w.read_to_end()), "200");
    if (HasFailure()) return;  // it would never come
    await_line(r, "rondo_responses_total{server=\"127.0.0.1:0\",class=\"4xx\"} 8");
}

// In which order requests come to a backend that answers one at a time. Of a noisy tenant there are
// three, before that of a quiet one.
std::string order_of_service(std::string const& turns) {
    std::mutex lock;
    std::string order;
    semaphore came{0};
    semaphore go{0};
    test::scripted_server up{[&](wire& w) {
        for (std::string m = w.read_message(); !m.empty(); m = w.read_message()) {
            {
                std::lock_guard const guard{lock};
                order += m.substr(5, 1);  // of "GET /1 HTTP/1.1"
            }
            came.add_permits(1);
            if (auto told = go.blocking_acquire()) told->forget();
            w.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    }};
    running r{"[admin]\nlisten = '127.0.0.1:0'\n[admission]\nmax_in_flight = 1\n" + turns +
              "[tenants]\nkey = ['header:x-tenant']\ntrusted = ['127.0.0.1']\n"
              "[[server]]\nlisten = '127.0.0.1:0'\nforward = '" +
              up.address() + "'\n"};
    std::vector<wire> all;
    for (int i = 1; i <= 4; ++i) {
        all.push_back(r.connect());
        all.back().send(get("/" + std::to_string(i), i < 4 ? "noisy" : "quiet"));
        if (i == 1) {
            if (auto first = came.blocking_acquire()) first->forget();
        } else {
            await_line(r, "rondo_admission_queued " + std::to_string(i - 1));
        }
    }
    go.add_permits(4);
    for (wire& w : all) EXPECT_EQ(status_of(w.read_to_end()), "200");
    std::lock_guard const guard{lock};
    return order;
}

TEST(GatewayTurns, AreTakenOrNotAsTheConfigurationSays) {
    EXPECT_EQ(order_of_service("turns = false\n"), "1234");
    EXPECT_EQ(order_of_service("turns = true\n"), "1243");
    EXPECT_EQ(order_of_service(""), "1243");
}

// The cost of a tenant's requests: one of 250 bytes, answered with 2, and one without a body.
TEST(GatewayTurns, CostWhatTheConfigurationSays) {
    test::scripted_server up{[](wire& w) {
        while (!w.read_message().empty()) {
            w.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    }};
    using expected = std::pair<char const*, char const*>;
    for (auto const& [cost, sum] :
         {expected{"", "2"}, expected{"cost = 'fixed'\nbytes_per_cost = 10\n", "2"},
          expected{"cost = 'bytes'\n", "2"},
          expected{"cost = 'bytes'\nbytes_per_cost = 100\n", "4"},
          expected{"cost = 'bytes'\nbytes_per_cost = 1\n", "256"}}) {
        running r{"[admin]\nlisten = '127.0.0.1:0'\n[admission]\n" + std::string{cost} +
                  "[tenants]\nkey = ['path:1']\n[[server]]\nlisten = '127.0.0.1:0'\nforward = '" +
                  up.address() + "'\n"};
        wire w = r.connect();
        w.send("POST /acme HTTP/1.1\r\nHost: h\r\nContent-Length: 250\r\n\r\n" +
               std::string(250, 'x'));
        EXPECT_EQ(status_of(w.read_message()), "200");
        EXPECT_EQ(status_of(r.ask("/acme")), "200");
        await_line(r, "rondo_tenant_cost_total{tenant=\"/acme\"} " + std::string{sum});
    }
}

// One for itself and one for each millisecond, at least.
TEST(GatewayTurns, CostTheTimeThatTheyTook) {
    held_upstream up;
    running r{
        "[admin]\nlisten = '127.0.0.1:0'\n[admission]\ncost = 'measured'\n"
        "[tenants]\nkey = ['path:1']\n[[server]]\nlisten = '127.0.0.1:0'\nforward = '" +
        up.address() + "'\n"};
    wire w = r.connect();
    w.send("GET /acme HTTP/1.1\r\nHost: h\r\n\r\n");
    up.await_request();
    // real time: it is what is measured.
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    up.let_go(1);
    EXPECT_EQ(status_of(w.read_message()), "200");
    std::string const name = "\nrondo_tenant_cost_total{tenant=\"/acme\"} ";
    double cost = 0;
    while (cost == 0) {
        std::string const page = r.ask_admin("/metrics");
        std::size_t const at = page.find(name);
        ASSERT_NE(at, std::string::npos) << page;
        cost = std::stod(page.substr(at + name.size()));
    }
    EXPECT_GE(cost, 1 + 20);
}

TEST(GatewayTurns, HoldATenantToItsPlacesWhileThereIsRoomForOthers) {
    held_upstream up;
    running r{
        "[admin]\nlisten = '127.0.0.1:0'\n"
        "[admission]\nmax_in_flight = 3\nmax_in_flight_per_tenant = 2\n"
        "[tenants]\nkey = ['header:x-tenant']\ntrusted = ['127.0.0.1']\n"
        "[[server]]\nlisten = '127.0.0.1:0'\nforward = '" +
        up.address() + "'\n"};
    std::vector<wire> slow;
    for (int i = 0; i < 3; ++i) {
        slow.push_back(r.connect());
        slow.back().send(get("/", "slow"));
    }
    up.await_request();
    up.await_request();
    await_line(r, "rondo_admission_queued 1");
    wire quick = r.connect();
    quick.send(get("/", "quick"));
    up.await_request();  // before the third of the slow ones, for which there is room too
    await_line(r, "rondo_tenant_in_flight{tenant=\"slow\"} 2");
    await_line(r, "rondo_tenant_in_flight{tenant=\"quick\"} 1");
    up.let_go(4);
    EXPECT_EQ(status_of(quick.read_to_end()), "200");
    for (wire& w : slow) EXPECT_EQ(status_of(w.read_to_end()), "200");
}

TEST(GatewayTurns, KnowATenantByItsKeyAndTellWhoWaitsForTooLong) {
    held_upstream up;
    running r{
        "[admin]\nlisten = '127.0.0.1:0'\n[admission]\nmax_in_flight = 1\nmax_wait = '20ms'\n"
        "[tenants]\nkey = ['api_key']\ndefault_weight = 2\n"
        "[[tenant]]\nname = 'acme'\nweight = 4\napi_key = 'secret'\n"
        "[[server]]\nlisten = '127.0.0.1:0'\nforward = '" +
        up.address() + "'\n"};
    wire in = r.connect();
    in.send("GET / HTTP/1.1\r\nHost: h\r\nX-API-Key: secret\r\nConnection: close\r\n\r\n");
    up.await_request();
    await_line(r, "rondo_tenant_in_flight{tenant=\"acme\"} 1");
    std::string const told = r.ask("/", "X-API-Key: a guess\r\n");
    EXPECT_EQ(status_of(told), "503");
    EXPECT_EQ(field_of(told, "retry-after"), "1");
    await_line(r, "rondo_tenant_requests_total{tenant=\"-\",outcome=\"expired\"} 1");
    await_line(r, "rondo_tenant_weight{tenant=\"acme\"} 4");
    await_line(r, "rondo_tenant_weight{tenant=\"-\"} 2");
    up.let_go(1);
    EXPECT_EQ(status_of(in.read_to_end()), "200");
}

TEST(GatewayTurns, TellWhoIsStillInLineThatTheGatewayEnds) {
    held_upstream up;
    running r{
        "[gateway]\nshutdown_grace = '2s'\n[admin]\nlisten = '127.0.0.1:0'\n"
        "[admission]\nmax_in_flight = 1\n[[server]]\nlisten = '127.0.0.1:0'\nforward = '" +
        up.address() + "'\n"};
    wire in = r.connect();
    in.send(get("/", "acme"));
    up.await_request();
    wire waits = r.connect();
    waits.send(get("/", "acme"));
    await_line(r, "rondo_admission_queued 1");
    EXPECT_EQ(r.stop(), 1U);  // who was in is cut off: nobody knows what has become of it
    EXPECT_EQ(in.read_to_end(), "");
    std::string const told = waits.read_to_end();
    EXPECT_EQ(status_of(told), "503");
    EXPECT_EQ(field_of(told, "retry-after"), "1");
    EXPECT_EQ(body_of(told), "this server is being shut down\n");
}

TEST(AccessLog, IsALineWhateverTheClientSent) {
    using namespace std::chrono_literals;
    access_record r;
    r.time = std::chrono::system_clock::time_point{1'767'323'045'678ms};
    r.client = "192.0.2.1";
    r.method = "GET";
    r.target = "/a\"b\\\n\xff";
    r.status = 200;
    r.bytes = 12;
    r.duration = 5'100us;
    r.request_id = "id-1";
    EXPECT_EQ(to_text(r),
              "2026-01-02T03:04:05.678Z 192.0.2.1 \"GET /a\\\"b\\\\\\u000a\\u00ff\" 200 12B 5.1ms "
              "id=id-1");
    r.tenant = "acme";
    r.wait = 2ms;
    r.refused = "expired";
    EXPECT_EQ(to_json(r),
              R"({"time":"2026-01-02T03:04:05.678Z","client":"192.0.2.1","method":"GET",)"
              R"("target":"/a\"b\\\u000a\u00ff","status":200,"bytes":12,"duration_ms":5.100,)"
              R"("tenant":"acme","wait_ms":2.000,"refused":"expired","request_id":"id-1"})");
}

}  // namespace
}  // namespace rondo::gateway
