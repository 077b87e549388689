#include "rondo/http/detail/mime.hpp"

#include <gtest/gtest.h>

namespace rondo::http::detail {
namespace {

TEST(MediaType, IsKnownByTheEndOfTheName) {
    EXPECT_EQ(media_type_of("index.html"), "text/html; charset=utf-8");
    EXPECT_EQ(media_type_of("a/b/app.min.js"), "text/javascript; charset=utf-8");
    EXPECT_EQ(media_type_of("PHOTO.JPG"), "image/jpeg");
    EXPECT_EQ(media_type_of("x.7z"), "application/x-7z-compressed");
    EXPECT_EQ(media_type_of("x.zst"), "application/zstd");
}

TEST(MediaType, OfWhatIsNotKnownIsBytes) {
    for (auto const* name : {"", "README", "a.", ".html", "a/.css", "x.unknown", "a.b/c",
                             "x.averyveryverylongending"}) {
        EXPECT_EQ(media_type_of(name), "application/octet-stream") << name;
    }
}

}  // namespace
}  // namespace rondo::http::detail
