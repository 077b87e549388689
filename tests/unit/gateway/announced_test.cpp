// A gateway behind a proxy that announces its connections: whose they are, for all that asks.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "running.hpp"
#include "support/child_process.hpp"
#include "support/wire.hpp"

namespace rondo::gateway {
namespace {

TEST(GatewayBehindProxy, TheAnnouncedClientIsTheTenantAndIsForwarded) {
    std::promise<std::string> asked;
    test::scripted_server const up{[&](test::wire& w) {
        asked.set_value(w.read_message());
        w.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }};
    running g{
        "[admin]\nlisten = '127.0.0.1:0'\n[admission]\n"
        "[tenants]\nkey = ['header:x-tenant', 'address']\ntrusted = ['127.0.0.1']\n"
        "[[server]]\nlisten = '127.0.0.1:0'\nproxy_protocol = ['127.0.0.1']\nforward = '" +
        up.address() + "'\n"};
    test::wire w = g.connect();
    w.send(
        "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n"
        "GET / HTTP/1.1\r\nHost: h\r\nX-Tenant: acme\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(status_of(w.read_to_end()), "200");
    std::string const seen = asked.get_future().get();
    EXPECT_NE(seen.find("for=192.0.2.1;"), std::string::npos) << seen;
    // Nobody trusts the client, though it comes by a peer that is trusted: the proxy has not read
    // what it says.
    std::string const page = g.ask_admin("/metrics");
    EXPECT_NE(page.find("tenant=\"192.0.2.1\""), std::string::npos) << page;
    EXPECT_EQ(page.find("acme"), std::string::npos) << page;
}

TEST(GatewayBehindProxy, AReloadChangesWhoIsBelieved) {
    test::scratch_directory in;
    in.write("site/index.html", "here");
    std::string const server = "[[server]]\nlisten = '127.0.0.1:0'\nserve = 'site'\n";
    std::string const get = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    running g{server + "proxy_protocol = ['127.0.0.1']\n", in.path()};
    auto const ask = [&](std::string const& text) {
        test::wire w = g.connect();
        w.send(text);
        return w.read_to_end();
    };
    EXPECT_EQ(status_of(ask("PROXY UNKNOWN\r\n" + get)), "200");
    EXPECT_EQ(ask(get), "");
    ASSERT_TRUE(g.reload(server, in.path()));
    EXPECT_EQ(status_of(ask(get)), "200");
    EXPECT_EQ(status_of(ask("PROXY UNKNOWN\r\n" + get)), "400");
}

}  // namespace
}  // namespace rondo::gateway
