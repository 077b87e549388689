// A configuration that takes the place of another while connections are open.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "few_descriptors.hpp"
#include "running.hpp"
#include "support/child_process.hpp"
#include "support/free_port.hpp"
#include "support/sanitized.hpp"
#include "tls_wire.hpp"

namespace rondo::gateway {
namespace {

using test::free_address;
using test::listens;
using test::scratch_directory;
using test::scripted_server;
using test::wire;

std::string answering(std::string_view body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string{body};
}
// One that answers each request with its name.
scripted_server::script named(std::string name) {
    return [name](wire& w) {
        while (!w.read_message().empty()) w.send(answering(name));
    };
}

std::uint16_t port_in(std::string const& address) {
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
}

std::string forwarding(std::string const& listen, std::string const& to,
                       std::string_view more = {}) {
    return "[[server]]\nlisten = '" + listen + "'\nforward = '" + to + "'\n" + std::string{more} +
           "\n";
}

std::string ask_over(wire& w, std::string_view path = "/") {
    w.send("GET " + std::string{path} + " HTTP/1.1\r\nHost: h\r\n\r\n");
    return body_of(w.read_message());
}

bool refuses(std::uint16_t port) {
    try {
        wire w = wire::to(port);
        return w.ended();
    } catch (std::runtime_error const&) {
        return true;
    }
}

constexpr char const* anywhere = "127.0.0.1:0";

TEST(Reload, GivesOpenConnectionsTheNewRoutes) {
    scripted_server one{named("one")};
    scripted_server two{named("two")};
    running r{forwarding(anywhere, one.address())};
    std::uint16_t const port = r.port();
    wire w = r.connect();
    EXPECT_EQ(ask_over(w), "one");
    EXPECT_EQ(r.reload(forwarding(anywhere, two.address())), 2U);
    EXPECT_EQ(r.port(), port);
    EXPECT_EQ(ask_over(w), "two");
    EXPECT_EQ(body_of(r.ask("/")), "two");
}

TEST(Reload, LetsRequestsEndByTheOldRoutes) {
    std::atomic<bool> go{false};
    scripted_server slow{[&go](wire& w) {
        if (w.read_message().empty()) return;
        go.wait(false);
        w.send(answering("late"));
    }};
    scripted_server two{named("two")};
    running r{forwarding(anywhere, slow.address())};
    wire w = r.connect();
    w.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (slow.accepted() == 0) std::this_thread::yield();
    ASSERT_TRUE(r.reload(forwarding(anywhere, two.address())));
    EXPECT_EQ(body_of(r.ask("/")), "two");
    go = true;
    go.notify_all();
    EXPECT_EQ(body_of(w.read_message()), "late");
    EXPECT_EQ(ask_over(w), "two");
    // What the old routes needed goes with the next one.
    ASSERT_TRUE(r.reload(forwarding(anywhere, two.address())));
}

TEST(Reload, KeepsWhatAnUnchangedForwardHas) {
    scripted_server one{named("one")};
    running r{forwarding(anywhere, one.address())};
    wire w = r.connect();
    EXPECT_EQ(ask_over(w), "one");
    ASSERT_TRUE(r.reload(forwarding(anywhere, one.address(), "max_connections = 5")));
    EXPECT_EQ(ask_over(w), "one");
    EXPECT_EQ(one.accepted(), 1U);  // the connection to it was used again
}

bool has_line(running const& r, std::string const& line) {
    return r.ask_admin("/metrics").find("\n" + line + "\n") != std::string::npos;
}
std::string requests_of(std::string_view server, std::string_view route,
                        scripted_server const& backend, int n) {
    return "rondo_upstream_requests_total{server=\"" + std::string{server} + "\",route=\"" +
           std::string{route} + "\",backend=\"" + backend.address() + "\"} " + std::to_string(n);
}

TEST(Reload, KeepsWhatRoutesToTheSameBackendHaveApart) {
    scripted_server one{named("one")};
    std::string const forward = "', forward = '" + one.address() + "' },";
    auto const text = [&](std::initializer_list<std::string> uris) {
        std::string all =
            "[admin]\nlisten = '127.0.0.1:0'\n[[server]]\nname = 'n'\n"
            "listen = '127.0.0.1:0'\nmatch = [";
        for (std::string const& uri : uris) all += "{ uri = '" + uri + forward;
        return all + "]\n";
    };
    running r{text({"/a", "/b"})};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(r.ask("/a")), "one");
    EXPECT_EQ(body_of(r.ask("/b")), "one");
    for (auto const& routes : {text({"/a", "/b"}), text({"/new", "/b", "/a"})}) {
        ASSERT_TRUE(r.reload(routes));
        EXPECT_TRUE(has_line(r, requests_of("n", "/a", one, 3))) << routes;
        EXPECT_TRUE(has_line(r, requests_of("n", "/b", one, 1))) << routes;
    }
    EXPECT_TRUE(has_line(r, requests_of("n", "/new", one, 0)));
    EXPECT_EQ(body_of(r.ask("/new")), "one");
    // One whose path has changed keeps it, too.
    ASSERT_TRUE(r.reload(text({"/moved", "/b", "/new"})));
    EXPECT_TRUE(has_line(r, requests_of("n", "/moved", one, 3)));
    EXPECT_TRUE(has_line(r, requests_of("n", "/b", one, 1)));
    EXPECT_TRUE(has_line(r, requests_of("n", "/new", one, 1)));
}

TEST(Reload, GivesWhatAServerHasToOneOfTwoThatItIsSplitInto) {
    scripted_server one{named("one")};
    std::string const first = free_address();
    std::string const second = free_address();
    std::string const admin = "[admin]\nlisten = '127.0.0.1:0'\n";
    running r{admin + "[[server]]\nname = 'a'\nlisten = ['" + first + "', '" + second +
              "']\nforward = '" + one.address() + "'\n"};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(r.ask("/")), "one");
    ASSERT_TRUE(r.reload(admin + forwarding(first, one.address(), "name = 'a'") +
                         forwarding(second, one.address(), "name = 'b'")));
    wire w = wire::to(port_in(second));
    EXPECT_EQ(ask_over(w), "one");
    EXPECT_TRUE(has_line(r, requests_of("a", "/", one, 3)));
    EXPECT_TRUE(has_line(r, requests_of("b", "/", one, 1)));
}

TEST(Reload, OfABadConfigurationChangesNothing) {
    scripted_server one{named("one")};
    std::string const address = free_address();
    scripted_server taken{named("taken")};
    running r{forwarding(address, one.address())};
    wire w = r.connect();
    for (std::string const& bad :
         {std::string{"[[server]]\nlisten = 7\n"}, std::string{"not = [toml"},
          forwarding("127.0.0.1:0", "no-such-host.invalid:1"),
          // The second address cannot be had: the first is left again.
          "[[server]]\nlisten = ['127.0.0.1:0', '" + taken.address() + "']\nforward = 'a:1'\n",
          forwarding(address, taken.address()) + forwarding(taken.address(), one.address())}) {
        EXPECT_FALSE(r.reload(bad).has_value()) << bad;
        EXPECT_EQ(ask_over(w), "one");
        EXPECT_EQ(body_of(r.ask("/")), "one");
    }
    EXPECT_EQ(r.reload(forwarding(address, one.address())), 2U);
}

TEST(Reload, SaysWhereWhatIsWrong) {
    scripted_server one{named("one")};
    scripted_server taken{named("taken")};
    running r{forwarding(anywhere, one.address())};
    auto const wrong = r.reload(forwarding(taken.address(), one.address()));
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error(),
              "config:2:10: cannot listen at " + taken.address() + ": Address already in use");
}

// A sanitizer opens pipes to look at memory, and takes it for bad where it cannot.
#ifndef RONDO_TEST_SANITIZED

TEST(Reload, WithoutDescriptorsChangesNothing) {
    scripted_server one{named("one")};
    scripted_server two{named("two")};
    std::string const second = free_address();
    auto const text = [](std::string const& limit, std::string const& to,
                         std::string const& listen) {
        return "[admin]\nlisten = '127.0.0.1:0'\n[admission]\nmax_in_flight = " + limit + "\n" +
               forwarding(anywhere, to) + "[[server]]\nname = 'other'\nlisten = [" + listen +
               "]\nforward = '" + to + "'\n";
    };
    running r{text("10", one.address(), "'127.0.0.1:0'")};
    wire first = r.connect(0);
    wire other = r.connect(1);
    int refused = 0;
    for (bool changed = false; !changed; ++refused) {
        {
            few_descriptors const left(static_cast<std::size_t>(refused));
            changed =
                r.reload(text("20", two.address(), "'127.0.0.1:0', '" + second + "'")).has_value();
        }
        EXPECT_EQ(ask_over(first), changed ? "two" : "one") << refused;
        EXPECT_EQ(ask_over(other), changed ? "two" : "one") << refused;
        EXPECT_EQ(listens(port_in(second)), changed) << refused;
        EXPECT_NE(
            r.ask_admin("/metrics")
                .find(changed ? "\nrondo_admission_limit 20\n" : "\nrondo_admission_limit 10\n"),
            std::string::npos)
            << refused;
        ASSERT_LT(refused, 100);
    }
    EXPECT_GT(refused, 1);
}

TEST(Reload, WithoutDescriptorsTakesNoFileForMissing) {
    scratch_directory in;
    in.write("site/404.html", "not here");
    std::string const text =
        "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\nnot_found = '404.html'\n";
    auto const parsed_with = [&](std::size_t descriptors) {
        few_descriptors const left(descriptors);
        return parse(text, in.path());
    };
    std::size_t refused = 0;
    for (config_result c = parsed_with(0); !c; c = parsed_with(++refused)) {
        EXPECT_TRUE(c.error().at(0).problem.ends_with(": Too many open files"))
            << c.error().at(0).problem;
        ASSERT_LT(refused, 10U);
    }
    EXPECT_GT(refused, 1U);
}

#endif

TEST(Reload, OpensAndClosesAddresses) {
    scripted_server one{named("one")};
    std::string const first = free_address();
    std::string const second = free_address();
    auto const both = "[[server]]\nlisten = ['" + first + "', '" + second + "']\nforward = '" +
                      one.address() + "'\n";
    running r{forwarding(first, one.address())};
    wire old = r.connect();
    EXPECT_EQ(ask_over(old), "one");
    EXPECT_FALSE(listens(port_in(second)));
    ASSERT_TRUE(r.reload(both));
    wire added = wire::to(port_in(second));
    EXPECT_EQ(ask_over(added), "one");
    ASSERT_TRUE(r.reload(forwarding(second, one.address())));
    EXPECT_FALSE(listens(port_in(first)));
    // Connections that came by an address that is gone go on.
    EXPECT_EQ(ask_over(old), "one");
    EXPECT_EQ(ask_over(added), "one");
}

TEST(Reload, EndsAServerThatIsGone) {
    std::atomic<bool> go{false};
    scripted_server one{named("one")};
    scripted_server slow{[&go](wire& w) {
        if (w.read_message().empty()) return;
        go.wait(false);
        w.send(answering("late"));
    }};
    std::string const first = free_address();
    std::string const second = free_address();
    running r{forwarding(first, one.address()) + forwarding(second, slow.address())};
    wire idle = wire::to(port_in(second));
    wire busy = wire::to(port_in(second));
    busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    while (slow.accepted() == 0) std::this_thread::yield();
    ASSERT_TRUE(r.reload(forwarding(first, one.address())));
    EXPECT_FALSE(listens(port_in(second)));  // at once: the next reload may want it again
    EXPECT_TRUE(idle.ended());
    go = true;
    go.notify_all();
    EXPECT_EQ(body_of(busy.read_message()), "late");
    EXPECT_TRUE(busy.ended());
    EXPECT_EQ(body_of(r.ask("/")), "one");
    // And comes back.
    ASSERT_TRUE(r.reload(forwarding(first, one.address()) + forwarding(second, one.address())));
    wire again = wire::to(port_in(second));
    EXPECT_EQ(ask_over(again), "one");
}

TEST(Reload, MovesAnAddressToAnotherServerWithoutClosingIt) {
    scripted_server one{named("one")};
    scripted_server two{named("two")};
    std::string const first = free_address();
    std::string const moved = free_address();
    auto const listening = [](std::string const& a, std::string const& b, std::string const& to) {
        return "[[server]]\nlisten = ['" + a + "', '" + b + "']\nforward = '" + to + "'\n";
    };
    std::string const third = free_address();
    running r{listening(first, moved, one.address()) + forwarding(third, two.address())};
    std::atomic<bool> done{false};
    std::atomic<int> answered{0};
    std::atomic<int> failed{0};
    std::thread knocking{[&] {
        while (!done) {
            try {
                wire w = wire::to(port_in(moved));
                std::string const name = ask_over(w);
                (name == "one" || name == "two") ? ++answered : ++failed;
            } catch (std::runtime_error const&) {
                ++failed;
            }
        }
    }};
    for (int i = 0; i < 10; ++i) {
        int const before = answered;
        while (answered < before + 3) std::this_thread::yield();
        auto const& a = listening(first, moved, one.address()) + forwarding(third, two.address());
        auto const& b = forwarding(first, one.address()) + listening(third, moved, two.address());
        EXPECT_TRUE(r.reload(i % 2 == 0 ? b : a).has_value());
        wire w = wire::to(port_in(moved));
        EXPECT_EQ(ask_over(w), i % 2 == 0 ? "two" : "one");
    }
    done = true;
    knocking.join();
    EXPECT_EQ(failed, 0);
}

TEST(Reload, LowersTheLimitOfConnectionsWithoutCuttingOneOff) {
    scripted_server one{named("one")};
    running r{forwarding(anywhere, one.address(), "max_connections = 3")};
    wire a = r.connect();
    wire b = r.connect();
    wire c = r.connect();
    for (wire* const w : {&a, &b, &c}) EXPECT_EQ(ask_over(*w), "one");
    ASSERT_TRUE(r.reload(forwarding(anywhere, one.address(), "max_connections = 1")));
    for (wire* const w : {&a, &b, &c}) EXPECT_EQ(ask_over(*w), "one");
    wire waiting = r.connect();
    waiting.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    a.close();
    b.close();
    EXPECT_EQ(ask_over(c), "one");  // still the only place
    c.close();
    EXPECT_EQ(body_of(waiting.read_message()), "one");
    // More again.
    ASSERT_TRUE(r.reload(forwarding(anywhere, one.address(), "max_connections = 2")));
    EXPECT_EQ(body_of(r.ask("/")), "one");
    EXPECT_EQ(ask_over(waiting), "one");
}

TEST(Reload, ChangesTheAdminAddressAndItsToken) {
    scripted_server one{named("one")};
    std::string const server = forwarding(anywhere, one.address());
    running r{"[admin]\nlisten = '127.0.0.1:0'\n" + server};
    EXPECT_EQ(status_of(r.ask_admin("/metrics")), "200");
    std::string const other = free_address();
    ASSERT_TRUE(
        r.reload("[admin]\nlisten = '" + other + "'\ntoken = '0123456789abcdef'\n" + server));
    EXPECT_EQ(r.admin_port(), port_in(other));
    EXPECT_EQ(status_of(r.ask_admin("/metrics")), "401");
    ASSERT_TRUE(r.reload(server));
    EXPECT_TRUE(r.get().admin_addresses().empty());
    EXPECT_TRUE(refuses(port_in(other)));
    ASSERT_TRUE(r.reload("[admin]\nlisten = '" + other + "'\n" + server));
    EXPECT_EQ(status_of(r.ask_admin("/metrics")), "200");
}

TEST(Reload, LeavesAnAdminAddressAtOnce) {
    scripted_server one{named("one")};
    std::string const server = forwarding(anywhere, one.address());
    std::string const address = free_address();
    running r{server};
    for (std::uint64_t i = 2; i < 100; i += 2) {
        ASSERT_EQ(r.reload("[admin]\nlisten = '" + address + "'\n" + server), i);
        ASSERT_EQ(r.reload(server), i + 1);
    }
    EXPECT_FALSE(listens(port_in(address)));
}

// Though that address was given the grace of its time: the end has nobody else left to answer.
TEST(Reload, HoldsTheEndUpForNobodyAtAnAdminAddressThatIsGone) {
    scripted_server one{named("one")};
    std::string const server = forwarding(anywhere, one.address());
    std::string const patient = "[gateway]\nshutdown_grace = '1h'\n";
    running r{patient + "[admin]\nlisten = '127.0.0.1:0'\n" + server};
    wire watching = wire::to(r.admin_port());
    watching.send("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    EXPECT_NE(watching.read_until("event: ").find("200 OK"), std::string::npos);
    ASSERT_TRUE(r.reload(patient + server));
    EXPECT_EQ(r.stop(), 0U);
    (void)watching.read_to_end();
    EXPECT_TRUE(watching.ended());
}

TEST(Reload, ShowsARenewedCertificateToNewConnectionsAndKeepsTheOldOnes) {
    scratch_directory in;
    in.write("www/index.html", "secure");
    issue_certificate(in, "before");
    std::string const text =
        "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'www'\n"
        "tls = { certificate = 'site.pem', key = 'site.key' }\n";
    running r{text, in.path()};
    tls_wire old{r.port()};
    EXPECT_EQ(old.shown(), "before");
    EXPECT_EQ(body_of(old.ask()), "secure");

    issue_certificate(in, "after");
    EXPECT_EQ(tls_wire{r.port()}.shown(), "before");  // it is taken up when it is said
    ASSERT_TRUE(r.reload(text, in.path()));
    tls_wire fresh{r.port()};
    EXPECT_EQ(fresh.shown(), "after");
    EXPECT_EQ(body_of(fresh.ask()), "secure");
    EXPECT_EQ(body_of(old.ask()), "secure");

    // Half of a renewal: the key is not the certificate's.
    std::filesystem::copy_file(in.path() / "site.pem", in.path() / "after.pem");
    issue_certificate(in, "half");
    std::filesystem::copy_file(in.path() / "after.pem", in.path() / "site.pem",
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_FALSE(r.reload(text, in.path()));
    EXPECT_EQ(tls_wire{r.port()}.shown(), "after");
    EXPECT_EQ(body_of(old.ask()), "secure");
}

TEST(Reload, IsRefusedOnceTheGatewayEnds) {
    scripted_server one{named("one")};
    running r{forwarding(anywhere, one.address())};
    r.stop();
    EXPECT_FALSE(r.reload(forwarding(anywhere, one.address())).has_value());
}

}  // namespace
}  // namespace rondo::gateway
