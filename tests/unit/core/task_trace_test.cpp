// Where a task says that it is, whatever it awaits.
#include "rondo/core/task_trace.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/shield.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using test::permits;
using activity = task_trace::activity;
using namespace std::chrono_literals;

constexpr int unseen = 0;

// The line on which it is called.
int line_here(std::source_location here = std::source_location::current()) {
    return static_cast<int>(here.line());
}

bool names(task_trace::frame const& f, std::string_view function) {
    return f.function.find(function) != std::string::npos &&
           std::string_view{f.file}.ends_with("task_trace_test.cpp");
}

class TaskTrace : public testing::Test {
  protected:
    // The only live task's.
    task_trace only() {
        std::vector<task_trace> all = loop.dump();
        EXPECT_EQ(all.size(), 1U);
        return std::move(all.at(0));
    }
    template <class T>
    task_trace after_a_turn(task<T> t) {
        spawn(loop, std::move(t)).detach();
        loop.run_ready();
        return only();
    }

    // Before the loop: its tasks end with it.
    permits p{0};
    int line = unseen;
    run_loop loop;
};

task<void> take_one(permits& p, int& line) {
    line = line_here() + 1;
    auto const got = co_await p.acquire();
}
task<void> take_in_a_child(permits& p, int& line) {
    co_await yield();
    co_await take_one(p, line);
}

TEST_F(TaskTrace, FollowsTheAwaitsFromTheInnermostOut) {
    task_trace const t = after_a_turn(take_in_a_child(p, line));
    EXPECT_EQ(t.doing, activity::waiting);
    ASSERT_EQ(t.frames.size(), 2U);
    EXPECT_TRUE(names(t.frames[0], "take_one")) << t.frames[0].function;
    EXPECT_TRUE(names(t.frames[1], "take_in_a_child")) << t.frames[1].function;
    EXPECT_EQ(static_cast<int>(t.frames[0].line), line);
    EXPECT_GT(t.frames[1].line, t.frames[0].line);
}

TEST_F(TaskTrace, OfATaskWithoutATurnIsItsDefinition) {
    spawn(loop, take_in_a_child(p, line)).detach();
    task_trace const t = only();
    EXPECT_EQ(t.doing, activity::not_begun);
    ASSERT_EQ(t.frames.size(), 1U);
    EXPECT_TRUE(names(t.frames[0], "take_in_a_child"));
}

TEST_F(TaskTrace, IsUsableForAsLongAsTheTaskLives) {
    (void)after_a_turn(take_in_a_child(p, line));
    p.release();
    EXPECT_EQ(only().doing, activity::waiting) << "woken, but its turn has not come";
    loop.run_ready();
    EXPECT_TRUE(loop.dump().empty());
}

task<void> sleep_a_while() { co_await sleep_for(1h); }

TEST_F(TaskTrace, KnowsASleep) {
    EXPECT_EQ(after_a_turn(sleep_a_while()).doing, activity::sleeping);
}

task<void> give_way_once(run_loop& loop) {
    co_await yield();
    loop.finish();
}
task<void> look_from_inside(run_loop& loop, std::vector<task_trace>& seen) {
    seen = loop.dump();
    co_return;
}

TEST_F(TaskTrace, KnowsAYieldAndWhoAsksRuns) {
    std::vector<task_trace> seen;
    spawn(loop, give_way_once(loop)).detach();
    spawn(loop, look_from_inside(loop, seen)).detach();
    loop.run_ready();
    ASSERT_EQ(seen.size(), 2U);  // the newest first
    EXPECT_EQ(seen[0].doing, activity::running);
    ASSERT_EQ(seen[0].frames.size(), 1U);
    EXPECT_TRUE(names(seen[0].frames[0], "look_from_inside"));
    EXPECT_EQ(seen[1].doing, activity::yielding);
}

task<void> bounded_and_shielded(permits& p, int& line) {
    (void)co_await with_timeout(shield(take_one(p, line)), 1h);
}

TEST_F(TaskTrace, GoesThroughShieldsAndTimeouts) {
    task_trace const t = after_a_turn(bounded_and_shielded(p, line));
    EXPECT_EQ(t.doing, activity::waiting);
    ASSERT_GE(t.frames.size(), 2U);
    EXPECT_TRUE(names(t.frames.front(), "take_one"));
    EXPECT_TRUE(names(t.frames.back(), "bounded_and_shielded"));
    p.release();
    loop.run_ready();
}

task<int> ready_at_once() { co_return 1; }
task<void> fork_in_three(permits& p, int& line) {
    (void)co_await when_all(take_one(p, line), ready_at_once(), sleep_a_while());
}

TEST_F(TaskTrace, OfAForkHasTheBranchesThatHaveNotEnded) {
    task_trace const t = after_a_turn(fork_in_three(p, line));
    EXPECT_EQ(t.doing, activity::forked);
    EXPECT_TRUE(names(t.frames.back(), "fork_in_three"));
    ASSERT_EQ(t.branches.size(), 2U);
    EXPECT_EQ(t.branches[0].doing, activity::waiting);
    EXPECT_TRUE(names(t.branches[0].frames.front(), "take_one"));
    EXPECT_EQ(t.branches[1].doing, activity::sleeping);
}

task<void> fork_a_vector(permits& p, int& line) {
    std::vector<task<void>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(take_one(p, line));
    (void)co_await when_any(std::move(tasks));
    co_await sleep_a_while();
}

TEST_F(TaskTrace, OfATaskPastItsForkIsItsNextWait) {
    EXPECT_EQ(after_a_turn(fork_a_vector(p, line)).branches.size(), 3U);
    p.release();
    loop.run_ready();
    EXPECT_EQ(only().doing, activity::sleeping);
}

task<void> look_past_a_fork(run_loop& loop, std::vector<task_trace>& seen) {
    (void)co_await when_all(ready_at_once(), ready_at_once());
    seen = loop.dump();
}

TEST_F(TaskTrace, OfATaskThatRunsPastItsForkIsRunning) {
    std::vector<task_trace> seen;
    spawn(loop, look_past_a_fork(loop, seen)).detach();
    loop.run_ready();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].doing, activity::running);
}

task<void> look_from_a_branch(run_loop& loop, std::vector<task_trace>& seen) {
    co_await when_all(look_from_inside(loop, seen), sleep_a_while());
}

TEST_F(TaskTrace, CanBeTakenInsideABranch) {
    std::vector<task_trace> seen;
    (void)after_a_turn(look_from_a_branch(loop, seen));
    ASSERT_EQ(seen.size(), 1U);
    ASSERT_EQ(seen[0].branches.size(), 2U);
    EXPECT_EQ(seen[0].branches[0].doing, activity::running);
    EXPECT_EQ(seen[0].branches[1].doing, activity::not_begun);
}

// Suspends whoever awaits it until the test goes on with it.
class door {
  public:
    explicit door(std::coroutine_handle<>& waiting) noexcept : waiting_(waiting) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiting_ = h; }
    int await_resume() const noexcept { return 7; }

  private:
    std::coroutine_handle<>& waiting_;
};

task<void> go_through(std::coroutine_handle<>& waiting, run_loop& loop, task_trace& inside) {
    int const got = co_await door{waiting};
    EXPECT_EQ(got, 7);
    inside = loop.dump().at(0);
    co_await sleep_for(1h);
}

TEST_F(TaskTrace, KnowsAnAwaitableThatIsNotOurs) {
    std::coroutine_handle<> waiting;
    task_trace inside{};
    task_trace const t = after_a_turn(go_through(waiting, loop, inside));
    EXPECT_EQ(t.doing, activity::elsewhere);
    ASSERT_EQ(t.frames.size(), 1U);
    EXPECT_TRUE(names(t.frames[0], "go_through"));
    {
        executor::scope const here{&loop};
        waiting.resume();
    }
    EXPECT_EQ(inside.doing, activity::running);
    EXPECT_EQ(only().doing, activity::sleeping);
}

struct throwing_door {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) { throw std::runtime_error{"stuck door"}; }
    void await_resume() const noexcept {}
};

task<void> try_door(run_loop& loop, std::vector<task_trace>& seen) {
    try {
        co_await throwing_door{};
    } catch (std::runtime_error const&) {
        seen = loop.dump();
    }
}

TEST_F(TaskTrace, OfATaskWhoseAwaitableThrewIsRunning) {
    std::vector<task_trace> seen;
    spawn(loop, try_door(loop, seen)).detach();
    loop.run_ready();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].doing, activity::running);
}

// Looks when it is destroyed, which is while its task unwinds.
class witness {
  public:
    witness(run_loop& loop, std::vector<task_trace>& seen) noexcept : loop_(loop), seen_(seen) {}
    witness(witness const&) = delete;
    witness& operator=(witness const&) = delete;
    ~witness() { seen_ = loop_.dump(); }

  private:
    run_loop& loop_;
    std::vector<task_trace>& seen_;
};

task<void> witnessed(run_loop& loop, std::vector<task_trace>& seen, permits& p, int& line) {
    witness const w{loop, seen};
    co_await take_one(p, line);
}

TEST_F(TaskTrace, CanBeTakenWhileTheTaskUnwinds) {
    std::vector<task_trace> seen;
    auto handle = spawn(loop, witnessed(loop, seen, p, line));
    loop.run_ready();
    handle.request_stop();
    loop.run_ready();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].doing, activity::running);
    ASSERT_EQ(seen[0].frames.size(), 1U);
    EXPECT_TRUE(names(seen[0].frames[0], "witnessed"));
}

TEST_F(TaskTrace, CanBeTakenWhileATaskUnwindsThatNeverWaited) {
    std::vector<task_trace> seen;
    auto handle = spawn(loop, witnessed(loop, seen, p, line));
    handle.request_stop();
    loop.run_ready();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].doing, activity::running);
}

task<void> use_up_the_turn(permits& p, int& line) {
    for (int i = 0; i < detail::flow::turn_budget; ++i) (co_await p.acquire()).forget();
    co_await take_one(p, line);
}

TEST_F(TaskTrace, KnowsAWaitThatFirstGaveWay) {
    p.release(detail::flow::turn_budget);
    task_trace const t = after_a_turn(use_up_the_turn(p, line));
    EXPECT_EQ(t.doing, activity::waiting);
    EXPECT_TRUE(names(t.frames.at(0), "take_one"));
}

TEST_F(TaskTrace, HasTheTaskThatIsBlockedOn) {
    std::vector<task_trace> seen;
    block_on(loop, look_from_inside(loop, seen));
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].doing, activity::running);
    EXPECT_TRUE(names(seen[0].frames.back(), "look_from_inside"));
    EXPECT_TRUE(loop.dump().empty());
}

TEST_F(TaskTrace, ReadsAsText) {
    std::string const text = to_text(after_a_turn(fork_in_three(p, line)));
    EXPECT_EQ(text.find("waits for its branches\n  at "), 0U) << text;
    EXPECT_NE(text.find("\n  waits\n    at "), std::string::npos) << text;
    EXPECT_NE(text.find("take_one"), std::string::npos) << text;
    EXPECT_NE(text.find("task_trace_test.cpp:" + std::to_string(line) + ")\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("\n  sleeps\n"), std::string::npos) << text;
    EXPECT_EQ(to_text(loop.dump()), text);
}

}  // namespace
}  // namespace rondo
