// The pool of permits explored: nothing may be lost, granted twice or seen too early, whatever
// meets. A permit that is lost shows as a wrong count or, with somebody in line, as a deadlock.
// The comment above a scenario names a mutant of tests/mutants/sync/permit_pool.mutants that only
// it, or it first, notices.
#include <memory>
#include <optional>

#include "rondo/core/parker.hpp"
#include "rondo/core/wait.hpp"
#include "rondo/sync/detail/permit_pool.hpp"
#include "support/model.hpp"

namespace rondo::detail {
namespace {

using answer = permit_pool::answer;
using check::thread;

// True: it has its permits. False: the pool is closed.
struct take_op : permit_pool::request {
    using request::request;
    bool take() const noexcept { return !refused(); }
};

bool take(permit_pool& p, std::size_t n) { return blocking_wait(take_op{p, n}); }

// Nothing: it was stopped.
std::optional<bool> take(permit_pool& p, std::size_t n, stop_token token) {
    auto const taken = blocking_wait(take_op{p, n}, token);
    return taken ? std::optional{*taken} : std::nullopt;
}

bool try_take(permit_pool& p, std::size_t n) { return p.try_take(n) == answer::taken; }

// A request in the hands of its owner.
class held_request {
  public:
    held_request(permit_pool& from, std::size_t n) : op_(from, n) {
        op_.wake_with({[](void* p) noexcept { static_cast<parker*>(p)->unpark(); }, &woken_});
    }
    take_op* operator->() noexcept { return &op_; }
    void await_wake_up() noexcept { woken_.park(); }

  private:
    parker woken_;
    take_op op_;
};

// take_relaxed, add_relaxed
TEST(PermitPoolModel, AnExchangedPermitCarriesWhatWasWrittenBeforeItWasPutBack) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        cell<int> counted{0};
        auto const count_one = [&] {
            if (!try_take(p, 1)) return;
            counted = counted + 1;
            p.put_back(1);
        };
        thread other{count_one};
        count_one();
        other.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

// line_up_without_looking, line_up_relaxed
TEST(PermitPoolModel, APermitPutBackOnTheWayIntoTheLineIsFound) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        cell<int> written{0};
        thread puts_back{[&] {
            written = 7;
            p.put_back(1);
        }};
        RONDO_CHECK_EXPECT(take(p, 1));
        RONDO_CHECK_EXPECT(written == 7);
        puts_back.join();
        RONDO_CHECK_EXPECT(p.available() == 0);
    });
}

// store_the_rest_relaxed
TEST(PermitPoolModel, WhatTheLineLeftOverCarriesWhatWasWrittenBeforeItWasPutBack) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        cell<int> written{0};
        held_request first{p, 1};
        RONDO_CHECK_EXPECT(!first->enter());
        thread puts_back{[&] {
            written = 7;
            p.put_back(2);
        }};
        if (try_take(p, 1)) RONDO_CHECK_EXPECT(written == 7);
        first.await_wake_up();
        puts_back.join();
    });
}

// drop_the_rest, use_the_rest_twice
TEST(PermitPoolModel, WhatTheLineDoesNotNeedIsThereForAnybody) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        thread waits{[&] { RONDO_CHECK_EXPECT(take(p, 1)); }};
        p.put_back(3);
        waits.join();
        RONDO_CHECK_EXPECT(p.available() == 2);
        RONDO_CHECK_EXPECT(try_take(p, 2));
        held_request next{p, 1};
        RONDO_CHECK_EXPECT(!next->enter());
        RONDO_CHECK_EXPECT(next->leave());
        RONDO_CHECK_EXPECT(p.available() == 0);
    });
}

// put_back_without_looking_again
TEST(PermitPoolModel, APermitPutBackWhileTheLastInLineIsStoppedIsNotLost) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        stop_source stop;
        thread waits{[&] {
            if (take(p, 1, stop.token())) p.put_back(1);
        }};
        thread stops{[&] { stop.request_stop(); }};
        p.put_back(1);
        waits.join();
        stops.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

// keep_the_part_of_a_stopped_request
TEST(PermitPoolModel, AStoppedHeadGivesBackItsPartAndAFollowerThatFitsGoesAtOnce) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        stop_source stop;
        thread large{[&] { RONDO_CHECK_EXPECT(!take(p, 2, stop.token())); }};
        thread small{[&] {
            RONDO_CHECK_EXPECT(take(p, 1));
            p.put_back(1);
        }};
        stop.request_stop();
        large.join();
        small.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

// keep_the_bit_when_nobody_waits
TEST(PermitPoolModel, APermitGrantedInTheInstantOfTheStopIsPassedOn) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        stop_source stop;
        held_request follower{p, 1};
        thread first{[&] {
            if (take(p, 1, stop.token())) p.put_back(1);
        }};
        thread stops{[&] { stop.request_stop(); }};
        RONDO_CHECK_EXPECT(!follower->enter());
        p.put_back(1);
        follower.await_wake_up();
        first.join();
        stops.join();
        RONDO_CHECK_EXPECT(p.available() == 0);
    });
}

// line_up_beside_what_is_there
TEST(PermitPoolModel, NobodyTakesPastAHeadThatStillMissesSome) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        held_request large{p, 2};
        RONDO_CHECK_EXPECT(!large->enter());
        thread small{[&] { RONDO_CHECK_EXPECT(!try_take(p, 1)); }};
        p.put_back(1);
        large.await_wake_up();
        small.join();
        RONDO_CHECK_EXPECT(p.available() == 0);
    });
}

// accrue_too_much
TEST(PermitPoolModel, PartsPutBackByTwoThreadsAddUpForTheHead) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        thread one{[&] { p.put_back(1); }};
        thread two{[&] { p.put_back(2); }};
        RONDO_CHECK_EXPECT(take(p, 2));
        one.join();
        two.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

// close_relaxed, look_at_closed_relaxed, fail_to_take_relaxed
TEST(PermitPoolModel, WhoIsRefusedSeesWhatWasWrittenBeforeTheClose) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        cell<int> written{0};
        thread closes{[&] {
            written = 7;
            p.close();
        }};
        if (p.try_take(1) == answer::closed) RONDO_CHECK_EXPECT(written == 7);
        closes.join();
        RONDO_CHECK_EXPECT(p.closed());
    });
}

// ask_whether_it_is_closed_relaxed
TEST(PermitPoolModel, WhoFindsItClosedSeesWhatWasWrittenBefore) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        cell<int> written{0};
        thread closes{[&] {
            written = 7;
            p.close();
        }};
        if (p.closed()) RONDO_CHECK_EXPECT(written == 7);
        closes.join();
    });
}

// grant_from_a_closed_pool, keep_the_part_of_a_refused_request
TEST(PermitPoolModel, CloseRefusesThoseInLineAndTheirPartsComeBack) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        thread large{[&] { RONDO_CHECK_EXPECT(!take(p, 2)); }};
        thread larger{[&] { RONDO_CHECK_EXPECT(!take(p, 3)); }};
        p.close();
        large.join();
        larger.join();
        RONDO_CHECK_EXPECT(p.closed());
        RONDO_CHECK_EXPECT(p.available() == 1);
        RONDO_CHECK_EXPECT(p.try_take(1) == answer::closed);
    });
}

// reopen_when_the_line_is_gone
TEST(PermitPoolModel, APermitAndACloseMeetAndTheOneInLineGetsOneOfThem) {
    EXPECT_HOLDS([] {
        permit_pool p{0};
        thread puts_back{[&] { p.put_back(1); }};
        thread closes{[&] { p.close(); }};
        bool const taken = take(p, 1);
        puts_back.join();
        closes.join();
        RONDO_CHECK_EXPECT(p.closed());
        RONDO_CHECK_EXPECT(p.available() == (taken ? 0 : 1));
    });
}

// keep_the_part_of_a_refused_request
TEST(PermitPoolModel, OfStopAndCloseEitherEndsTheWaitAndNothingIsLost) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        stop_source stop;
        thread waits{[&] {
            auto const taken = take(p, 2, stop.token());
            RONDO_CHECK_EXPECT(!taken || !*taken);
        }};
        thread stops{[&] { stop.request_stop(); }};
        p.close();
        waits.join();
        stops.join();
        RONDO_CHECK_EXPECT(p.available() == 1);
    });
}

// forget_without_exchange
TEST(PermitPoolModel, APermitIsTakenOrForgottenNotBoth) {
    EXPECT_HOLDS([] {
        permit_pool p{1};
        std::size_t forgotten = 0;
        thread forgets{[&] { forgotten = p.forget(2); }};
        bool const taken = try_take(p, 1);
        forgets.join();
        RONDO_CHECK_EXPECT((taken ? 1 : 0) + forgotten == 1);
        RONDO_CHECK_EXPECT(p.available() == 0);
    });
}

// Nothing of the pool is touched after the exchange, or the unlock, that serves the last one.
TEST(PermitPoolModel, WhoIsServedLastMayDestroyIt) {
    EXPECT_HOLDS([] {
        auto p = std::make_unique<permit_pool>(0);
        thread puts_back{[&q = *p] { q.put_back(1); }};
        RONDO_CHECK_EXPECT(take(*p, 1));
        p.reset();
        puts_back.join();
    });
}

}  // namespace
}  // namespace rondo::detail
