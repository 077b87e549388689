// Barrier, explored: arrivals, stops and generations in every order. Each scenario names the
// mutants that it is there for (tests/mutants/sync/barrier.mutants).
#include <expected>

#include "rondo/sync/barrier.hpp"
#include "support/foreign.hpp"
#include "support/model.hpp"

namespace rondo {
namespace {

using check::thread;

// barrier_let_nobody_go, barrier_two_leaders
TEST(BarrierModel, AllPassOneLeadsAndEachSeesWhatTheOtherDidBefore) {
    EXPECT_HOLDS([] {
        barrier b{2};
        cell<int> left{0}, right{0};
        cell<bool> other_leads{false};
        thread other{[&] {
            left = 1;
            other_leads = b.blocking_arrive_and_wait().is_leader();
            RONDO_CHECK_EXPECT(right == 2);
        }};
        right = 2;
        bool const leads = b.blocking_arrive_and_wait().is_leader();
        RONDO_CHECK_EXPECT(left == 1);
        other.join();
        RONDO_CHECK_EXPECT(leads != other_leads.read());
    });
}

// barrier_keep_the_count
TEST(BarrierModel, TheNextGenerationBeginsAnew) {
    EXPECT_HOLDS(
        [] {
            barrier b{2};
            cell<int> steps{0};
            thread other{[&] {
                (void)b.blocking_arrive_and_wait();
                steps = 1;
                (void)b.blocking_arrive_and_wait();
            }};
            (void)b.blocking_arrive_and_wait();
            (void)b.blocking_arrive_and_wait();
            RONDO_CHECK_EXPECT(steps == 1);
            other.join();
        },
        1);
}

// barrier_count_a_withdrawn_arrival, barrier_stop_who_has_passed
TEST(BarrierModel, AStopAndTheLastArrivalMeetAndBothAgreeWhoPassed) {
    EXPECT_HOLDS([] {
        barrier b{2};
        stop_source stop;
        cell<bool> passed{false};
        thread early{[&] { passed = b.blocking_arrive_and_wait(stop.token()).has_value(); }};
        thread stops{[&] { stop.request_stop(); }};
        bool last_passed = b.try_arrive_and_wait().has_value();
        early.join();
        stops.join();
        RONDO_CHECK_EXPECT(passed.read() == last_passed);
        RONDO_CHECK_EXPECT(!b.try_arrive_and_wait());  // nobody is left in it
    });
}

// barrier_count_a_withdrawn_arrival
TEST(BarrierModel, AWithdrawnArrivalIsReplacedByAnother) {
    EXPECT_HOLDS(
        [] {
            barrier b{2};
            stop_source stop;
            cell<bool> passed{false};
            thread stoppable{
                [&] { passed = b.blocking_arrive_and_wait(stop.token()).has_value(); }};
            thread other{[&] { (void)b.blocking_arrive_and_wait(); }};
            stop.request_stop();
            stoppable.join();
            if (!passed) (void)b.blocking_arrive_and_wait();
            other.join();
            RONDO_CHECK_EXPECT(!b.try_arrive_and_wait());
        },
        1);
}

// barrier_complete_without_looking_again
TEST(BarrierModel, OfTwoWhoComeLastOneLeadsAndTheOtherIsFirstOfTheNext) {
    EXPECT_HOLDS(
        [] {
            barrier b{2};
            constexpr time_point soon{std::chrono::seconds{1}};  // passes at any moment
            cell<int> passed{0};
            thread first{[&] { (void)b.blocking_arrive_and_wait(); }};
            thread second{[&] {
                if (b.blocking_arrive_and_wait_until(soon)) passed = 1;
            }};
            bool const mine = b.blocking_arrive_and_wait_until(soon).has_value();
            second.join();
            int const with_first = passed + (mine ? 1 : 0);
            if (with_first != 1)
                (void)b.blocking_arrive_and_wait();  // with each other, or too late
            first.join();
            RONDO_CHECK_EXPECT(!b.try_arrive_and_wait());
        },
        1);
}

test::foreign pass(barrier& b, stop_token token, atomic<int>& outcome) {
    auto const passage = co_await b.arrive_and_wait(token);
    outcome.store(passage ? 1 : -1, std::memory_order_relaxed);
}

// barrier_stop_who_has_passed, barrier_subtract_who_has_passed
TEST(BarrierModel, WhoIsStillInLineWhenTheFirstHavePassedHasPassedToo) {
    EXPECT_HOLDS([] {
        barrier b{4};
        stop_source stop;
        atomic<int> one{0}, two{0}, three{0};
        pass(b, {}, one);
        pass(b, {}, two);
        pass(b, stop.token(), three);
        thread leader{[&] { RONDO_CHECK_EXPECT(b.blocking_arrive_and_wait().is_leader()); }};
        while (one.load(std::memory_order_relaxed) == 0) spin_pause();
        stop.request_stop();
        leader.join();
        RONDO_CHECK_EXPECT(three.load(std::memory_order_relaxed) == 1);
        RONDO_CHECK_EXPECT(!b.try_arrive_and_wait());
    });
}

}  // namespace
}  // namespace rondo
