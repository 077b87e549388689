#include "rondo/http/detail/file_answer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "rondo/http/detail/http_date.hpp"

namespace rondo::http::detail {
namespace {

constexpr file_facts thousand{.size = 1000, .modified_s = 784'111'777, .modified_ns = 5};
constexpr std::string_view its_date = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr std::string_view earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr std::string_view later = "Sun, 06 Nov 1994 08:49:38 GMT";
std::string const its_tag{entity_tag{thousand}.text()};

std::string answer(std::vector<field> const& asked, file_facts const& f = thousand,
                   http::method m = method::get) {
    file_answer const a = answer_for(m, fields{asked}, f);
    std::string text = std::to_string(a.status);
    if (a.status == 200 || a.status == 206) {
        text += " " + std::to_string(a.offset) + "+" + std::to_string(a.length);
    }
    return text;
}

TEST(FileAnswer, IsTheWholeFile) {
    EXPECT_EQ(answer({}), "200 0+1000");
    EXPECT_EQ(answer({}, {.size = 0}), "200 0+0");
}

TEST(EntityTag, ChangesWithSizeTimeAndCoding) {
    EXPECT_EQ(its_tag, "\"2ebc98a1.5-3e8\"");
    file_facts f = thousand;
    f.compressed = true;
    EXPECT_EQ(entity_tag{f}.text(), "\"2ebc98a1.5-3e8-gz\"");
    file_facts const largest{UINT64_MAX, INT64_MIN, UINT32_MAX, true};
    EXPECT_EQ(entity_tag{largest}.text(), "\"8000000000000000.ffffffff-ffffffffffffffff-gz\"");
}

TEST(FileAnswer, IsNotModifiedForWhoHasIt) {
    EXPECT_EQ(answer({{"if-none-match", its_tag}}), "304");
    EXPECT_EQ(answer({{"If-None-Match", "W/" + its_tag}}), "304");
    EXPECT_EQ(answer({{"if-none-match", "\"a\", " + its_tag}}), "304");
    EXPECT_EQ(answer({{"if-none-match", "\"a\""}, {"if-none-match", its_tag}}), "304");
    EXPECT_EQ(answer({{"if-none-match", "\"a,b\" ,\t" + its_tag + ", \"c\""}}), "304");
    EXPECT_EQ(answer({{"if-none-match", "*"}}), "304");
    EXPECT_EQ(answer({{"if-none-match", its_tag}}, thousand, method::head), "304");
}

TEST(FileAnswer, IsTheFileForWhoHasAnother) {
    EXPECT_EQ(answer({{"if-none-match", "\"a\""}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-none-match", ""}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-none-match", "2ebc98a1.5-3e8"}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-none-match", "\"2ebc98a1.5-3e8"}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-none-match", "w/" + its_tag}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-none-match", "*, \"a\""}}), "200 0+1000");
}

TEST(FileAnswer, IsNotModifiedSinceItsTime) {
    EXPECT_EQ(answer({{"if-modified-since", its_date}}), "304");
    EXPECT_EQ(answer({{"if-modified-since", later}}), "304");
    EXPECT_EQ(answer({{"if-modified-since", earlier}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-modified-since", "yesterday"}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-modified-since", later}, {"if-modified-since", later}}), "200 0+1000");
}

TEST(FileAnswer, GoesByTheTagIfThereAreTagAndTime) {
    EXPECT_EQ(answer({{"if-none-match", "\"a\""}, {"if-modified-since", later}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-none-match", its_tag}, {"if-modified-since", earlier}}), "304");
}

TEST(FileAnswer, FailsAPreconditionThatDoesNotHold) {
    EXPECT_EQ(answer({{"if-match", its_tag}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-match", "*"}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-match", "\"a\""}}), "412");
    EXPECT_EQ(answer({{"if-match", "W/" + its_tag}}), "412");
    EXPECT_EQ(answer({{"if-unmodified-since", earlier}}), "412");
    EXPECT_EQ(answer({{"if-unmodified-since", its_date}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-match", its_tag}, {"if-unmodified-since", earlier}}), "200 0+1000");
    EXPECT_EQ(answer({{"if-match", "\"a\""}, {"if-none-match", its_tag}}), "412");
}

TEST(FileAnswer, IsOneRange) {
    EXPECT_EQ(answer({{"range", "bytes=0-0"}}), "206 0+1");
    EXPECT_EQ(answer({{"range", "bytes=0-999"}}), "206 0+1000");
    EXPECT_EQ(answer({{"range", "bytes=10-19"}}), "206 10+10");
    EXPECT_EQ(answer({{"Range", "Bytes= 10-19 "}}), "206 10+10");
    EXPECT_EQ(answer({{"range", "bytes=990-"}}), "206 990+10");
    EXPECT_EQ(answer({{"range", "bytes=990-5000"}}), "206 990+10");
    EXPECT_EQ(answer({{"range", "bytes=-10"}}), "206 990+10");
    EXPECT_EQ(answer({{"range", "bytes=-5000"}}), "206 0+1000");
    EXPECT_EQ(answer({{"range", "bytes=1-99999999999999999999999"}}), "206 1+999");
    EXPECT_EQ(answer({{"range", "bytes=-99999999999999999999999"}}), "206 0+1000");
}

TEST(FileAnswer, CannotSatisfyARangeBehindTheEnd) {
    EXPECT_EQ(answer({{"range", "bytes=1000-"}}), "416");
    EXPECT_EQ(answer({{"range", "bytes=1000-2000"}}), "416");
    EXPECT_EQ(answer({{"range", "bytes=-0"}}), "416");
    EXPECT_EQ(answer({{"range", "bytes=99999999999999999999999-"}}), "416");
}

TEST(FileAnswer, IsTheWholeForARangeThatIsNotOne) {
    for (std::string_view const range :
         {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4", "bytes=0-1,4-5",
          "bytes=0-1, 4-5", "lines=1-2", "bytes=1-2-3", "bytes=+1-2", "bytes=1 - 2", "=1-2",
          "bytes=1-2;x", "bytes=0x1-2"}) {
        EXPECT_EQ(answer({{"range", range}}), "200 0+1000") << range;
    }
    EXPECT_EQ(answer({{"range", "bytes=0-1"}, {"range", "bytes=2-3"}}), "200 0+1000");
    EXPECT_EQ(answer({{"range", "bytes=0-1"}}, {.size = 0}), "200 0+0");
    EXPECT_EQ(answer({{"range", "bytes=-5"}}, {.size = 0}), "200 0+0");
    EXPECT_EQ(answer({{"range", "bytes=0-1"}}, thousand, method::head), "200 0+1000");
}

TEST(FileAnswer, IsARangeOnlyOfTheFileThatTheClientKnows) {
    field const range{"range", "bytes=0-1"};
    EXPECT_EQ(answer({range, {"if-range", its_tag}}), "206 0+2");
    EXPECT_EQ(answer({range, {"if-range", its_date}}), "206 0+2");
    EXPECT_EQ(answer({range, {"if-range", "\"a\""}}), "200 0+1000");
    EXPECT_EQ(answer({range, {"if-range", "W/" + its_tag}}), "200 0+1000");
    EXPECT_EQ(answer({range, {"if-range", later}}), "200 0+1000");
    EXPECT_EQ(answer({range, {"if-range", earlier}}), "200 0+1000");
    EXPECT_EQ(answer({range, {"if-range", its_tag}, {"if-range", its_tag}}), "200 0+1000");
    EXPECT_EQ(answer({{"range", "bytes=5000-"}, {"if-range", "\"a\""}}), "200 0+1000");
}

TEST(FileAnswer, LooksAtConditionsBeforeRanges) {
    EXPECT_EQ(answer({{"range", "bytes=0-1"}, {"if-none-match", its_tag}}), "304");
    EXPECT_EQ(answer({{"range", "bytes=5000-"}, {"if-match", "\"a\""}}), "412");
}

// Every part that one can ask for of small files, against the definition.
TEST(FileAnswer, IsTheRightPartOfEverySmallFile) {
    for (std::uint64_t size = 1; size <= 6; ++size) {
        file_facts const f{.size = size, .modified_s = 1};
        for (std::uint64_t first = 0; first <= 7; ++first) {
            std::string const n = std::to_string(first);
            std::string const from = answer({{"range", "bytes=" + n + "-"}}, f);
            EXPECT_EQ(from, first < size ? "206 " + n + "+" + std::to_string(size - first) : "416");
            std::uint64_t const tail = std::min(first, size);
            std::string const end = answer({{"range", "bytes=-" + n}}, f);
            EXPECT_EQ(end, tail == 0
                               ? "416"
                               : "206 " + std::to_string(size - tail) + "+" + std::to_string(tail));
            for (std::uint64_t last = first; last <= 7; ++last) {
                std::string const part =
                    answer({{"range", "bytes=" + n + "-" + std::to_string(last)}}, f);
                std::uint64_t const length = std::min(last + 1, size) - std::min(first, size);
                EXPECT_EQ(part, length == 0 ? "416" : "206 " + n + "+" + std::to_string(length));
            }
        }
    }
}

bool takes_gzip(std::vector<field> const& asked) { return accepts_gzip(fields{asked}); }

TEST(AcceptsGzip, IfItIsNamedOrEverythingIs) {
    for (std::string_view const value :
         {"gzip", "GZIP", "x-gzip", "deflate, gzip", "br;q=1, gzip;q=0.001", "gzip;q=1.0", "*",
          "identity, *;q=0.1", "gzip ; q=0.5", "*;q=0, gzip"}) {
        EXPECT_TRUE(takes_gzip({{"Accept-Encoding", value}})) << value;
    }
    EXPECT_TRUE(takes_gzip({{"accept-encoding", "br"}, {"accept-encoding", "gzip"}}));
}

TEST(AcceptsGzip, NotOtherwise) {
    EXPECT_FALSE(takes_gzip({}));
    for (std::string_view const value :
         {"", "identity", "br", "gzip;q=0", "gzip;q=0.000", "*;q=0", "gzip;q=0, *", "xgzip",
          "gzipx", "gzip;level=9", "gzip;q=x"}) {
        EXPECT_FALSE(takes_gzip({{"accept-encoding", value}})) << value;
    }
}

}  // namespace
}  // namespace rondo::http::detail
