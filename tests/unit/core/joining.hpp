// joining.hpp: a set of tasks that end when they are told to, and who joins them.
#pragma once

#include <gtest/gtest.h>

#include <expected>
#include <optional>

#include "rondo/core/join_set.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo::test {

using result = std::expected<int, join_error>;

inline task<int> wait_and_answer(permits& p, int n) {
    auto got = co_await p.acquire();
    got.forget();
    co_return n;
}
inline task<int> answer(int n) { co_return n; }
inline task<result> next(join_set<int>& set) { co_return co_await set.join_next(); }

class joining : public testing::Test {
  protected:
    // Nothing is left behind in the loop.
    void TearDown() override {
        set.stop_all();
        loop.run_ready();
    }

    // What join_next() gives a task, once everything has run that can.
    std::optional<result> joined() {
        auto handle = spawn(loop, next(set));
        loop.run_ready();
        if (!handle.ended()) {
            handle.request_stop();
            loop.run_ready();
            return std::nullopt;
        }
        return handle.blocking_join().value();
    }

    manual_loop loop;
    permits gate{0};
    join_set<int> set{loop};
};

}  // namespace rondo::test
