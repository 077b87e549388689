// Every line of the table at the head of src/core/waiter.cpp, explored. Each scenario ends by
// counting the permits: nothing may be lost and nothing granted twice. A waiter that nobody wakes
// shows as a deadlock, a frame touched too late as a use after destroy.
#include <optional>
#include <utility>

#include "rondo/core/parker.hpp"
#include "rondo/core/waiter.hpp"
#include "support/model.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using check::thread;
using test::permits;

constexpr time_point soon{std::chrono::seconds{1}};  // the model lets it pass at any moment

// An acquire in the hands of its owner: entered, woken and left by hand.
class held_acquire {
  public:
    held_acquire(permits& from, std::size_t n) : op_(from, n) {
        op_.wake_with({[](void* p) noexcept { static_cast<parker*>(p)->unpark(); }, &woken_});
    }
    permits::acquire_op* operator->() noexcept { return &op_; }
    void await_wake_up() noexcept { woken_.park(); }

  private:
    parker woken_;
    permits::acquire_op op_;
};

// A pool whose permits do not accrue: a request is met whole or not at all.
class whole_permits : public wait_queue {
  public:
    explicit whole_permits(int available) : available_(available) {}
    void release(int n) {
        serve([&] { available_ += n; });
    }
    int available() {
        std::lock_guard const guard{lock()};
        return available_;
    }

    struct request : waiter {
        request(whole_permits& from, int n) : waiter(from), needed(n) {}
        int needed;
    };

  private:
    bool grant(waiter& first) noexcept override {
        int const needed = static_cast<request&>(first).needed;
        if (available_ < needed) return false;
        available_ -= needed;
        return true;
    }

    int available_;
};

// Knows without looking at the list whether somebody is in it, as a fast path has to.
class watched_line : public wait_queue {
  public:
    void release() {
        serve([&] { available_ += 1; });
    }
    bool knows() {
        std::lock_guard const guard{lock()};
        return awaited_ == has_waiters();
    }

  private:
    bool grant(waiter&) noexcept override {
        if (available_ == 0) {
            awaited_ = true;
            return false;
        }
        available_ -= 1;
        return true;
    }
    void nobody_waits() noexcept override { awaited_ = false; }

    int available_ = 0;
    bool awaited_ = false;
};

// One waits at most; who comes takes the place of who is there.
class newest_only : public wait_queue {
  public:
    newest_only() noexcept : wait_queue(order::of_its_own) {}

    class request : public waiter {
      public:
        explicit request(newest_only& from) noexcept : waiter(from) {}
        bool served() const { return served_; }

      private:
        friend newest_only;
        bool served_ = false;
    };

    void release() {
        serve([&] { available_ += 1; });
    }
    int available() {
        std::lock_guard const guard{lock()};
        return available_;
    }

  private:
    bool grant(waiter& w) noexcept override {
        displaced_ = newest_;
        newest_ = static_cast<request*>(&w);
        return take(*newest_);
    }
    waiter* choose() noexcept override {
        if (request* const gone = std::exchange(displaced_, nullptr)) return gone;
        request* const next = newest_;
        return next != nullptr && take(*next) ? next : nullptr;
    }
    void give_back(waiter& w) noexcept override {
        if (newest_ == &w) newest_ = nullptr;
    }
    bool take(request& r) noexcept {
        if (available_ == 0) return false;
        available_ -= 1;
        r.served_ = true;
        newest_ = nullptr;
        return true;
    }

    request* newest_ = nullptr;
    request* displaced_ = nullptr;
    int available_ = 0;
};

TEST(WaiterModel, W2_W3_WhoEntersAnOrderOfItsOwnMayMakeAnotherGo) {
    EXPECT_HOLDS([] {
        newest_only line;
        parker woken[2];
        newest_only::request first{line}, second{line};
        waker::function const unpark = [](void* w) noexcept { static_cast<parker*>(w)->unpark(); };
        first.wake_with({unpark, &woken[0]});
        second.wake_with({unpark, &woken[1]});
        RONDO_CHECK_EXPECT(!first.enter());
        thread comes{[&] {
            if (!second.enter()) woken[1].park();
        }};
        thread releases{[&] { line.release(); }};
        woken[0].park();
        releases.join();
        if (first.served()) line.release();  // the other waits for one of its own
        comes.join();
        RONDO_CHECK_EXPECT(second.served());
        RONDO_CHECK_EXPECT(line.available() == 0);
    });
}

TEST(WaiterModel, W2_W3_WhoHasToGoForAnotherIsWokenByIt) {
    EXPECT_HOLDS([] {
        newest_only line;
        parker woken[2];
        newest_only::request first{line}, second{line};
        waker::function const unpark = [](void* w) noexcept { static_cast<parker*>(w)->unpark(); };
        first.wake_with({unpark, &woken[0]});
        second.wake_with({unpark, &woken[1]});
        RONDO_CHECK_EXPECT(!first.enter());
        thread comes{[&] {
            if (!second.enter()) woken[1].park();
        }};
        woken[0].park();  // nothing was released
        RONDO_CHECK_EXPECT(!first.served());
        line.release();
        comes.join();
        RONDO_CHECK_EXPECT(second.served());
    });
}

TEST(WaiterModel, W4_W5_AStopAloneEndsAWaitInAnOrderOfItsOwn) {
    EXPECT_HOLDS([] {
        newest_only line;
        parker woken;
        newest_only::request r{line};
        r.wake_with({[](void* w) noexcept { static_cast<parker*>(w)->unpark(); }, &woken});
        thread stops{[&] { r.withdraw(wait_state::stopped); }};
        if (!r.enter()) woken.park();
        stops.join();
        RONDO_CHECK_EXPECT(r.state() == wait_state::stopped && !r.served());
    });
}

TEST(WaiterModel, W4_W5_AStopAndAGrantInAnOrderOfItsOwnAreDecidedOnce) {
    EXPECT_HOLDS([] {
        newest_only line;
        parker woken;
        newest_only::request r{line};
        r.wake_with({[](void* w) noexcept { static_cast<parker*>(w)->unpark(); }, &woken});
        thread stops{[&] { r.withdraw(wait_state::stopped); }};
        thread releases{[&] { line.release(); }};
        if (!r.enter()) woken.park();
        stops.join();
        releases.join();
        bool const granted = r.state() == wait_state::granted;
        RONDO_CHECK_EXPECT(r.served() == granted);
        RONDO_CHECK_EXPECT(line.available() == (granted ? 0 : 1));
    });
}

TEST(WaiterModel, W1_AWaiterThatFindsWhatItNeedsGoesOnWithoutAWakeUp) {
    EXPECT_HOLDS([] {
        permits p{2};
        thread other{[&] { auto got = p.blocking_acquire(1); }};
        permits::acquire_op op{p, 1};  // no waker: a wake-up would be a call of null
        RONDO_CHECK_EXPECT(op.enter());
        RONDO_CHECK_EXPECT(op.state() == wait_state::granted);
        op.hand_on();
        other.join();
        RONDO_CHECK_EXPECT(p.available() == 2);
    });
}

TEST(WaiterModel, W2_W3_AWaiterIsGrantedByTheReleaseAndWokenOnce) {
    EXPECT_HOLDS([] {
        permits p{0};
        cell<int> written{0};
        thread waits{[&] {
            auto got = p.blocking_acquire(1);
            RONDO_CHECK_EXPECT(written == 7);  // what came before the release is visible
        }};
        written = 7;
        p.release();
        waits.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, W3_TwoWaitersShareWhatIsReleasedInTurn) {
    EXPECT_HOLDS([] {
        permits p{0};
        thread one{[&] { auto got = p.blocking_acquire(1); }};
        thread two{[&] { auto got = p.blocking_acquire(1); }};
        p.release();
        one.join();
        two.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, W2_WhoComesLaterDoesNotOvertakeAlthoughItWouldFit) {
    EXPECT_HOLDS([] {
        whole_permits p{1};
        parker woken_large, woken_small;
        waker::function const unpark = [](void* w) noexcept { static_cast<parker*>(w)->unpark(); };
        whole_permits::request large{p, 2}, small{p, 1};
        large.wake_with({unpark, &woken_large});
        small.wake_with({unpark, &woken_small});
        RONDO_CHECK_EXPECT(!large.enter());
        thread releases{[&] { p.release(2); }};
        bool const at_once = small.enter();
        if (at_once) RONDO_CHECK_EXPECT(large.state() == wait_state::granted);
        woken_large.park();
        if (!at_once) woken_small.park();
        releases.join();
        RONDO_CHECK_EXPECT(p.available() == 0);
    });
}

TEST(WaiterModel, W3_ALargeRequestIsNotOvertakenOnceItIsFirst) {
    EXPECT_HOLDS([] {
        permits p{1};
        held_acquire large{p, 2};
        RONDO_CHECK_EXPECT(!large->enter());  // has accrued the one that was there
        cell<bool> large_done{false};
        thread small{[&] {
            auto got = p.blocking_acquire(1);
            RONDO_CHECK_EXPECT(large_done);
        }};
        p.release();
        large.await_wake_up();
        large_done = true;
        large->hand_on();
        small.join();
        RONDO_CHECK_EXPECT(p.available() == 2);
    });
}

TEST(WaiterModel, W4_AStoppedHeadGivesBackItsPartAndFollowersThatFitGoAtOnce) {
    EXPECT_HOLDS([] {
        permits p{1};
        stop_source stop;
        thread large{[&] {
            auto got = p.blocking_acquire_until(2, time_point::max(), stop.token());
            RONDO_CHECK_EXPECT(!got);  // two are never there at once
            RONDO_CHECK_EXPECT(got.error() == wait_error::stopped);
        }};
        thread small{[&] { auto got = p.blocking_acquire(1); }};
        stop.request_stop();
        large.join();
        small.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, W3_W4_AQueueKnowsWhenTheLastInLineIsGone) {
    EXPECT_HOLDS([] {
        watched_line line;
        parker woken;
        waiter w{line};
        w.wake_with({[](void* p) noexcept { static_cast<parker*>(p)->unpark(); }, &woken});
        RONDO_CHECK_EXPECT(!w.enter());
        thread stops{[&] { w.withdraw(wait_state::stopped); }};
        thread releases{[&] { line.release(); }};
        RONDO_CHECK_EXPECT(line.knows());
        woken.park();
        RONDO_CHECK_EXPECT(line.knows());
        stops.join();
        releases.join();
    });
}

TEST(WaiterModel, W4_AStoppedWaiterInTheMiddleLeavesTheOthersInLine) {
    EXPECT_HOLDS([] {
        permits p{0};
        held_acquire first{p, 1}, last{p, 1};
        permits::acquire_op middle{p, 1};
        parker woken;
        middle.wake_with({[](void* w) noexcept { static_cast<parker*>(w)->unpark(); }, &woken});
        RONDO_CHECK_EXPECT(!first->enter());
        RONDO_CHECK_EXPECT(!middle.enter());
        RONDO_CHECK_EXPECT(!last->enter());
        thread stops{[&] { middle.withdraw(wait_state::stopped); }};
        p.release(3);
        first.await_wake_up();
        last.await_wake_up();
        woken.park();
        stops.join();
        RONDO_CHECK_EXPECT(first->state() == wait_state::granted);
        RONDO_CHECK_EXPECT(last->state() == wait_state::granted);
        std::size_t const kept = middle.state() == wait_state::granted ? 3 : 2;
        RONDO_CHECK_EXPECT(p.available() == 3 - kept);
    });
}

TEST(WaiterModel, W4_NoLockIsHeldWhileTheWithdrawnAreWoken) {
    EXPECT_HOLDS([] {
        struct looking_back {
            permits p{0};
            cell<bool> woken{false};
        } object;
        permits::acquire_op op{object.p, 1};
        op.wake_with({[](void* raw) noexcept {
                          auto& o = *static_cast<looking_back*>(raw);
                          o.woken = o.p.available() == 0;  // takes the lock of the queue
                      },
                      &object});
        RONDO_CHECK_EXPECT(!op.enter());
        thread stops{[&] { op.withdraw(wait_state::stopped); }};
        stops.join();
        RONDO_CHECK_EXPECT(object.woken);
    });
}

TEST(WaiterModel, W5_AStopThatComesBeforeTheWaitEndsItAtOnce) {
    EXPECT_HOLDS([] {
        permits p{0};
        stop_source stop;
        thread waits{[&] {
            auto got = p.blocking_acquire_until(1, time_point::max(), stop.token());
            RONDO_CHECK_EXPECT(!got);
        }};
        stop.request_stop();
        waits.join();
    });
}

TEST(WaiterModel, W6_APermitGrantedInTheInstantOfAStopIsNotLost) {
    EXPECT_HOLDS([] {
        permits p{0};
        stop_source stop;
        thread waits{[&] {
            auto got = p.blocking_acquire_until(1, time_point::max(), stop.token());
            if (got) got->forget();
            RONDO_CHECK_EXPECT(p.available() <= 1);
            if (got) p.release();
        }};
        thread stops{[&] { stop.request_stop(); }};
        p.release();
        waits.join();
        stops.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, W6_OfTwoThatWithdrawOneDecides) {
    EXPECT_HOLDS([] {
        permits p{0};
        held_acquire op{p, 1};
        RONDO_CHECK_EXPECT(!op->enter());
        cell<bool> stopped{false};
        thread stops{[&] { stopped = op->withdraw(wait_state::stopped); }};
        bool const timed_out = op->withdraw(wait_state::timed_out);
        op.await_wake_up();
        stops.join();
        RONDO_CHECK_EXPECT(stopped.read() != timed_out);
        RONDO_CHECK_EXPECT(op->state() ==
                           (timed_out ? wait_state::timed_out : wait_state::stopped));
    });
}

TEST(WaiterModel, W6_W8_ADeadlineAndAGrantMeetAndNothingIsLost) {
    EXPECT_HOLDS([] {
        permits p{0};
        thread waits{[&] {
            auto got = p.blocking_acquire_until(1, soon);
            if (!got) RONDO_CHECK_EXPECT(got.error() == wait_error::timed_out);
        }};
        p.release();
        waits.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, W7_AHeadThatLeavesLetsFollowersThatFitGo) {
    EXPECT_HOLDS([] {
        permits p{1};
        permits::acquire_op large{p, 2};
        RONDO_CHECK_EXPECT(!large.enter());
        thread small{[&] { auto got = p.blocking_acquire(1); }};
        RONDO_CHECK_EXPECT(large.leave());
        RONDO_CHECK_EXPECT(large.state() == wait_state::idle);
        small.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, W8_W9_WhoWasGrantedBeforeItLeftIsWokenAndHandsOn) {
    EXPECT_HOLDS([] {
        permits p{0};
        thread releases{[&] { p.release(); }};
        {
            held_acquire op{p, 1};
            if (op->enter()) {
                op->hand_on();
            } else if (!op->leave()) {
                op.await_wake_up();  // the waker holds the frame until it has been called
                RONDO_CHECK_EXPECT(op->state() == wait_state::granted);
                op->hand_on();
            }
        }
        releases.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

TEST(WaiterModel, ThreeWaitersOneStopOneDeadlineAndTwoPermitsAddUp) {
    EXPECT_HOLDS(
        [] {
            permits p{0};
            stop_source stop;
            thread plain{[&] { auto got = p.blocking_acquire(1); }};
            thread stopped{[&] { auto got = p.blocking_acquire(1, stop.token()); }};
            thread in_time{[&] { auto got = p.blocking_acquire_until(1, soon); }};
            p.release();
            stop.request_stop();
            p.release();
            plain.join();
            stopped.join();
            in_time.join();
            RONDO_CHECK_EXPECT(p.available() == 2);
        },
        1);
}

}  // namespace
}  // namespace rondo
