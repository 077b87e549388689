#include "plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace rondo::gateway {

namespace {

using levels = std::array<std::string_view, 9>;
constexpr levels blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr levels ascii{" ", ".", ":", "-", "=", "+", "*", "#", "@"};

// Also of what is no number, as infinity divided by itself.
double from_0_to_1(double part) { return part > 0 ? std::min(part, 1.0) : 0; }

}  // namespace

std::string bar(double part, std::size_t width, bool unicode, std::optional<double> mark) {
    auto const columns = [width](double of) {
        return static_cast<std::size_t>(from_0_to_1(of) * static_cast<double>(width) + 0.5);
    };
    std::size_t const full = columns(part);
    std::size_t const marked = mark && width > 0 ? std::min(columns(*mark), width - 1) : width;
    std::string all;
    for (std::size_t i = 0; i < width; ++i) {
        if (i == marked) {
            all += '|';
        } else {
            all += i < full ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
        }
    }
    return all;
}

std::string sparkline(series const& s, std::size_t longest, double top, std::size_t width,
                      bool unicode) {
    width = std::min(width, longest);
    struct group {
        std::size_t number;
        double sum;
        double of;
    };
    std::vector<group> groups;
    std::size_t number = s.number_of_last + 1 - s.values.size();
    for (double const v : s.values) {
        std::size_t const which = number++ * width / longest;
        if (groups.empty() || groups.back().number != which) groups.push_back({which, 0, 0});
        groups.back().sum += v;
        ++groups.back().of;
    }
    std::size_t const shown = std::min(width, groups.size());
    std::string all(width - shown, ' ');
    for (auto g = groups.end() - static_cast<std::ptrdiff_t>(shown); g != groups.end(); ++g) {
        double const part = from_0_to_1(g->sum / g->of / top);
        all += (unicode ? blocks : ascii)[static_cast<std::size_t>(std::ceil(part * 8))];
    }
    return all;
}

double round_up(double n) {
    if (!(n > 0) || !std::isfinite(n)) return 1;
    double const power = std::pow(10, std::floor(std::log10(n)));
    for (double const k : {1, 2, 5}) {
        if (k * power >= n) return k * power;
    }
    return 10 * power;
}

}  // namespace rondo::gateway
