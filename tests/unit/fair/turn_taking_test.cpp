// What the lines of fair owe to those who stand in them: the same questions as those of sync.
#include "support/turn_taking.hpp"

#include <gtest/gtest.h>

#include "rondo/fair/gate.hpp"
#include "rondo/fair/gate_limits.hpp"
#include "rondo/fair/scheduler.hpp"

namespace rondo {
namespace {

using test::left_over;

struct gate_acquire {
    static constexpr left_over left = left_over::same;
    static constexpr bool one_waits = false;

    auto next() { return gate.acquire(1); }
    auto next(stop_token t) { return gate.acquire(1, 1, t); }
    void supply() { held->release(); }

    static fair::gate_config<int> one_place() {
        fair::gate_config<int> c;
        c.max_in_flight = 1;
        return c;
    }

    fair::gate<int> gate{one_place()};
    decltype(gate.try_acquire(2)) held = gate.try_acquire(2);
};

struct scheduler_dequeue {
    static constexpr left_over left = left_over::none;
    static constexpr bool one_waits = false;

    auto next() { return queue.dequeue(); }
    auto next(stop_token t) { return queue.dequeue(t); }
    void supply() { EXPECT_TRUE(queue.enqueue(1, 1)); }

    fair::scheduler<int, int> queue{fair::config<int>{}};
};

struct scheduler_enqueue {
    static constexpr left_over left = left_over::none;
    static constexpr bool one_waits = false;

    scheduler_enqueue() { EXPECT_TRUE(queue.enqueue(1, 0)); }
    auto next() { return queue.enqueue_wait(2, 1); }
    auto next(stop_token t) { return queue.enqueue_wait(2, 1, usual, t); }
    void supply() { EXPECT_TRUE(queue.try_dequeue()); }

    static fair::config<int> room_for_one() {
        fair::config<int> c;
        c.max_global = 1;
        c.max_per_tenant = 1;
        c.when_full = fair::backpressure::wait;
        return c;
    }

    fair::terms usual;
    fair::scheduler<int, int> queue{room_for_one()};
};

}  // namespace

namespace test {

using fair_lines = testing::Types<gate_acquire, scheduler_dequeue, scheduler_enqueue>;
INSTANTIATE_TYPED_TEST_SUITE_P(Fair, TurnTaking, fair_lines);

}  // namespace test
}  // namespace rondo
