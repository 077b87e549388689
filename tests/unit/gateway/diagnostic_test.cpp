#include "rondo/diagnostic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace rondo::gateway {
namespace {

constexpr auto words = std::to_array<std::string_view>({"listen", "name", "forward", "serve"});

TEST(Diagnostic, HasFileLineColumnProblemAndAdvice) {
    diagnostic const d{{3, 7}, "it is blue", "make it red"};
    EXPECT_EQ(to_string(d, "a.toml"), "a.toml:3:7: it is blue; make it red");
}

TEST(Diagnostic, OfAWholeFileHasNoPlace) {
    EXPECT_EQ(to_string({{}, "it is not there", ""}, "a.toml"), "a.toml: it is not there");
}

TEST(Nearest, IsTheWordFewEditsAway) {
    EXPECT_EQ(nearest("lisen", words), "listen");
    EXPECT_EQ(nearest("litsen", words), "listen");
    EXPECT_EQ(nearest("Name", words), "name");
    EXPECT_EQ(nearest("forwards", words), "forward");
}

TEST(Nearest, IsNoneIfAllAreFar) { EXPECT_EQ(nearest("colour", words), ""); }

TEST(Nearest, IsNoneIfTwoAreAsNear) {
    constexpr auto pair = std::to_array<std::string_view>({"cat", "car"});
    EXPECT_EQ(nearest("cap", pair), "");
    EXPECT_EQ(nearest("car", pair), "car");
}

TEST(Suggest, ListsWhatThereIsIfNothingIsNear) {
    EXPECT_EQ(suggest("lisen", words), "did you mean 'listen'?");
    EXPECT_EQ(suggest("colour", words), "there are: listen, name, forward, serve");
}

}  // namespace
}  // namespace rondo::gateway
