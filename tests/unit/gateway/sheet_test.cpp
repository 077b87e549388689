// Text that fits a terminal, whatever is in it.
#include "rondo/sheet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rondo::gateway {
namespace {

using kind = column::kind;
using numbers = std::vector<std::size_t>;

terminal of_width(std::size_t columns) { return {.columns = columns}; }

TEST(Sheet, LetsNoNameCommandTheTerminal) {
    EXPECT_EQ(harmless("a\x1b[2J\r\n\tb\x7f"), "a?[2J???b?");
    // C1, as a byte and in UTF-8; what writes from right to left; what takes two columns or none.
    EXPECT_EQ(harmless("\x9b"
                       "2J"),
              "?2J");
    EXPECT_EQ(harmless("\xc2\x9b"
                       "2J"),
              "?2J");
    EXPECT_EQ(harmless("\xe2\x80\xaetxt"), "?txt");
    EXPECT_EQ(harmless("日本 e\xcc\x81 🙂"), "?? e? ?");
    EXPECT_EQ(harmless("\x80\x80 \xf0"), "? ?");
    EXPECT_EQ(harmless(std::string_view{"\0", 1}), "?");
}

TEST(Sheet, LetsNoAnswerCommandTheTerminalButShowsItsLetters) {
    EXPECT_EQ(without_commands("größe\n\x1b]0;owned\x07\r"), "größe\n?]0;owned??");
    EXPECT_EQ(without_commands("a\xc2\x9b"
                               "2Jb\xc2\xa0\x7f"),
              "a?2Jb\xc2\xa0?");
    EXPECT_EQ(without_commands("à"), "à");  // C3 A0
}

TEST(Sheet, KeepsBothEndsOfWhatIsTooLong) {
    EXPECT_EQ(shortened("2001:db8:1:2::/64", 17), "2001:db8:1:2::/64");
    EXPECT_EQ(shortened("2001:db8:1:2::/64", 9), "2001~:/64");
    EXPECT_EQ(shortened("abc", 1), "~");
    EXPECT_EQ(shortened("abc", 0), "");
}

table some() {
    table t;
    t.columns = {{{.text = "name"}, kind::text, 6},
                 {{.text = "n"}, kind::number, 3, 2},
                 {{.text = "where"}, kind::text, 5, 3},
                 {{.text = "much"}, kind::number, 4, 1}};
    t.rows = {{{.text = "amber"}, {.text = "7"}, {.text = "a long way off"}, {.text = "12345"}}};
    return t;
}

TEST(Sheet, PutsTextsToTheLeftAndNumbersToTheRight) {
    EXPECT_EQ(lay_out(some(), of_width(80)), (lines{"name     n where           much",  //
                                                    "amber    7 a long way off 12345"}));
}

TEST(Sheet, CutsTextsBeforeItLeavesAColumnOut) {
    EXPECT_EQ(lay_out(some(), of_width(25)).at(1), "amber    7 a lo~off 12345");
}

TEST(Sheet, LeavesOutWhatIsWorthLeastAndCutsNoNumber) {
    EXPECT_EQ(lay_out(some(), of_width(20)).at(1), "amber    7 a lo~ off");
    EXPECT_EQ(lay_out(some(), of_width(15)).at(1), "amber  a lo~off");
    EXPECT_EQ(lay_out(some(), of_width(8)).at(1), "amber");
    EXPECT_EQ(lay_out(some(), of_width(3)).at(1), "a~r");
}

TEST(Sheet, GivesAPlotTheRoomThatIsLeft) {
    auto const drawn = [](std::size_t width) { return std::string(width, '*'); };
    table t;
    t.columns = {{{.text = "a"}, kind::text, 2},
                 {{.text = ""}, kind::plot, 3, 1, 8},
                 {{.text = "b"}, kind::number, 2, 2}};
    t.rows = {{{.text = "x"}, {.drawn = drawn}, {.text = "1"}}};
    EXPECT_EQ(lay_out(t, of_width(11)).at(1), "x  *****  1");
    EXPECT_EQ(lay_out(t, of_width(99)).at(1), "x  ********  1");
    EXPECT_EQ(lay_out(t, of_width(8)).at(1), "x   1");
}

TEST(Sheet, MarksWithEscapesOnlyWhereThereAreColours) {
    table t;
    t.columns = {{{.text = "a"}, kind::text, 1}, {{.text = "b"}, kind::text, 4, 1}};
    t.rows = {{{.text = "x"}, {.text = "y", .how = style::bad}}};
    EXPECT_EQ(lay_out(t, {.columns = 9}), (lines{"a b", "x y"}));
    // What is padded is not a part of what is marked for its own sake, but takes no room either.
    EXPECT_EQ(lay_out(t, {.columns = 9, .colours = true}),
              (lines{"\x1b[1ma b\x1b[0m", "x \x1b[31my   \x1b[0m"}));
}

TEST(Sheet, FlowsIntoAsManyLinesAsItTakes) {
    std::vector<cell> const facts{{.text = "one"}, {.text = "two"}, {.text = "a third one"}};
    EXPECT_EQ(flow(facts, of_width(23)), (lines{"one   two   a third one"}));
    EXPECT_EQ(flow(facts, of_width(22)), (lines{"one   two", "a third one"}));
    EXPECT_EQ(flow(facts, of_width(5)), (lines{"one", "two", "a thi"}));
}

TEST(Sheet, SharesRowsOutSoThatNobodyTakesThemFromWhoAsksForLittle) {
    EXPECT_EQ(share_out({21, 2, 9}, 100), (numbers{21, 2, 9}));
    EXPECT_EQ(share_out({21, 2, 9}, 12), (numbers{5, 2, 5}));
    EXPECT_EQ(share_out({21, 0, 9}, 2), (numbers{1, 0, 1}));
    EXPECT_EQ(share_out({21, 2, 9}, 0), (numbers{0, 0, 0}));
    EXPECT_EQ(share_out({}, 5), numbers{});
}

// What a terminal would show: as xterm does it, behind the last column the cursor stays on it until
// the next character comes, and clearing the rest of the line clears that column too.
struct screen {
    explicit screen(std::size_t columns, std::size_t rows)
        : cells(rows, std::string(columns, ' ')) {}

    void write(std::string_view text) {
        while (!text.empty()) {
            std::string_view const escape = text.substr(0, 3);
            if (escape == "\x1b[H") row = column = 0;
            if (escape == "\x1b[K") clear_line();
            if (escape == "\x1b[J" || text.starts_with("\x1b[2J")) clear_below();
            if (text.front() == '\x1b') {
                text.remove_prefix(text.find_first_of("HKJ") + 1);
            } else {
                put(text.front());
                text.remove_prefix(1);
            }
        }
    }
    void put(char c) {
        if (c == '\n') {
            ++row;
            column = 0;
        } else {
            cells.at(row).at(column++) = c;
        }
    }
    void clear_line() {
        for (std::size_t i = std::min(column, cells[0].size() - 1); i < cells[0].size(); ++i) {
            cells.at(row)[i] = ' ';
        }
    }
    void clear_below() {
        clear_line();
        for (std::size_t i = row + 1; i < cells.size(); ++i) cells[i].assign(cells[0].size(), ' ');
    }

    std::vector<std::string> cells;
    std::size_t row = 0;
    std::size_t column = 0;
};

TEST(Sheet, ShowsAPageInPlaceOfTheOneBefore) {
    screen s{4, 4};
    s.write("old ");
    s.write(redrawn({"abcd", "efgh", "ij"}, true));
    EXPECT_EQ(s.cells, (lines{"abcd", "efgh", "ij  ", "    "}));
    s.write(redrawn({"klmn", "o"}, false));
    EXPECT_EQ(s.cells, (lines{"klmn", "o   ", "    ", "    "}));
}

}  // namespace
}  // namespace rondo::gateway
