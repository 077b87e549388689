// A stream of server-sent events, in pieces of any size.
#include "rondo/events.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::gateway {
namespace {

using events = std::vector<std::pair<std::string, std::string>>;

events read(std::string_view stream, std::size_t piece) {
    events all;
    event_reader reader{[&all](std::string_view name, std::string_view data) {
        all.emplace_back(name, data);
        return true;
    }};
    for (std::size_t at = 0; at < stream.size(); at += piece) {
        EXPECT_TRUE(reader.take(stream.substr(at, piece)));
    }
    return all;
}

TEST(Events, AreTheSameInPiecesOfAnySize) {
    std::string_view const stream =
        "event: history\ndata: [1,\ndata: 2]\n\n"
        ": a comment\nid: 7\nevent:status\r\ndata:  {}\r\n\r\n"
        "event: nothing\n\n"
        "data: unnamed\n\ndata: is not complete\n";
    events const expected{{"history", "[1,\n2]"}, {"status", " {}"}, {"", "unnamed"}};
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        EXPECT_EQ(read(stream, piece), expected) << piece;
    }
}

TEST(Events, AreReadUntilThereAreEnough) {
    int seen = 0;
    event_reader reader{[&seen](std::string_view, std::string_view) { return ++seen < 2; }};
    EXPECT_FALSE(reader.take("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
    EXPECT_EQ(seen, 2);
}

TEST(Events, SayHowMuchOfOneIsPending) {
    event_reader reader{[](std::string_view, std::string_view) { return true; }};
    EXPECT_TRUE(reader.take("data: 12345"));
    EXPECT_GE(reader.pending(), 5U);
    EXPECT_TRUE(reader.take("\n"));
    EXPECT_GE(reader.pending(), 5U);
    EXPECT_TRUE(reader.take("\n"));
    EXPECT_EQ(reader.pending(), 0U);
}

}  // namespace
}  // namespace rondo::gateway
