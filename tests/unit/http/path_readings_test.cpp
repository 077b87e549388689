#include "rondo/http/detail/path_readings.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "support/counted_new.hpp"

namespace rondo::http::detail {
namespace {

using texts = std::set<std::string>;

texts all_of(std::string_view path) {
    texts all;
    path_readings readings{path};
    do {
        all.emplace(readings.now());
    } while (readings.next());
    return all;
}

TEST(PathReadings, OfAnOrdinaryPathAreThePathItself) {
    for (std::string_view const path : {"/api/x", "/", "*", "", "/a.b/c..d", "/a/b~c:d;e=f"}) {
        EXPECT_FALSE(may_be_read_otherwise(path)) << path;
        EXPECT_EQ(all_of(path), texts{std::string{path}}) << path;
    }
    test::allocation_count const during;
    auto const is_long = [](std::string_view p) { return p.size() > 40; };
    EXPECT_EQ(in_all_readings("/a/path/that/is/too/long/for/a/string/without/memory", is_long),
              true);
    EXPECT_EQ(during.count(), 0);
}

TEST(PathReadings, AreOneIfOnlyOrdinaryBytesAreEscaped) {
    struct expected {
        std::string_view path;
        std::string read;
    };
    for (auto const& [path, read] : {
             expected{"/%61pi/x", "/api/x"},
             expected{"/a%20b%3F", "/a b?"},
             expected{"/%2561pi", "/%61pi"},
             expected{"/%252F", "/%2F"},
             expected{"/a%2Eb", "/a.b"},
             expected{"/.well-known/x", "/.well-known/x"},
             expected{"/...", "/..."},
             expected{"/%", "/%"},
             expected{"/%4", "/%4"},
             expected{"/%4x", "/%4x"},
         }) {
        EXPECT_TRUE(may_be_read_otherwise(path)) << path;
        EXPECT_EQ(all_of(path), texts{read}) << path;
    }
}

TEST(PathReadings, AreAllThatItMayBeForWhoReadsIt) {
    struct expected {
        std::string_view path;
        texts read;
    };
    for (auto const& [path, read] : {
             expected{"/a%2fb", {"/a%2Fb", "/a/b"}},
             expected{"/a\\b", {"/a\\b", "/a/b"}},
             expected{"/a%5cb", {"/a\\b", "/a/b"}},
             expected{"//a", {"//a", "/a"}},
             expected{"/a//", {"/a//", "/a/"}},
             expected{"/./a", {"/./a", "/a"}},
             expected{"/a/.", {"/a/.", "/a/"}},
             expected{"/x/../a", {"/x/../a", "/a"}},
             expected{"/x/..", {"/x/..", "/"}},
             expected{"/x/%2E%2e/a", {"/x/../a", "/a"}},
             expected{"/../a", {"/../a", "/a"}},
             // Who follows dots where escapes do not count sees a segment in the escaped ones.
             expected{"/x/../a/%2e%2e/b", {"/x/../a/../b", "/a/../b", "/b"}},
             expected{"/x/..%2Fa", {"/x/..%2Fa", "/x/../a", "/a"}},
             // Each of the separators is one of its own.
             expected{"/a%2Fb\\c", {"/a%2Fb\\c", "/a/b\\c", "/a%2Fb/c", "/a/b/c"}},
             expected{"/a%5Cb\\c", {"/a\\b\\c", "/a\\b/c", "/a/b\\c", "/a/b/c"}},
             // A segment may be between two slashes, and dots lead out of it.
             expected{"/a//../b//c", {"/a//../b//c", "/a/../b/c", "/a/b//c", "/a/b/c", "/b/c"}},
         }) {
        EXPECT_TRUE(may_be_read_otherwise(path)) << path;
        EXPECT_EQ(all_of(path), read) << path;
    }
}

TEST(PathReadings, AreAtMostSixtyFour) {
    path_readings readings{"/a%2fb\\c%5Cd//.%2e/../x"};
    int n = 1;
    while (readings.next()) ++n;
    EXPECT_EQ(n, 64);
    EXPECT_TRUE(readings.are_all());
}

// Or a long path would be work for who reads it out of proportion to that of who sent it.
TEST(PathReadings, OfALongPathAreGivenUp) {
    auto const begins = [](std::string_view p) { return p.starts_with("/a"); };
    std::string const most = "/a/x/y%2fb\\c%5Cd//.%2e/./z";
    std::string const one = "/a%2fb";
    for (std::size_t const size : {1024U, 2000U, 30'000U}) {
        std::string const rest(size, 'x');
        bool const all = size <= 2000;
        EXPECT_EQ(in_all_readings(most + rest, begins).has_value(), all) << size;
        EXPECT_TRUE(in_all_readings(one + rest, begins).has_value()) << size;
    }
}

TEST(PathReadings, SayWhatIsTheSameInAllOfThem) {
    auto const ends_with_b = [](std::string_view p) { return p.ends_with('b'); };
    EXPECT_EQ(in_all_readings("/a/b", ends_with_b), true);
    EXPECT_EQ(in_all_readings("/a//%62", ends_with_b), true);
    EXPECT_EQ(in_all_readings("/a//c", ends_with_b), false);
    EXPECT_EQ(in_all_readings("/b/.", ends_with_b), false);
    EXPECT_EQ(in_all_readings("/b/c/..", [](std::string_view p) { return p.size(); }),
              std::nullopt);
}

}  // namespace
}  // namespace rondo::http::detail
