// when_all, when_any, with_timeout, with_deadline, with_stop. What they do to a stop that comes
// from above is in unwind_test.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <expected>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "rondo/core/block_on.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/core/with_timeout.hpp"
#include "support/manual_loop.hpp"
#include "support/permits.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using test::manual_loop;
using test::permits;

using log = std::vector<std::string>;

class noted_end {
  public:
    noted_end(log& l, std::string name) : log_(l), name_(std::move(name)) {}
    noted_end(noted_end const&) = delete;
    noted_end& operator=(noted_end const&) = delete;
    ~noted_end() { log_.push_back("~" + name_); }

  private:
    log& log_;
    std::string name_;
};

template <class T>
task<T> value(T v) {
    co_return v;
}

template <class T>
task<T> after(clock::duration delay, T v) {
    co_await sleep_for(delay);
    co_return v;
}

task<int> fail_after(clock::duration delay, char const* what) {
    co_await sleep_for(delay);
    throw std::runtime_error{what};
}

task<void> wait_noted(permits& p, log& l, std::string name) {
    noted_end const end{l, name};
    auto const got = co_await p.acquire();
    l.push_back(name);
}

// Runs a task to its end by hand and gives its result.
template <class T>
T run(manual_loop& loop, task<T> t, clock::duration time = 0s) {
    auto handle = spawn(loop, std::move(t));
    loop.advance(time);
    EXPECT_TRUE(handle.ended());
    return handle.blocking_join().value();
}

// --- when_all --------------------------------------------------------------------------------

task<void> hold_and_end(permits::permit) { co_return; }

task<void> wait_for_one(permits& p) { auto const got = co_await p.acquire(); }

TEST(WhenAll, ABranchThatHasEndedLetsGoOfItsParameters) {
    permits p{1};
    block_on([](permits& q) -> task<void> {
        permits::permit held = co_await q.acquire();
        co_await when_all(hold_and_end(std::move(held)), wait_for_one(q));
    }(p));
    EXPECT_EQ(p.available(), 1U);
}

TEST(WhenAll, GivesTheResultsInTheOrderOfItsArguments) {
    manual_loop loop;
    auto const r = run(loop, when_all(after(3s, 1), after(1s, std::string{"two"}), value(3.0)), 3s);
    static_assert(std::is_same_v<decltype(r), std::tuple<int, std::string, double> const>);
    EXPECT_EQ(r, (std::tuple{1, std::string{"two"}, 3.0}));
}

TEST(WhenAll, ItsBranchesWaitSideBySide) {
    manual_loop loop;
    (void)run(loop, when_all(sleep_for(2s), sleep_for(2s), sleep_for(1s)), 2s);
}

TEST(WhenAll, VoidIsAnEmptyValue) {
    manual_loop loop;
    auto const r = run(loop, when_all(sleep_for(1s), value(1)), 1s);
    static_assert(std::is_same_v<decltype(r), std::tuple<std::monostate, int> const>);
    EXPECT_EQ(std::get<1>(r), 1);
}

TEST(WhenAll, TheFirstStartsAtOnceTheOthersTakeTheirTurns) {
    manual_loop loop;
    log l;
    auto const say = [](log& n, char const* what) -> task<void> {
        n.emplace_back(what);
        co_return;
    };
    auto const program = [](auto& speak, log& n) -> task<void> {
        (void)co_await when_all(speak(n, "first"), speak(n, "second"), speak(n, "third"));
        n.emplace_back("all");
    };
    auto handle = spawn(loop, program(say, l));
    loop.step();
    EXPECT_EQ(l, log{"first"});
    loop.run_ready();
    EXPECT_EQ(l, (log{"first", "second", "third", "all"}));
}

TEST(WhenAll, CarriesMoveOnlyResultsAndReferences) {
    manual_loop loop;
    int x = 1;
    auto const refers = [](int& i) -> task<int&> { co_return i; };
    auto const program = [](auto& lookup, int& i) -> task<int*> {
        auto [owned, referred] = co_await when_all(value(std::make_unique<int>(5)), lookup(i));
        referred += *owned;
        co_return &referred;
    };
    EXPECT_EQ(run(loop, program(refers, x)), &x);
    EXPECT_EQ(x, 6);
}

TEST(WhenAll, OfAVectorGivesAVectorInItsOrder) {
    manual_loop loop;
    std::vector<task<int>> tasks;
    for (int i = 0; i < 100; ++i) tasks.push_back(after(1s * (100 - i), i));
    auto const r = run(loop, when_all(std::move(tasks)), 100s);
    ASSERT_EQ(r.size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)], i);
}

TEST(WhenAll, OfAVectorCarriesMoveOnlyResultsAndVoid) {
    manual_loop loop;
    std::vector<task<std::unique_ptr<int>>> owners;
    owners.push_back(value(std::make_unique<int>(1)));
    EXPECT_EQ(*run(loop, when_all(std::move(owners))).front(), 1);
    std::vector<task<void>> sleeps;
    for (int i = 0; i < 3; ++i) sleeps.push_back(detail::as_task(sleep_for(1s)));
    EXPECT_EQ(run(loop, when_all(std::move(sleeps)), 1s).size(), 3U);
}

TEST(WhenAll, OfAnEmptyVectorIsThereAtOnce) {
    manual_loop loop;
    EXPECT_TRUE(run(loop, when_all(std::vector<task<int>>{})).empty());
}

TEST(WhenAll, OfOneAndNestedIsATupleOfATuple) {
    manual_loop loop;
    auto const r = run(loop, when_all(when_all(value(1))));
    static_assert(std::is_same_v<decltype(r), std::tuple<std::tuple<int>> const>);
    EXPECT_EQ(std::get<0>(std::get<0>(r)), 1);
}

TEST(WhenAll, TheFirstExceptionStopsTheOthersAndIsRethrownWhenTheyHaveEnded) {
    manual_loop loop;
    permits never{0};
    log l;
    auto const program = [](permits& p, log& n) -> task<void> {
        try {
            (void)co_await when_all(wait_noted(p, n, "waits"), fail_after(1s, "first"),
                                    fail_after(2s, "second"));
        } catch (std::runtime_error const& e) {
            n.emplace_back(e.what());
        }
    };
    run(loop, program(never, l), 1s);
    EXPECT_EQ(l, (log{"~waits", "first"}));
}

TEST(WhenAll, OfAVectorRethrowsTheFirstException) {
    manual_loop loop;
    auto const program = []() -> task<std::string> {
        std::vector<task<int>> tasks;
        tasks.push_back(after(1h, 0));
        tasks.push_back(fail_after(2s, "late"));
        tasks.push_back(fail_after(1s, "early"));
        try {
            (void)co_await when_all(std::move(tasks));
        } catch (std::runtime_error const& e) {
            co_return e.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(run(loop, program(), 1s), "early");
}

TEST(WhenAll, ThatWasStoppedButCompletedInEveryBranchGivesItsResults) {
    manual_loop loop;
    auto handle = spawn(loop, when_all(value(1), value(2)));
    handle.request_stop();
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join().value(), (std::tuple{1, 2}));
}

TEST(WhenAll, ThatWasStoppedWhileABranchWaitsUnwindsWhenAllHaveEnded) {
    manual_loop loop;
    permits never{0};
    log l;
    auto handle = spawn(loop, when_all(value(1), wait_noted(never, l, "waits")));
    loop.run_ready();
    handle.request_stop();
    loop.run_ready();
    EXPECT_EQ(handle.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(l, log{"~waits"});
}

TEST(WhenAll, ABranchThatHasNotBegunWhenAnotherThrewDoesNotBegin) {
    manual_loop loop;
    bool begun = false;
    auto const begin = [](bool& b) -> task<void> {
        b = true;
        co_return;
    };
    auto const fail = []() -> task<void> {
        throw 1;
        co_return;
    };
    auto handle = spawn(loop, when_all(fail(), begin(begun)));
    loop.run_ready();
    EXPECT_THROW(std::ignore = handle.blocking_join(), int);
    EXPECT_FALSE(begun);
}

// --- when_any --------------------------------------------------------------------------------

TEST(WhenAny, TheFirstToCompleteWinsWithItsIndexAndValue) {
    manual_loop loop;
    auto const r =
        run(loop, when_any(after(3s, 1), after(1s, std::string{"two"}), after(2s, 3)), 1s);
    static_assert(std::is_same_v<decltype(r), std::variant<int, std::string, int> const>);
    ASSERT_EQ(r.index(), 1U);
    EXPECT_EQ(std::get<1>(r), "two");
    EXPECT_EQ(run(loop, when_any(sleep_for(1s), after(2s, 1)), 1s).index(), 0U);
}

TEST(WhenAny, OfAVectorGivesIndexAndValue) {
    manual_loop loop;
    std::vector<task<std::unique_ptr<int>>> tasks;
    for (int i = 0; i < 10; ++i) tasks.push_back(after(1s * (10 - i), std::make_unique<int>(i)));
    auto const [index, winner] = run(loop, when_any(std::move(tasks)), 1s);
    EXPECT_EQ(index, 9U);
    EXPECT_EQ(*winner, 9);
}

TEST(WhenAny, ItsLosersHaveEndedBeforeItReturns) {
    manual_loop loop;
    permits never{0}, ready{1};
    log l;
    auto const program = [](permits& n, permits& r, log& out) -> task<void> {
        (void)co_await when_any(wait_noted(n, out, "a"), wait_noted(r, out, "b"),
                                wait_noted(n, out, "c"));
        out.emplace_back("after");
    };
    run(loop, program(never, ready, l));
    EXPECT_EQ(l, (log{"b", "~b", "~a", "after"}));
    EXPECT_FALSE(never.awaited());
}

TEST(WhenAny, ABranchThatHasNotBegunWhenAnotherWonDoesNotBegin) {
    manual_loop loop;
    bool begun = false;
    auto const begin = [](bool& b) -> task<int> {
        b = true;
        co_return 2;
    };
    EXPECT_EQ(run(loop, when_any(value(1), begin(begun))).index(), 0U);
    EXPECT_FALSE(begun) << "it might have taken something from a queue, only to drop it";
}

TEST(WhenAny, ALosersPlaceInAQueueAndWhatItHadAccruedPassOn) {
    manual_loop loop;
    permits p{1};
    log l;
    auto race = spawn(loop, when_any(p.acquire(2), sleep_for(1s)));
    loop.run_ready();
    auto next = spawn(loop, wait_noted(p, l, "next"));
    loop.run_ready();
    EXPECT_TRUE(l.empty());
    loop.advance(1s);
    EXPECT_EQ(l, (log{"next", "~next"}));
    EXPECT_TRUE(next.ended());
    EXPECT_EQ(race.blocking_join().value().index(), 1U);
    EXPECT_EQ(p.available(), 1U);
}

TEST(WhenAny, ALoserThatWasGrantedInTheSameInstantReleasesWhatItGot) {
    manual_loop loop;
    permits a{0}, b{0};
    auto race = spawn(loop, when_any(a.acquire(), b.acquire()));
    loop.run_ready();
    a.release();
    b.release();
    loop.run_ready();
    {
        auto const r = race.blocking_join().value();
        EXPECT_EQ(r.index(), 0U);
        EXPECT_EQ(a.available(), 0U) << "the winner's permit is in the result";
        EXPECT_EQ(b.available(), 1U);
    }
    EXPECT_EQ(a.available(), 1U);
}

// One letter; what was taken and not kept is lost.
class letter_box final : wait_queue {
  public:
    class take_op : public waiter {
      public:
        explicit take_op(letter_box& b) noexcept : waiter(b), box_(b) {}
        bool ready() const noexcept { return box_.full_; }
        int take() noexcept {
            box_.full_ = false;
            return 7;
        }
        void hand_on() noexcept {}

      private:
        letter_box& box_;
    };

    wait<take_op> take() noexcept { return take_op{*this}; }
    bounded_wait<take_op> take_for(clock::duration d) noexcept { return {take_op{*this}, d}; }
    void put() noexcept {
        serve([this] { full_ = true; });
    }
    bool full() const noexcept { return full_; }

  private:
    bool grant(waiter&) noexcept override { return full_; }

    bool full_ = false;
};

TEST(WhenAny, AWaitThatLosesHasTakenNothingAlsoWhenItWasGrantedInTheSameInstant) {
    manual_loop loop;
    letter_box a, b;
    auto race = spawn(loop, when_any(a.take(), b.take()));
    loop.run_ready();
    a.put();
    b.put();
    loop.run_ready();
    EXPECT_EQ(race.blocking_join().value().index(), 0U);
    EXPECT_FALSE(a.full());
    EXPECT_TRUE(b.full());
}

TEST(WhenAny, AWaitWithinBoundsOrAnotherRaceThatLosesHasTakenNothing) {
    manual_loop loop;
    letter_box a, b, c, d;
    auto race = spawn(
        loop, when_any(with_timeout(a.take(), 1h), b.take_for(1h), when_any(c.take(), d.take())));
    loop.run_ready();
    d.put();
    c.put();
    b.put();
    a.put();
    loop.run_ready();
    auto const r = race.blocking_join().value();
    EXPECT_EQ(r.index(), 2U);
    EXPECT_EQ(std::get<2>(r).index(), 1U);
    EXPECT_TRUE(a.full() && b.full() && c.full());
    EXPECT_FALSE(d.full());
}

TEST(WhenAny, AWaitInARaceThatLosesTheRaceAroundItHasTakenNothing) {
    manual_loop loop;
    letter_box a, b, c;
    auto race = spawn(loop, when_any(a.take(), when_any(b.take(), c.take())));
    loop.run_ready();
    a.put();
    b.put();
    loop.run_ready();
    ASSERT_TRUE(race.ended()) << "who waited for c was stopped";
    EXPECT_EQ(race.blocking_join().value().index(), 0U);
    EXPECT_TRUE(b.full());
}

TEST(WhenAny, ABranchOfWhenAllTakesItsPartWithoutEndingTheRaceAround) {
    manual_loop loop;
    letter_box a, b;
    auto race = spawn(loop, when_any(when_all(a.take(), b.take()), sleep_for(1s)));
    loop.run_ready();
    a.put();
    loop.run_ready();
    EXPECT_FALSE(race.ended());
    b.put();
    loop.run_ready();
    EXPECT_EQ(race.blocking_join().value().index(), 0U);
}

TEST(WhenAny, TheExceptionOfTheWinnerIsTheResult) {
    manual_loop loop;
    permits never{0};
    log l;
    auto race = spawn(loop, when_any(wait_noted(never, l, "loser"), fail_after(1s, "winner")));
    loop.advance(1s);
    EXPECT_THROW(std::ignore = race.blocking_join(), std::runtime_error);
    EXPECT_EQ(l, log{"~loser"});
}

TEST(WhenAny, TheExceptionOfALoserIsDropped) {
    manual_loop loop;
    auto const throws_when_stopped = []() -> task<int> {
        environment const& env = co_await this_environment();
        auto const r = co_await sleep_for(1h, env.stop);
        if (!r) throw std::runtime_error{"lost"};
        co_return 1;
    };
    EXPECT_EQ(run(loop, when_any(throws_when_stopped(), after(1s, 2)), 1s).index(), 1U);
    EXPECT_TRUE(loop.unobserved().empty());
}

TEST(WhenAny, ALoserThatNeverWaitsAgainCompletesAndItsResultIsDestroyed) {
    manual_loop loop;
    auto const weak = std::make_shared<int>(7);
    auto const shares = [](std::shared_ptr<int> p, permits& q) -> task<std::shared_ptr<int>> {
        auto const got = co_await q.acquire();
        co_return p;
    };
    permits a{0}, b{0};
    auto race = spawn(loop, when_any(a.acquire(), shares(weak, b)));
    loop.run_ready();
    a.release();
    b.release();
    loop.run_ready();
    EXPECT_EQ(race.blocking_join().value().index(), 0U);
    EXPECT_EQ(weak.use_count(), 1);
}

TEST(WhenAny, InsideEachOtherStopOnlyTheirOwnLosers) {
    manual_loop loop;
    permits never{0};
    log l;
    auto const inner = [](permits& n, log& out) -> task<int> {
        (void)co_await when_any(wait_noted(n, out, "inner loser"), sleep_for(1s));
        out.emplace_back("inner over");
        co_await sleep_for(1s);
        co_return 1;
    };
    auto const outer = [](auto& below, permits& n, log& out) -> task<std::size_t> {
        auto const r = co_await when_any(below(n, out), wait_noted(n, out, "outer loser"));
        co_return r.index();
    };
    EXPECT_EQ(run(loop, outer(inner, never, l), 2s), 0U);
    EXPECT_EQ(l, (log{"~inner loser", "inner over", "~outer loser"}));
}

TEST(WhenAny, OfOneBehavesAsThatOne) {
    manual_loop loop;
    EXPECT_EQ(std::get<0>(run(loop, when_any(after(1s, 4)), 1s)), 4);
}

TEST(WhenAnyDeathTest, OfNothingIsAProgrammersError) {
    EXPECT_DEATH((void)block_on(when_any(std::vector<task<int>>{})), "would never end");
}

// --- with_timeout, with_deadline, with_stop --------------------------------------------------

using bounded = std::expected<int, wait_error>;

TEST(WithTimeout, GivesTheValueOfATaskThatCompletesInTime) {
    manual_loop loop;
    EXPECT_EQ(run(loop, with_timeout(after(1s, 4), 2s), 1s), bounded{4});
    EXPECT_EQ(run(loop, with_deadline(after(1s, 4), loop.now() + 2s), 1s), bounded{4});
    EXPECT_TRUE(run(loop, with_timeout(sleep_for(1s), 2s), 1s).has_value());
    EXPECT_TRUE(run(loop, with_timeout(sleep_for(1s), clock::duration::max()), 1s).has_value());
}

TEST(WithTimeout, SaysThatTimeWasUp) {
    manual_loop loop;
    bounded const late{std::unexpect, wait_error::timed_out};
    EXPECT_EQ(run(loop, with_timeout(after(3s, 4), 2s), 2s), late);
    EXPECT_EQ(run(loop, with_deadline(after(3s, 4), loop.now() + 2s), 2s), late);
}

TEST(WithTimeout, CountsFromTheMomentItIsAwaited) {
    manual_loop loop;
    auto const program = []() -> task<bounded> {
        auto later = with_timeout(after(1s, 4), 2s);
        co_await sleep_for(1h);
        co_return co_await std::move(later);
    };
    EXPECT_EQ(run(loop, program(), 1h + 1s), bounded{4});
}

TEST(WithTimeout, OfNoTimeLetsThroughWhatIsReady) {
    manual_loop loop;
    permits ready{1}, empty{0};
    auto served = spawn(loop, with_timeout(ready.acquire(), 0s));
    auto refused = spawn(loop, with_deadline(empty.acquire(), loop.now() - 1h));
    loop.run_ready();
    EXPECT_TRUE(served.blocking_join().value().has_value());
    EXPECT_EQ(refused.blocking_join().value().error(), wait_error::timed_out);
}

TEST(WithTimeout, CompletionInTheInstantOfTheDeadlineWins) {
    manual_loop loop;
    permits p{0}, never{0};
    log l;
    auto completes = spawn(loop, with_timeout(p.acquire(), 1s));
    auto waits_again = spawn(loop, with_timeout(
                                       [](permits& q, permits& n, log& out) -> task<void> {
                                           auto const got = co_await q.acquire();
                                           co_await wait_noted(n, out, "second wait");
                                       }(p, never, l),
                                       1s));
    loop.run_ready();
    p.release(2);
    loop.pass(1s);
    loop.run_ready();
    EXPECT_TRUE(completes.blocking_join().value().has_value());
    EXPECT_EQ(waits_again.blocking_join().value().error(), wait_error::timed_out);
    EXPECT_EQ(l, log{"~second wait"});
    EXPECT_EQ(p.available(), 2U);
}

TEST(WithTimeout, PassesExceptionsThrough) {
    manual_loop loop;
    auto t = spawn(loop, with_timeout(fail_after(1s, "inside"), 2s));
    loop.advance(1s);
    EXPECT_THROW(std::ignore = t.blocking_join(), std::runtime_error);
}

TEST(WithTimeout, KeepsTheOutcomeOfATaskThatItselfGivesAnExpected) {
    manual_loop loop;
    auto const r = run(loop, with_timeout(with_timeout(after(3s, 4), 1s), 2s), 1s);
    ASSERT_TRUE(r.has_value()) << "the outer one did not time out";
    EXPECT_EQ(r->error(), wait_error::timed_out);
    auto const s = run(loop, with_timeout(with_timeout(after(3s, 4), 2s), 1s), 1s);
    EXPECT_EQ(s.error(), wait_error::timed_out);
    auto const flag = run(loop, with_timeout(with_timeout(value(false), 2s), 1s));
    EXPECT_FALSE(flag.value().value());
}

TEST(WithTimeout, AStopFromAboveUnwindsThroughItEvenIfTimeIsUpToo) {
    manual_loop loop;
    permits never{0};
    auto t = spawn(loop, with_timeout(never.acquire(), 1s));
    loop.run_ready();
    t.request_stop();
    loop.advance(1s);
    EXPECT_FALSE(t.blocking_join().has_value());
}

TEST(WithStop, SaysThatTheTokenAsked) {
    manual_loop loop;
    stop_source source;
    auto t = spawn(loop, with_stop(after(1s, 4), source.token()));
    loop.run_ready();
    source.request_stop();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), wait_error::stopped);
}

TEST(WithStop, GivesTheValueOfATaskThatCompletes) {
    manual_loop loop;
    stop_source source;
    EXPECT_EQ(run(loop, with_stop(after(1s, 4), source.token()), 1s), bounded{4});
    source.request_stop();
    EXPECT_EQ(run(loop, with_stop(value(4), source.token())), bounded{4});
    EXPECT_EQ(run(loop, with_stop(value(4), stop_token{})), bounded{4});
}

TEST(WithStop, ATokenThatAskedBeforeStopsTheTaskAtItsFirstWait) {
    manual_loop loop;
    stop_source source;
    source.request_stop();
    EXPECT_EQ(run(loop, with_stop(after(1s, 4), source.token())).error(), wait_error::stopped);
}

}  // namespace
}  // namespace rondo
