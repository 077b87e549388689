#include "diagnostic.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>

namespace rondo::gateway {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other
// (optimal string alignment); upper and lower case are the same.
std::size_t edits_between(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::vector<std::size_t> next(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            bool const same = lower(a[i - 1]) == lower(b[j - 1]);
            next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1)});
            bool const swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                                 lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row[b.size()];
}

}  // namespace

std::string to_string(diagnostic const& d, std::string_view file) {
    std::string text{file};
    if (d.at.line != 0) {
        text += ':' + std::to_string(d.at.line) + ':' + std::to_string(d.at.column);
    }
    text += ": " + d.problem;
    if (!d.advice.empty()) text += "; " + d.advice;
    return text;
}

std::string_view nearest(std::string_view word, std::span<std::string_view const> known) {
    std::string_view best;
    std::size_t fewest = std::max<std::size_t>(1, word.size() / 2) + 1;
    bool tie = false;
    for (std::string_view const candidate : known) {
        std::size_t const edits = edits_between(word, candidate);
        if (edits < fewest) {
            best = candidate;
            fewest = edits;
            tie = false;
        } else if (edits == fewest) {
            tie = true;
        }
    }
    return tie ? std::string_view{} : best;
}

std::string suggest(std::string_view word, std::span<std::string_view const> known) {
    std::string_view const meant = nearest(word, known);
    if (!meant.empty()) return "did you mean '" + std::string{meant} + "'?";
    std::string text = "there are: ";
    for (std::string_view const k : known) {
        if (k != known.front()) text += ", ";
        text += k;
    }
    return text;
}

}  // namespace rondo::gateway
