// diagnostic.hpp: what is wrong in a configuration file, where, and what to do about it.
//
// A file is read to its end: every error in it is reported, in the order of the file, and nothing
// is started with a file that has one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::gateway {

// Counted from 1. Line 0 is the file as a whole.
struct position {
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    friend auto operator<=>(position const&, position const&) = default;
};

struct diagnostic {
    position at;
    std::string problem;
    std::string advice;  // empty if there is none
};

// "rondo.toml:3:1: unknown key 'lisen' in [[server]]; did you mean 'listen'?"
std::string to_string(diagnostic const& d, std::string_view file);

// The word that was probably meant: few edits away, and nearer than any other. Empty if none is.
std::string_view nearest(std::string_view word, std::span<std::string_view const> known);
// "did you mean 'listen'?", or else "there are: listen, name, ..."
std::string suggest(std::string_view word, std::span<std::string_view const> known);

}  // namespace rondo::gateway
