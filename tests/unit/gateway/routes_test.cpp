#include "rondo/routes.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace rondo::gateway {
namespace {

TEST(Route, MatchesBySegment) {
    EXPECT_TRUE(matches("/api", "/api"));
    EXPECT_TRUE(matches("/api", "/api/"));
    EXPECT_TRUE(matches("/api", "/api/x"));
    EXPECT_FALSE(matches("/api", "/apix"));
    EXPECT_FALSE(matches("/api", "/ap"));
    EXPECT_FALSE(matches("/api", "/API"));
    EXPECT_FALSE(matches("/api", "/x/api"));
}

TEST(Route, OfTheRootMatchesEverything) {
    EXPECT_TRUE(matches("/", "/"));
    EXPECT_TRUE(matches("/", "/x/y"));
}

TEST(Route, ThatEndsWithASlashIsBelowIt) {
    EXPECT_TRUE(matches("/api/", "/api/"));
    EXPECT_TRUE(matches("/api/", "/api/x"));
    EXPECT_FALSE(matches("/api/", "/api"));
}

struct spelled {
    std::string_view path;
    std::string_view route;  // "" for none, "?" if it depends on who reads it
};

struct route_at {
    std::string_view uri;
};

void expect_routes(std::initializer_list<spelled> paths, std::vector<route_at> const& routes) {
    for (auto const& [path, expected] : paths) {
        auto const at = route_of(path, routes);
        std::string_view const found = !at ? "?" : *at == routes.size() ? "" : routes[*at].uri;
        EXPECT_EQ(found, expected) << path;
    }
}

TEST(Route, OfAPathIsThatOfAllItsReadings) {
    expect_routes(
        {
            {"/free", "/free"},
            {"/free/x", "/free"},
            {"/freed", "/"},
            {"/%66ree", "/free"},
            {"/fre%65/x", "/free"},
            {"/%2566ree", "/"},
            {"/free%", "/"},
            {"/free/x%2Fy", "/free"},
            {"/free/x\\y%5Cz", "/free"},
            {"/free//x", "/free"},
            {"/free/./x/", "/free"},
            {"/free/x/../y", "/free"},
            {"/free/x/%2e%2E/y", "/free"},
            {"/free/.well-known/...", "/free"},
            {"/slow//x/./y%2F..\\z", "/"},
            {"/slow/../x", "/"},
            {"//slow", "/"},
            {"/", "/"},
            {"//", "/"},
            {"*", ""},

            {"/slow/../free", "?"},
            {"/slow/%2e%2e/free", "?"},
            {"/slow/.%2E/free", "?"},
            {"/slow/x\\..\\..\\free", "?"},
            {"/slow/x%5c..%5c..%5cfree", "?"},
            {"/slow/x%2f..%2f..%2ffree", "?"},
            {"/slow/..//%66ree", "?"},
            {"/slow/..%2Ffree", "?"},
            {"/./free", "?"},
            {"//free", "?"},
            {"/%2Ffree", "?"},
            {"\\free", "?"},
            {"/free%2F", "?"},
            {"/free%2Fx", "?"},
            {"/free\\x", "?"},
            {"/free%5C", "?"},
            {"/free/..", "?"},
            {"/free/../slow", "?"},
            {"/free/..%2fslow", "?"},
            {"/free/%2e%2e/slow", "?"},
            {"/free/x/../../slow", "?"},
            // Who takes all for slashes and who takes none agree, but not who takes only some.
            {"/free/b\\c%2F..%2F..%2Fslow", "?"},
            {"/free/b%5Cc\\..\\..\\slow", "?"},
            {"/free/b%2Fc\\..\\..\\slow", "?"},
            // Merged first, ".." leads out of "free"; otherwise out of the empty segment.
            {"/free//../free/x", "/free"},
            {"/free//../slow", "?"},
        },
        {{"/free"}, {"/"}});
}

TEST(Route, OfAPathMayBeNoneInSomeReadings) {
    expect_routes(
        {
            {"/a/b/x", "/a/b"},
            {"/a/c", ""},
            {"/a/../c", ""},
            {"/a//b", "?"},
            {"/a/./b", "?"},
            {"/a%2Fb", "?"},
            {"/a/b/../c", "?"},
            {"/x/../a/b", "?"},
            {"/a/b/x/../c", "/a/b"},
            // Only who follows dots that are not escaped, and no others, leaves /a/b.
            {"/a/b/../c/%2e%2e/b", "?"},
            // Only who merges slashes after it has followed dots comes to /a/b.
            {"/a//..//b", "?"},
        },
        {{"/a/b"}});
}

TEST(Route, IsTheSameForAllPathsIfThereIsOne) {
    expect_routes({{"/a%2F..\\b//./..//c%5C", "/"}, {"//", "/"}, {"/x/%2e%2e", "/"}}, {{"/"}});
}

}  // namespace
}  // namespace rondo::gateway
