// Once_cell: whose initialiser runs, and what becomes of one that fails. What happens when several
// come at once is model-checked in tests/model/sync/once_model_test.cpp.
#include "rondo/sync/once_cell.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/counted.hpp"
#include "support/foreign.hpp"
#include "support/jumpy.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::census;
using test::counted;
using test::foreign;
using test::jumpy;
using test::manual_loop;

using cell_of_int = once_cell<int>;
using bounded = std::expected<int const*, wait_error>;

// Gives `value` when it is told to.
task<int> slowly(notify& go, int& runs, int value) {
    ++runs;
    co_await go.notified();
    co_return value;
}

task<int> get(cell_of_int& cell, notify& go, int& runs, int value) {
    int const* const got = co_await cell.get_or_init([&] { return slowly(go, runs, value); });
    co_return *got;
}

class OnceCell : public testing::Test {
  protected:
    join_handle<int> start(int value) {
        auto t = spawn(loop, get(cell, go, runs, value));
        loop.run_ready();
        return t;
    }

    manual_loop loop;
    cell_of_int cell;
    notify go;
    int runs = 0;
};

// --- set, get, take --------------------------------------------------------------------------

TEST_F(OnceCell, IsEmptyUntilItIsSet) {
    EXPECT_FALSE(cell.initialized());
    EXPECT_EQ(cell.get(), nullptr);
    EXPECT_EQ(cell.get_mut(), nullptr);
    EXPECT_FALSE(cell.take());
    EXPECT_TRUE(cell.set(7));
    EXPECT_TRUE(cell.initialized());
    EXPECT_EQ(*cell.get(), 7);
}

TEST_F(OnceCell, MayBeMadeWithItsValue) {
    cell_of_int const full{7};
    EXPECT_EQ(*full.get(), 7);
}

TEST_F(OnceCell, ASecondValueComesBack) {
    once_cell<std::unique_ptr<int>> owns;
    EXPECT_TRUE(owns.set(std::make_unique<int>(1)));
    auto refused = owns.set(std::make_unique<int>(2));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, set_error<std::unique_ptr<int>>::reason::initialized);
    EXPECT_EQ(*refused.error().value, 2);
    EXPECT_EQ(**owns.get(), 1);
}

TEST_F(OnceCell, AValueIsNotSetWhileAnInitialiserRuns) {
    auto t = start(1);
    auto const refused = cell.set(2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, set_error<int>::reason::initializing);
    EXPECT_EQ(refused.error().value, 2);
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1);
}

TEST_F(OnceCell, WhoIsAloneMayChangeTheValueOrTakeItOut) {
    EXPECT_TRUE(cell.set(1));
    *cell.get_mut() = 2;
    EXPECT_EQ(cell.take(), 2);
    EXPECT_FALSE(cell.initialized());
    EXPECT_TRUE(cell.set(3)) << "it may be filled again";
}

TEST_F(OnceCell, DestroysItsValueOnce) {
    census lives;
    {
        once_cell<counted> holds;
        EXPECT_TRUE(holds.set(counted{lives, 1}));
        EXPECT_EQ(lives.alive(), 1);
        EXPECT_EQ(holds.take()->number, 1);
        EXPECT_EQ(lives.alive(), 0);
        EXPECT_TRUE(holds.set(counted{lives, 2}));
    }
    EXPECT_EQ(lives.alive(), 0);
}

TEST_F(OnceCell, AMoveThatThrowsTakesNothingOut) {
    census lives;
    {
        once_cell<jumpy> holds;
        EXPECT_TRUE(holds.set(jumpy{lives, 3}));
        EXPECT_THROW((void)holds.take(), std::runtime_error);
        EXPECT_TRUE(holds.initialized());
        EXPECT_EQ(lives.alive(), 1);
    }
    EXPECT_EQ(lives.alive(), 0);
    {
        once_cell<jumpy> holds;
        EXPECT_TRUE(holds.set(jumpy{lives, 4}));
        EXPECT_NO_THROW((void)holds.take()) << "it is moved once, and then it is out";
    }
    EXPECT_EQ(lives.alive(), 0);
}

// --- get_or_init -----------------------------------------------------------------------------

TEST_F(OnceCell, TheFirstInitialisesAndTheOthersWaitForIt) {
    auto a = start(1), b = start(2), c = start(3);
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(cell.initialized());
    go.notify_one();
    loop.run_ready();
    for (auto* t : {&a, &b, &c}) EXPECT_EQ(t->blocking_join().value(), 1);
    EXPECT_EQ(runs, 1);
}

TEST_F(OnceCell, AValueThatIsThereIsGivenWithoutTheInitialiser) {
    EXPECT_TRUE(cell.set(7));
    auto t = spawn(loop, get(cell, go, runs, 1));
    EXPECT_TRUE(loop.step());
    EXPECT_EQ(t.blocking_join().value(), 7);
    EXPECT_EQ(runs, 0);
}

TEST_F(OnceCell, AnInitialiserMayBeAPlainFunction) {
    auto t = spawn(loop, [](cell_of_int& of) -> task<int> {
        co_return *co_await of.get_or_init([] { return 7; });
    }(cell));
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 7);
}

TEST_F(OnceCell, EveryoneGetsTheSameObject) {
    auto const where = [](cell_of_int& of) -> task<int const*> {
        co_return co_await of.get_or_init([] { return 7; });
    };
    auto a = spawn(loop, where(cell)), b = spawn(loop, where(cell));
    loop.run_ready();
    EXPECT_EQ(a.blocking_join().value(), cell.get());
    EXPECT_EQ(b.blocking_join().value(), cell.get());
}

// --- initialisers that fail ------------------------------------------------------------------

TEST_F(OnceCell, AStoppedInitialiserHandsOnToTheNext) {
    auto a = start(1), b = start(2), c = start(3);
    a.request_stop();
    loop.run_ready();
    EXPECT_EQ(runs, 2) << "the next one runs its own";
    EXPECT_EQ(a.blocking_join().error(), wait_error::stopped);
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(b.blocking_join().value(), 2);
    EXPECT_EQ(c.blocking_join().value(), 2);
}

TEST_F(OnceCell, WhoIsStoppedInLineIsNotAsked) {
    auto a = start(1), b = start(2), c = start(3);
    b.request_stop();
    a.request_stop();
    loop.run_ready();
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(c.blocking_join().value(), 3);
    EXPECT_EQ(runs, 2);
}

TEST_F(OnceCell, AnExceptionGoesToItsCallerAndTheNextInitialises) {
    auto const throws = [](cell_of_int& of, notify& when) -> task<int> {
        auto const fail = [&]() -> task<int> {
            co_await when.notified();
            throw std::runtime_error{"no"};
        };
        co_return *co_await of.get_or_init(fail);
    };
    auto a = spawn(loop, throws(cell, go));
    loop.run_ready();
    auto b = start(2);
    EXPECT_EQ(runs, 0);
    go.notify_one();
    loop.run_ready();
    EXPECT_THROW((void)a.blocking_join(), std::runtime_error);
    EXPECT_EQ(runs, 1);
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(b.blocking_join().value(), 2);
}

TEST_F(OnceCell, AnErrorGoesToItsCallerAndTheNextInitialises) {
    using fallible = std::expected<int, std::string>;
    using result = std::expected<int const*, std::string>;
    auto const tries = [](cell_of_int& of, notify& when, fallible gives) -> task<result> {
        auto const make = [&]() -> task<fallible> {
            co_await when.notified();
            co_return gives;
        };
        co_return co_await of.get_or_try_init(make);
    };
    auto a = spawn(loop, tries(cell, go, std::unexpected{"no"})),
         b = spawn(loop, tries(cell, go, 2)), c = spawn(loop, tries(cell, go, 3));
    for (int i = 0; i < 2; ++i) {
        loop.run_ready();
        go.notify_one();
    }
    loop.run_ready();
    EXPECT_EQ(a.blocking_join().value().error(), "no");
    EXPECT_EQ(**b.blocking_join().value(), 2);
    EXPECT_EQ(**c.blocking_join().value(), 2);
}

TEST_F(OnceCell, AMoveThatThrowsLeavesItEmpty) {
    census lives;
    for (int const nth : {1, 2}) {
        once_cell<jumpy> holds;
        EXPECT_THROW((void)holds.set(jumpy{lives, nth}), std::runtime_error);
        EXPECT_FALSE(holds.initialized());
        EXPECT_TRUE(holds.set(jumpy{lives, jumpy::never})) << "nobody is said to be at it";
    }
    once_cell<jumpy> holds;
    auto const throws = [&] { return jumpy{lives, 2}; };
    EXPECT_THROW((void)holds.blocking_get_or_init(throws), std::runtime_error);
    EXPECT_FALSE(holds.initialized());
    EXPECT_NE(holds.blocking_get_or_init([&] { return jumpy{lives, jumpy::never}; }), nullptr);
}

// --- bounds ----------------------------------------------------------------------------------

TEST_F(OnceCell, ATokenOrADeadlineStopsTheInitialiserOrTheWait) {
    stop_source source;
    auto makes =
        spawn(loop, [](cell_of_int& of, notify& when, int& n, stop_token t) -> task<bounded> {
            auto const make = [&] { return slowly(when, n, 1); };
            co_return co_await of.get_or_init(make, t);
        }(cell, go, runs, source.token()));
    auto waits = spawn(loop, [](cell_of_int& of) -> task<bounded> {
        auto const make = [] { return 2; };
        co_return co_await of.get_or_init_for(make, 1s);
    }(cell));
    loop.advance(1s);
    EXPECT_EQ(waits.blocking_join().value().error(), wait_error::timed_out);
    source.request_stop();
    loop.run_ready();
    EXPECT_EQ(makes.blocking_join().value().error(), wait_error::stopped);
    auto last = spawn(loop, [](cell_of_int& of, time_point d, stop_token t) -> task<bounded> {
        auto const make = [] { return 3; };
        co_return co_await of.get_or_init_until(make, d, t);
    }(cell, loop.now() + 1s, {}));
    loop.run_ready();
    EXPECT_EQ(**last.blocking_join().value(), 3);
}

TEST_F(OnceCell, TheTryFormsHaveBoundsToo) {
    using fallible = std::expected<int, char>;
    using result = std::expected<std::expected<int const*, char>, wait_error>;
    stop_source source;
    source.request_stop();
    auto t = spawn(loop, [](cell_of_int& of, notify& when, stop_token token) -> task<int> {
        auto const never = [&]() -> task<fallible> {
            co_await when.notified();
            co_return 1;
        };
        auto const fails = []() -> fallible { return std::unexpected{'x'}; };
        result const stopped = co_await of.get_or_try_init(never, token);
        result const late = co_await of.get_or_try_init_for(never, 1s);
        result const failed = co_await of.get_or_try_init_until(fails, time_point::max());
        int right = stopped.error() == wait_error::stopped ? 1 : 0;
        right += late.error() == wait_error::timed_out ? 1 : 0;
        right += failed->error() == 'x' ? 1 : 0;
        co_return right;
    }(cell, go, source.token()));
    loop.advance(1s);
    EXPECT_EQ(t.blocking_join().value(), 3);
    EXPECT_FALSE(cell.initialized());
}

TEST_F(OnceCell, LosingAWhenAnyHandsOnToTheNext) {
    notify other;
    auto a = spawn(loop, [](cell_of_int& of, notify& when, int& n, notify& o) -> task<std::size_t> {
        auto const make = [&] { return slowly(when, n, 1); };
        auto const first = co_await when_any(of.get_or_init(make), o.notified());
        co_return first.index();
    }(cell, go, runs, other));
    loop.run_ready();
    auto b = start(2);
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(a.blocking_join().value(), 1U);
    EXPECT_EQ(runs, 2);
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(b.blocking_join().value(), 2);
}

// --- other worlds ----------------------------------------------------------------------------

TEST_F(OnceCell, ThreadsInitialiseItInEveryForm) {
    cell_of_int a, b, c, d;
    auto const make = [] { return 1; };
    EXPECT_EQ(*a.blocking_get_or_init(make), 1);
    EXPECT_EQ(**b.blocking_get_or_init(make, stop_token{}), 1);
    EXPECT_EQ(**c.blocking_get_or_init_until(make, time_point::max()), 1);
    EXPECT_EQ(**d.blocking_get_or_init_for(make, 1s), 1);
    EXPECT_EQ(*a.blocking_get_or_init([] { return 2; }), 1);
    auto const fails = []() -> std::expected<int, char> { return std::unexpected{'x'}; };
    cell_of_int e;
    EXPECT_EQ(e.blocking_get_or_try_init(fails).error(), 'x');
    EXPECT_EQ(e.blocking_get_or_try_init(fails, stop_token{})->error(), 'x');
    EXPECT_EQ(e.blocking_get_or_try_init_until(fails, time_point::max())->error(), 'x');
    EXPECT_EQ(e.blocking_get_or_try_init_for(fails, 1s)->error(), 'x');
}

TEST_F(OnceCell, AThreadMayGiveUpWaitingForAnothersInitialiser) {
    auto t = start(1);
    stop_source source;
    source.request_stop();
    auto const make = [] { return 2; };
    EXPECT_EQ(cell.blocking_get_or_init(make, source.token()).error(), wait_error::stopped);
    EXPECT_EQ(cell.blocking_get_or_init_for(make, 1us).error(), wait_error::timed_out);
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value(), 1);
}

TEST_F(OnceCell, ManyThreadsInitialiseItOnce) {
    std::vector<std::thread> threads;
    std::atomic<int> made{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back(
            [&] { EXPECT_EQ(*cell.blocking_get_or_init([&] { return ++made; }), 1); });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(made, 1);
}

TEST_F(OnceCell, AForeignCoroutineInitialisesOrWaits) {
    int a = 0, b = 0;
    auto const gets = [](cell_of_int& of, notify& when, int& n, int& got) -> foreign {
        auto const make = [&] { return slowly(when, n, 7); };
        got = *co_await of.get_or_init(make);
    };
    gets(cell, go, runs, a);
    gets(cell, go, runs, b);
    go.notify_one();
    EXPECT_EQ(a, 7);
    EXPECT_EQ(b, 7);
    EXPECT_EQ(runs, 1);
}

TEST_F(OnceCell, AReadyOneSpendsTheBudget) {
    EXPECT_TRUE(cell.set(7));
    bool others_had_a_turn = false;
    auto t = spawn(loop, [](cell_of_int& of, bool const& others) -> task<int> {
        int gets = 0;
        while (!others) {
            (void)co_await of.get_or_init([] { return 1; });
            ++gets;
        }
        co_return gets;
    }(cell, others_had_a_turn));
    spawn(loop,
          [](bool& mine) -> task<void> {
              mine = true;
              co_return;
          }(others_had_a_turn))
        .detach();
    loop.run_ready();
    EXPECT_LE(t.blocking_join().value(), detail::flow::turn_budget + 1) << "it gave way";
}

// --- recursion -------------------------------------------------------------------------------

using OnceCellDeathTest = OnceCell;

TEST_F(OnceCellDeathTest, AnInitialiserThatWaitsForItsOwnCellIsReported) {
    EXPECT_DEATH(
        {
            auto const recursive = [](cell_of_int& of) -> task<int> {
                auto const again = [&]() -> task<int> {
                    auto const inner = [] { return 1; };
                    co_return *co_await of.get_or_init(inner);
                };
                co_return *co_await of.get_or_init(again);
            };
            block_on(recursive(cell));
        },
        "does not wait for that cell");
}

TEST_F(OnceCellDeathTest, AThreadsInitialiserThatWaitsForItsOwnCellIsReported) {
    EXPECT_DEATH(
        cell.blocking_get_or_init([&] { return *cell.blocking_get_or_init([] { return 1; }); }),
        "does not wait for that cell");
}

}  // namespace
}  // namespace rondo
