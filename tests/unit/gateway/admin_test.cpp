// What the admin address answers, and to whom.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/status.hpp"
#include "running.hpp"
#include "support/child_process.hpp"
#include "support/free_port.hpp"

namespace rondo::gateway {
namespace {

using test::scratch_directory;
using test::scripted_server;
using test::wire;

class Admin : public testing::Test {
  protected:
    Admin() { scratch.write("site/index.html", "hello"); }

    std::string config(std::string_view admin = "listen = '127.0.0.1:0'") const {
        return "[admin]\n" + std::string{admin} +
               "\n[[server]]\nname = 'front'\nlisten = '127.0.0.1:0'\nmatch = [\n"
               "  { uri = '/api', forward = '" +
               upstream.address() + "' },\n  { uri = '/', serve = 'site' } ]\n";
    }

    scratch_directory scratch;
    scripted_server upstream{[](wire& w) {
        while (!w.read_message().empty()) w.send("HTTP/1.1 204 No Content\r\n\r\n");
    }};
};

bool has_line(std::string const& page, std::string_view line) {
    return ("\n" + page).find("\n" + std::string{line} + "\n") != std::string::npos;
}

TEST_F(Admin, SaysThatItRunsAndIsReady) {
    running r{config(), scratch.path()};
    EXPECT_EQ(status_of(r.ask_admin("/healthz")), "200");
    EXPECT_EQ(status_of(r.ask_admin("/readyz")), "200");
    EXPECT_EQ(status_of(r.ask_admin("/nothing")), "404");
    EXPECT_EQ(status_of(r.ask_admin("/metrics", "", "DELETE")), "405");
}

TEST_F(Admin, IsNotThereUnlessItIsAskedFor) {
    running r{"[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n", scratch.path()};
    EXPECT_TRUE(r.get().admin_addresses().empty());
}

TEST_F(Admin, CountsWhatServersAndBackendsDo) {
    running r{config(), scratch.path()};
    for (int i = 0; i < 3; ++i) (void)r.ask("/");
    for (int i = 0; i < 2; ++i) (void)r.ask("/api");
    (void)r.ask("/missing");
    (void)r.ask("/", "", "BAD METHOD");
    std::string const page = body_of(r.ask_admin("/metrics"));
    for (std::string const& line : std::vector<std::string>{
             "rondo_requests_total{server=\"front\"} 6",
             "rondo_requests_malformed_total{server=\"front\"} 1",
             "rondo_requests_in_flight{server=\"front\"} 0",
             "rondo_connections_accepted_total{server=\"front\"} 7",
             "rondo_connections_limit{server=\"front\"} 1024",
             "rondo_responses_total{server=\"front\",class=\"2xx\"} 5",
             "rondo_responses_total{server=\"front\",class=\"4xx\"} 1",
             "rondo_responses_total{server=\"front\",class=\"cut\"} 0",
             "rondo_request_duration_seconds_count{server=\"front\"} 6", "rondo_config_version 1",
             "rondo_draining 0",
             "rondo_upstream_requests_total{server=\"front\",route=\"/api\",backend=\"" +
                 upstream.address() + "\"} 2",
             "rondo_upstream_up{server=\"front\",route=\"/api\",backend=\"" + upstream.address() +
                 "\"} 1"}) {
        EXPECT_TRUE(has_line(page, line)) << line << "\nis not in\n" << page;
    }
}

TEST_F(Admin, CountsWhatBackendsFailAt) {
    std::string const gone = test::free_address();
    running r{
        "[admin]\nlisten = '127.0.0.1:0'\n[[server]]\nlisten = '127.0.0.1:0'\n"
        "name = 'n'\nforward = '" +
        gone + "'\n"};
    EXPECT_EQ(status_of(r.ask("/")), "502");
    std::string const page = body_of(r.ask_admin("/metrics"));
    std::string const which = "{server=\"n\",route=\"/\",backend=\"" + gone + "\"} ";
    EXPECT_TRUE(has_line(page, "rondo_upstream_failures_total" + which + "1")) << page;
    EXPECT_TRUE(has_line(page, "rondo_upstream_up" + which + "0")) << page;
    EXPECT_TRUE(has_line(page, "rondo_responses_total{server=\"n\",class=\"5xx\"} 1")) << page;
}

std::size_t lines_with(std::string const& page, std::string_view text) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = page.find(text, at)) != std::string::npos; ++at) ++n;
    return n;
}

TEST_F(Admin, ShowsAServerThatHasMovedOnce) {
    running r{config(), scratch.path()};
    (void)r.ask("/");
    std::string moved = config();
    moved.replace(moved.rfind("127.0.0.1:0"), 11, "127.0.0.2:0");
    ASSERT_TRUE(r.reload(moved, scratch.path()));
    std::string const page = body_of(r.ask_admin("/metrics"));
    EXPECT_EQ(lines_with(page, "\nrondo_connections{"), 1U) << page;
    EXPECT_EQ(lines_with(page, "\nrondo_upstream_up{"), 1U) << page;
    EXPECT_TRUE(has_line(page, "rondo_requests_total{server=\"front\"} 0")) << page;
}

TEST_F(Admin, ShowsNoServerThatHasEnded) {
    std::string const gone = "[[server]]\nname = 'gone'\nlisten = '127.0.0.1:0'\nserve = 'site'\n";
    running r{config() + gone, scratch.path()};
    auto const shown = [&] {
        return r.ask_admin("/metrics").find("{server=\"gone\"}") != std::string::npos;
    };
    EXPECT_TRUE(shown());
    ASSERT_TRUE(r.reload(config(), scratch.path()));
    while (shown()) {
    }
}

TEST_F(Admin, AddsUpABackendThatIsThereTwice) {
    running r{
        "[admin]\nlisten = '127.0.0.1:0'\n[[server]]\nname = 'n'\nlisten = '127.0.0.1:0'\n"
        "forward = ['" +
        upstream.address() + "', '" + upstream.address() + "']\n"};
    for (int i = 0; i < 4; ++i) (void)r.ask("/");
    std::string const page = body_of(r.ask_admin("/metrics"));
    EXPECT_EQ(lines_with(page, "\nrondo_upstream_up{"), 1U) << page;
    EXPECT_TRUE(has_line(page, "rondo_upstream_requests_total{server=\"n\",route=\"/\",backend=\"" +
                                   upstream.address() + "\"} 4"))
        << page;
}

TEST_F(Admin, HasMetricsThatPromtoolFindsNothingWrongWithAndThatAreAllDescribed) {
    running r{config(), scratch.path()};
    (void)r.ask("/");
    std::string const page = body_of(r.ask_admin("/metrics"));
    std::ofstream{scratch.path() / "page"} << page;
    std::string const command = std::string{RONDO_PROMTOOL} + " check metrics <" +
                                (scratch.path() / "page").string() + " >" +
                                (scratch.path() / "said").string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream said{scratch.path() / "said"};
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>{said}, {}}), "");

    std::ifstream in{SOURCES "/docs/metrics.md"};
    std::string const text{std::istreambuf_iterator<char>{in}, {}};
    for (std::size_t at = 0; (at = page.find("# TYPE ", at)) != std::string::npos; ++at) {
        std::size_t const name = at + 7;
        std::size_t const space = page.find(' ', name);
        std::string const row = "| `" + page.substr(name, space - name) + "` | " +
                                page.substr(space + 1, page.find('\n', space) - space - 1) + " |";
        EXPECT_NE(text.find(row), std::string::npos) << "docs/metrics.md lacks: " << row;
    }
}

TEST_F(Admin, ShowsItsStatusAsJson) {
    running r{config(), scratch.path()};
    std::string const answer = r.ask_admin("/status");
    EXPECT_EQ(field_of(answer, "content-type"), "application/json");
    auto const s = from_json(body_of(answer));
    ASSERT_TRUE(s.has_value()) << answer;
    EXPECT_EQ(s->config_version, 1U);
    EXPECT_FALSE(s->draining);
    ASSERT_EQ(s->servers.size(), 1U);
    EXPECT_EQ(s->servers[0].name, "front");
    EXPECT_EQ(s->servers[0].max_connections, 1024U);
    ASSERT_EQ(s->backends.size(), 1U);
    EXPECT_EQ(s->backends[0].address, upstream.address());
    EXPECT_FALSE(from_json("{}").has_value());
    EXPECT_FALSE(from_json("nonsense").has_value());
}

// Whoever has had a configuration loaded may look at once whether it is.
TEST_F(Admin, ShowsTheStatusOfNow) {
    running r{config(), scratch.path()};
    wire w = wire::to(r.admin_port());
    w.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    (void)w.read_until("event: status");  // some are remembered
    for (std::uint64_t version = 2; version < 6; ++version) {
        ASSERT_EQ(r.reload(config(), scratch.path()), version);
        auto const s = from_json(body_of(r.ask_admin("/status")));
        ASSERT_TRUE(s.has_value());
        EXPECT_EQ(s->config_version, version);
    }
}

TEST_F(Admin, StreamsItsStatus) {
    running r{config(), scratch.path()};
    wire w = wire::to(r.admin_port());
    w.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string const head = w.read_head();
    EXPECT_EQ(field_of(head, "content-type"), "text/event-stream");
    EXPECT_NE(w.read_until("event: history\ndata: [").find("event: history"), std::string::npos);
    std::string const next = w.read_until("event: status\ndata: {");
    EXPECT_NE(next.find("event: status"), std::string::npos);
    std::string const data = "{" + w.read_until("\n\n");
    EXPECT_TRUE(from_json(data.substr(0, data.size() - 2)).has_value()) << data;
}

// As many as there may be connections: pages that are left open must not keep operators out.
TEST_F(Admin, HasRoomForOthersHoweverManyWatch) {
    running r{config(), scratch.path()};
    std::vector<wire> watching;
    std::size_t refused = 0;
    for (int i = 0; i < 64; ++i) {
        wire w = wire::to(r.admin_port());
        w.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        std::string const head = w.read_head();
        if (status_of(head) == "200") {
            watching.push_back(std::move(w));
        } else {
            EXPECT_EQ(status_of(head), "503");
            ++refused;
        }
    }
    EXPECT_GE(watching.size(), 8U);
    EXPECT_GT(refused, 0U);
    EXPECT_EQ(body_of(r.ask_admin("/healthz")), "it runs\n");
    // Who leaves makes room, as soon as that is seen.
    watching.clear();
    std::string head = "503";
    while (status_of(head) != "200") {
        wire w = wire::to(r.admin_port());
        w.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        head = w.read_head();
    }
}

// As a program does that shows one page each time. There are several times as many as have room at
// a time, in less than it takes to the next event.
TEST_F(Admin, HasRoomForWhoWatchesOneAfterTheOther) {
    running r{config(), scratch.path()};
    for (int i = 0; i < 200; ++i) {
        wire w = wire::to(r.admin_port());
        w.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_EQ(status_of(w.read_head()), "200") << i;
    }
}

TEST_F(Admin, AnswersHeadOfItsStreamAtOnce) {
    running r{config(), scratch.path()};
    wire w = wire::to(r.admin_port());
    w.send("HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string const head = w.read_head();
    EXPECT_EQ(status_of(head), "200");
    EXPECT_EQ(field_of(head, "content-type"), "text/event-stream");
    w.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(body_of(w.read_message()), "it runs\n");
}

TEST_F(Admin, ServesAPageThatLoadsNothingFromElsewhere) {
    running r{config(), scratch.path()};
    std::string const page = r.ask_admin("/");
    EXPECT_EQ(status_of(page), "200");
    EXPECT_EQ(field_of(page, "content-type"), "text/html; charset=utf-8");
    std::string const policy = field_of(page, "content-security-policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none';")) << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(field_of(page, "x-content-type-options"), "nosniff");
    for (std::string_view const part : {"/", "/dashboard.js", "/dashboard.css"}) {
        std::string const text = r.ask_admin(part);
        EXPECT_EQ(status_of(text), "200") << part;
        EXPECT_EQ(text.find("innerHTML"), std::string::npos) << part;
        EXPECT_EQ(text.find("https://"), std::string::npos) << part;
    }
}

TEST_F(Admin, AnswersNobodyWhoCameByAnotherName) {
    running r{config(), scratch.path()};
    auto const ask = [&](std::string_view host) {
        return status_of(
            running::ask_at(r.admin_port(), "/metrics", "Host: " + std::string{host} + "\r\n"));
    };
    for (std::string_view const host : {"localhost", "localhost:9180", "127.0.0.1", "[::1]:80"}) {
        EXPECT_EQ(ask(host), "200") << host;
    }
    for (std::string_view const host : {"evil.example", "127.0.0.1.evil.example", "10.0.0.1"}) {
        EXPECT_EQ(ask(host), "403") << host;
    }
}

TEST_F(Admin, AsksForItsToken) {
    running r{config("listen = '0.0.0.0:0'\ntoken = 'sixteen-letters-or-more'"), scratch.path()};
    std::string const refused = r.ask_admin("/metrics");
    EXPECT_EQ(status_of(refused), "401");
    EXPECT_TRUE(field_of(refused, "www-authenticate").starts_with("Basic "));
    auto const with = [&](std::string_view field) {
        return status_of(r.ask_admin("/metrics", "Authorization: " + std::string{field} + "\r\n"));
    };
    EXPECT_EQ(with("Bearer sixteen-letters-or-more"), "200");
    EXPECT_EQ(with("Basic YW55Ym9keTpzaXh0ZWVuLWxldHRlcnMtb3ItbW9yZQ=="), "200");
    for (std::string_view const wrong :
         {"Bearer sixteen-letters-or-mors", "Bearer sixteen-letters-or-mor", "Bearer ", "Bearer",
          "Basic YW55Ym9keTp3cm9uZw==", "Basic ====", "Basic YQ==", "Digest x",
          "Basic c2l4dGVlbi1sZXR0ZXJzLW9yLW1vcmU="}) {
        EXPECT_EQ(with(wrong), "401") << wrong;
    }
    EXPECT_EQ(status_of(r.ask_admin("/healthz")), "200");
    EXPECT_EQ(status_of(r.ask_admin("/readyz")), "200");
    EXPECT_EQ(status_of(r.ask_admin("/reload", "X-Rondo-Command: 1\r\n", "POST")), "401");
}

// All that this machine has; usually some by which others reach it.
std::vector<sockaddr_in> own_addresses() {
    std::vector<sockaddr_in> found;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return found;
    for (ifaddrs const* i = all; i != nullptr; i = i->ifa_next) {
        bool const v4 = i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET;
        if (!v4 || (i->ifa_flags & IFF_UP) == 0) continue;
        found.push_back(*reinterpret_cast<sockaddr_in const*>(i->ifa_addr));
    }
    ::freeifaddrs(all);
    return found;
}

wire connect(sockaddr_in to, std::uint16_t port) {
    to.sin_port = htons(port);
    wire w{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (::connect(w.fd(), reinterpret_cast<sockaddr const*>(&to), sizeof to) != 0) {
        throw std::runtime_error("cannot connect");
    }
    return w;
}

// The connection stays when the address is left; whoever has it may be far away.
TEST_F(Admin, WithoutATokenAnswersNobodyWhoCameByAnAddressForOthers) {
    for (sockaddr_in const& address : own_addresses()) {
        bool const is_loopback = ntohl(address.sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
        running r{config("listen = '0.0.0.0:0'\ntoken = 'sixteen-letters-or-more'"),
                  scratch.path()};
        wire w = connect(address, r.admin_port());
        auto const ask = [&w](std::string_view line) {
            w.send(std::string{line} +
                   " HTTP/1.1\r\nHost: localhost\r\nX-Rondo-Command: 1\r\n\r\n");
            return status_of(w.read_message());
        };
        EXPECT_EQ(ask("GET /metrics"), "401");
        ASSERT_TRUE(r.reload(config(), scratch.path()));
        EXPECT_EQ(ask("GET /metrics"), is_loopback ? "200" : "403");
        EXPECT_EQ(ask("POST /reload"), is_loopback ? "501" : "403");
        EXPECT_EQ(ask("GET /healthz"), "200");
        EXPECT_EQ(status_of(r.ask_admin("/metrics")), "200");
    }
}

TEST_F(Admin, EndsTheStreamOfWhoseTokenIsTakenBack) {
    std::string const listen = "listen = '127.0.0.1:0'\ntoken = ";
    running r{config(listen + "'the-token-until-now'"), scratch.path()};
    wire w = wire::to(r.admin_port());
    w.send(
        "GET /events HTTP/1.1\r\nHost: localhost\r\n"
        "Authorization: Bearer the-token-until-now\r\n\r\n");
    EXPECT_TRUE(w.read_until("event: status").ends_with("event: status"));
    ASSERT_TRUE(r.reload(config(listen + "'the-token-from-now-on'"), scratch.path()));
    // Those before the reload may be on their way; real time: there is one each second.
    for (int i = 0; i < 15 && w.read_until("event: status").ends_with("event: status"); ++i) {
    }
    EXPECT_TRUE(w.ended());
}

TEST_F(Admin, AsksWhoIsLeftForItsTokenWhenItsAddressIsGone) {
    running r{config("listen = '127.0.0.1:0'\ntoken = 'sixteen-letters-or-more'"), scratch.path()};
    wire w = wire::to(r.admin_port());
    // Read together: the second has begun when the first is answered.
    w.send(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n");
    EXPECT_EQ(status_of(w.read_message()), "200");
    std::string without = config();
    without.erase(0, without.find("[[server]]"));
    ASSERT_TRUE(r.reload(without, scratch.path()));
    w.send("\r\n");
    EXPECT_EQ(status_of(w.read_message()), "401");
}

TEST_F(Admin, TakesCommandsFromNoPageOfAnotherOrigin) {
    running r{config(), scratch.path()};
    EXPECT_EQ(status_of(r.ask_admin("/reload", "", "POST")), "403");
    EXPECT_EQ(status_of(r.ask_admin("/drain", "", "POST")), "403");
    EXPECT_EQ(status_of(r.ask_admin("/drain")), "405");
    EXPECT_EQ(status_of(r.ask_admin("/reload", "X-Rondo-Command: 1\r\n", "POST")), "501");
}

TEST_F(Admin, IsAskedToReloadAndAnswersWhatIsWrong) {
    scratch_directory in;
    in.write("site/index.html", "x");
    bool good = true;
    running r{config(), scratch.path()};
    r.get().obey({.reload = [&]() -> std::expected<std::uint64_t, std::string> {
                      if (good) return r.reload(config(), scratch.path());
                      return std::unexpected{std::string{"rondo.toml:1:1: it is blue"}};
                  },
                  .drain = {}});
    std::string const command = "X-Rondo-Command: 1\r\n";
    std::string const fine = r.ask_admin("/reload", command, "POST");
    EXPECT_EQ(status_of(fine), "200");
    EXPECT_EQ(body_of(fine), "configuration 2 is loaded\n");
    good = false;
    std::string const wrong = r.ask_admin("/reload", command, "POST");
    EXPECT_EQ(status_of(wrong), "422");
    EXPECT_EQ(body_of(wrong), "rondo.toml:1:1: it is blue\n");
}

}  // namespace
}  // namespace rondo::gateway
