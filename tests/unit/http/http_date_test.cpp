#include "rondo/http/detail/http_date.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace rondo::http::detail {
namespace {

constexpr std::int64_t then = 784'111'777;  // the date that RFC 9110 has as an example

TEST(HttpDate, IsWrittenInTheUsualForm) {
    EXPECT_EQ(http_date{then}.text(), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(http_date{0}.text(), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(http_date{951'782'400}.text(), "Tue, 29 Feb 2000 00:00:00 GMT");
    EXPECT_EQ(http_date{253'402'300'799}.text(), "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST(HttpDate, OutsideOfWhatCanBeWrittenIsTheNearest) {
    EXPECT_EQ(http_date{-5}.text(), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(http_date{INT64_MAX}.text(), "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST(HttpDate, IsReadInThreeForms) {
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), then);
    EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), then);
    EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994"), then);
    EXPECT_EQ(parse_http_date("Wed Nov 16 08:49:37 1994"), then + 10 * 86'400);
    EXPECT_EQ(parse_http_date("Saturday, 01-Jan-00 00:00:00 GMT"), 946'684'800);
}

TEST(HttpDate, ReadsWhatItWrites) {
    for (std::int64_t t = 0; t < 4'000'000'000; t += 86'400 * 13 + 4711) {
        EXPECT_EQ(parse_http_date(http_date{t}.text()), t);
    }
}

TEST(HttpDate, ThatIsNoneIsNone) {
    for (std::string_view const text :
         {"", "Sun", "Sun,", "yesterday", "Sun, 06 Nov 1994 08:49:37",
          "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 GMT ",
          "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
          "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
          "Sun, 06 nov 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
          "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
          "784111777"}) {
        EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace rondo::http::detail
