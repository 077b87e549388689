// Whose request it is, and whom that is believed from.
#include "rondo/http/tenants.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/policy.hpp"

namespace rondo::http {
namespace {

namespace ip = boost::asio::ip;

class Tenants : public testing::Test {
  public:
    tenant_rules rules;

    void key(std::initializer_list<std::string_view> all) {
        rules.key.clear();
        for (std::string_view const k : all) rules.key.push_back(*parse_tenant_key(k));
    }
    void trust(std::string_view n) { rules.trusted.push_back(*parse_network(n)); }
    std::string who(std::string_view peer, std::vector<field> fields = {},
                    std::string_view path = "/", std::string_view route = "") const {
        request_head head;
        head.path = path;
        head.fields = http::fields{fields};
        return tenant_of({head, ip::make_address(peer), route}, rules);
    }
};

TEST_F(Tenants, AHeaderIsBelievedFromTrustedPeersOnly) {
    key({"header:x-tenant", "address"});
    trust("10.0.0.0/8");
    EXPECT_EQ(who("10.1.2.3", {{"X-Tenant", "acme"}}), "acme");
    EXPECT_EQ(who("192.0.2.1", {{"X-Tenant", "acme"}}), "192.0.2.1");
    EXPECT_EQ(who("10.1.2.3", {{"X-Tenant", ""}}), "10.1.2.3");
    EXPECT_EQ(who("::ffff:10.1.2.3", {{"X-Tenant", "acme"}}), "acme");
    EXPECT_EQ(who("11.0.0.1", {{"X-Tenant", "acme"}}), "11.0.0.1");
}

TEST_F(Tenants, AnAddressIsNamedAsItIsWritten) {
    key({"address"});
    for (std::string_view const peer :
         {"0.0.0.0", "255.255.255.255", "10.0.200.1", "1.20.255.99", "100.9.10.0"}) {
        EXPECT_EQ(who(peer), peer);
    }
    EXPECT_EQ(who("::ffff:1.2.3.4"), "1.2.3.4");
}

// As of a proxy that adds its own to that of the client.
TEST_F(Tenants, AHeaderWithTwoValuesIsNotBelieved) {
    key({"header:x-tenant", "address"});
    trust("10.0.0.0/8");
    EXPECT_EQ(who("10.1.2.3", {{"X-Tenant", "made up"}, {"x-tenant", "acme"}}), "10.1.2.3");
    EXPECT_EQ(who("10.1.2.3", {{"X-Tenant", "acme"}, {"X-Tenant", ""}}), "10.1.2.3");
    EXPECT_EQ(who("10.1.2.3", {{"X-Tenant", "acme"}, {"X-Tenant", "acme"}}), "acme");
}

TEST_F(Tenants, AnApiKeyNamesItsOwnerAndIsNotShown) {
    key({"api_key", "address"});
    rules.api_keys = {{"s3cret", "acme"}};
    EXPECT_EQ(who("192.0.2.1", {{"X-API-Key", "s3cret"}}), "acme");
    EXPECT_EQ(who("192.0.2.1", {{"Authorization", "Bearer s3cret"}}), "acme");
    EXPECT_EQ(who("192.0.2.1", {{"X-API-Key", "made up"}}), "192.0.2.1");
    EXPECT_EQ(who("192.0.2.1", {{"Authorization", "Basic s3cret"}}), "192.0.2.1");
}

TEST_F(Tenants, ForwardedIsBelievedAsFarBackAsItIsTrusted) {
    key({"address"});
    trust("10.0.0.0/8");
    trust("2001:db8::/32");
    std::string_view const two = "for=198.51.100.7, for=203.0.113.9;proto=https, for=10.0.0.2";
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", two}}), "203.0.113.9");
    EXPECT_EQ(who("192.0.2.1", {{"Forwarded", two}}), "192.0.2.1");
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "for=198.51.100.7"}, {"Forwarded", "for=10.0.0.2"}}),
              "198.51.100.7");
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "for=\"[2001:db9::1]:80\""}}), "2001:db9::/64");
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "for=unknown"}}), "10.0.0.1");
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "for=198.51.100.7, for=_hidden"}}), "10.0.0.1");
    EXPECT_EQ(who("10.0.0.1", {{"X-Forwarded-For", "198.51.100.7:4711, 10.9.9.9"}}),
              "198.51.100.7");
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "for=\"a, for=198.51.100.7"}}), "10.0.0.1");
}

// Real time: that it does not take long is what is asked. A client can write all but the last.
TEST_F(Tenants, ALongWayBackTakesNoLongTime) {
    key({"address"});
    trust("10.0.0.0/8");
    std::string list = "for=198.51.100.7";
    while (list.size() < 1'000'000) list += ", for=10.0.0.2";
    auto const began = clock::now();
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", list}}), "198.51.100.7");
    EXPECT_LT(clock::now() - began, std::chrono::seconds{5});
}

// The host is the client's own word: what it says there in quotes is no parameter.
TEST_F(Tenants, ForwardedIsNotReadInsideOfQuotes) {
    key({"address"});
    trust("10.0.0.0/8");
    for (std::string_view const element : {"proto=http;host=\"x;for=9.9.9.9;y\";for=198.51.100.7",
                                           "host=\"x\\\";for=9.9.9.9;y\";for=198.51.100.7",
                                           "host=\"x, for=9.9.9.9;y\" ; for=\"198.51.100.7\""}) {
        EXPECT_EQ(who("10.0.0.1", {{"Forwarded", element}}), "198.51.100.7") << element;
    }
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "host=\"x;for=9.9.9.9"}}), "10.0.0.1");
}

// Whatever a client leaves open, its proxy adds who it is behind that, on the same line.
TEST_F(Tenants, WhoLeavesAQuoteOpenIsNotWhoHeSays) {
    key({"address"});
    trust("10.0.0.0/8");
    for (std::string const list :
         {"for=9.9.9.9;host=\", for=198.51.100.7", "for=9.9.9.9;host=\"\\, for=198.51.100.7",
          "for=9.9.9.9, host=\", for=\"[2001:db9::1]:80\"",
          "for=9.9.9.9;host=\", for=\"[2001:db9::1]:80\"",
          "for=9.9.9.9;host=\", for=198.51.100.7;host=\"a\\\"b\""}) {
        EXPECT_EQ(who("10.0.0.1", {{"Forwarded", list}}), "10.0.0.1") << list;
        EXPECT_EQ(who("10.0.0.1", {{"Forwarded", list}, {"Forwarded", "for=10.0.0.2"}}), "10.0.0.2")
            << list;
    }
    for (std::string const own : {"\"", "9.9.9.9, \"", "\"9.9.9.9", "\"\\"}) {
        EXPECT_EQ(who("10.0.0.1", {{"X-Forwarded-For", own + ", 198.51.100.7"}}), "198.51.100.7")
            << own;
    }
}

// A proxy that writes one of the two may pass the other one on as it came: nobody can choose whose
// its requests are by sending that.
TEST_F(Tenants, TwoFieldsThatDoNotAgreeAreNotBelieved) {
    key({"address"});
    trust("10.0.0.0/8");
    field const usual{"X-Forwarded-For", "198.51.100.7"};
    EXPECT_EQ(who("10.0.0.1", {usual}), "198.51.100.7");
    EXPECT_EQ(who("10.0.0.1", {usual, {"Forwarded", "for=198.51.100.7;proto=https"}}),
              "198.51.100.7");
    EXPECT_EQ(who("10.0.0.1", {usual, {"Forwarded", "for=203.0.113.1"}}), "10.0.0.1");
    EXPECT_EQ(who("10.0.0.1", {{"Forwarded", "for=203.0.113.2"}, usual}), "10.0.0.1");
    EXPECT_EQ(who("10.0.0.1", {usual, {"Forwarded", "nonsense"}}), "10.0.0.1");
    EXPECT_EQ(who("192.0.2.1", {usual, {"Forwarded", "for=203.0.113.1"}}), "192.0.2.1");
}

TEST_F(Tenants, AnIPv6ClientIsItsNetwork) {
    key({"address"});
    EXPECT_EQ(who("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
}

TEST_F(Tenants, PathsAndRoutesNameTenants) {
    key({"path:2"});
    EXPECT_EQ(who("192.0.2.1", {}, "/a/b/c?x=/y"), "/a/b");
    EXPECT_EQ(who("192.0.2.1", {}, "/a"), "/a");
    EXPECT_EQ(who("192.0.2.1", {}, "/?q"), "/");
    EXPECT_EQ(who("192.0.2.1", {}, "*"), "-");
    key({"route"});
    EXPECT_EQ(who("192.0.2.1", {}, "/a/b", "/a"), "/a");
    EXPECT_EQ(who("192.0.2.1", {}, "/a/b"), "-");
}

TEST_F(Tenants, APathNamesOneTenantHoweverItIsSpelled) {
    key({"path:1"});
    for (std::string_view const path :
         {"/acme/x", "/%61cme/x", "/acm%65", "/acme//x", "/acme/./x", "/acme/x/../y", "/acme/x%2Fy",
          "/acme/x\\y%5Cz", "/acme/?x=//../"}) {
        EXPECT_EQ(who("192.0.2.1", {}, path), "/acme") << path;
    }
    EXPECT_EQ(who("192.0.2.1", {}, "/caf%c3%A9/x"), "/caf%c3%a9");
    key({"path:2"});
    EXPECT_EQ(who("192.0.2.1", {}, "/acme/%78/./y"), "/acme/x");
}

TEST_F(Tenants, APathThatCouldBeReadAsThatOfTwoNamesNone) {
    key({"path:1", "address"});
    for (std::string_view const path :
         {"//acme/x", "/./acme/x", "/acme/../x", "/acme/%2e%2E/x", "/acme%2Fx", "/acme\\x",
          "/acme%5cx", "/x\\..\\acme", "/x/..//%61cme"}) {
        EXPECT_EQ(who("192.0.2.1", {}, path), "192.0.2.1") << path;
    }
    key({"path:1 + address"});
    EXPECT_EQ(who("192.0.2.1", {}, "//acme/x"), "-");
    key({"path:2"});
    EXPECT_EQ(who("192.0.2.1", {}, "/acme//x"), "-");
}

TEST_F(Tenants, ATupleNeedsAllOfItsPartsAndKeepsThemApart) {
    key({"header:x-tenant + route", "address + route"});
    trust("10.0.0.1");
    EXPECT_EQ(who("10.0.0.1", {{"x-tenant", "acme"}}, "/", "/api"), "acme|/api");
    EXPECT_EQ(who("10.0.0.1", {}, "/", "/api"), "10.0.0.1|/api");
    EXPECT_EQ(who("10.0.0.1", {{"x-tenant", "a|b\\"}}, "/", "/api"), "a\\|b\\\\|/api");
}

TEST_F(Tenants, LongAndStrangeNamesAreMadeTame) {
    key({"header:x-tenant"});
    trust("10.0.0.1");
    std::string const longer(1000, 'a');
    std::string const other = longer + "b";
    EXPECT_EQ(who("10.0.0.1", {{"x-tenant", longer}}).size(), longest_tenant);
    EXPECT_NE(who("10.0.0.1", {{"x-tenant", longer}}), who("10.0.0.1", {{"x-tenant", other}}));
    EXPECT_EQ(who("10.0.0.1", {{"x-tenant", "caf\xc3\xa9"}}), "caf%c3%a9");
    EXPECT_EQ(tenant_name("<script>"), "<script>");
}

TEST(TenantKey, SaysWhatIsWrong) {
    for (char const* const wrong : {"", "headers", "header:", "header:x y", "path:0", "path:x",
                                    "address:1", "route +", "+", "path:17"}) {
        EXPECT_FALSE(parse_tenant_key(wrong)) << wrong;
    }
    EXPECT_EQ(parse_tenant_key("path")->front().segments, 1U);
}

TEST(Networks, HaveAPrefixOrNone) {
    std::vector<network> const all{*parse_network("10.0.0.0/8"), *parse_network("::1"),
                                   *parse_network("2001:db8::/33")};
    EXPECT_TRUE(contains(all, ip::make_address("10.255.0.1")));
    EXPECT_FALSE(contains(all, ip::make_address("11.0.0.1")));
    EXPECT_TRUE(contains(all, ip::make_address("::1")));
    EXPECT_FALSE(contains(all, ip::make_address("::2")));
    EXPECT_TRUE(contains(all, ip::make_address("2001:db8:7fff::1")));
    EXPECT_FALSE(contains(all, ip::make_address("2001:db8:8000::1")));
    EXPECT_TRUE(contains({*parse_network("0.0.0.0/0")}, ip::make_address("1.2.3.4")));
    // As a system that listens to both writes those of IPv4.
    EXPECT_TRUE(contains({*parse_network("::ffff:10.0.0.1")}, ip::make_address("10.0.0.1")));
    EXPECT_TRUE(contains({*parse_network("::ffff:10.0.0.0/104")}, ip::make_address("10.1.2.3")));
    EXPECT_FALSE(contains({*parse_network("::ffff:10.0.0.0/104")}, ip::make_address("11.1.2.3")));
    for (char const* const wrong :
         {"", "10.0.0.0/33", "10.0.0", "a.b.c.d", "::/129", "10.0.0.0/"}) {
        EXPECT_FALSE(parse_network(wrong)) << wrong;
    }
}

}  // namespace
}  // namespace rondo::http
