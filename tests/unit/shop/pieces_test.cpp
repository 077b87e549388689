// Messages, containers and journals of the shop.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "shop/container.hpp"
#include "shop/journal.hpp"
#include "shop/messages.hpp"
#include "support/child_process.hpp"

namespace {

using namespace rondo::shop;
using rondo::cluster::epoch;
using rondo::cluster::member_run;
using rondo::cluster::standing;
using rondo::cluster::take;
using rondo::test::scratch_directory;

template <class T>
void comes_back(T const& m) {
    std::vector<std::byte> bytes = pack(m);
    EXPECT_EQ(unpack<T>(bytes), m);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        EXPECT_FALSE(unpack<T>(std::span{bytes}.first(n))) << n << " of " << bytes.size();
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(unpack<T>(bytes));
}

TEST(ShopMessages, ComeBackAsTheyWereAndNothingElseIsAccepted) {
    std::vector<item> const items{{"lemon", 250}, {"mint", 2000}};
    std::vector<take> const takes{{"lemon", 250, 3, 9}};
    comes_back(proposal{"1-ab-2", items, "4242", 2250});
    comes_back(authorised{7, 8});
    comes_back(payment{"1-ab-2", 65537, takes});
    comes_back(cancellation{"1-ab-2", "no stock", true});
    comes_back(attempt_at{"1-ab-2", 5});
    comes_back(ending{standing::refunded, "lost"});
    comes_back(why{"because"});
    comes_back(remaining{{{"lemon", 5}}, {"1-ab-2"}});
    comes_back(order_request{"1-ab-2", 5, items, {{"lemon", 7}}});
    comes_back(cup{5, 2, takes});
    comes_back(levels_known{{{"lemon", 7}, {"mint", 0}}});
    comes_back(presence{attempt_at{"1-ab-2", 5}, true});
    comes_back(presence{std::nullopt, false});
    comes_back(holding{{{"1-ab-2", 5}, {"2-ab-2", 6}}});
    comes_back(known_epoch{{4, 66}});
}

TEST(ShopMessages, BoundsAreChecked) {
    EXPECT_FALSE(unpack<order_request>(pack(order_request{"1", 1, {}, {}})));
    EXPECT_FALSE(unpack<order_request>(pack(order_request{"1", 1, {{"x", 0}}, {}})));
    EXPECT_FALSE(unpack<order_request>(pack(order_request{"1", 1, {{"x", 2001}}, {}})));
    EXPECT_FALSE(unpack<order_request>(pack(order_request{"", 1, {{"x", 1}}, {}})));
    std::vector<item> const nine(9, item{"x", 1});
    EXPECT_FALSE(unpack<order_request>(pack(order_request{"1", 1, nine, {}})));
    EXPECT_FALSE(unpack<payment>(pack(payment{"1", 1, {{"x", -5, 1, 1}}})));
    EXPECT_FALSE(unpack<payment>(pack(payment{"1", 1, {{"x", 0, 1, 1}}})));
    EXPECT_FALSE(unpack<attempt_at>(pack(attempt_at{std::string(33, 'x'), 1})));
}

TEST(ShopMessages, RandomBytesAreRefusedOrReadButNeverMore) {
    std::minstd_rand random{11};
    for (int i = 0; i < 20'000; ++i) {
        std::vector<std::byte> bytes(random() % 64);
        for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 4);
        (void)unpack<proposal>(bytes);
        (void)unpack<payment>(bytes);
        (void)unpack<order_request>(bytes);
        (void)unpack<remaining>(bytes);
        (void)unpack<presence>(bytes);
        (void)unpack<holding>(bytes);
    }
}

// The longest of each kind fits into a datagram.
TEST(ShopMessages, TheLongestFitIntoADatagram) {
    std::string const oid(longest_oid, 'o');
    std::string const name(longest_flavour, 'f');
    std::vector<item> const items(most_items, item{name, most_grams});
    std::vector<take> const takes(most_items, take{name, 1, 1, 1});
    std::vector<level> const levels(16, level{name, 1});
    std::vector<order_id> const oids(most_unresolved, oid);
    std::size_t const most = rondo::cluster::longest_body;
    EXPECT_LE(pack(order_request{oid, 1, items, levels}).size(), most);
    EXPECT_LE(pack(remaining{levels, oids}).size(), most);
    EXPECT_LE(pack(payment{oid, 1, takes}).size(), most);
    EXPECT_LE(pack(proposal{oid, items, std::string(longest_card, '4'), 1}).size(), most);
    std::vector<attempt_at> const held(most_held, attempt_at{oid, 1});
    EXPECT_LE(pack(holding{held}).size(), most);
}

TEST(ShopMessages, AnOrderNamesItsScreen) {
    EXPECT_EQ(make_order_id(12, "9f3c02ab", 7), "12-9f3c02ab-7");
    EXPECT_EQ(screen_of("12-9f3c02ab-7"), 12U);
    EXPECT_FALSE(screen_of("x-1"));
    EXPECT_FALSE(screen_of("12"));
    EXPECT_FALSE(screen_of(""));
    EXPECT_TRUE(is_before("12-9f3c02ab-7", "12-9f3c02ab-12"));
    EXPECT_FALSE(is_before("12-9f3c02ab-12", "12-9f3c02ab-12"));
    EXPECT_FALSE(is_before("12-9f3c02ab-12", "12-9f3c02ab-7"));
    EXPECT_FALSE(is_before("12-9f3c02ab-7", "12-9f3c02ac-12"));
    EXPECT_FALSE(is_before("1-9f3c02ab-7", "12-9f3c02ab-12"));
    EXPECT_FALSE(is_before("12-9f3c02ab-", "12-9f3c02ab-12"));
    EXPECT_FALSE(is_before("7", "12"));
}

TEST(ShopContainer, ReservesWhatIsThereAndPutsItBackOrNot) {
    member_run const me{1, 5};
    container c{1000};
    EXPECT_EQ(c.reserve({me, 1, 600}), container::taken::yes);
    EXPECT_EQ(c.left(), 400U);
    EXPECT_EQ(c.reserve({me, 2, 401}), container::taken::not_enough);
    EXPECT_EQ(c.reserve({me, 2, 100}), container::taken::yes);
    EXPECT_EQ(container::read(c.write()), c);
    c.settle([](reservation const& r) {
        return r.cup == 1 ? container::fate::put_back : container::fate::kept;
    });
    EXPECT_EQ(c.left(), 900U);
    EXPECT_EQ(c.reserved(), 100U);
    c.settle([](reservation const&) { return container::fate::used; });
    EXPECT_EQ(c.left(), 900U);
    EXPECT_EQ(c.reserved(), 0U);
}

TEST(ShopContainer, IsClampedToTheLedgerAndToppedUpWhenNobodyHasReserved) {
    container c{1000};
    EXPECT_EQ(c.reserve({{1, 5}, 1, 100}), container::taken::yes);
    c.clamp(700);
    EXPECT_EQ(c.left(), 700U);
    c.clamp(800);
    c.top_up(800);
    EXPECT_EQ(c.left(), 700U);  // somebody has reserved
    c.settle([](reservation const&) { return container::fate::used; });
    c.clamp(800);
    EXPECT_EQ(c.left(), 700U);
    c.top_up(800);
    EXPECT_EQ(c.left(), 800U);
}

TEST(ShopContainer, HasRoomForSoManyCupsAndFitsIntoAToken) {
    container c{100'000};
    for (std::uint64_t i = 0; i < container::most_reserved; ++i) {
        EXPECT_EQ(c.reserve({{1, 1}, i, 1}), container::taken::yes);
    }
    EXPECT_EQ(c.reserve({{1, 1}, 99, 1}), container::taken::no_room);
    EXPECT_LE(c.write().size(), 512U);
    std::vector<std::byte> bytes = c.write();
    bytes.pop_back();
    EXPECT_FALSE(container::read(bytes));
    EXPECT_FALSE(container::read({}));
}

TEST(ShopJournal, RemembersEachStepOverRestarts) {
    scratch_directory const in;
    std::string const file = in.path() / "screen-1.db";
    journalled const cup{step::ready, 65536, 2, {{"lemon", 250, 3, 9}}, ""};
    {
        journal j = journal::open(file, "orders.jsonl", "aaaa").value();
        EXPECT_EQ(j.id(), "aaaa");
        EXPECT_EQ(j.line(1, "first").value().at, step::read);
        j.write(1, cup);
        EXPECT_EQ(j.line(2, "second").value().at, step::read);
    }
    journal j = journal::open(file, "orders.jsonl", "bbbb").value();
    EXPECT_EQ(j.id(), "aaaa");  // made once
    EXPECT_EQ(j.line(1, "first").value(), cup);
    EXPECT_EQ(j.line(3, "appended").value().at, step::read);
    auto const changed = j.line(2, "sekond");
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error(), journal::refused::changed);
    journal other = journal::open(file, "others.jsonl", "cccc").value();
    EXPECT_EQ(other.id(), "cccc");
    EXPECT_EQ(other.line(1, "another").value().at, step::read);
}

TEST(ShopJournal, WritesACupThatIsWastedDownOnce) {
    scratch_directory const in;
    journal j = journal::open(in.path() / "screen-0.db", "orders.jsonl", "aaaa").value();
    j.write_waste("0-aaaa-1", 65536, "lost");
    j.write_waste("0-aaaa-1", 65536, "lost");
    j.write_waste("0-aaaa-1", 131072, "lost");
    ASSERT_FALSE(j.failed()) << j.failure();
    EXPECT_EQ(j.storage().number("SELECT count(*) FROM waste"), 2);
}

TEST(ShopJournal, KnowsTheOrdersThatItsFileHasNoMoreAsTheyWere) {
    scratch_directory const in;
    std::string const file = in.path() / "screen-1.db";
    auto const line = [](std::uint32_t number, std::string const& text) {
        return order_line{number, text, order{"1", "4242", {{"lemon", 1}}}};
    };
    {
        journal other = journal::open(file, "others.jsonl", "bbbb").value();
        (void)other.line(1, "of another file");
    }
    journal j = journal::open(file, "orders.jsonl", "aaaa").value();
    for (std::uint32_t n = 1; n <= 5; ++n) (void)j.line(n, "text " + std::to_string(n));
    journalled const charged{step::committed, 65536, 2, {{"lemon", 250, 3, 9}}, ""};
    j.write(2, charged);
    j.write(5, {step::done, 0, 0, {}, "delivered"});
    std::vector<order_line> lines{line(1, "text 1"), line(2, "changed"), line(3, "text 3")};
    lines[2].read = std::unexpected{"no order any more"};
    std::string found;
    for (journal::open_line& l : j.left_behind(lines)) {
        found += l.journal + "-" + std::to_string(l.number) + " ";
        if (l.number == 2) {
            EXPECT_EQ(l.state, charged);
        }
        l.state.at = step::done;
        j.write(l);
    }
    EXPECT_EQ(found, "aaaa-2 aaaa-3 aaaa-4 bbbb-1 ");
    EXPECT_TRUE(j.left_behind(lines).empty());
    EXPECT_EQ(j.left_behind({}).size(), 1U);  // what was there so far
}

TEST(ShopJournal, AnEpochIsKept) {
    scratch_directory const in;
    std::string const file = in.path() / "robot-1.db";
    auto const fail = [](std::string const& why) { FAIL() << why; };
    {
        auto db = rondo::cluster::database::open(file).value();
        durable_epoch e{db, fail};
        EXPECT_EQ(e.load(), epoch{});
        e.save({7, 66});
        e.save({8, 65});
    }
    auto db = rondo::cluster::database::open(file).value();
    EXPECT_EQ((durable_epoch{db, fail}.load()), (epoch{8, 65}));
}

}  // namespace
