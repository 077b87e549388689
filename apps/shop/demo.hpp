// demo.hpp: a whole shop as real processes on this machine, with sample orders and a verdict.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace rondo::shop {

struct demo_options {
    bool chaos = false;       // kill processes at random, and start them again
    std::string directory{};  // for the files of the run; a new one in the temporary directory
    std::optional<std::uint64_t> seed{};  // of orders and of who is killed; else a random one
    std::uint32_t robots = 3;
    std::uint32_t screens = 3;
    std::uint32_t orders = 30;  // of each screen
};

// Whether every order came to its end and every invariant holds. The error says why it cannot run.
std::expected<bool, std::string> run_demo(demo_options chosen);

}  // namespace rondo::shop
