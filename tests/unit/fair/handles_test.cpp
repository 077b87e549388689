// The table of handles alone. What they are good for is in scheduler_test.cpp.
#include "rondo/fair/detail/handles.hpp"

#include <gtest/gtest.h>

#include "rondo/fair/terms.hpp"

namespace rondo::fair {
namespace {

using detail::entry;
using detail::handle_table;

TEST(FairHandles, ASlotIsUsedAgainForAnotherHandle) {
    handle_table table;
    entry task{terms{}};
    handle const first = table.reserve();
    table.name(first, task);
    table.release(first);
    handle const second = table.reserve();
    table.name(second, task);
    EXPECT_NE(second, first);
    EXPECT_EQ(table.find(first), nullptr);
    EXPECT_EQ(table.find(second), &task);
    EXPECT_EQ(task.handle, 1U);
}

TEST(FairHandles, AHandleThatIsOlderThan2To32OthersNamesNoneOfTheirTasks) {
    handle const oldest = handle_table{}.reserve();
    handle_table later{handle_table::last_generation};
    entry task{terms{}};
    handle const last = later.reserve();
    later.name(last, task);
    EXPECT_EQ(later.find(last), &task);
    later.release(last);
    EXPECT_EQ(later.find(last), nullptr);
    handle const next = later.reserve();  // what comes after the last one is not the first again
    later.name(next, task);
    EXPECT_NE(next, oldest);
    EXPECT_EQ(later.find(oldest), nullptr);
    EXPECT_EQ(later.find(last), nullptr);
    EXPECT_EQ(later.find(next), &task);
}

}  // namespace
}  // namespace rondo::fair
