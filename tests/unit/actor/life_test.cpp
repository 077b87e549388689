// From the beginning of an actor to its end: one message at a time, failures, drain and stop.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rondo/actor/spawn.hpp"
#include "unit/actor/actors.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using actor::after_failure;
using actor::ask_error;
using actor::ended;
using test::add;
using test::counter;
using test::fail;
using test::total;
using wait_until = test::pause;

class ActorLife : public test::ActorTest {};

TEST_F(ActorLife, NothingHappensInsideSpawn) {
    bool made = false;
    auto [numbers, life] = actor::spawn<counter>(loop, [&made] {
        made = true;
        return counter{};
    });
    EXPECT_FALSE(made);
    loop.run_ready();
    EXPECT_TRUE(made);
}

// Counts how many are inside receive() at once.
struct visit {
    notify* until;
};
class room {
  public:
    using accepts = actor::messages<visit>;
    explicit room(std::vector<int>& seen) noexcept : seen_(seen) {}
    task<void> receive(visit v) {
        seen_.push_back(++inside_);
        co_await v.until->notified();
        --inside_;
    }

  private:
    std::vector<int>& seen_;
    int inside_ = 0;
};

TEST_F(ActorLife, AMessageWaitsUntilTheOneBeforeIsDoneWith) {
    std::vector<int> seen;
    notify go;
    auto [it, life] = actor::spawn<room>(loop, [&seen] { return room{seen}; });
    EXPECT_TRUE(it.try_tell(visit{&go}));
    EXPECT_TRUE(it.try_tell(visit{&go}));
    loop.run_ready();
    EXPECT_EQ(seen, (std::vector{1}));
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(seen, (std::vector{1, 1}));
    go.notify_one();
}

TEST_F(ActorLife, OneThatIsDrainedReceivesWhatWasToldBefore) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    EXPECT_TRUE(numbers.try_tell(add{1}));
    EXPECT_TRUE(numbers.try_tell(add{2}));
    life.drain();
    EXPECT_FALSE(numbers.try_tell(add{3}));
    loop.run_ready();
    ASSERT_TRUE(life.has_ended());
    EXPECT_EQ(life.progress(), std::nullopt);
    ended const end = *life.blocking_join();
    EXPECT_EQ(end.received, 2U);
    EXPECT_EQ(end.failure, nullptr);
}

TEST_F(ActorLife, AHandleThatGoesDrains) {
    auto asking = [this] {
        auto [numbers, life] = actor::spawn<counter>(loop);
        EXPECT_TRUE(numbers.try_tell(add{4}));
        auto sum = spawn(loop, numbers.ask(total{}));
        loop.step();  // the actor begins and waits
        loop.step();  // the ask is in the mailbox
        return sum;
    }();
    loop.run_ready();
    EXPECT_EQ(*asking.blocking_join(), 4);
}

TEST_F(ActorLife, AStopEndsItInTheMiddleOfAMessage) {
    notify never;
    auto [numbers, life] = actor::spawn<counter>(loop);
    auto first = spawn(loop, numbers.ask(wait_until{&never}));
    auto second = spawn(loop, numbers.ask(total{}));
    loop.run_ready();
    life.request_stop();
    loop.run_ready();
    EXPECT_EQ(life.blocking_join().error(), wait_error::stopped);
    EXPECT_EQ(first.blocking_join()->error(), ask_error::unanswered);
    EXPECT_EQ(second.blocking_join()->error(), ask_error::unanswered);
    EXPECT_TRUE(numbers.is_closed());
}

// The mailbox is never empty: each receive would be ready.
TEST_F(ActorLife, AStopLeavesWhatIsInTheMailboxUnreceived) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    notify until;
    int sum = 0;
    EXPECT_TRUE(numbers.try_tell(wait_until{&until}));
    EXPECT_TRUE(numbers.try_tell(test::report_to{&sum}));
    auto asking = spawn(loop, numbers.ask(total{}));
    loop.run_ready();
    until.notify_one();
    life.request_stop();  // what it waits for in that message came first
    loop.run_ready();
    EXPECT_EQ(sum, 0);
    EXPECT_EQ(asking.blocking_join()->error(), ask_error::unanswered);
    EXPECT_EQ(life.blocking_join().error(), wait_error::stopped);
}

TEST_F(ActorLife, OneThatIsStoppedBeforeItBeginsReceivesNothing) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    auto asking = spawn(loop, numbers.ask(total{}));
    life.request_stop();
    int sum = 0;
    EXPECT_TRUE(numbers.try_tell(test::report_to{&sum}));
    loop.run_ready();
    EXPECT_EQ(sum, 0);
    EXPECT_EQ(asking.blocking_join()->error(), ask_error::closed);
    EXPECT_EQ(life.blocking_join().error(), wait_error::stopped);
}

TEST_F(ActorLife, AParentTokenStopsIt) {
    stop_source parent;
    auto [numbers, life] =
        actor::spawn<counter>(loop, [] { return counter{}; }, {}, parent.token());
    loop.run_ready();
    parent.request_stop();
    loop.run_ready();
    EXPECT_EQ(life.blocking_join().error(), wait_error::stopped);
}

TEST_F(ActorLife, TheFirstFailureIsTheEndUnlessRestartsAreAllowed) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    EXPECT_TRUE(numbers.try_tell(fail{}));
    EXPECT_TRUE(numbers.try_tell(add{1}));
    loop.run_ready();
    ended const end = *life.blocking_join();
    EXPECT_THROW(std::rethrow_exception(end.failure), std::runtime_error);
    EXPECT_EQ(end.received, 1U);
    EXPECT_EQ(end.restarts, 0U);
    EXPECT_TRUE(numbers.is_closed());
}

TEST_F(ActorLife, ANewObjectGoesOnWithTheSameMailbox) {
    auto [numbers, life] =
        actor::spawn<counter>(loop, [] { return counter{100}; }, test::tolerates(1));
    EXPECT_TRUE(numbers.try_tell(add{1}));
    EXPECT_TRUE(numbers.try_tell(fail{}));
    EXPECT_TRUE(numbers.try_tell(add{2}));
    EXPECT_EQ(result_of(numbers.ask(total{})), 102);
    EXPECT_EQ(life.progress()->restarts, 1U);
}

TEST_F(ActorLife, ItGivesUpWhenItFailsTooOften) {
    test::failures seen;
    actor::options chosen = test::tolerates(2);
    auto [numbers, life] = actor::spawn<counter>(loop, seen.note_in(chosen));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(numbers.try_tell(fail{}));
    loop.run_ready();
    ended const end = *life.blocking_join();
    EXPECT_NE(end.failure, nullptr);
    EXPECT_EQ(end.received, 3U);
    EXPECT_EQ(end.restarts, 2U);
    ASSERT_EQ(seen.all.size(), 3U);
    EXPECT_EQ(seen.all[1].second, after_failure::begins_again);
    EXPECT_EQ(seen.all[2].second, after_failure::gives_up);
    EXPECT_TRUE(loop.unobserved().empty());
}

TEST_F(ActorLife, AFailureThatNobodyWatchesGoesToTheExecutor) {
    auto [numbers, life] = actor::spawn<counter>(loop, test::tolerates(1));
    EXPECT_TRUE(numbers.try_tell(fail{}));
    EXPECT_TRUE(numbers.try_tell(fail{}));
    loop.run_ready();
    EXPECT_EQ(loop.unobserved().size(), 2U);
}

TEST_F(ActorLife, ItWaitsBeforeItBeginsAgain) {
    actor::options const chosen{.restarts = {.at_most = 2, .delay = 1s}};
    auto [numbers, life] = actor::spawn<counter>(loop, chosen);
    EXPECT_TRUE(numbers.try_tell(fail{}));
    auto sum = spawn(loop, numbers.ask(total{}));
    loop.advance(999ms);
    EXPECT_FALSE(sum.ended());
    loop.advance(1ms);
    EXPECT_TRUE(sum.ended());
}

TEST_F(ActorLife, MakingItCanFailToo) {
    int attempts = 0;
    auto [numbers, life] = actor::spawn<counter>(
        loop,
        [&attempts] {
            if (++attempts < 3) throw std::runtime_error{"not yet"};
            return counter{attempts};
        },
        test::tolerates(2));
    EXPECT_EQ(result_of(numbers.ask(total{})), 3);
    EXPECT_EQ(life.progress()->restarts, 2U);
}

// Fails after it has waited.
struct late_failure {
    notify* until;
};
class frail {
  public:
    using accepts = actor::messages<late_failure>;
    task<void> receive(late_failure m) {
        co_await m.until->notified();
        throw std::runtime_error{"too late"};
    }
};

TEST_F(ActorLife, ACoroutineThatFailsAfterAWaitCountsAsWell) {
    notify go;
    auto [it, life] = actor::spawn<frail>(loop, test::tolerates(1));
    auto asking = spawn(loop, it.ask(late_failure{&go}));
    loop.run_ready();
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(asking.blocking_join()->error(), ask_error::unanswered);
    EXPECT_EQ(life.progress()->restarts, 1U);
}

// Tells itself what is left to do.
struct count_down {
    int from;
};
class echoing {
  public:
    using accepts = actor::messages<count_down>;
    echoing(accepts::address self, std::vector<int>& seen) : self_(std::move(self)), seen_(seen) {}
    void receive(count_down m) {
        seen_.push_back(m.from);
        if (m.from == 0) return;
        EXPECT_TRUE(self_.try_tell(count_down{m.from - 1}));
    }

  private:
    accepts::address self_;
    std::vector<int>& seen_;
};

TEST_F(ActorLife, AnActorMayTellItselfAndStillEnds) {
    std::vector<int> seen;
    {
        auto [it, life] = actor::spawn<echoing>(
            loop, [&seen](actor::address_of<echoing> const& self) { return echoing{self, seen}; });
        EXPECT_TRUE(it.try_tell(count_down{3}));
        loop.run_ready();
    }
    loop.run_ready();
    EXPECT_EQ(seen, (std::vector{3, 2, 1, 0}));
}

// Cannot be moved, and says when it goes.
class resident {
  public:
    using accepts = actor::messages<total>;
    explicit resident(bool& gone) noexcept : gone_(gone) {}
    resident(resident const&) = delete;
    resident& operator=(resident const&) = delete;
    ~resident() { gone_ = executor::current() != nullptr; }
    int receive(total) const noexcept { return 1; }

  private:
    bool& gone_;
};

TEST_F(ActorLife, TheObjectNeedNotMoveAndGoesOnItsExecutor) {
    bool gone = false;
    auto [it, life] = actor::spawn<resident>(loop, [&gone] { return resident{gone}; });
    EXPECT_EQ(result_of(it.ask(total{})), 1);
    life.drain();
    EXPECT_FALSE(gone);
    loop.run_ready();
    EXPECT_TRUE(gone);
}

TEST_F(ActorLife, AMovedHandleLeadsOn) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    auto [others, other_life] = actor::spawn<counter>(loop);
    other_life = std::move(life);
    loop.run_ready();
    EXPECT_TRUE(others.is_closed());
    EXPECT_FALSE(numbers.is_closed());
    other_life.drain();
    EXPECT_TRUE(numbers.is_closed());
}

}  // namespace
}  // namespace rondo
