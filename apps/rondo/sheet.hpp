// sheet.hpp: text that fits a terminal, whatever is in it and however narrow it is.
//
// Invariant  each character takes one column: names are made harmless() first, and what is ours is
//            ASCII and blocks. So a line is as wide as it has characters, and no terminal has
//            another opinion, as they have on emoji, combining marks and letters of East Asia.
// Narrow     texts are cut, numbers never: a number that lacks a digit is another number. Columns
//            are left out instead, those that are worth least first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::gateway {

struct terminal {
    std::size_t columns = 120;
    std::size_t rows = 0;  // 0: there is no end, as in a file
    bool colours = false;  // with escapes of ANSI
    bool unicode = false;  // with blocks; else ASCII only
};

enum class style : std::uint8_t { plain, title, bad };

struct cell {
    std::string text = {};
    style how = style::plain;
    // Instead of a text: what is drawn in so many columns.
    std::function<std::string(std::size_t width)> drawn = {};
};

struct column {
    enum class kind : std::uint8_t { text, number, plot };

    cell title;
    kind what = kind::number;
    std::size_t least = 0;  // columns; a text is cut down to it, and what needs more gets more
    int worth = 0;          // who is worth least is left out first, but never the first column
    std::size_t most = 0;   // of a plot, which takes what the others leave
};

struct table {
    std::vector<column> columns;
    std::vector<std::vector<cell>> rows;
};

using lines = std::vector<std::string>;

// In visible ASCII, whoever wrote it: another character becomes a '?', be it a command to the
// terminal or a letter.
std::string harmless(std::string_view text);
// As it is, in lines and with letters of any language, but for what commands a terminal.
std::string without_commands(std::string_view text);
// Both ends of an ASCII text, which tell names apart: those of addresses differ at their end.
std::string shortened(std::string text, std::size_t width);

// A line of titles, then one for each row.
lines lay_out(table const& t, terminal const& on);
// One after the other, in as many lines as it takes.
lines flow(std::vector<cell> const& all, terminal const& on);

// How many rows each gets who wants so many, if there are so many: all that it wants, or no fewer
// than any other.
std::vector<std::size_t> share_out(std::vector<std::size_t> const& wanted, std::size_t there_are);

// What is written to a terminal to show a page in place of the one before, without flicker.
std::string redrawn(lines const& page, bool first);

}  // namespace rondo::gateway
