#include "rondo/http/body.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "malformed.hpp"
#include "support/sanitized.hpp"

namespace rondo::http {
namespace {

struct decoded {
    std::string data;
    std::string trailer;
    std::size_t consumed = 0;
    bool ended = false;
    std::optional<chunk_error> error;
};

// Feeds the decoder with pieces that end at `cut` and at the end, as a connection does: what was
// not consumed comes again.
decoded decode(std::string_view text, std::size_t cut) {
    limits const most;
    chunk_decoder d{most};
    decoded result;
    std::size_t have = std::min(cut, text.size());
    for (;;) {
        auto const step = d.next(text.substr(result.consumed, have - result.consumed));
        if (!step) {
            result.error = step.error();
            return result;
        }
        result.data += step->data;
        result.consumed += step->consumed;
        if (step->ended) {
            result.ended = true;
            result.trailer = d.trailer();
            std::array<field, 16> table;
            if (!scan_trailer(d.trailer(), table)) result.error = chunk_error::bad_trailer;
            return result;
        }
        if (!step->data.empty()) continue;
        if (have == text.size()) return result;
        have = text.size();
    }
}

TEST(ChunkDecoder, GivesTheSameHoweverTheInputIsCut) {
    std::string const text = "4\r\nWiki\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX: a\r\nY: b\r\n\r\n";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        decoded const d = decode(text + "GET /next", cut);
        ASSERT_TRUE(d.ended) << cut;
        EXPECT_FALSE(d.error.has_value());
        EXPECT_EQ(d.data, "Wiki0123456789");
        EXPECT_EQ(d.trailer, "X: a\r\nY: b\r\n\r\n");
        EXPECT_EQ(d.consumed, text.size()) << "it takes nothing of what follows";
    }
}

TEST(ChunkDecoder, RefusesWhatIsMalformedHoweverItIsCut) {
    for (auto const& m : test::malformed_chunks()) {
        std::string_view const body =
            std::string_view{m.bytes}.substr(m.bytes.find("\r\n\r\n") + 4);
#ifdef RONDO_TEST_SANITIZED
        std::size_t const stride = body.size() < 1000 ? 1 : 97;
#else
        std::size_t const stride = 1;
#endif
        for (std::size_t cut = 0; cut <= body.size(); cut += stride) {
            ASSERT_TRUE(decode(body, cut).error.has_value()) << m.what << " cut at " << cut;
        }
    }
}

TEST(ChunkDecoder, WaitsForMoreInsteadOfGuessing) {
    decoded const d = decode("5\r\nabc", 3);
    EXPECT_FALSE(d.ended);
    EXPECT_FALSE(d.error.has_value());
    EXPECT_EQ(d.data, "abc");
}

TEST(ChunkLine, WritesTheSizeInHexadecimal) {
    EXPECT_EQ(chunk_line{0}.text(), "0\r\n");
    EXPECT_EQ(chunk_line{255}.text(), "ff\r\n");
    EXPECT_EQ(chunk_line{UINT64_MAX}.text(), "ffffffffffffffff\r\n");
}

}  // namespace
}  // namespace rondo::http
