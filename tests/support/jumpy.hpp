// jumpy.hpp: a value that throws when it is moved for the n-th time, and whose lives are counted.
#pragma once

#include <stdexcept>
#include <utility>

#include "support/counted.hpp"

namespace rondo::test {

class jumpy {
  public:
    static constexpr int never = -1;

    jumpy(census& among, int nth_move) noexcept : moves_left_(nth_move), life_(among, 0) {}
    jumpy(jumpy&& other)
        : moves_left_(one_less(other.moves_left_)), life_(std::move(other.life_)) {}

  private:
    static int one_less(int moves_left) {
        if (moves_left == 1) throw std::runtime_error{"moved"};
        return moves_left - 1;
    }

    int moves_left_;
    counted life_;
};

}  // namespace rondo::test
