#include "rondo/cluster/ledger.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace {

using namespace std::chrono_literals;
using namespace rondo::cluster;
using rondo::test::scratch_directory;

constexpr ledger::moment noon = 12h;

std::optional<std::string> accept() { return std::nullopt; }

class Ledger : public testing::Test {
  protected:
    static std::vector<amount_of> stock() { return {{"lemon", 1000}, {"mint", 300}}; }
    std::string file() const { return scratch_.path() / "ledger.db"; }
    void open_again() {
        opened_.reset();
        opened_.emplace(ledger::open(file(), stock()).value());
    }
    ledger& book() {
        if (!opened_) open_again();
        return *opened_;
    }
    ledger_entry prepare(std::string const& key, std::vector<amount_of> items) {
        return book()
            .prepare(key, {std::move(items), "4242", 500}, accept, noon, noon + 60s)
            .value();
    }
    ledger_entry commit(std::string const& key, std::vector<take> takes, std::uint64_t attempt = 1,
                        ledger::moment now = noon + 1s) {
        return book().commit(key, attempt, takes, now).value();
    }

  private:
    scratch_directory scratch_;
    std::optional<ledger> opened_;
};

TEST_F(Ledger, AnOrderIsPreparedCommittedAndDelivered) {
    ledger_entry const prepared = prepare("a", {{"lemon", 250}});
    EXPECT_EQ(prepared.at, standing::prepared);
    EXPECT_EQ(prepared.authorisation, 1U);
    EXPECT_EQ(prepared.expires, noon + 60s);
    EXPECT_EQ(book().unresolved(10).value(), std::vector<std::string>{"a"});
    EXPECT_EQ(commit("a", {{"lemon", 250, 3, 9}}).at, standing::committed);
    EXPECT_EQ(book().levels().value(),
              (std::vector<resource_level>{{"lemon", 1000, 250}, {"mint", 300, 0}}));
    EXPECT_EQ(book().deliver("a", 1, noon + 2s)->at, standing::delivered);
    EXPECT_TRUE(book().unresolved(10)->empty());
}

TEST_F(Ledger, ARepeatedRequestGivesTheStoredAnswerAndChangesNothing) {
    ledger_entry const first = prepare("a", {{"lemon", 600}});
    EXPECT_EQ(prepare("a", {{"mint", 1}}), first);
    ledger_entry const paid = commit("a", {{"lemon", 600, 1, 1}}, 4);
    EXPECT_EQ(paid.attempt, 4U);
    EXPECT_EQ(commit("a", {{"lemon", 600, 1, 1}}, 4), paid);
    EXPECT_EQ(commit("a", {{"lemon", 600, 8, 1}}, 5),
              paid);  // another attempt hears which was paid
    EXPECT_EQ(prepare("a", {{"lemon", 600}}).at, standing::committed);
    EXPECT_EQ(book().levels()->front().committed, 600);
    open_again();
    EXPECT_EQ(commit("a", {{"lemon", 600, 1, 1}}, 4), paid);
    EXPECT_EQ(book().levels()->front().committed, 600);
}

TEST_F(Ledger, NoResourceIsOversoldWhateverItsTokensSay) {
    prepare("a", {{"lemon", 600}});
    prepare("b", {{"lemon", 600}, {"mint", 10}});
    EXPECT_EQ(commit("a", {{"lemon", 600, 1, 1}}).at, standing::committed);
    ledger_entry const refused = commit("b", {{"lemon", 600, 2, 1}, {"mint", 10, 1, 1}});
    EXPECT_EQ(refused.at, standing::aborted);
    EXPECT_EQ(refused.reason, "conflict: not enough lemon is left");
    EXPECT_EQ(book().levels().value(),
              (std::vector<resource_level>{{"lemon", 1000, 600}, {"mint", 300, 0}}));
    prepare("c", {{"lemon", 400}});
    EXPECT_EQ(commit("c", {{"lemon", 400, 2, 2}}).at, standing::committed);  // to the last gram
}

TEST_F(Ledger, AResourceOrderedTwiceInOneOrderCountsTwice) {
    prepare("a", {{"mint", 200}, {"mint", 200}});
    EXPECT_EQ(commit("a", {{"mint", 200, 1, 1}, {"mint", 200, 1, 2}}).at, standing::aborted);
}

TEST_F(Ledger, TakesAreNotCountedBeyondWhatANumberCanSay) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    prepare("taken", {{"lemon", 5}});
    prepare("ordered", {{"mint", most}, {"mint", most}, {"mint", 7}});
    // 2 * most + 7 is 5, modulo 2^64.
    std::vector<take> const too_many{{"lemon", most, 1, 1}, {"lemon", most, 1, 2}, {"lemon", 7}};
    EXPECT_EQ(commit("taken", too_many).reason, "conflict: more than can be counted");
    EXPECT_EQ(commit("ordered", {{"mint", 5, 1, 1}}).reason, "conflict: more than can be counted");
    EXPECT_EQ(book().levels().value(),
              (std::vector<resource_level>{{"lemon", 1000, 0}, {"mint", 300, 0}}));
}

TEST_F(Ledger, TheCardIsJudgedOncePerKeyAndTheJudgementIsKept) {
    int asked = 0;
    auto const refuse = [&asked] {
        ++asked;
        return std::optional<std::string>{"card rejected"};
    };
    for (int i = 0; i < 3; ++i) {
        ledger_entry const e =
            book().prepare("a", {{{"mint", 1}}, "1", 1}, refuse, noon, noon + 60s).value();
        EXPECT_EQ(e.at, standing::aborted);
        EXPECT_EQ(e.reason, "card rejected");
        open_again();
    }
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(commit("a", {{"mint", 1, 1, 1}}).at, standing::aborted);
}

TEST_F(Ledger, AnAuthorisationThatHasExpiredIsNotCommitted) {
    prepare("a", {{"mint", 1}});
    prepare("b", {{"mint", 1}});
    EXPECT_EQ(commit("a", {{"mint", 1, 1, 1}}, 1, noon + 60s).at, standing::committed);
    ledger_entry const late = commit("b", {{"mint", 1, 1, 2}}, 1, noon + 60s + 1ms);
    EXPECT_EQ(late.at, standing::aborted);
    EXPECT_EQ(late.reason, "expired");
}

TEST_F(Ledger, TakesThatAreNotTheOrderAreAConflict) {
    prepare("a", {{"lemon", 250}});
    EXPECT_EQ(commit("a", {{"lemon", 249, 1, 1}}).at, standing::aborted);
    prepare("b", {{"lemon", 250}});
    EXPECT_EQ(commit("b", {{"lemon", 350, 1, 1}, {"lemon", -100, 1, 1}}).at, standing::aborted);
    prepare("c", {{"chalk", 250}});
    EXPECT_EQ(commit("c", {{"chalk", 250, 1, 1}}).reason, "unknown flavour chalk");
    EXPECT_EQ(book().levels()->front().committed, 0);
}

TEST_F(Ledger, OnlyWhatIsPreparedCanBeAbortedAndOnlyWhatIsCommittedRefunded) {
    prepare("a", {{"mint", 1}});
    EXPECT_EQ(book().refund("a", "no", noon)->at, standing::prepared);
    EXPECT_EQ(book().abort("a", "no stock", noon)->at, standing::aborted);
    EXPECT_EQ(book().abort("a", "again", noon)->reason, "no stock");
    prepare("b", {{"mint", 1}});
    commit("b", {{"mint", 1, 1, 1}});
    EXPECT_EQ(book().abort("b", "too late", noon)->at, standing::committed);
    EXPECT_EQ(book().refund("b", "cup lost", noon)->at, standing::refunded);
    EXPECT_EQ(book().deliver("b", 1, noon)->at, standing::refunded);
    EXPECT_EQ(book().levels()->back().committed, 1);  // what was made is gone
}

TEST_F(Ledger, OnlyTheAttemptThatWasPaidForIsDelivered) {
    prepare("a", {{"mint", 1}});
    commit("a", {{"mint", 1, 1, 1}}, 2);
    EXPECT_EQ(book().deliver("a", 1, noon)->at, standing::committed);
    EXPECT_EQ(book().deliver("a", 2, noon)->at, standing::delivered);
    EXPECT_EQ(book().refund("a", "late", noon)->at, standing::delivered);
}

TEST_F(Ledger, AnAbortThatOvertakesItsPrepareWins) {
    EXPECT_EQ(book().abort("a", "given up", noon)->at, standing::aborted);
    EXPECT_EQ(prepare("a", {{"mint", 1}}).at, standing::aborted);
    EXPECT_EQ(commit("b", {{"mint", 1, 1, 1}}).at, standing::unknown);
    EXPECT_EQ(book().look("b")->at, standing::unknown);
}

TEST_F(Ledger, CapacityMayGrowButNotShrinkBelowWhatIsSold) {
    prepare("a", {{"mint", 200}});
    commit("a", {{"mint", 200, 1, 1}});
    auto const less = ledger::open(file(), std::vector<amount_of>{{"mint", 199}});
    ASSERT_FALSE(less);
    EXPECT_EQ(less.error().cause, cannot_open::because::capacity);
    EXPECT_NE(less.error().text.find("mint"), std::string::npos);
    EXPECT_EQ(book().levels()->back().capacity, 300);
    auto more = ledger::open(file(), std::vector<amount_of>{{"mint", 500}});
    ASSERT_TRUE(more);
    EXPECT_EQ(more->levels()->back().capacity, 500);
}

// What is asked at every order, or for every order, does not read all of them.
TEST_F(Ledger, NoQueryTakesLongerBecauseTheLedgerIsLong) {
    prepare("a", {{"mint", 1}});
    database db = database::open(file()).value();
    auto const plan_of = [&db](char const* sql) {
        rows plan = db.ask(std::string{"EXPLAIN QUERY PLAN "} + sql);
        return plan.next() ? std::string{plan.text(3)} : db.failure();
    };
    for (char const* const sql :
         {"SELECT coalesce(max(authorisation), 0) + 1 FROM entries",
          "SELECT state FROM entries WHERE key = 'a'", "SELECT amount FROM items WHERE key = 'a'",
          "SELECT state FROM steps WHERE key = 'a' ORDER BY number",
          "SELECT amount FROM takes WHERE key = 'a'"}) {
        EXPECT_TRUE(plan_of(sql).starts_with("SEARCH ")) << sql << ": " << plan_of(sql);
    }
    // That index has only those.
    EXPECT_EQ(plan_of("SELECT key FROM entries WHERE state IN ('PREPARED', 'COMMITTED') "
                      "ORDER BY authorisation LIMIT 8"),
              "SCAN entries USING INDEX unresolved");
}

TEST_F(Ledger, EveryStepIsInTheHistoryInItsOrder) {
    prepare("a", {{"mint", 1}});
    prepare("b", {{"mint", 1}});
    commit("a", {{"mint", 1, 1, 1}}, 3);
    (void)book().abort("b", "no stock", noon);
    (void)book().deliver("a", 3, noon);
    database db = database::open(file()).value();
    rows r =
        db.ask("SELECT key || ' ' || state || ' ' || attempt || reason FROM steps ORDER BY number");
    std::vector<std::string> seen;
    while (r.next()) seen.push_back(r.text(0));
    EXPECT_EQ(seen, (std::vector<std::string>{"a PREPARED 0", "b PREPARED 0", "a COMMITTED 3",
                                              "b ABORTED 0no stock", "a DELIVERED 3"}));
}

}  // namespace
