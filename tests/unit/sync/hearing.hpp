// hearing.hpp: who waits in line at a notify, and notes what it hears.
#pragma once

#include <gtest/gtest.h>

#include <expected>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/notify.hpp"
#include "support/manual_loop.hpp"

namespace rondo::test {

using names = std::vector<int>;
using outcome = std::expected<void, wait_error>;

inline task<void> hear(notify& n, names& heard, int who) {
    co_await n.notified();
    heard.push_back(who);
}

// Several waiters in line, in the order of their numbers.
class hearing : public testing::Test {
  protected:
    join_handle<void> wait_in_line(int who) {
        auto t = spawn(loop, hear(n, heard, who));
        loop.run_ready();
        return t;
    }

    manual_loop loop;
    notify n;
    names heard;
};

}  // namespace rondo::test
