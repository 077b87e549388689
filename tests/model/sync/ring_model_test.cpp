// Threads that take turns where the counter starts over. Each scenario names the mutant that it is
// there for (tests/mutants/sync/ring.mutants).
#include <array>
#include <cstdint>
#include <vector>

#include "rondo/sync/ring.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

std::uint64_t end_of(std::size_t size) { return round_robin{size}.starts_over_at(); }

// count_on_to_the_end, take_off_at_every_turn_above
TEST(RingModel, EveryoneHasATurnInEachRoundWhereTheCounterStartsOver) {
    EXPECT_HOLDS([] {
        round_robin turns{3, end_of(3) - 1};
        std::array<cell<int>, 6> got;
        thread one{[&] {
            got[0] = static_cast<int>(turns.next());
            got[1] = static_cast<int>(turns.next());
        }};
        thread two{[&] {
            got[2] = static_cast<int>(turns.next());
            got[3] = static_cast<int>(turns.next());
        }};
        got[4] = static_cast<int>(turns.next());
        one.join();
        two.join();
        got[5] = static_cast<int>(turns.next());
        std::array<int, 3> had{};
        for (auto const& g : got) ++had.at(static_cast<std::size_t>(g.read()));
        for (int const h : had) RONDO_CHECK_EXPECT(h == 2);
    });
}

// take_a_turn_in_two_steps
TEST(RingModel, NoTurnIsGivenTwice) {
    EXPECT_HOLDS([] {
        ring<int> r{{10, 20}};
        cell<int> first{0};
        thread other{[&] { first = r.next_ref(); }};
        int const second = r.next_copy();
        other.join();
        RONDO_CHECK_EXPECT(first + second == 30);
    });
}

}  // namespace
}  // namespace rondo
