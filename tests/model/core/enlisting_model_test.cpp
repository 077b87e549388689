// The lines W10 to W12 of the table at the head of src/core/waiter.cpp, explored, and what a queue
// can do beside turns: grants in batches, the last in line first, those who are owed a grant.
#include <array>
#include <optional>

#include "rondo/core/parker.hpp"
#include "rondo/core/waiter.hpp"
#include "support/bell.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;
using test::bell;

// A waiter in the hands of its owner, who sleeps in await_wake_up().
class held_stroke {
  public:
    explicit held_stroke(bell& b) : op_(b) { op_.wake_with({&wake, this}); }
    bell::stroke_op* operator->() noexcept { return &op_; }
    bell::stroke_op& operator*() noexcept { return op_; }
    void await_wake_up() noexcept { woken_.park(); }
    bool was_woken() const noexcept { return wake_ups_.load(std::memory_order_relaxed) != 0; }

  private:
    static void wake(void* raw) noexcept {
        auto& self = *static_cast<held_stroke*>(raw);
        self.wake_ups_.fetch_add(1, std::memory_order_relaxed);
        self.woken_.unpark();
    }

    atomic<int> wake_ups_{0};
    parker woken_;
    bell::stroke_op op_;
};

// wake_the_enlisted
TEST(EnlistingModel, W10_W12_WhoIsEnlistedIsGrantedWithoutAWakeUpAndMayGoAtOnce) {
    EXPECT_HOLDS([] {
        bell b;
        std::optional<bell::stroke_op> op{std::in_place, b};  // no waker: a wake-up calls null
        RONDO_CHECK_EXPECT(!op->enlist());
        thread strikes{[&] { b.strike_for_the_first(); }};
        while (!op->enlist()) spin_pause();
        RONDO_CHECK_EXPECT(op->state() == wait_state::granted);
        op.reset();  // the granter must not touch it any more
        strikes.join();
        RONDO_CHECK_EXPECT(b.kept() == 0);
    });
}

// leave_the_enlisted_in_their_state
TEST(EnlistingModel, W11_WhoEntersAfterEnlistingIsWokenOrGoesOn) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke op{b};
        RONDO_CHECK_EXPECT(!op->enlist());
        thread strikes{[&] { b.strike_for_the_first(); }};
        if (!op->enter()) op.await_wake_up();
        RONDO_CHECK_EXPECT(op->state() == wait_state::granted);
        strikes.join();
        RONDO_CHECK_EXPECT(b.kept() == 0 && !b.awaited());
    });
}

// wake_the_withdrawn_enlisted
TEST(EnlistingModel, W12_AStopBeforeItsOwnerSleepsEndsItWithoutAWakeUp) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke op{b};
        RONDO_CHECK_EXPECT(!op->enlist());
        cell<bool> stopped{false};
        thread stops{[&] { stopped = op->withdraw(wait_state::stopped); }};
        bool const at_once = op->enter();
        if (!at_once) op.await_wake_up();
        RONDO_CHECK_EXPECT(op->state() == wait_state::stopped);
        stops.join();
        RONDO_CHECK_EXPECT(op.was_woken() == !at_once);
        RONDO_CHECK_EXPECT(stopped && !b.awaited());
    });
}

// keep_the_enlisted_in_line
TEST(EnlistingModel, W12_WhoIsEnlistedMayLeaveUnlessItWasDecided) {
    EXPECT_HOLDS([] {
        bell b;
        thread strikes{[&] { b.strike_for_the_first(); }};
        {
            bell::stroke_op op{b};
            bool const decided = op.enlist() || !op.leave();
            if (decided) RONDO_CHECK_EXPECT(op.state() == wait_state::granted);
            if (decided) b.strike_for_the_first();  // passes it on
        }
        strikes.join();
        RONDO_CHECK_EXPECT(b.kept() == 1 && !b.awaited());
    });
}

// queue_up_what_is_owed
TEST(BroadcastModel, WhoEntersAfterTheStrokeItWaitedForGoesOnAlthoughOthersAreInLine) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke early{b};
        thread strikes{[&] { b.strike_for_all(); }};
        std::optional<held_stroke> late{std::in_place, b};
        bool const late_waits = !(*late)->enter();
        if (!early->enter()) early.await_wake_up();
        strikes.join();
        if (late_waits && !(*late)->leave()) late->await_wake_up();
    });
}

// grant_one_batch_only
TEST(BroadcastModel, EveryBatchIsWoken) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke one{b}, two{b}, three{b};
        RONDO_CHECK_EXPECT(!one->enter());
        RONDO_CHECK_EXPECT(!two->enter());
        RONDO_CHECK_EXPECT(!three->enlist());
        thread strikes{[&] { b.strike_for_all(); }};
        one.await_wake_up();
        two.await_wake_up();
        while (!three->enlist()) spin_pause();
        strikes.join();
        RONDO_CHECK_EXPECT(!b.awaited());
    });
}

// stop_who_is_owed
TEST(BroadcastModel, WhoeverWasInLineIsGrantedEvenIfItIsStoppedBetweenTwoBatches) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke first{b}, second{b}, third{b};
        for (held_stroke* op : {&first, &second, &third}) RONDO_CHECK_EXPECT(!(*op)->enter());
        thread strikes{[&] { b.strike_for_all(); }};
        first.await_wake_up();  // so the stroke has been
        third->withdraw(wait_state::stopped);
        second.await_wake_up();
        third.await_wake_up();
        RONDO_CHECK_EXPECT(third->state() == wait_state::granted);
        strikes.join();
        RONDO_CHECK_EXPECT(!b.awaited());
    });
}

// wake_a_batch_under_the_lock
TEST(BroadcastModel, NoLockIsHeldWhileABatchIsWoken) {
    EXPECT_HOLDS([] {
        bell b;
        bell::stroke_op first{b}, second{b}, third{b};
        for (bell::stroke_op* op : {&first, &second, &third}) {
            // strokes() takes the lock of the queue
            op->wake_with({[](void* p) noexcept { static_cast<bell*>(p)->strokes(); }, &b});
            RONDO_CHECK_EXPECT(!op->enter());
        }
        thread strikes{[&] { b.strike_for_all(); }};
        strikes.join();
        RONDO_CHECK_EXPECT(!b.awaited());
    });
}

// let_newcomers_go_too
TEST(BroadcastModel, ANewcomerBetweenTwoBatchesIsNotLetGo) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke first{b}, second{b}, third{b};
        for (held_stroke* op : {&first, &second, &third}) RONDO_CHECK_EXPECT(!(*op)->enter());
        thread strikes{[&] { b.strike_for_all(); }};
        first.await_wake_up();
        bell::stroke_op newcomer{b};
        RONDO_CHECK_EXPECT(!newcomer.enlist());
        second.await_wake_up();
        third.await_wake_up();
        strikes.join();
        RONDO_CHECK_EXPECT(b.awaited_only_by(newcomer));
        RONDO_CHECK_EXPECT(newcomer.leave());
    });
}

// forget_whom_a_newcomer_lets_go
TEST(BroadcastModel, ANewcomerMayLetAllGoWhoWaitedForIt) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke first{b}, second{b}, third{b};
        for (held_stroke* op : {&first, &second, &third}) RONDO_CHECK_EXPECT(!(*op)->enter());
        thread comes{[&] {
            bell::striking_op newcomer{b};  // no waker: a wake-up would be a call of null
            RONDO_CHECK_EXPECT(newcomer.enter());
        }};
        for (held_stroke* op : {&first, &second, &third}) op->await_wake_up();
        comes.join();
        RONDO_CHECK_EXPECT(!b.awaited());
    });
}

// serve_the_first_instead_of_the_last
TEST(ServeLastModel, TheLastInLineIsServedAndTheOthersKeepTheirOrder) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke first{b}, last{b};
        RONDO_CHECK_EXPECT(!first->enter());
        RONDO_CHECK_EXPECT(!last->enter());
        thread strikes{[&] { b.strike_for_the_last(); }};
        last.await_wake_up();
        strikes.join();
        RONDO_CHECK_EXPECT(b.awaited_only_by(*first));
        b.strike_for_the_first();
        first.await_wake_up();
    });
}

TEST(ServeLastModel, WithNobodyInLineItIsKept) {
    EXPECT_HOLDS([] {
        bell b;
        thread strikes{[&] { b.strike_for_the_last(); }};
        held_stroke op{b};
        if (!op->enter()) op.await_wake_up();
        RONDO_CHECK_EXPECT(op->was_for_one());
        strikes.join();
        RONDO_CHECK_EXPECT(b.kept() == 0);
    });
}

TEST(ServeLastModel, InTheMiddleOfABroadcastOneWhoIsOwedDoesNotUseItUp) {
    EXPECT_HOLDS([] {
        bell b;
        held_stroke first{b}, second{b}, third{b};
        for (held_stroke* op : {&first, &second, &third}) RONDO_CHECK_EXPECT(!(*op)->enter());
        thread all{[&] { b.strike_for_all(); }};
        first.await_wake_up();
        b.strike_for_the_last();
        second.await_wake_up();
        third.await_wake_up();
        RONDO_CHECK_EXPECT(!third->was_for_one());
        all.join();
        RONDO_CHECK_EXPECT(b.kept() == 1);
    });
}

}  // namespace
}  // namespace rondo
