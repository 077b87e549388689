// Tasks that spawn tasks, until a million of them are alive at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>

#include "gate.hpp"
#include "rondo/exec/runtime.hpp"
#include "rondo/sync/set_once.hpp"
#include "support/sanitized.hpp"

namespace rondo {
namespace {

using test::gate;

#ifdef RONDO_TEST_SANITIZED
constexpr int generations = 14;
#else
constexpr int generations = 20;
#endif
constexpr std::size_t whole_family = (std::size_t{1} << generations) - 1;

struct fork_bomb {
    set_once<int> fuse;
    std::atomic<std::size_t> born{0};
    std::atomic<std::size_t> gone{0};
    gate all_are_here;
    gate all_have_gone;
    runtime rt{{.workers = 2}};
};

task<void> live(fork_bomb* all, int generations_left) {
    if (generations_left > 1) {
        for (int child = 0; child < 2; ++child) {
            all->rt.spawn(live(all, generations_left - 1)).detach();
        }
    }
    if (all->born.fetch_add(1) + 1 == whole_family) all->all_are_here.open();
    (void)co_await all->fuse.wait();
    if (all->gone.fetch_add(1) + 1 == whole_family) all->all_have_gone.open();
}

TEST(RuntimeStress, AMillionTasksThatSpawnEachOtherAreAliveAndThenEnd) {
    fork_bomb all;
    all.rt.spawn(live(&all, generations)).detach();
    all.all_are_here.wait();
    EXPECT_EQ(all.rt.measure().tasks, whole_family);
    EXPECT_EQ(all.gone, 0U);
    EXPECT_TRUE(all.fuse.set(1));
    all.all_have_gone.wait();
    EXPECT_EQ(all.gone, whole_family);
}

}  // namespace
}  // namespace rondo
