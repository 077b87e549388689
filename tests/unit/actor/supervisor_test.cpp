// Actors that belong together.
#include "rondo/actor/supervisor.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/actor/actors.hpp"

namespace rondo {
namespace {

using actor::end_of_life;
using actor::obituary;
using actor::supervisor;
using actor::when_one_fails;
using actor::when_one_gives_up;
using test::add;
using test::counter;
using test::fail;
using test::total;

class ActorSupervisor : public test::ActorTest {
  protected:
    std::vector<obituary> joined(supervisor& s) {
        auto joining = spawn(loop, s.join());
        loop.run_ready();
        return *joining.blocking_join();
    }
};

TEST_F(ActorSupervisor, OneThatFailsDoesNotTakeOthersDown) {
    supervisor both{loop};
    auto sick = both.start<counter>("sick");
    auto well = both.start<counter>("well");
    EXPECT_TRUE(sick.try_tell(fail{}));
    EXPECT_TRUE(well.try_tell(add{1}));
    EXPECT_EQ(result_of(well.ask(total{})), 1);
    EXPECT_TRUE(sick.is_closed());
    both.drain();
    auto const ends = joined(both);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].name, "sick");
    EXPECT_EQ(ends[0].why, end_of_life::gave_up);
    EXPECT_NE(ends[0].failure, nullptr);
    EXPECT_EQ(ends[1].name, "well");
    EXPECT_EQ(ends[1].why, end_of_life::drained);
}

TEST_F(ActorSupervisor, OneThatGivesUpStopsTheOthersIfThatWasChosen) {
    supervisor both{loop, when_one_gives_up::stop_all};
    auto sick = both.start<counter>("sick", test::tolerates(1));
    auto well = both.start<counter>("well");
    EXPECT_TRUE(sick.try_tell(fail{}));
    loop.run_ready();
    EXPECT_FALSE(well.is_closed());  // it was begun again
    EXPECT_TRUE(sick.try_tell(fail{}));
    auto const ends = joined(both);
    EXPECT_EQ(ends[0].why, end_of_life::gave_up);
    EXPECT_EQ(ends[1].why, end_of_life::stopped);
    EXPECT_EQ(loop.unobserved().size(), 2U);
}

TEST_F(ActorSupervisor, AllBeginAgainWithOneThatFailsIfThatWasChosen) {
    supervisor both{loop, when_one_gives_up::others_go_on, when_one_fails::all_begin_again};
    auto sick = both.start<counter>("sick", test::tolerates(2));
    auto well = both.start<counter>("well");  // which may not fail itself
    for (unsigned time = 1; time <= 2; ++time) {
        EXPECT_TRUE(well.try_tell(add{1}));
        EXPECT_EQ(result_of(well.ask(total{})), 1);
        EXPECT_TRUE(sick.try_tell(fail{}));
        EXPECT_TRUE(sick.try_tell(add{7}));
        EXPECT_EQ(result_of(sick.ask(total{})), 7) << "its mailbox stays";
        EXPECT_EQ(result_of(well.ask(total{})), 0) << "it is another object";
        EXPECT_EQ(both.look()[1].progress->restarts, time);
    }
    EXPECT_TRUE(sick.try_tell(fail{}));  // once too often
    EXPECT_TRUE(well.try_tell(add{1}));
    EXPECT_EQ(result_of(well.ask(total{})), 1) << "who gives up leaves the others as they are";
    both.drain();
    auto const ends = joined(both);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].why, end_of_life::gave_up);
    EXPECT_EQ(ends[1].why, end_of_life::drained);
}

TEST_F(ActorSupervisor, WhoBeginsAgainWithAnotherLeavesTheMessageItReceivesAndKeepsTheRest) {
    supervisor both{loop, when_one_gives_up::others_go_on, when_one_fails::all_begin_again};
    auto sick = both.start<counter>("sick", test::tolerates(1));
    auto busy = both.start<counter>("busy");
    notify never;
    EXPECT_TRUE(busy.try_tell(add{1}));
    EXPECT_TRUE(busy.try_tell(test::pause{&never}));
    EXPECT_TRUE(busy.try_tell(add{10}));
    loop.run_ready();
    EXPECT_TRUE(sick.try_tell(fail{}));
    EXPECT_EQ(result_of(busy.ask(total{})), 10);
    both.drain();
    EXPECT_EQ(joined(both).size(), 2U);
}

// Also what would be ready for the old object.
TEST_F(ActorSupervisor, WhoBeginsAgainWithAnotherLeavesItsMailboxToItsNewObject) {
    supervisor both{loop, when_one_gives_up::others_go_on, when_one_fails::all_begin_again};
    auto sick = both.start<counter>("sick", test::tolerates(1));
    auto busy = both.start<counter>("busy");
    notify until;
    EXPECT_TRUE(busy.try_tell(add{1}));
    EXPECT_TRUE(busy.try_tell(test::pause{&until}));
    EXPECT_TRUE(busy.try_tell(add{10}));
    loop.run_ready();
    auto lets_go = [](notify* n) -> task<void> {
        n->notify_one();
        co_return;
    };
    // It is let go, then the sick one fails, and then it has its turn.
    spawn(loop, lets_go(&until)).detach();
    EXPECT_TRUE(sick.try_tell(fail{}));
    EXPECT_EQ(result_of(busy.ask(total{})), 10);
    both.drain();
    EXPECT_EQ(joined(both).size(), 2U);
}

TEST_F(ActorSupervisor, ThoseThatFailTogetherBeginAgainOnce) {
    supervisor all{loop, when_one_gives_up::others_go_on, when_one_fails::all_begin_again};
    auto one = all.start<counter>("one", test::tolerates(1));
    auto other = all.start<counter>("other", test::tolerates(1));
    auto third = all.start<counter>("third");
    loop.run_ready();
    EXPECT_TRUE(one.try_tell(fail{}));
    EXPECT_TRUE(other.try_tell(fail{}));
    loop.run_ready();
    for (auto const& r : all.look()) EXPECT_EQ(r.progress->restarts, 1U) << r.name;
    EXPECT_EQ(result_of(third.ask(total{})), 0);
    all.request_stop();
    for (obituary const& o : joined(all)) EXPECT_EQ(o.why, end_of_life::stopped);
}

TEST_F(ActorSupervisor, TheirOwnWatcherHearsOfFailuresToo) {
    test::failures seen;
    actor::options chosen;
    supervisor all{loop, when_one_gives_up::stop_all};
    auto sick = all.start<counter>("sick", seen.note_in(chosen));
    EXPECT_TRUE(sick.try_tell(fail{}));
    EXPECT_EQ(joined(all).size(), 1U);
    EXPECT_EQ(seen.all.size(), 1U);
    EXPECT_TRUE(loop.unobserved().empty());
}

TEST_F(ActorSupervisor, DrainIsForAllAndForThoseWhoComeLater) {
    supervisor all{loop};
    auto first = all.start<counter>("first");
    EXPECT_TRUE(first.try_tell(add{1}));
    all.drain();
    auto late = all.start<counter>("late");
    EXPECT_TRUE(first.is_closed());
    EXPECT_TRUE(late.is_closed());
    auto const ends = joined(all);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].why, end_of_life::drained);
    EXPECT_EQ(ends[1].why, end_of_life::drained);
}

TEST_F(ActorSupervisor, StopIsForAllAndForThoseWhoComeLater) {
    supervisor all{loop};
    auto first = all.start<counter>("first");
    loop.run_ready();
    all.request_stop();
    auto late = all.start<counter>("late");
    auto const ends = joined(all);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].why, end_of_life::stopped);
    EXPECT_EQ(ends[1].why, end_of_life::stopped);
    EXPECT_TRUE(late.is_closed());
}

TEST_F(ActorSupervisor, AJoinThatIsStoppedLosesNothing) {
    supervisor all{loop};
    auto first = all.start<counter>("first");
    auto second = all.start<counter>("second");
    EXPECT_TRUE(first.try_tell(fail{}));
    auto joining = spawn(loop, all.join());
    loop.run_ready();
    joining.request_stop();
    loop.run_ready();
    EXPECT_EQ(joining.blocking_join().error(), wait_error::stopped);
    all.drain();
    auto const ends = joined(all);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].why, end_of_life::gave_up);
    EXPECT_EQ(ends[1].why, end_of_life::drained);
    EXPECT_TRUE(joined(all).empty());
}

// Starts another actor when it is told to.
struct breed {};
class parent {
  public:
    using accepts = actor::messages<breed>;
    explicit parent(supervisor& family) noexcept : family_(family) {}
    void receive(breed) { (void)family_.start<counter>("child"); }

  private:
    supervisor& family_;
};

TEST_F(ActorSupervisor, AnActorMayStartOthersAndTheyAreJoinedToo) {
    supervisor family{loop};
    auto it = family.start<parent>("parent", [&family] { return parent{family}; });
    EXPECT_TRUE(it.try_tell(breed{}));
    family.drain();
    auto const ends = joined(family);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[1].name, "child");
}

TEST_F(ActorSupervisor, SaysHowEachIs) {
    supervisor all{loop};
    auto numbers = all.start<counter>("numbers", test::tolerates(1));
    auto gone = all.start<counter>("gone");
    EXPECT_TRUE(gone.try_tell(fail{}));
    EXPECT_TRUE(numbers.try_tell(fail{}));
    EXPECT_TRUE(numbers.try_tell(add{1}));
    loop.run_ready();
    EXPECT_TRUE(numbers.try_tell(add{1}));
    auto const seen = all.look();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].name, "numbers");
    EXPECT_EQ(seen[0].progress->received, 2U);
    EXPECT_EQ(seen[0].progress->restarts, 1U);
    EXPECT_EQ(seen[0].progress->waiting, 1U);
    EXPECT_EQ(seen[1].progress, std::nullopt);
    all.drain();
    EXPECT_EQ(joined(all).size(), 2U);
}

TEST_F(ActorSupervisor, EndsHaveNames) {
    EXPECT_STREQ(describe(end_of_life::drained), "drained");
    EXPECT_STREQ(describe(end_of_life::gave_up), "gave up");
    EXPECT_STREQ(describe(end_of_life::stopped), "stopped");
}

TEST_F(ActorSupervisor, AnEmptyOneJoinsAtOnce) {
    supervisor none{loop};
    EXPECT_TRUE(none.blocking_join().empty());
}

}  // namespace
}  // namespace rondo
