// left_over.hpp: what a line of waiters has for the next when one has been served. The questions
// that are asked of every line, in unit tests and in models (turn_taking.hpp,
// turn_taking_model.hpp), depend on it.
#pragma once

#include <cstdint>

namespace rondo::test {

// When one in line has been served:
enum class left_over : std::uint8_t {
    same,     // it gives back what it had, and the next has it
    none,     // it keeps what it had: the next needs its own
    all,      // it is there for everybody
    nothing,  // it was the only one that there will ever be
};

}  // namespace rondo::test
