// counted.hpp: a value that moves only and whose lives are counted, those of moved-from shells too.
#pragma once

#include <utility>

namespace rondo::test {

class census {
  public:
    int alive() const noexcept { return alive_; }

  private:
    friend class counted;
    int alive_ = 0;
};

class counted {
  public:
    counted(census& among, int n) noexcept : number(n), among_(&among) { ++among_->alive_; }
    counted(counted&& other) noexcept
        : number(std::exchange(other.number, -1)), among_(other.among_) {
        ++among_->alive_;
    }
    counted& operator=(counted&& other) noexcept {
        number = std::exchange(other.number, -1);
        return *this;
    }
    ~counted() { --among_->alive_; }

    int number;  // of a shell: -1

  private:
    census* among_;
};

}  // namespace rondo::test
