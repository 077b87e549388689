#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "crossing.hpp"
#include "outage.hpp"
#include "replay_program_path.hpp"
#include "rondo/sim/seeds.hpp"

namespace {

using rondo::test::crossing;
namespace sim = rondo::sim;

std::string in_another_process(std::uint64_t seed, int noise) {
    std::string const command =
        "'" REPLAY_PROGRAM "' " + std::to_string(seed) + " " + std::to_string(noise);
    std::FILE* const output = popen(command.c_str(), "r");
    if (output == nullptr) return "cannot start " + command;
    std::array<char, 64> text{};
    std::size_t const length = std::fread(text.data(), 1, text.size(), output);
    if (pclose(output) != 0) return command + " failed";
    return {text.data(), length};
}

std::string here(std::uint64_t seed) {
    crossing c{{.seed = seed}};
    EXPECT_EQ(c.run(), "");
    rondo::test::outage o{seed};
    EXPECT_EQ(o.run(), "");
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(c.world().trace_hash()),
                  static_cast<unsigned long long>(o.digest()));
    return text.data();
}

TEST(Replay, TheSameSeedTakesTheSameTurnsInAnotherProcess) {
    for (std::uint64_t const seed : sim::seeds(5)) {
        SCOPED_TRACE("RONDO_SEED=" + std::to_string(seed));
        std::string const digest = here(seed);
        EXPECT_EQ(in_another_process(seed, 0), digest);
        EXPECT_EQ(in_another_process(seed, 1001), digest);
        EXPECT_NE(in_another_process(seed + 1, 0), digest);
    }
}

}  // namespace
