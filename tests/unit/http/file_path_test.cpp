#include "rondo/http/detail/file_path.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::http::detail {
namespace {

std::string name_of(std::string_view target) {
    auto const path = file_path_of(target);
    if (!path) return "error";
    return path->name + (path->directory ? "/" : "");
}

TEST(FilePath, IsTheTargetBelowTheRoot) {
    EXPECT_EQ(name_of("/"), "/");
    EXPECT_EQ(name_of("/a"), "a");
    EXPECT_EQ(name_of("/a/"), "a/");
    EXPECT_EQ(name_of("/a/b.txt"), "a/b.txt");
    EXPECT_EQ(name_of("/a?b=/c"), "a");
    EXPECT_EQ(name_of("/?x"), "/");
}

TEST(FilePath, MergesSlashes) {
    EXPECT_EQ(name_of("//etc//passwd"), "etc/passwd");
    EXPECT_EQ(name_of("///"), "/");
    EXPECT_EQ(name_of("/a//"), "a/");
}

TEST(FilePath, IsDecodedOnce) {
    EXPECT_EQ(name_of("/%61"), "a");
    EXPECT_EQ(name_of("/a%20b"), "a b");
    EXPECT_EQ(name_of("/%25%36%31"), "%61");
    EXPECT_EQ(name_of("/%252e%252e/x"), "%2e%2e/x");
    EXPECT_EQ(name_of("/%c3%A4"), "\xc3\xa4");
    EXPECT_EQ(name_of("/a%3fb"), "a?b");
}

TEST(FilePath, RefusesWhatIsNoEscape) {
    for (std::string_view const target :
         {"/%", "/%4", "/%zz", "/a%2", "/%-1", "/% 1", "/%4/1", "/a%?"}) {
        auto const path = file_path_of(target);
        ASSERT_FALSE(path.has_value()) << target;
        EXPECT_EQ(path.error(), path_error::bad_escape) << target;
    }
}

TEST(FilePath, RefusesEncodedSlashesAndControlCharacters) {
    for (std::string_view const target : {"/%2f", "/%2F", "/a%2Fb", "/%2e%2e%2fx", "/%00",
                                          "/a%00.html", "/%0d%0a", "/%1f", "/%7f"}) {
        auto const path = file_path_of(target);
        ASSERT_FALSE(path.has_value()) << target;
        EXPECT_EQ(path.error(), path_error::forbidden_byte) << target;
    }
}

TEST(FilePath, HasNoDotSegments) {
    EXPECT_EQ(name_of("/."), "/");
    EXPECT_EQ(name_of("/./a"), "a");
    EXPECT_EQ(name_of("/a/."), "a/");
    EXPECT_EQ(name_of("/a/.."), "/");
    EXPECT_EQ(name_of("/a/../b"), "b");
    EXPECT_EQ(name_of("/a/b/../c"), "a/c");
    EXPECT_EQ(name_of("/a/b/../../c"), "c");
    EXPECT_EQ(name_of("/a/%2e%2E/b"), "b");
    EXPECT_EQ(name_of("/a/.%2e/b"), "b");
    EXPECT_EQ(name_of("/..."), "...");
    EXPECT_EQ(name_of("/.a"), ".a");
}

TEST(FilePath, DoesNotLeadOutOfTheRoot) {
    for (std::string_view const target : {"/..", "/../", "/../etc/passwd", "/a/../../b",
                                          "/%2e%2e/b", "/.%2e/b", "/./../b", "//../b"}) {
        auto const path = file_path_of(target);
        ASSERT_FALSE(path.has_value()) << target;
        EXPECT_EQ(path.error(), path_error::above_root) << target;
    }
}

TEST(FilePath, AsATargetIsEncodedAndHasOneSlashInFront) {
    EXPECT_EQ(target_of({"", true}), "/");
    EXPECT_EQ(target_of({"a", true}), "/a/");
    EXPECT_EQ(target_of({"a/b", false}), "/a/b");
    EXPECT_EQ(target_of({"a b%?#\xc3\xa4", false}), "/a%20b%25%3F%23%C3%A4");
    // What would lead to another host is a path here.
    EXPECT_EQ(target_of(*file_path_of("//example.com/")), "/example.com/");
}

TEST(FilePath, SurvivesTheWayThereAndBack) {
    for (std::string_view const target : {"/a%20b", "/x/y/", "/%C3%A4%3F", "/%25", "/"}) {
        EXPECT_EQ(target_of(*file_path_of(target)), target);
    }
}

}  // namespace
}  // namespace rondo::http::detail
