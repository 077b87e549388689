// plots.hpp: numbers drawn in characters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rondo::gateway {

// One number for each second, up to the latest.
struct series {
    std::vector<double> values;
    std::size_t number_of_last = 0;  // counted from the first there ever was
};

// `part` from 0 to 1; `mark`: a place in it that is marked.
std::string bar(double part, std::size_t width, bool unicode, std::optional<double> mark = {});

// The latest at the right. A column shows the mean of the seconds that it stands for, so that
// `longest` of them have room in `width`. Which seconds share one does not depend on what is the
// latest: else the past would change its form each second. From 0 to `top`, and only 0 is blank.
std::string sparkline(series const& s, std::size_t longest, double top, std::size_t width,
                      bool unicode);

// The next round number: 1, 2 or 5 of some power of ten.
double round_up(double n);

}  // namespace rondo::gateway
