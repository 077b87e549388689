// Cancellation tokens: whom a cancellation reaches, and whom not. What happens when tokens come and
// go meanwhile is model-checked in tests/model/sync/cancellation_model_test.cpp.
#include "rondo/sync/cancellation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/notify.hpp"
#include "support/foreign.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::foreign;
using test::manual_loop;

using outcome = std::expected<void, wait_error>;

task<void> wait_at(cancellation_token t) { co_await t.cancelled(); }

// --- the tree --------------------------------------------------------------------------------

TEST(Cancellation, ReachesCopiesAndCannotBeUndone) {
    cancellation_token t;
    cancellation_token const copy = t;
    EXPECT_FALSE(t.is_cancelled());
    copy.cancel();
    EXPECT_TRUE(t.is_cancelled() && copy.is_cancelled());
    t.cancel();
    EXPECT_TRUE(t.is_cancelled());
}

TEST(Cancellation, ReachesAllDescendantsAndNobodyElse) {
    cancellation_token parent;
    auto a = parent.child_token(), b = parent.child_token();
    auto a1 = a.child_token(), a2 = a.child_token(), b1 = b.child_token();
    auto a11 = a1.child_token();
    a.cancel();
    EXPECT_TRUE(a.is_cancelled() && a1.is_cancelled() && a2.is_cancelled() && a11.is_cancelled());
    EXPECT_FALSE(parent.is_cancelled() || b.is_cancelled() || b1.is_cancelled());
    parent.cancel();
    EXPECT_TRUE(parent.is_cancelled() && b.is_cancelled() && b1.is_cancelled());
}

TEST(Cancellation, AChildOfACancelledTokenIsCancelled) {
    cancellation_token parent;
    parent.cancel();
    auto child = parent.child_token();
    EXPECT_TRUE(child.is_cancelled());
    EXPECT_TRUE(child.child_token().is_cancelled());
}

TEST(Cancellation, ATokenThatGoesCancelsNothingAndItsChildrenAreStillReached) {
    std::optional<cancellation_token> parent{std::in_place}, middle{parent->child_token()};
    auto child = middle->child_token();
    middle.reset();
    EXPECT_FALSE(child.is_cancelled());
    parent->cancel();
    EXPECT_TRUE(child.is_cancelled());
    auto orphan = cancellation_token{}.child_token();
    EXPECT_FALSE(orphan.is_cancelled());
    orphan.cancel();
}

TEST(Cancellation, ChildrenThatGoAreForgottenWhereverTheyAreInTheLine) {
    cancellation_token parent;
    std::vector<std::optional<cancellation_token>> children;
    for (int i = 0; i < 5; ++i) children.emplace_back(parent.child_token());
    for (std::size_t i : {2U, 0U, 4U}) children[i].reset();
    parent.cancel();
    EXPECT_TRUE(children[1]->is_cancelled() && children[3]->is_cancelled());
}

TEST(Cancellation, ADeepTreeNeedsNoStack) {
    cancellation_token root, last = root;
    for (int i = 0; i < 100'000; ++i) last = last.child_token();
    root.cancel();
    EXPECT_TRUE(last.is_cancelled());
    last = cancellation_token{};  // frees the chain
}

TEST(Cancellation, ABroadTreeIsReachedWhole) {
    cancellation_token root;
    std::vector<cancellation_token> all;
    for (int i = 0; i < 100; ++i) {
        auto child = root.child_token();
        for (int j = 0; j < 10; ++j) all.push_back(child.child_token());
    }
    root.cancel();
    for (auto const& t : all) ASSERT_TRUE(t.is_cancelled());
}

TEST(Cancellation, CopiesAreEqualAndHashAlikeChildrenAreNot) {
    cancellation_token a, b;
    cancellation_token const copy = a, child = a.child_token();
    EXPECT_EQ(a, copy);
    EXPECT_NE(a, b);
    EXPECT_NE(a, child);
    std::hash<cancellation_token> const hash;
    EXPECT_EQ(hash(a), hash(copy));
    EXPECT_NE(hash(a), hash(b));
    b = a;
    EXPECT_EQ(a, b);
    cancellation_token const moved = std::move(b);
    EXPECT_EQ(a, moved);
}

// --- stop tokens -----------------------------------------------------------------------------

TEST(Cancellation, ItsStopTokenAsks) {
    manual_loop loop;
    cancellation_token parent;
    auto child = parent.child_token();
    stop_token const token = child;
    EXPECT_EQ(token, child.token());
    auto const sleeps = []() -> task<void> { co_await sleep_for(1h); };
    auto t = spawn(loop, sleeps(), token);
    auto bounded = spawn(
        loop, [](stop_token s) -> task<outcome> { co_return co_await sleep_for(1h, s); }(child));
    loop.run_ready();
    parent.cancel();
    EXPECT_TRUE(token.stop_requested());
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(bounded.blocking_join().value().error(), wait_error::stopped);
}

TEST(Cancellation, ParentsHooksComeBeforeTheirChildrens) {
    cancellation_token parent;
    auto child = parent.child_token();
    std::vector<int> called;
    stop_callback const c{child.token(), [&] { called.push_back(2); }};
    stop_callback const p{parent.token(), [&] { called.push_back(1); }};
    parent.cancel();
    EXPECT_EQ(called, (std::vector<int>{1, 2}));
}

// A hook that is called has been taken off the list, so it needs no token to be removed.
struct drops_tokens : stop_hook {
    explicit drops_tokens(std::vector<std::optional<cancellation_token>>& t)
        : stop_hook(&call), tokens(t) {}
    static void call(stop_hook& hook) noexcept {
        for (auto& t : static_cast<drops_tokens&>(hook).tokens) t.reset();
    }
    std::vector<std::optional<cancellation_token>>& tokens;
};

TEST(Cancellation, AHookMayDropTheTokensThatAreBeingCancelled) {
    cancellation_token const root;
    std::vector<std::optional<cancellation_token>> tokens;
    tokens.emplace_back(root.child_token());
    tokens.emplace_back(tokens[0]->child_token());
    auto const last = tokens[1]->child_token();
    drops_tokens hook{tokens};
    ASSERT_TRUE(tokens[0]->token().add(hook));
    tokens[0]->cancel();
    EXPECT_FALSE(tokens[0].has_value() || tokens[1].has_value());
    EXPECT_TRUE(last.is_cancelled());
    EXPECT_FALSE(root.is_cancelled());
}

// --- waiting ---------------------------------------------------------------------------------

TEST(Cancellation, EveryoneWhoWaitsIsWoken) {
    manual_loop loop;
    cancellation_token parent;
    auto child = parent.child_token();
    std::vector<join_handle<void>> waiting;
    for (int i = 0; i < 100; ++i)
        waiting.push_back(spawn(loop, wait_at(i % 2 == 0 ? parent : child)));
    loop.run_ready();
    parent.cancel();
    EXPECT_FALSE(waiting[0].ended()) << "nobody runs inside cancel()";
    loop.run_ready();
    for (auto& t : waiting) EXPECT_TRUE(t.ended());
    auto late = spawn(loop, wait_at(child));
    EXPECT_TRUE(loop.step());
    EXPECT_TRUE(late.ended());
}

TEST(Cancellation, AWaitMayOutliveItsToken) {
    manual_loop loop;
    cancellation_token parent;
    std::optional<cancellation_token> child{parent.child_token()};
    auto waiting = child->cancelled();
    child.reset();
    auto t = spawn(
        loop, [](decltype(waiting) w) -> task<void> { co_await std::move(w); }(std::move(waiting)));
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    parent.cancel();
    loop.run_ready();
    EXPECT_TRUE(t.ended());
}

TEST(Cancellation, WaitingHasEveryForm) {
    manual_loop loop;
    cancellation_token t;
    stop_source source;
    source.request_stop();
    EXPECT_EQ(t.blocking_cancelled(source.token()).error(), wait_error::stopped);
    EXPECT_EQ(t.blocking_cancelled_for(1us).error(), wait_error::timed_out);
    EXPECT_EQ(t.blocking_cancelled_until(clock::now()).error(), wait_error::timed_out);
    auto waits = spawn(loop, [](cancellation_token on, stop_token s) -> task<int> {
        outcome const stopped = co_await on.cancelled(s);
        outcome const late = co_await on.cancelled_for(1s);
        outcome const in_time = co_await on.cancelled_until(time_point::max());
        co_return (stopped ? 0 : 1) + (late ? 0 : 1) + (in_time ? 1 : 0);
    }(t, source.token()));
    auto stopped = spawn(loop, wait_at(t));
    loop.advance(1s);
    stopped.request_stop();
    loop.run_ready();
    EXPECT_EQ(stopped.blocking_join().error(), wait_error::stopped);
    t.cancel();
    loop.run_ready();
    EXPECT_EQ(waits.blocking_join().value(), 3);
    t.blocking_cancelled();
}

TEST(Cancellation, ThreadsAndForeignCoroutinesWaitToo) {
    cancellation_token t;
    bool resumed = false;
    auto const waits = [](cancellation_token on, bool& done) -> foreign {
        co_await on.cancelled();
        done = true;
    };
    waits(t.child_token(), resumed);
    std::thread thread{[mine = t.child_token()] { mine.blocking_cancelled(); }};
    t.cancel();
    thread.join();
    EXPECT_TRUE(resumed);
}

TEST(Cancellation, LosingAWhenAnyLosesNothing) {
    manual_loop loop;
    cancellation_token t;
    notify other;
    auto first = spawn(loop, [](cancellation_token on, notify& n) -> task<std::size_t> {
        auto const r = co_await when_any(on.cancelled(), n.notified());
        co_return r.index();
    }(t, other));
    loop.run_ready();
    other.notify_one();
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value(), 1U);
    EXPECT_FALSE(t.is_cancelled());
}

// --- run_until_cancelled ---------------------------------------------------------------------

using number = std::expected<int, wait_error>;

task<int> sleeps(bool& unwound, int result) {
    struct at_end {
        bool& said;
        ~at_end() { said = true; }
    };
    at_end const end{unwound};
    co_await sleep_for(1s);
    co_return result;
}

TEST(Cancellation, WhatRunsUntilItIsCancelledEndsOrIsStopped) {
    manual_loop loop;
    cancellation_token t;
    bool first_unwound = false, second_unwound = false;
    auto const runs = [](cancellation_token until, bool& unwound) -> task<number> {
        co_return co_await until.run_until_cancelled(sleeps(unwound, 7));
    };
    auto ends = spawn(loop, runs(t, first_unwound));
    loop.advance(1s);
    EXPECT_EQ(ends.blocking_join().value(), 7);
    auto stopped = spawn(loop, runs(t, second_unwound));
    loop.run_ready();
    t.cancel();
    loop.run_ready();
    EXPECT_TRUE(second_unwound);
    EXPECT_EQ(stopped.blocking_join().value().error(), wait_error::stopped);
}

TEST(Cancellation, WhatIsCancelledAlreadyDoesNotBegin) {
    cancellation_token t;
    t.cancel();
    bool began = false;
    auto const begins = [](bool& did) -> task<void> {
        did = true;
        co_return;
    };
    EXPECT_FALSE(block_on(t.run_until_cancelled(begins(began))));
    EXPECT_FALSE(began);
}

TEST(Cancellation, ItRunsAnyWaitAndPassesOnExceptions) {
    cancellation_token t;
    notify n;
    n.notify_one();
    EXPECT_TRUE(block_on(t.run_until_cancelled(n.notified())));
    auto const throws = []() -> task<void> {
        throw std::runtime_error{"no"};
        co_return;
    };
    EXPECT_THROW((void)block_on(t.run_until_cancelled(throws())), std::runtime_error);
}

// --- drop guards -----------------------------------------------------------------------------

TEST(Cancellation, AGuardCancelsWhenItGoesUnlessItIsDisarmed) {
    cancellation_token a, b, c;
    {
        auto const guard = a.drop_guard();
        EXPECT_EQ(guard.token(), a);
        EXPECT_FALSE(a.is_cancelled());
    }
    EXPECT_TRUE(a.is_cancelled());
    {
        auto guard = b.drop_guard();
        EXPECT_EQ(guard.disarm(), b);
    }
    EXPECT_FALSE(b.is_cancelled());
    {
        auto guard = c.drop_guard();
        {
            auto const moved = std::move(guard);
            EXPECT_FALSE(c.is_cancelled());
        }
        EXPECT_TRUE(c.is_cancelled());
    }
}

}  // namespace
}  // namespace rondo
