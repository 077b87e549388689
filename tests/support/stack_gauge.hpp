// stack_gauge.hpp: how much stack lies between the places where mark() was called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rondo::test {

class stack_gauge {
  public:
    // Never inlined: what counts is the depth at which it is called.
    [[gnu::noinline]] void mark() noexcept {
        auto const here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        lowest_ = std::min(lowest_, here);
        highest_ = std::max(highest_, here);
        ++marks_;
    }

    std::size_t span() const noexcept { return marks_ == 0 ? 0 : highest_ - lowest_; }
    std::size_t marks() const noexcept { return marks_; }

  private:
    std::uintptr_t lowest_ = UINTPTR_MAX;
    std::uintptr_t highest_ = 0;
    std::size_t marks_ = 0;
};

// Marks the depth at which it is destroyed.
class marks_its_end {
  public:
    explicit marks_its_end(stack_gauge& g) noexcept : gauge_(g) {}
    marks_its_end(marks_its_end const&) = delete;
    marks_its_end& operator=(marks_its_end const&) = delete;
    ~marks_its_end() { gauge_.mark(); }

  private:
    stack_gauge& gauge_;
};

}  // namespace rondo::test
