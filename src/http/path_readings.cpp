#include "rondo/http/detail/path_readings.hpp"

#include <algorithm>

#include "characters.hpp"

namespace rondo::http::detail {

namespace {

// What some readers see in a path and others do not: bits of a set.
constexpr unsigned escaped_slash = 1;
constexpr unsigned backslash = 2;
constexpr unsigned escaped_backslash = 4;
constexpr unsigned dots = 8;
constexpr unsigned escaped_dots = 16;  // if dots are seen at all
constexpr unsigned runs = 32;          // of slashes
constexpr unsigned runs_late = 64;     // if runs and dots are: only after dots were followed

// So a path of 2 KiB has all of its readings, and one of 32 KiB four. Without it a head that is
// full of peculiarities takes milliseconds.
constexpr std::size_t most_read = std::size_t{128} * 1024;

// Sets that are another one with a condition unmet are left out: the reading is the same.
bool is_of_its_own(unsigned understood) noexcept {
    if ((understood & escaped_dots) != 0 && (understood & dots) == 0) return false;
    return (understood & runs_late) == 0 || (understood & (runs | dots)) == (runs | dots);
}

std::uint8_t peculiarity_of(char byte, bool is_escaped) noexcept {
    if (byte == '\\') return is_escaped ? escaped_backslash : backslash;
    if (!is_escaped) return 0;
    return byte == '/' ? escaped_slash : byte == '.' ? escaped_dots : 0;
}

}  // namespace

path_readings::path_readings(std::string_view path) {
    letters_.reserve(path.size());
    bool after_separator = false;
    for (std::size_t i = 0; i < path.size(); ++i) {
        char byte = path[i];
        bool is_escaped = false;
        if (byte == '%' && path.size() - i >= 3) {
            unsigned const high = hex_value(path[i + 1]);
            unsigned const low = hex_value(path[i + 2]);
            is_escaped = high != 16 && low != 16;
            if (is_escaped) byte = static_cast<char>(high * 16 + low);
        }
        if (is_escaped) i += 2;
        letters_.push_back({byte, peculiarity_of(byte, is_escaped)});
        has_ |= letters_.back().is;
        bool const may_separate = byte == '/' || byte == '\\';
        if (after_separator && may_separate) has_ |= runs;
        if (after_separator && byte == '.') has_ |= dots;
        after_separator = may_separate;
    }
    if ((has_ & runs) != 0 && (has_ & dots) != 0) has_ |= runs_late;
    now_.reserve(path.size());
    understood_ = has_;
    while (!is_of_its_own(understood_)) understood_ = (understood_ - 1) & has_;
    read(understood_);
}

bool path_readings::next() {
    if (read_ + letters_.size() > most_read) return false;
    do {
        if (understood_ == 0) return false;
        understood_ = (understood_ - 1) & has_;
    } while (!is_of_its_own(understood_));
    read(understood_);
    return true;
}

void path_readings::read(unsigned understood) {
    read_ += letters_.size();
    now_.clear();
    std::size_t begins = 0;
    bool is_escaped = false;
    for (letter const l : letters_) {
        bool const may_separate = l.byte == '/' || l.byte == '\\';
        if (may_separate && (l.is & understood) == l.is) {
            end_segment(begins, is_escaped, false, understood);
            begins = now_.size();
            is_escaped = false;
        } else if (l.is == escaped_slash) {
            now_ += "%2F";
        } else {
            now_ += l.byte;
            is_escaped = is_escaped || l.is == escaped_dots;
        }
    }
    end_segment(begins, is_escaped, true, understood);
    if ((understood & runs_late) != 0) {
        auto const rest =
            std::ranges::unique(now_, [](char a, char b) { return a == '/' && b == '/'; });
        now_.erase(rest.begin(), rest.end());
    }
}

// The last one of what was read, from `begins` on: a slash follows it, or it goes, and with it the
// one before if it led up.
void path_readings::end_segment(std::size_t begins, bool is_escaped, bool is_last,
                                unsigned understood) {
    std::string_view const segment = std::string_view{now_}.substr(begins);
    bool const follows =
        (understood & dots) != 0 && (!is_escaped || (understood & escaped_dots) != 0);
    if (follows && (segment == "." || segment == "..")) {
        bool const leads_up = segment == ".." && begins >= 2;
        now_.resize(leads_up ? now_.rfind('/', begins - 2) + 1 : begins);
        return;
    }
    bool const merges = (understood & runs) != 0 && (understood & runs_late) == 0;
    bool const is_in_run = segment.empty() && begins != 0;
    if (!is_last && !(is_in_run && merges)) now_ += '/';
}

}  // namespace rondo::http::detail
