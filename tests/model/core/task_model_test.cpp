// Tasks, their frames and their executors, explored: who runs what, where, and who frees it.
#include <array>
#include <stdexcept>

#include "rondo/core/block_on.hpp"
#include "rondo/core/run_loop.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/timer_queue.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/model.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using check::thread;
using test::permits;

// Two threads that take jobs in turn, so that branches of one fork run side by side.
class two_loops final : public executor {
  public:
    void post(job& j) noexcept override {
        loops_[next_.fetch_add(1, std::memory_order_relaxed) % 2].post(j);
    }
    timer_service& timers() noexcept override { return loops_[0].timers(); }

    void run(std::size_t i) { loops_[i].run(); }
    void finish() {
        loops_[0].finish();
        loops_[1].finish();
    }

  private:
    std::array<run_loop, 2> loops_;
    atomic<std::size_t> next_{0};
};

// Says on which thread it was destroyed.
class witness {
  public:
    explicit witness(cell<int>& where) : where_(&where) {}
    witness(witness&& other) noexcept : where_(std::exchange(other.where_, nullptr)) {}
    ~witness() {
        if (where_ != nullptr) *where_ = static_cast<int>(check::thread_id());
    }

  private:
    cell<int>* where_;
};

task<int> take_one(permits& p) {
    auto const got = co_await p.acquire();
    co_return 7;
}

task<int> take_one_witnessed(permits& p, witness) {
    int const r = co_await take_one(p);
    co_return r;
}

TEST(TaskModel, APermitReleasedByAThreadResumesTheTaskOnItsLoopWhichMayEndAtOnce) {
    EXPECT_HOLDS([] {
        permits p{0};
        thread releases{[&] { p.release(); }};
        RONDO_CHECK_EXPECT(block_on(take_one(p)) == 7);  // destroys the loop under the releaser
        releases.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(TaskModel, AStopFromAThreadUnwindsTheTaskOnItsOwnExecutor) {
    EXPECT_HOLDS([] {
        permits p{0};
        run_loop loop;
        cell<int> destroyed_on{-1};
        auto handle = spawn(loop, take_one_witnessed(p, witness{destroyed_on}));
        thread stops{[&] { handle.request_stop(); }};
        std::expected<int, wait_error> r =
            block_on(loop, [](auto& h) -> task<std::expected<int, wait_error>> {
                co_return co_await h.join();
            }(handle));
        stops.join();
        RONDO_CHECK_EXPECT(!r && r.error() == wait_error::stopped);
        RONDO_CHECK_EXPECT(destroyed_on == 0);
    });
}

TEST(TaskModel, WhoJoinsAStoppedTaskFindsItsLocalsDestroyed) {
    EXPECT_HOLDS([] {
        permits p{0};
        run_loop loop;
        cell<int> destroyed_on{-1};
        auto handle = spawn(loop, take_one_witnessed(p, witness{destroyed_on}));
        loop.run_ready();
        handle.request_stop();
        thread runs{[&] { loop.run_ready(); }};
        auto const r = handle.blocking_join();
        RONDO_CHECK_EXPECT(!r && destroyed_on == 1);
        runs.join();
    });
}

TEST(TaskModel, AGrantAndAStopMeetAndThePermitIsKeptOrPassedOn) {
    EXPECT_HOLDS([] {
        permits p{0};
        run_loop loop;
        auto handle = spawn(loop, take_one(p));
        thread stops{[&] { handle.request_stop(); }};
        thread releases{[&] { p.release(); }};
        auto const r = block_on(loop, [](auto& h) -> task<std::expected<int, wait_error>> {
            co_return co_await h.join();
        }(handle));
        stops.join();
        releases.join();
        if (!r) RONDO_CHECK_EXPECT(r.error() == wait_error::stopped);
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(TaskModel, ALoopThatIsDestroyedWhileAPermitArrivesLosesNothing) {
    EXPECT_HOLDS([] {
        permits p{0};
        thread releases;
        {
            run_loop loop;
            spawn(loop, take_one(p)).detach();
            loop.run_ready();
            releases = thread{[&] { p.release(); }};
        }
        releases.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(TaskModel, ADetachedTaskAndItsHandleAgreeOnWhoFreesTheRoot) {
    EXPECT_HOLDS([] {
        run_loop loop;
        auto handle = spawn(loop, []() -> task<int> { co_return 1; }());
        thread runs{[&] { loop.run_ready(); }};
        handle.detach();
        runs.join();
    });
}

TEST(TaskModel, AThreadThatJoinsSeesTheResultAndMayDropTheRootLast) {
    EXPECT_HOLDS([] {
        run_loop loop;
        cell<int> data{0};
        auto handle = spawn(loop, [](cell<int>& d) -> task<int> {
            d = 5;
            co_return 1;
        }(data));
        thread runs{[&] { loop.run_ready(); }};
        auto const r = handle.blocking_join();
        RONDO_CHECK_EXPECT(r && *r == 1 && data == 5);
        handle.detach();
        runs.join();
    });
}

TEST(TaskModel, ATaskMayBeResumedByAnotherThreadWhileItIsStillSuspending) {
    EXPECT_HOLDS(
        [] {
            two_loops where;
            permits p{0};
            thread second{[&] { where.run(1); }};
            auto handle = spawn(where, [](two_loops& w, permits& q) -> task<void> {
                {
                    auto const got = co_await q.acquire();
                }
                w.finish();
            }(where, p));
            thread releases{[&] { p.release(); }};
            where.run(0);
            second.join();
            releases.join();
            RONDO_CHECK_EXPECT(handle.ended());
            RONDO_CHECK_EXPECT(p.available() == 1);
        },
        1);
}

TEST(TaskModel, BranchesOfWhenAllEndOnTwoThreadsAndTheParentGoesOnOnce) {
    EXPECT_HOLDS([] {
        two_loops where;
        thread second{[&] { where.run(1); }};
        auto handle = spawn(where, [](two_loops& w) -> task<int> {
            auto [a, b] = co_await when_all([]() -> task<int> { co_return 1; }(),
                                            []() -> task<int> { co_return 2; }());
            w.finish();
            co_return a + b;
        }(where));
        where.run(0);
        second.join();
        RONDO_CHECK_EXPECT(handle.ended());
        RONDO_CHECK_EXPECT(handle.blocking_join().value() == 3);
    });
}

TEST(TaskModel, WhenAnyStopsItsLoserWhichWaitsOnAnotherThread) {
    EXPECT_HOLDS(
        [] {
            two_loops where;
            permits p{0};
            thread second{[&] { where.run(1); }};
            auto handle = spawn(where, [](two_loops& w, permits& q) -> task<std::size_t> {
                auto r = co_await when_any(take_one(q), []() -> task<int> { co_return 2; }());
                w.finish();
                co_return r.index();
            }(where, p));
            where.run(0);
            second.join();
            RONDO_CHECK_EXPECT(handle.blocking_join().value() == 1);
            RONDO_CHECK_EXPECT(p.available() == 0);
        },
        1);
}

TEST(TaskModel, WhenAnyAndAReleaseMeetAndThePermitIsNotLost) {
    EXPECT_HOLDS([] {
        permits p{0}, q{0};
        thread releases{[&] {
            p.release();
            q.release();
        }};
        block_on([](permits& a, permits& b) -> task<void> {
            auto r = co_await when_any(a.acquire(), b.acquire());
        }(p, q));
        releases.join();
        RONDO_CHECK_EXPECT(p.available() == 1 && q.available() == 1);
    });
}

// A box with one letter: whoever takes it must read it.
class letter_box final : wait_queue {
  public:
    class take_op : public waiter {
      public:
        explicit take_op(letter_box& b) noexcept : waiter(b), box_(b) {}
        bool ready() noexcept { return box_.full(); }
        int take() noexcept {
            std::lock_guard const guard{box_.lock()};
            box_.full_ = false;
            return 7;
        }
        void hand_on() noexcept {}

      private:
        letter_box& box_;
    };

    wait<take_op> take() noexcept { return take_op{*this}; }
    void put() noexcept {
        serve([this] { full_ = true; });
    }
    bool full() noexcept {
        std::lock_guard const guard{lock()};
        return full_;
    }

  private:
    bool grant(waiter&) noexcept override { return full_; }

    bool full_ = false;
};

TEST(TaskModel, OfTwoWaitsInAWhenAnyOneTakesItsResultAndTheOtherNone) {
    EXPECT_HOLDS(
        [] {
            two_loops where;
            letter_box a, b;
            b.put();
            thread second{[&] { where.run(1); }};
            spawn(where,
                  [](two_loops& w, letter_box& x, letter_box& y) -> task<void> {
                      (void)co_await when_any(x.take(), y.take());
                      w.finish();
                  }(where, a, b))
                .detach();
            a.put();
            where.run(0);
            second.join();
            RONDO_CHECK_EXPECT(a.full() != b.full());
        },
        1);
}

TEST(TaskModel, WithStopAnswersForATaskThatATokenStopped) {
    EXPECT_HOLDS([] {
        permits p{0};
        stop_source stop;
        thread stops{[&] { stop.request_stop(); }};
        bool const got = block_on([](permits& a, stop_token t) -> task<bool> {
            auto r = co_await with_stop(take_one(a), t);
            co_return r.has_value();
        }(p, stop.token()));
        stops.join();
        RONDO_CHECK_EXPECT(!got);
    });
}

TEST(TaskModel, ATimerIsCancelledOrHasFiredWhenCancelReturns) {
    EXPECT_HOLDS([] {
        struct counting : timer {
            counting()
                : timer([](timer& t) noexcept { ++static_cast<counting&>(t).fired.write(); }) {}
            cell<int> fired{0};
        };
        timer_queue queue{std::chrono::milliseconds{1}, time_point{}};
        thread driver;
        {
            counting t;
            queue.add(t, time_point{std::chrono::seconds{1}});
            driver = thread{[&] { queue.fire_due(time_point{std::chrono::seconds{2}}); }};
            bool const cancelled = queue.cancel(t);
            RONDO_CHECK_EXPECT(t.fired == (cancelled ? 0 : 1));
        }
        driver.join();
    });
}

// A coroutine of another make: no executor, no environment; its owner may destroy it.
class foreign {
  public:
    struct promise_type {
        foreign get_return_object() {
            return foreign{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };

    foreign(foreign&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    ~foreign() {
        if (frame_) frame_.destroy();
    }

  private:
    explicit foreign(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
    std::coroutine_handle<promise_type> frame_;
};

foreign take_abroad(permits& p, cell<int>& resumed_on) {
    auto const got = co_await p.acquire();
    resumed_on = static_cast<int>(check::thread_id());
}

TEST(TaskModel, AForeignCoroutineIsResumedByTheThreadThatWakesIt) {
    EXPECT_HOLDS([] {
        permits p{0};
        cell<int> resumed_on{-1};
        thread starts{[&] {
            foreign const waits = take_abroad(p, resumed_on);
            p.release();  // resumed in here, or not at all
        }};
        starts.join();
        RONDO_CHECK_EXPECT(resumed_on == 1);
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(TaskModel, AForeignCoroutineThatIsDestroyedWhileItWaitsLetsOthersGo) {
    EXPECT_HOLDS([] {
        permits p{0};
        cell<int> resumed_on{-1};
        thread waits{[&] { auto const got = p.blocking_acquire(1); }};
        {
            foreign const gone = take_abroad(p, resumed_on);
        }
        p.release();
        waits.join();
        RONDO_CHECK_EXPECT(resumed_on == -1 && p.available() == 1);
    });
}

// Takes jobs and never runs them: what a fenced executor looks like to a waker.
class fenced final : public executor {
  public:
    void post(job&) noexcept override {}
    timer_service& timers() noexcept override { return default_timers(); }
};

TEST(TaskModel, W9_AGrantThatReachedADestroyedCoroutineIsHandedOn) {
    EXPECT_HOLDS([] {
        permits p{0};
        cell<int> resumed_on{-1};
        thread waits;
        {
            fenced nowhere;
            executor::scope const there{&nowhere};
            foreign const gone = take_abroad(p, resumed_on);
            waits = thread{[&] { auto const got = p.blocking_acquire(1); }};
            p.release();  // granted to the first in line, but the wake-up ends at the fence
        }
        waits.join();
        RONDO_CHECK_EXPECT(resumed_on == -1 && p.available() == 1);
    });
}

}  // namespace
}  // namespace rondo
