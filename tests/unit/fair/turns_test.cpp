// The order of turns alone: shares, new tenants, saved credit, huge costs. At random, against a
// model, it is in turns_random_test.cpp.
#include "rondo/fair/detail/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/fair/terms.hpp"

namespace rondo::fair {
namespace {

using detail::entry;
using detail::tenant;
using detail::turns;

// Owns tenants and entries by number, and keeps the books that a test reads.
class queue_of_turns {
  public:
    explicit queue_of_turns(std::uint64_t quantum) : turns_(quantum) {}
    ~queue_of_turns() {
        while (turns_.next() != nullptr) {
        }
        while (turns_.forget() != nullptr) {
        }
    }

    tenant& at(std::size_t who, std::uint32_t weight = 1) {
        auto& t = tenants_[who];
        if (t == nullptr) t = std::make_unique<tenant>(weight);
        return *t;
    }
    entry& add(std::size_t who, std::uint64_t cost = 1, priority rank = priority::normal) {
        entry& e =
            *entries_.emplace_back(std::make_unique<entry>(terms{.cost = cost, .priority = rank}));
        turns_.add(at(who), e);
        return e;
    }
    void fill(std::size_t who, std::size_t tasks, std::uint64_t cost = 1) {
        for (std::size_t i = 0; i < tasks; ++i) add(who, cost);
    }
    entry& add_held_back(std::size_t who, std::uint64_t cost = 1) {
        entry& e = *entries_.emplace_back(std::make_unique<entry>(terms{.cost = cost}));
        turns_.add_held_back(at(who), e);
        return e;
    }
    // Whose task comes next; nothing when there is none.
    std::optional<std::size_t> next() {
        entry const* const e = turns_.next();
        if (e == nullptr) return std::nullopt;
        for (auto const& [who, t] : tenants_) {
            if (t.get() == e->owner) return who;
        }
        return std::nullopt;
    }
    std::string next(std::size_t how_many) {
        std::string order;
        for (std::size_t i = 0; i < how_many; ++i) {
            auto const who = next();
            order += who ? static_cast<char>('a' + *who) : '-';
        }
        return order;
    }
    // The cost that was taken of each tenant in so many tasks.
    std::map<std::size_t, std::uint64_t> serve(std::size_t how_many) {
        std::map<tenant*, std::uint64_t> served;
        for (std::size_t i = 0; i < how_many; ++i) {
            entry const* const e = turns_.next();
            if (e == nullptr) break;
            served[e->owner] += e->cost;
        }
        std::map<std::size_t, std::uint64_t> by_number;
        for (auto const& [who, t] : tenants_) by_number[who] = served[t.get()];
        return by_number;
    }
    turns& order() { return turns_; }

  private:
    std::map<std::size_t, std::unique_ptr<tenant>> tenants_;
    std::deque<std::unique_ptr<entry>> entries_;
    turns turns_;
};

constexpr std::size_t a = 0, b = 1, c = 2, d = 3;

// --- shares ----------------------------------------------------------------------------------

TEST(FairTurns, TenantsTakeTurnsOfAQuantum) {
    queue_of_turns q{2};
    q.fill(a, 6);
    q.fill(b, 6);
    EXPECT_EQ(q.next(4), "abab");  // one task each as new, then the rest of their turns
    EXPECT_EQ(q.next(8), "aabbaabb");
    EXPECT_EQ(q.next(1), "-");
}

TEST(FairTurns, WeightsTenToOneAreServedTenToOne) {
    queue_of_turns q{3};
    q.at(a, 10);
    q.fill(a, 20'000);
    q.fill(b, 20'000);
    auto const served = q.serve(11'000);
    EXPECT_NEAR(static_cast<double>(served.at(a)), 10'000, 60);
    EXPECT_NEAR(static_cast<double>(served.at(b)), 1'000, 6);
}

TEST(FairTurns, WeightsAHundredToOneAreServedAHundredToOne) {
    queue_of_turns q{1};
    q.at(a, 100);
    q.fill(a, 20'000);
    q.fill(b, 20'000);
    auto const served = q.serve(10'100);
    EXPECT_NEAR(static_cast<double>(served.at(a)), 10'000, 200);
    EXPECT_NEAR(static_cast<double>(served.at(b)), 100, 2);
}

TEST(FairTurns, CostsOneAndTenGiveEqualWork) {
    queue_of_turns q{4};
    q.fill(a, 20'000, 1);
    q.fill(b, 20'000, 10);
    auto const served = q.serve(11'000);
    EXPECT_NEAR(static_cast<double>(served.at(a)), static_cast<double>(served.at(b)), 1 + 10 + 8);
}

TEST(FairTurns, PriorityOrdersATenantsOwnTasksAndGivesItNoShare) {
    queue_of_turns q{1};
    entry const& low = q.add(a, 1, priority::low);
    entry const& normal = q.add(a);
    entry const& high = q.add(a, 1, priority::high);
    q.fill(b, 3);
    EXPECT_EQ(q.order().next(), &high);
    EXPECT_EQ(q.next(1), "b");
    EXPECT_EQ(q.order().next(), &normal);
    EXPECT_EQ(q.next(1), "b");
    EXPECT_EQ(q.order().next(), &low);
    EXPECT_EQ(q.next(2), "b-");
}

TEST(FairTurns, AWeightThatChangesCountsFromTheNextQuantumOn) {
    queue_of_turns q{1};
    q.fill(a, 50);
    q.fill(b, 50);
    EXPECT_EQ(q.next(4), "abab");
    q.order().reweigh(q.at(a), 3);
    EXPECT_EQ(q.next(8), "aaabaaab");
    q.order().reweigh(q.at(a), 1);
    EXPECT_EQ(q.next(4), "abab");
}

TEST(FairTurns, AWeightThatChangesDoesNotCountForThePast) {
    queue_of_turns q{1};
    q.fill(a, 10'000);
    q.add(b, 1'000);
    EXPECT_EQ(q.serve(500).at(b), 0U);
    q.order().reweigh(q.at(b), 100);
    EXPECT_EQ(q.serve(4).at(b), 0U);  // 500 are missing
    EXPECT_EQ(q.serve(4).at(b), 1'000U);
}

// --- new tenants -----------------------------------------------------------------------------

TEST(FairTurns, AQuietTenantIsServedBeforeTheBacklog) {
    queue_of_turns q{10};
    q.fill(a, 100);
    q.fill(b, 100);
    EXPECT_EQ(q.next(5), "abaaa");  // in the middle of a's turn
    q.add(c);
    EXPECT_EQ(q.next(7), "caaaaaa");
}

TEST(FairTurns, ATenantWhoseQuantumDoesNotPayForItsTaskIsNotInFront) {
    queue_of_turns q{8};
    q.fill(a, 1'000);
    EXPECT_EQ(q.next(3), "aaa");
    q.add(b, 8);
    EXPECT_EQ(q.next(1), "b");
    q.add(c, 9);
    EXPECT_EQ(q.next(6), "aaaaac");  // a has the rest of its turn before it
    q.add(d, 80);
    EXPECT_EQ(q.serve(9 * 8).at(d), 0U);
    EXPECT_EQ(q.serve(9).at(d), 80U);  // ten quanta pay for it
}

TEST(FairTurns, OfSeveralNewTenantsEachWaitsForOneTaskOfTheOthers) {
    queue_of_turns q{10};
    q.fill(a, 100);
    EXPECT_EQ(q.next(3), "aaa");
    q.fill(b, 5);
    q.fill(c, 5);
    q.fill(d, 1);
    EXPECT_EQ(q.next(3), "bcd");
    EXPECT_EQ(q.next(7), "aaaaaaa");   // the rest of a's turn
    EXPECT_EQ(q.next(8), "bbbbcccc");  // and of theirs
}

TEST(FairTurns, ATenantThatLeavesAndReturnsIsInFrontOnceARound) {
    queue_of_turns q{10};
    q.fill(a, 100);
    EXPECT_EQ(q.next(3), "aaa");
    q.add(b);
    EXPECT_EQ(q.next(1), "b");
    q.add(b);
    EXPECT_EQ(q.next(8), "aaaaaaab");  // its second task has the turn of the next round
    q.add(b);
    EXPECT_EQ(q.next(11), "aaaaaaaaaab");
}

TEST(FairTurns, LeavingAndReturningGainsNothing) {
    queue_of_turns q{5};
    q.fill(a, 5'000);
    std::size_t of_b = 0;
    for (int i = 0; i < 2'000; ++i) {
        if (q.at(b).tasks().empty()) q.add(b);  // b is back whenever it has left
        of_b += q.next() == b ? 1 : 0;
    }
    EXPECT_LE(of_b, 1'000 + 5);  // a has no less than it would have beside one that stays
}

TEST(FairTurns, BeingCancelledAndReturningGainsNothing) {
    queue_of_turns q{5};
    q.fill(a, 5'000);
    q.fill(b, 5'000);
    std::size_t of_c = 0;
    for (int i = 0; i < 3'000; ++i) {
        if (!q.at(c).tasks().empty()) q.order().remove(*q.at(c).tasks().head());
        q.fill(c, 2);
        of_c += q.next() == c ? 1 : 0;
        while (!q.at(c).tasks().empty()) q.order().remove(*q.at(c).tasks().head());
    }
    EXPECT_LE(of_c, 1'000 + 5);
}

TEST(FairTurns, AQuantumPaysADebtOnceHoweverOftenItsTenantReturns) {
    queue_of_turns q{2};
    q.fill(a, 100);
    q.add(b);
    EXPECT_EQ(q.next(2), "ab");
    q.order().charge(q.at(b), 20);
    for (int i = 0; i < 100; ++i) {
        q.order().remove(q.add(b));
        if (i % 10 == 9) q.next();
    }
    q.add(b);
    EXPECT_EQ(q.next(12), "aaaaaaaaaaab");  // five rounds have paid ten of it, five will the rest
}

TEST(FairTurns, WhatIsChargedBetweenTwoTasksOfARoundIsPaidBeforeTheSecond) {
    queue_of_turns q{2};
    q.fill(a, 100);
    EXPECT_EQ(q.next(1), "a");
    q.order().remove(q.add(b));
    q.order().charge(q.at(b), 3);
    q.add(b);
    EXPECT_EQ(q.next(4), "abaa");  // this round's quantum pays two of it: it is not new any more
}

TEST(FairTurns, AReplacedTaskLeavesItsTenantItsPlace) {
    queue_of_turns q{2};
    q.fill(a, 100);
    EXPECT_EQ(q.next(1), "a");
    entry& first = q.add(b);
    q.add(c);
    q.add(b);
    q.order().remove(first);
    EXPECT_EQ(q.next(3), "bca");
}

TEST(FairTurns, WhoIsNotServedAsNewAfterAllTakesNoTurnOfAnother) {
    queue_of_turns q{10'000};
    q.fill(a, 5'000);
    for (std::uint32_t i = 0; i < 2 * turns::front_turns; ++i) {
        entry& cheap = q.add(b);
        entry& dear = q.add(b, 20'000, priority::high);
        ASSERT_EQ(q.next(), a);
        q.order().remove(cheap);
        q.order().remove(dear);
    }
    q.add(c);
    EXPECT_EQ(q.next(1), "c");
}

TEST(FairTurns, WhoComesAsNewAndGoesUnservedTakesNoTurnOfAnother) {
    queue_of_turns q{10'000};
    q.fill(a, 10);
    EXPECT_EQ(q.next(1), "a");
    for (std::uint32_t i = 0; i < turns::front_turns; ++i) q.order().remove(q.add(b));
    q.add(c);
    EXPECT_EQ(q.next(1), "c");
}

TEST(FairTurns, AnEndlessStreamOfNewTenantsStarvesNobody) {
    queue_of_turns q{4};
    q.fill(a, 100);
    std::size_t of_a = 0;
    std::size_t who = 1;
    for (int i = 0; i < 20'000; ++i) {
        q.add(who++);
        entry const* const e = q.order().next();
        of_a += e->owner == &q.at(a) ? 1 : 0;
    }
    // A round: the new ones, a's quantum, and a few who came too late to be new.
    EXPECT_GE(of_a, (20'000U / (turns::front_turns + 16) - 1) * 4);
}

// --- credit ----------------------------------------------------------------------------------

TEST(FairTurns, CreditThatWasSavedForATaskIsLostWithIt) {
    queue_of_turns q{1};
    q.fill(a, 10'000);
    entry& dear = q.add(b, 1'000);
    q.fill(b, 2'000);
    EXPECT_EQ(q.serve(900).at(b), 0U);
    q.order().remove(dear);
    // Without the dear one it would have had one in two.
    EXPECT_LE(q.serve(100).at(b), 52U);
}

TEST(FairTurns, CreditThatWasSavedForATaskIsKeptForTheNextThatCostsAsMuch) {
    queue_of_turns q{1};
    q.fill(a, 10'000);
    entry& first = q.add(b, 1'000);
    q.add(b, 1'000);
    EXPECT_EQ(q.serve(900).at(b), 0U);
    q.order().remove(first);
    EXPECT_EQ(q.serve(110).at(b), 1'000U);
}

TEST(FairTurns, CreditThatWasSavedForATaskIsLostWithItThoughAnotherCameBeforeIt) {
    queue_of_turns q{1};
    q.fill(a, 10'000);
    entry& dear = q.add(b, 1'000);
    EXPECT_EQ(q.serve(900).at(b), 0U);
    q.add(b, 1, priority::high);  // so the dear one is not the first when it goes
    q.order().remove(dear);
    q.fill(b, 2'000);
    EXPECT_LE(q.serve(100).at(b), 52U);
}

TEST(FairTurns, CreditThatIsSavedForATaskIsNotLostWithOneThatCameBeforeIt) {
    queue_of_turns q{1};
    q.fill(a, 10'000);
    q.add(b, 1'000);
    EXPECT_EQ(q.serve(900).at(b), 0U);
    entry& cheap = q.add(b, 1, priority::high);
    q.add(b, 1, priority::high);
    q.order().remove(cheap);
    EXPECT_EQ(q.serve(110).at(b), 1'001U);
}

TEST(FairTurns, CreditThatWasSavedForATaskHeldBackIsLostWithIt) {
    for (bool const looked_at : {false, true}) {
        queue_of_turns q{1};
        q.fill(a, 10'000);
        entry& dear = q.add_held_back(b, 1'000);
        for (int i = 0; i < 500; ++i) q.add_held_back(b);
        EXPECT_EQ(q.serve(600).at(b), 0U);
        if (looked_at) q.order().reweigh(q.at(b), 1);  // it has all of its quanta up to now
        q.order().remove_held_back(dear);
        while (!q.at(b).held_back().empty()) q.order().call_up(q.at(b));
        EXPECT_LE(q.serve(100).at(b), 50 + turns::kept_quanta + 1) << looked_at;
    }
}

TEST(FairTurns, ACheapTaskOfHigherPriorityDoesNotCostTheSavedCredit) {
    queue_of_turns q{1};
    q.fill(a, 10'000);
    q.add(b, 1'000);
    EXPECT_EQ(q.serve(900).at(b), 0U);
    q.add(b, 1, priority::high);
    EXPECT_EQ(q.serve(5).at(b), 1U);  // it need not wait for the dear one
    EXPECT_EQ(q.serve(105).at(b), 1'000U);
}

TEST(FairTurns, WhatIsPutBackIsFirstAgainAndWasNotPaidFor) {
    queue_of_turns q{1};
    q.fill(a, 100);
    entry const& first = q.add(b, 10);
    q.add(b, 10);
    entry* taken = nullptr;
    for (int i = 0; i < 15 && taken != &first; ++i) taken = q.order().next();
    ASSERT_EQ(taken, &first);
    q.order().put_back(*taken);
    EXPECT_NE(q.next(2).find('b'), std::string::npos);  // it has not to save for it again
    EXPECT_EQ(q.next(5), "aaaaa");
}

TEST(FairTurns, WhatIsPutBackWasNotPaidForThoughItIsTheOnlyOne) {
    queue_of_turns q{1};
    q.fill(a, 100);
    entry const& only = q.add(b, 10);
    entry* taken = nullptr;
    for (int i = 0; i < 15 && taken != &only; ++i) taken = q.order().next();
    ASSERT_EQ(taken, &only);
    q.order().put_back(*taken);
    q.add(b);
    EXPECT_EQ(q.next(6), "babaaa");  // the quantum of the next round is for the second
}

TEST(FairTurns, WhatIsPutBackKeepsItsTurn) {
    for (std::size_t const tasks : {1U, 2U}) {
        queue_of_turns q{4};
        q.fill(a, 100);
        EXPECT_EQ(q.next(2), "aa");
        q.fill(b, tasks);
        entry* const fresh = q.order().next();
        ASSERT_EQ(fresh->owner, &q.at(b)) << "it is new";
        q.order().put_back(*fresh);
        EXPECT_EQ(q.order().next(), fresh) << "it waits for no backlog";
    }
}

TEST(FairTurns, WhoseTaskIsPutBackHasBeenActiveForAsLongAsBefore) {
    queue_of_turns q{4};
    q.add(a);
    q.add(b);
    entry* const first = q.order().next();
    ASSERT_EQ(first->owner, &q.at(a));
    q.order().put_back(*first);
    EXPECT_LT(q.at(a).active_since(), q.at(b).active_since());
}

TEST(FairTurns, WhatIsPutBackMakesAnIdleTenantActive) {
    queue_of_turns q{1};
    entry& only = q.add(a);
    EXPECT_EQ(q.order().next(), &only);
    EXPECT_TRUE(q.order().empty());
    q.order().put_back(only);
    EXPECT_EQ(q.next(2), "a-");
}

// --- costs that are known later ---------------------------------------------------------------

TEST(FairTurns, WhatATaskCostMoreIsPaidByTheNextQuanta) {
    queue_of_turns q{1};
    q.fill(a, 50);
    q.fill(b, 50);
    EXPECT_EQ(q.next(4), "abab");
    q.order().charge(q.at(a), 5);
    EXPECT_EQ(q.next(8), "bbbbbaba");
}

TEST(FairTurns, WhatIsPaidBackIsNoCreditToSpendAtOnce) {
    queue_of_turns q{1};
    q.add(a, 100);
    q.fill(a, 200);
    q.fill(b, 200);
    while (q.next() != a) {
    }
    q.order().refund(q.at(a), 99);
    auto const served = q.serve(40);
    EXPECT_NEAR(static_cast<double>(served.at(a)), 20, 2);
}

// --- costs far above the quantum -------------------------------------------------------------

TEST(FairTurns, AHugeCostOnAnIdleSchedulerIsFoundInAFewSteps) {
    queue_of_turns q{1};
    for (int i = 0; i < 100; ++i) {
        q.add(a, 1'000'000'000);
        std::uint64_t const before = q.order().steps();
        EXPECT_EQ(q.next(), a);
        EXPECT_LE(q.order().steps() - before, 3U);
    }
}

TEST(FairTurns, TenThousandTenantsThatCannotPayAreNotWalked) {
    constexpr std::size_t tenants = 10'000;
    std::vector<std::unique_ptr<tenant>> who;
    std::deque<entry> tasks;
    turns order{10};
    for (std::size_t i = 0; i < tenants; ++i) {
        who.push_back(std::make_unique<tenant>(1U));
        for (int n = 0; n < 3; ++n) {
            order.add(*who.back(), tasks.emplace_back(terms{.cost = 10'000 + i % 7}));
        }
    }
    std::uint64_t most = 0;
    std::uint64_t taken = 0;
    std::uint64_t const before = order.steps();
    for (std::uint64_t last = before; order.next() != nullptr; ++taken) {
        most = std::max(most, order.steps() - last);
        last = order.steps();
    }
    EXPECT_EQ(taken, 3 * tenants);
    EXPECT_LE(most, 4U);
    EXPECT_LE(order.steps() - before, 3 * taken);
    while (order.forget() != nullptr) {
    }
}

// --- what is remembered ----------------------------------------------------------------------

TEST(FairTurns, ATenantIsForgottenWhenTheRoundIsOverInWhichItHadItsTurn) {
    queue_of_turns q{2};
    q.fill(a, 10);
    q.add(b);
    EXPECT_EQ(q.next(2), "ab");
    EXPECT_EQ(q.order().forget(), nullptr);  // it could come back and be new again
    EXPECT_EQ(q.next(2), "aa");
    EXPECT_EQ(q.order().forget(), &q.at(b));
    EXPECT_EQ(q.order().forget(), nullptr);
    q.next(7);
    EXPECT_EQ(q.order().forget(), &q.at(a));  // nobody is left: at once
}

TEST(FairTurns, ATenantOfWhichNothingWasTakenIsForgottenAtOnce) {
    queue_of_turns q{2};
    q.fill(a, 10);
    q.order().remove(q.add(b));
    EXPECT_EQ(q.order().forget(), &q.at(b));
    q.order().remove(q.add(c, 50));  // it could not have paid
    EXPECT_EQ(q.order().forget(), &q.at(c));
    q.add(c, 50);
    EXPECT_EQ(q.next(9), "aaaaaaaaa");
    q.order().remove(*q.at(c).tasks().head());
    EXPECT_EQ(q.order().forget(), &q.at(c));
}

TEST(FairTurns, ATenantThatIsHeldIsForgottenWhenItIsLetGo) {
    queue_of_turns q{2};
    turns::hold(q.at(a));
    q.add(a);
    EXPECT_EQ(q.next(2), "a-");
    EXPECT_EQ(q.order().forget(), nullptr);
    q.order().let_go(q.at(a));
    EXPECT_EQ(q.order().forget(), &q.at(a));
}

}  // namespace
}  // namespace rondo::fair
