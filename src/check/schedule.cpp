// schedule.cpp: decisions to text and back. The format is in chooser.hpp.

#include <charconv>
#include <cstdio>
#include <string_view>

#include "chooser.hpp"

namespace rondo::check::detail {
namespace {

constexpr std::string_view version = "rondo1";

// Takes the decimal number at the front of `text`; false if there is none.
bool take_number(std::string_view& text, std::uint32_t& value, int base = 10) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{}) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take(std::string_view& text, char expected) {
    if (text.empty() || text.front() != expected) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

bool read_settings(std::string_view& text, schedule_settings& settings) {
    std::uint32_t wakeups = 0;
    std::uint32_t failures = 0;
    std::uint32_t steps = 0;
    if (!take(text, 'w') || !take_number(text, wakeups) || !take(text, 'c') ||
        !take_number(text, failures) || !take(text, 'm') || !take_number(text, steps)) {
        return false;
    }
    settings = {wakeups != 0, failures, steps};
    return true;
}

bool read_path(std::string_view& text, pool<decision>& path) {
    constexpr std::uint32_t longest_run = 1'000'000;
    while (!text.empty() && text.front() >= 'a' && text.front() <= 'z') {
        auto const taken = static_cast<std::uint8_t>(text.front() - 'a');
        text.remove_prefix(1);
        std::uint32_t run = 1;
        if (!text.empty() && text.front() >= '0' && text.front() <= '9' &&
            (!take_number(text, run) || run > longest_run)) {
            return false;
        }
        for (std::uint32_t i = 0; i < run; ++i) {
            path.push({branch::thread, 0, 0, taken});
        }
    }
    return true;
}

}  // namespace

std::string write_schedule(schedule_settings const& settings, pool<decision> const& path) {
    std::string text(version);
    text += ":w" + std::to_string(settings.spurious_wakeups ? 1 : 0);
    text += "c" + std::to_string(settings.spurious_failures);
    text += "m" + std::to_string(settings.max_steps) + ":";
    for (std::size_t i = 0; i < path.size();) {
        std::size_t run = 1;
        while (i + run < path.size() && path[i + run].taken == path[i].taken) {
            ++run;
        }
        text += static_cast<char>('a' + path[i].taken);
        if (run > 1) {
            text += std::to_string(run);
        }
        i += run;
    }
    char hash[16];
    std::snprintf(hash, sizeof hash, ":%08x", static_cast<unsigned>(hash_of(path)));
    return text + hash;
}

std::string read_schedule(std::string const& text, schedule_settings& settings,
                          pool<decision>& path, std::uint32_t& hash) {
    std::string_view rest = text;
    path.clear();
    if (!rest.starts_with(version)) {
        return "it does not start with \"rondo1:\"";
    }
    rest.remove_prefix(version.size());
    if (!take(rest, ':') || !read_settings(rest, settings)) {
        return "its settings are not of the form w<n>c<n>m<n>";
    }
    if (!take(rest, ':') || !read_path(rest, path)) {
        return "its decisions are not letters with optional counts";
    }
    if (!take(rest, ':') || rest.size() != 8 || !take_number(rest, hash, 16) || !rest.empty()) {
        return "it does not end with a hash of 8 hexadecimal digits";
    }
    return {};
}

// FNV-1a over what was to choose and what was chosen.
std::uint32_t hash_of(pool<decision> const& path) {
    std::uint32_t hash = 2'166'136'261U;
    auto const mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 16'777'619U; };
    for (decision const& each : path) {
        mix(static_cast<std::uint8_t>(each.what));
        mix(each.alternatives);
        mix(each.taken);
    }
    return hash;
}

}  // namespace rondo::check::detail
