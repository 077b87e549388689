// The OrderCoordinator by itself: who is given what, and what happens when there is no room.
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rondo/sim/node.hpp"
#include "shop/leader.hpp"

namespace rondo::shop {
namespace {

class nowhere final : public cluster::epoch_store {
  public:
    cluster::epoch load() override { return {}; }
    void save(cluster::epoch) override {}
};

class OrderCoordination : public testing::Test {
  protected:
    using letter = resolver_address::any_letter;
    using letters = mpsc::receiver<letter>;
    using answers = oneshot::receiver<order_outcome>;

    static task<cluster::answer> no_answer(cluster::message) { co_return cluster::answer{}; }

    OrderCoordination() {
        node_.start();
        here_.log = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::null_sink_mt>());
        me_.emplace(node_.bind({1, 1}).value(), cluster::secret{}, cluster::member_run{65, 1},
                    no_answer);
        election_.emplace(*me_, std::vector<cluster::address>{}, store_);
        context_.emplace(here_, *me_, *election_, cluster::epoch{1, 65}, patience_);
        coordinator_.emplace(*context_);
        for (std::uint32_t r = 0; r < 2; ++r) {
            auto ends = mpsc::channel<letter>(16);
            given_.push_back(std::move(ends.receiver));
            coordinator_->receive(ResolverActorMessage{r, resolver_address{ends.sender}});
        }
    }

    answers order(std::string const& oid, std::uint64_t attempt = attempts_of_a_screen) {
        auto ends = oneshot::channel<order_outcome>();
        coordinator_->receive(
            OrderActorMessage{{oid, attempt, {{"mint", 1}}, {}}, std::move(ends.sender)});
        return std::move(ends.receiver);
    }
    void is_free(std::uint32_t robot, std::vector<attempt_at> held = {}) {
        coordinator_->receive(FreeRobotActorMessage{robot, std::nullopt, {}, std::move(held)});
    }
    void ask_ledger() { ++context_->questions; }
    void says_ledger(std::set<order_id> open) {
        coordinator_->receive(LedgerActorMessage{context_->questions, std::move(open)});
    }
    // What robot r was given last.
    std::optional<OrderActorMessage> taken_by(std::uint32_t robot) {
        auto got = given_[robot].try_recv();
        if (!got) return std::nullopt;
        auto* const it = std::get_if<actor::detail::letter<OrderActorMessage>>(&*got);
        if (it == nullptr) return std::nullopt;
        return std::move(it->message);
    }
    std::string given_to(std::uint32_t robot) {
        auto const m = taken_by(robot);
        return m ? m->wanted.oid + "/" + std::to_string(m->wanted.attempt) : "nothing";
    }
    static reply answered(answers& a) {
        auto const got = a.try_recv();
        return got ? got->kind : reply::nonsense;
    }

    OrderCoordinator& coordinator() { return *coordinator_; }
    leading_context const& context() const { return *context_; }

  private:
    sim::world world_;
    sim::network net_{world_};
    static task<void> idle(sim::node*) { co_return; }
    sim::node node_{world_, net_, 1, idle};
    place here_;
    times patience_;
    nowhere store_;
    std::optional<cluster::peer> me_;
    std::optional<cluster::election> election_;
    std::optional<leading_context> context_;
    std::optional<OrderCoordinator> coordinator_;
    std::vector<letters> given_;
};

constexpr std::uint64_t first = attempts_of_a_screen;
std::string const at_first = "/" + std::to_string(first);

TEST_F(OrderCoordination, OrdersWaitInTheirOrderUntilARobotIsFree) {
    answers const a = order("a");
    answers const b = order("b");
    EXPECT_EQ(given_to(0), "nothing");
    is_free(1);
    EXPECT_EQ(given_to(1), "a" + at_first);
    EXPECT_EQ(given_to(0), "nothing");
    is_free(0);
    EXPECT_EQ(given_to(0), "b" + at_first);
}

TEST_F(OrderCoordination, OneOrderTooManyIsAnsweredBusyAtOnce) {
    std::vector<answers> waiting;
    is_free(0);
    for (std::size_t i = 0; i < limits{}.open_orders; ++i) {
        waiting.push_back(order(std::to_string(i)));
    }
    auto given = taken_by(0);
    ASSERT_TRUE(given);
    answers full = order("one more");  // though one of them does not wait: it may come back
    EXPECT_EQ(answered(full), reply::busy);
    coordinator().receive(FallenRobotActorMessage{0, std::move(given)});
    EXPECT_EQ(context().waiting, limits{}.open_orders);
    for (answers& w : waiting) EXPECT_EQ(answered(w), reply::nonsense);  // not yet
}

TEST_F(OrderCoordination, TheOrderOfAFallenRobotGoesToAnotherAsAnotherAttempt) {
    is_free(0);
    answers const a = order("a");
    auto given = taken_by(0);
    ASSERT_TRUE(given);
    answers const b = order("b");
    coordinator().receive(FallenRobotActorMessage{0, std::move(given)});
    is_free(1);
    EXPECT_EQ(given_to(1), "a/" + std::to_string(first + 1));  // before those that came later
}

TEST_F(OrderCoordination, WhoAsksAgainHasTheSameAnswer) {
    is_free(0);
    answers const a = order("a");
    answers again = order("a", 2 * first);
    EXPECT_EQ(given_to(0), "a" + at_first);
    EXPECT_EQ(given_to(0), "nothing");
    FreeRobotActorMessage ready{0, "a", {reply::ready, {first, 0, {}}, {}}, {}};
    coordinator().receive(std::move(ready));
    EXPECT_EQ(answered(again), reply::ready);
}

TEST_F(OrderCoordination, WhatARobotHoldsIsAskedOfThatRobotWithItsAttempt) {
    is_free(0, {{"a", 7}});
    is_free(1);  // whose turn it would be
    answers const a = order("a", 2 * first);
    EXPECT_EQ(given_to(1), "nothing");
    EXPECT_EQ(given_to(0), "a/7");
    answers const b = order("b");
    EXPECT_EQ(given_to(1), "b" + at_first);
}

// An attempt that a robot holds is one of an earlier leader, who may have tried others after it.
TEST_F(OrderCoordination, AfterWhatAFallenRobotHeldTheAttemptsOfTheScreenGoOn) {
    is_free(0, {{"a", first}});
    answers const a = order("a", 2 * first);
    auto given = taken_by(0);
    ASSERT_TRUE(given);
    EXPECT_EQ(given->wanted.attempt, first);
    coordinator().receive(FallenRobotActorMessage{0, std::move(given)});
    is_free(1);  // which may have refused first + 1
    EXPECT_EQ(given_to(1), "a/" + std::to_string(2 * first + 1));
}

TEST_F(OrderCoordination, TheLastCupOfAScreenIsKnownHoweverManyItHadBefore) {
    is_free(0);
    std::string last;
    for (std::size_t n = 0; n <= limits{}.known_cups; ++n) {
        last = "1-j-" + std::to_string(n);
        answers const a = order(last);
        FreeRobotActorMessage ready{0, last, {reply::ready, {first, 0, {}}, {}}, {}};
        coordinator().receive(std::move(ready));
        ASSERT_EQ(given_to(0), last + at_first);
    }
    EXPECT_EQ(context().known_cups, 1U);
    is_free(1);  // whose turn it would be
    answers const again = order(last, 2 * first);
    EXPECT_EQ(given_to(0), last + at_first);
}

TEST_F(OrderCoordination, ACupOfAnOrderThatAnotherRobotMakesIsDiscarded) {
    is_free(0);
    answers const a = order("a");
    EXPECT_EQ(given_to(0), "a" + at_first);
    is_free(1, {{"a", 7}});
    EXPECT_TRUE(context().is_unwanted(1, {"a", 7}));
    answers const again = order("a", 2 * first);
    EXPECT_EQ(given_to(1), "nothing");
}

TEST_F(OrderCoordination, AnOrderThatHasEndedInTheLedgerWaitsNoLonger) {
    answers a = order("a");
    answers const b = order("b");
    answers again = order("a", 2 * first);
    ask_ledger();
    answers const c = order("c");  // which may have been prepared after that
    says_ledger({"b"});
    EXPECT_EQ(answered(a), reply::abort);
    EXPECT_EQ(answered(again), reply::abort);
    is_free(0);
    is_free(1);
    EXPECT_EQ(given_to(0), "b" + at_first);
    EXPECT_EQ(given_to(1), "c" + at_first);
    EXPECT_EQ(context().open, 2U);
}

TEST_F(OrderCoordination, TheCupOfAnOrderThatHasEndedInTheLedgerIsDiscarded) {
    is_free(0, {{"a", 7}, {"b", 8}});
    ask_ledger();
    is_free(1, {{"c", 9}});  // which may have been prepared after that
    says_ledger({"b"});
    EXPECT_TRUE(context().is_unwanted(0, {"a", 7}));
    EXPECT_FALSE(context().is_unwanted(0, {"b", 8}));
    EXPECT_FALSE(context().is_unwanted(1, {"c", 9}));
    EXPECT_EQ(context().known_cups, 2U);
    is_free(0, {{"a", 7}});  // which has not heard that yet
    EXPECT_EQ(context().known_cups, 2U);
}

// Before the gateway was asked: a screen that was not heard by the robot may order again at once.
TEST_F(OrderCoordination, TheCupOfAnOrderIsDiscardedWhenItsScreenOrdersAnother) {
    is_free(0, {{"1-j-7", 5}, {"1-j-9", 6}, {"2-j-7", 7}});
    is_free(1);  // whose turn it is
    answers const a = order("1-j-8");
    ASSERT_EQ(given_to(1), "1-j-8" + at_first);
    EXPECT_TRUE(context().is_unwanted(0, {"1-j-7", 5}));
    EXPECT_FALSE(context().is_unwanted(0, {"1-j-9", 6}));  // this is an order that comes late
    EXPECT_FALSE(context().is_unwanted(0, {"2-j-7", 7}));
    EXPECT_EQ(context().known_cups, 2U);
}

// A leader had the order made by another robot when it gave the first one up, and was given up too.
TEST_F(OrderCoordination, AllCupsOfAnOrderThatHasEndedInTheLedgerAreDiscarded) {
    is_free(0, {{"a", 7}});
    is_free(1, {{"a", 8}});
    is_free(1, {{"a", 8}});  // which was away for a moment
    EXPECT_EQ(context().known_cups, 2U);
    ask_ledger();
    says_ledger({});
    EXPECT_TRUE(context().is_unwanted(0, {"a", 7}));
    EXPECT_TRUE(context().is_unwanted(1, {"a", 8}));
    EXPECT_EQ(context().known_cups, 0U);
}

TEST_F(OrderCoordination, OfSeveralCupsOfAnOrderTheLatestIsAskedForAndTheOthersDiscarded) {
    is_free(1, {{"a", 7}});
    is_free(0, {{"a", 8}});
    is_free(1, {{"a", 6}});
    answers const a = order("a", 2 * first);
    EXPECT_EQ(given_to(0), "a/8");
    EXPECT_EQ(given_to(1), "nothing");
    EXPECT_FALSE(context().is_unwanted(0, {"a", 8}));
    EXPECT_TRUE(context().is_unwanted(1, {"a", 7}));
    EXPECT_TRUE(context().is_unwanted(1, {"a", 6}));
    EXPECT_EQ(context().known_cups, 1U);
}

TEST_F(OrderCoordination, AnOrderThatHasEndedInTheLedgerIsNotMadeByAnother) {
    is_free(0);
    answers const a = order("a");
    auto given = taken_by(0);
    ASSERT_TRUE(given);
    ask_ledger();
    says_ledger({});
    EXPECT_TRUE(context().ended.contains("a"));
    is_free(1);
    coordinator().receive(FallenRobotActorMessage{0, std::move(given)});
    EXPECT_EQ(given_to(1), "nothing");
    EXPECT_EQ(context().open, 0U);
    EXPECT_TRUE(context().ended.empty());
}

}  // namespace
}  // namespace rondo::shop
