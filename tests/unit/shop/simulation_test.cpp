// The whole shop, simulated: `./dev sim` runs more of this.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "rondo/sim/seeds.hpp"
#include "simulated_shop.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace rondo::shop::test;
namespace sim = rondo::sim;

#ifdef RONDO_TEST_SANITIZED
constexpr std::uint64_t wanted = 40;
#else
constexpr std::uint64_t wanted = 500;
#endif

// Every fourth seed, so that the parts can run side by side; until enough of them count.
void run_part(std::uint64_t part) {
    std::uint64_t tried = 0;
    std::uint64_t counting = 0;
    std::map<fault, int> happened;
    for (std::uint64_t const seed : sim::seeds(8 * wanted)) {
        bool const replayed = std::getenv("RONDO_SEED") != nullptr;
        if (seed % 4 != part) continue;
        simulation_result const r = simulated_shop{{.seed = seed}}.run();
        ASSERT_EQ(r.violation, "") << "see ./dev sim --seed " << seed << " --trace";
        ++tried;
        if (r.counts) ++counting;
        for (auto const& [f, times] : r.happened) happened[f] += times;
        if (replayed) return;
        if (counting == wanted) break;
    }
    if (tried == 0) return;
    std::printf("%llu runs, %llu of them with a fault while an order was under way\n",
                static_cast<unsigned long long>(tried), static_cast<unsigned long long>(counting));
    EXPECT_EQ(counting, wanted);
    EXPECT_EQ(happened.size(), faults) << "every kind of fault happens";
}

TEST(Simulation, NothingIsLostWhateverHappensPartOne) { run_part(0); }
TEST(Simulation, NothingIsLostWhateverHappensPartTwo) { run_part(1); }
TEST(Simulation, NothingIsLostWhateverHappensPartThree) { run_part(2); }
TEST(Simulation, NothingIsLostWhateverHappensPartFour) { run_part(3); }

TEST(Simulation, TheSameSeedIsTheSameRun) {
    for (std::uint64_t const seed : sim::seeds(5)) {
        simulation_result const one = simulated_shop{{.seed = seed}}.run();
        simulation_result const other = simulated_shop{{.seed = seed}}.run();
        EXPECT_EQ(one.trace, other.trace);
        EXPECT_EQ(one.took, other.took);
        EXPECT_EQ(one.steps, other.steps);
    }
}

}  // namespace
