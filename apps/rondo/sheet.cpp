#include "sheet.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace rondo::gateway {

namespace {

constexpr std::size_t gap = 1;       // between two columns of a table
constexpr std::size_t fact_gap = 3;  // between two in a flow

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; }

std::size_t length(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

std::string clipped(std::string text, std::size_t width) {
    std::size_t at = 0;
    while (at < text.size() && (width > 0 || continues(text[at]))) {
        if (!continues(text[at++])) --width;
    }
    text.resize(at);
    return text;
}

std::string styled(std::string text, style how, terminal const& on) {
    if (!on.colours || how == style::plain) return text;
    return (how == style::bad ? "\x1b[31m" : "\x1b[1m") + text + "\x1b[0m";
}

// Of the columns of a table; those that are left out have none.
using widths = std::vector<std::size_t>;
constexpr std::size_t left_out = std::numeric_limits<std::size_t>::max();

widths wanted_by(table const& t) {
    widths all;
    for (std::size_t i = 0; i < t.columns.size(); ++i) {
        column const& c = t.columns[i];
        std::size_t w = std::max(c.least, length(c.title.text));
        for (auto const& row : t.rows) w = std::max(w, length(row[i].text));
        all.push_back(w);
    }
    return all;
}

std::size_t sum(widths const& all) {
    std::size_t total = 0;
    std::size_t n = 0;
    for (std::size_t const w : all) {
        if (w == left_out) continue;
        total += w;
        ++n;
    }
    return total + (n > 0 ? (n - 1) * gap : 0);
}

// Takes from the longest texts what the line has too much of, as far as they may be cut.
widths with_texts_cut(widths w, table const& t, std::size_t columns) {
    for (std::size_t excess = sum(w); excess > columns; --excess) {
        std::size_t widest = left_out;
        for (std::size_t i = 0; i < w.size(); ++i) {
            bool const may_be = w[i] != left_out && t.columns[i].what == column::kind::text &&
                                w[i] > t.columns[i].least;
            if (may_be && (widest == left_out || w[i] > w[widest])) widest = i;
        }
        if (widest == left_out) break;
        --w[widest];
    }
    return w;
}

widths fit(table const& t, std::size_t columns) {
    widths wanted = wanted_by(t);
    widths w = with_texts_cut(wanted, t, columns);
    while (sum(w) > columns) {
        std::size_t least = 0;  // the first, which stays
        for (std::size_t i = 1; i < w.size(); ++i) {
            bool const less = least == 0 || t.columns[i].worth < t.columns[least].worth;
            if (w[i] != left_out && less) least = i;
        }
        if (least == 0) {
            w[0] = columns;
            break;
        }
        wanted[least] = left_out;
        w = with_texts_cut(wanted, t, columns);
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
        if (w[i] == left_out || w[i] >= t.columns[i].most) continue;
        w[i] = std::min(t.columns[i].most, w[i] + columns - sum(w));
    }
    return w;
}

std::string text_of(cell const& c, column::kind what, std::size_t width) {
    std::string text = c.drawn ? c.drawn(width) : c.text;
    text = what == column::kind::text ? shortened(std::move(text), width)
                                      : clipped(std::move(text), width);
    std::string const padding(width - length(text), ' ');
    return what == column::kind::number ? padding + text : text + padding;
}

}  // namespace

std::string harmless(std::string_view text) {
    std::string all;
    bool inside = false;  // a character of several bytes, which is one '?'
    for (char const c : text) {
        bool const visible = c >= ' ' && c <= '~';
        if (!inside || !continues(c)) all += visible ? c : '?';
        inside = (static_cast<unsigned char>(c) & 0x80U) != 0;
    }
    return all;
}

std::string without_commands(std::string_view text) {
    std::string all;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        // U+0080 to U+009F are commands too, in UTF-8 C2 80 to C2 9F.
        bool const second = all.ends_with('\xc2') && byte >= 0x80 && byte < 0xa0;
        if (second) all.pop_back();
        all += second || (byte < 0x20 && c != '\n') || byte == 0x7f ? '?' : c;
    }
    return all;
}

std::string shortened(std::string text, std::size_t width) {
    if (text.size() <= width) return text;
    if (width == 0) return "";
    std::size_t const front = width / 2;
    std::size_t const back = width - front - 1;
    return text.substr(0, front) + '~' + text.substr(text.size() - back);
}

lines lay_out(table const& t, terminal const& on) {
    widths const w = fit(t, on.columns);
    auto const line = [&](auto const& cell_at) {
        std::string text;
        for (std::size_t i = 0; i < w.size(); ++i) {
            if (w[i] == left_out) continue;
            if (i > 0) text.append(gap, ' ');
            cell const& c = cell_at(i);
            text += styled(text_of(c, t.columns[i].what, w[i]), c.how, on);
        }
        while (text.ends_with(' ')) text.pop_back();
        return text;
    };
    lines all{styled(line([&](std::size_t i) -> cell const& { return t.columns[i].title; }),
                     style::title, on)};
    for (auto const& row : t.rows) {
        all.push_back(line([&](std::size_t i) -> cell const& { return row[i]; }));
    }
    return all;
}

lines flow(std::vector<cell> const& all, terminal const& on) {
    lines made;
    std::size_t used = 0;
    for (cell const& c : all) {
        std::string text = clipped(c.text, on.columns);
        std::size_t const width = length(text);
        bool const fits = !made.empty() && used + fact_gap + width <= on.columns;
        used = fits ? used + fact_gap + width : width;
        std::string const shown = styled(std::move(text), c.how, on);
        if (fits) {
            made.back().append(fact_gap, ' ').append(shown);
        } else {
            made.push_back(shown);
        }
    }
    return made;
}

std::vector<std::size_t> share_out(std::vector<std::size_t> const& wanted, std::size_t there_are) {
    std::vector<std::size_t> got(wanted.size());
    there_are = std::min(there_are, std::reduce(wanted.begin(), wanted.end()));
    for (std::size_t i = 0; there_are > 0; i = (i + 1) % wanted.size()) {
        if (got[i] == wanted[i]) continue;
        ++got[i];
        --there_are;
    }
    return got;
}

std::string redrawn(lines const& page, bool first) {
    std::string all = first ? "\x1b[2J\x1b[H" : "\x1b[H";
    // A line is cleared before it is written. Behind a line of full width the cursor stands on the
    // last character, and that would be cleared.
    for (std::string const& line : page) all.append("\x1b[K").append(line).append("\n");
    return all + "\x1b[J";
}

}  // namespace rondo::gateway
