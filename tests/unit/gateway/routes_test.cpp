#include "rondo/routes.hpp"

#include <gtest/gtest.h>

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

TEST(Route, ThatLooksTheSameWhenDecodedIsAnother) { EXPECT_FALSE(matches("/api", "/%61pi")); }

}  // namespace
}  // namespace rondo::gateway
