#include "rondo/routes.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

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

TEST(Route, IsComparedWithThePlainFormOfAPath) {
    EXPECT_FALSE(matches("/api", "/%61pi"));
    EXPECT_TRUE(matches("/api", plain_path("/%61pi")));
    for (std::string_view const path : {"/api/x", "/", "*", "/a.b/c..d", "/a/b~c:d;e=f"}) {
        EXPECT_FALSE(may_be_spelled_otherwise(path)) << path;
    }
    using spelled = std::pair<std::string_view, std::string_view>;
    for (auto const& [path, plain] :
         {spelled{"/%61pi/x", "/api/x"}, spelled{"//api", "/api"}, spelled{"/api//", "/api/"},
          spelled{"/x/../api", "/api"}, spelled{"/x/%2E%2e/api/", "/api/"},
          spelled{"/x/..%2Fapi", "/api"}, spelled{"/x%5c..\\api", "/api"},
          spelled{"/./api", "/api"}, spelled{"/api/.", "/api/"}, spelled{"/api/x/..", "/api/"},
          spelled{"/x/..", "/"}, spelled{"/%2561pi", "/%61pi"},
          spelled{"/.well-known/x", "/.well-known/x"}, spelled{"/...", "/..."}, spelled{"/%", "/%"},
          spelled{"/%4", "/%4"}, spelled{"/../..", "/"}}) {
        EXPECT_TRUE(may_be_spelled_otherwise(path)) << path;
        EXPECT_EQ(plain_path(path), plain) << path;
    }
}

}  // namespace
}  // namespace rondo::gateway
