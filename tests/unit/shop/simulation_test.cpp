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
    int stayed_away = 0;
    std::map<std::string, std::uint64_t> transitions;
    for (std::uint64_t const seed : sim::seeds(8 * wanted)) {
        bool const replayed = std::getenv("RONDO_SEED") != nullptr;
        if (seed % 4 != part) continue;
        simulation_result const r = simulated_shop{{.seed = seed}}.run();
        ASSERT_EQ(r.violation, "") << "see ./dev sim --seed " << seed << " --trace";
        ++tried;
        if (r.counts) ++counting;
        for (auto const& [f, times] : r.happened) happened[f] += times;
        stayed_away += r.stayed_away;
        for (auto const& [what, times] : r.transitions) transitions[what] += times;
        for (auto const& [state, times] : r.steps)
            transitions[state] += static_cast<unsigned>(times);
        for (std::string const& why : r.reasons) transitions["because: " + why] += 1;
        if (replayed) return;
        if (counting == wanted) break;
    }
    if (tried == 0) return;
    std::printf("%llu runs, %llu of them with a fault while an order was under way\n",
                static_cast<unsigned long long>(tried), static_cast<unsigned long long>(counting));
    for (auto const& [f, times] : happened) std::printf("  %s %d", describe(f), times);
    std::printf("  stays away %d\n", stayed_away);
    for (auto const& [what, times] : transitions) {
        std::printf("  %s %llu", what.c_str(), static_cast<unsigned long long>(times));
    }
    std::printf("\n");
    EXPECT_EQ(counting, wanted);
    EXPECT_EQ(happened.size(), faults) << "every kind of fault happens";
    EXPECT_GT(stayed_away, 0);
    if (wanted < 500) return;  // too few for all that is rare
    EXPECT_TRUE(transitions.contains("because: its screen is gone")) << "orders are taken over";
    transitions.erase("token taken away");  // in one of some hundred runs
    for (auto const& [what, times] : transitions) EXPECT_GT(times, 0U) << what;
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
