#include "rondo/sim/disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/sim/seeds.hpp"

namespace {

using rondo::sim::disk;
using rondo::sim::disk_error;
using rondo::sim::disk_options;
using rondo::sim::random_source;
namespace sim = rondo::sim;

std::vector<std::byte> bytes(std::string_view text) {
    auto const view = std::as_bytes(std::span{text});
    return {view.begin(), view.end()};
}
std::string all_of(disk& d, std::string const& name) {
    disk::file const f = d.open(name, disk::make::no).value();
    std::vector<std::byte> content(f.size().value());
    EXPECT_EQ(f.read(0, content).value(), content.size());
    return {reinterpret_cast<char const*>(content.data()), content.size()};
}

struct machine {
    explicit machine(std::uint64_t seed, disk_options o = {.sector = 4})
        : d(random_source{seed}, o, [this] { ++failures; }) {
        d.power_on();
    }
    void lose_power() {
        d.power_off();
        d.power_on();
    }
    disk::file file(std::string const& name = "f") { return d.open(name, disk::make::yes).value(); }

    int failures = 0;
    disk d;
};

TEST(Disk, RemovingWhatIsNotThereIsNoChange) {
    machine m{1};
    disk::file const f = m.file();
    m.d.fail_after(1);
    EXPECT_EQ(m.d.remove("g").error(), disk_error::no_such_file);
    EXPECT_TRUE(m.d.is_on());
    EXPECT_EQ(f.write(0, bytes("a")).error(), disk_error::off);
    EXPECT_EQ(m.failures, 1);
}

TEST(Disk, ReadsBackWhatWasWritten) {
    machine m{1};
    disk::file const f = m.file();
    ASSERT_TRUE(f.write(0, bytes("hello world")));
    ASSERT_TRUE(f.write(6, bytes("there")));
    EXPECT_EQ(all_of(m.d, "f"), "hello there");
    ASSERT_TRUE(f.truncate(5));
    ASSERT_TRUE(f.write(7, bytes("!")));
    EXPECT_EQ(all_of(m.d, "f"), std::string("hello\0\0!", 8));
    std::vector<std::byte> to(4);
    EXPECT_EQ(f.read(6, to).value(), 2U);
    EXPECT_EQ(f.read(100, to).value(), 0U);
    EXPECT_EQ(m.d.names(), std::vector<std::string>{"f"});
    EXPECT_EQ(m.d.open("g", disk::make::no).error(), disk_error::no_such_file);
    EXPECT_EQ(m.d.remove("g").error(), disk_error::no_such_file);
}

TEST(Disk, KeepsWhatWasSyncedThroughEveryPowerFailure) {
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("first second third")));
        ASSERT_TRUE(f.sync());
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f"), "first second third");
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f"), "first second third");
    }
}

TEST(Disk, WhatWasNotSyncedIsKeptLostOrTornSectorBySector) {
    bool kept = false;
    bool lost = false;
    bool mixed = false;
    std::uint64_t torn = 0;
    for (std::uint64_t const seed : sim::seeds(300)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaaaaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.write(0, bytes("bbbbbbbb")));
        m.lose_power();
        std::string const now = all_of(m.d, "f");
        ASSERT_EQ(now.size(), 8U);
        EXPECT_EQ(now.find_first_not_of("ab"), std::string::npos);
        kept |= now == "bbbbbbbb";
        lost |= now == "aaaaaaaa";
        mixed |= now == "aaaabbbb" || now == "bbbbaaaa";
        torn += m.d.counts().sectors_torn;
    }
    EXPECT_TRUE(kept);
    EXPECT_TRUE(lost);
    EXPECT_TRUE(mixed);
    EXPECT_GT(torn, 10U);
}

TEST(Disk, AFileThatGrewHasALengthInBetweenAndMayHoldGarbage) {
    std::vector<std::size_t> lengths;
    bool garbage = false;
    for (std::uint64_t const seed : sim::seeds(300)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.write(4, bytes("bbbbbbbb")));
        m.lose_power();
        std::string const now = all_of(m.d, "f");
        EXPECT_EQ(now.substr(0, 4), "aaaa");
        lengths.push_back(now.size());
        garbage |= now.find_first_not_of(std::string("ab\0", 3)) != std::string::npos;
    }
    EXPECT_EQ(*std::ranges::min_element(lengths), 4U);
    EXPECT_EQ(*std::ranges::max_element(lengths), 12U);
    EXPECT_NE(std::ranges::find(lengths, 7U), lengths.end());
    EXPECT_TRUE(garbage);
}

TEST(Disk, AFileThatWasCutShortIsThatOrAsItWas) {
    std::set<std::string> seen;
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaaaaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.truncate(2));
        m.lose_power();
        seen.insert(all_of(m.d, "f"));
    }
    EXPECT_EQ(seen, (std::set<std::string>{"aa", "aaaaaaaa"}));
}

// What a program risks that empties its file and writes it anew, without a copy.
TEST(Disk, AFileThatWasCutShortAndGrewMayHaveBeenCutOnly) {
    std::set<std::string> seen;
    for (std::uint64_t const seed : sim::seeds(300)) {
        machine m{seed, {.sector = 4, .tearing = 0}};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaaaaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.truncate(0));
        ASSERT_TRUE(f.write(0, bytes("bbbbbbbb")));
        m.lose_power();
        seen.insert(all_of(m.d, "f"));
    }
    EXPECT_TRUE(seen.contains("")) << "cut, not written";
    EXPECT_TRUE(seen.contains("bbbb")) << "cut, and written in part";
    EXPECT_TRUE(seen.contains(std::string(8, '\0'))) << "its length came before its bytes";
    EXPECT_TRUE(seen.contains("aaaaaaaa")) << "not cut";
    EXPECT_TRUE(seen.contains("bbbbbbbb"));
}

TEST(Disk, ACutThatWasSyncedIsNotDoneAgain) {
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaaaaaa")));
        ASSERT_TRUE(f.truncate(0));
        ASSERT_TRUE(f.write(0, bytes("bbbb")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.write(4, bytes("cccc")));
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f").substr(0, 4), "bbbb");
    }
}

// Cut, and a sync that failed: what was written and synced after that stays all the same.
TEST(Disk, ACutInDoubtTakesNothingAwayThatWasSyncedLater) {
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaaaaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.truncate(0));
        m.d.set_sync_failure(1);
        EXPECT_EQ(f.sync().error(), disk_error::sync_failed);
        m.d.set_sync_failure(0);
        ASSERT_TRUE(f.write(0, bytes("bbbbbbbb")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.write(0, bytes("cccc")));
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f").substr(4), "bbbb");
    }
}

// What a program risks that removes its file and makes it anew.
TEST(Disk, AFileThatWasRemovedAndMadeAnewMayBeGone) {
    std::set<std::string> seen;
    bool gone = false;
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed, {.sector = 4, .tearing = 0}};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(m.d.remove("f"));
        ASSERT_TRUE(m.file().write(0, bytes("bbbb")));
        m.lose_power();
        gone |= !m.d.exists("f");
        if (m.d.exists("f")) seen.insert(all_of(m.d, "f"));
    }
    EXPECT_TRUE(gone) << "removed, not made";
    EXPECT_TRUE(seen.contains("aaaa")) << "not removed";
    EXPECT_TRUE(seen.contains("bbbb"));
}

TEST(Disk, ARemovalThatWasSyncedIsNotDoneAgain) {
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        ASSERT_TRUE(m.file().sync());
        ASSERT_TRUE(m.d.remove("f"));
        ASSERT_TRUE(m.file().sync());
        m.lose_power();
        ASSERT_TRUE(m.d.exists("f"));
        ASSERT_TRUE(m.d.remove("f"));
        ASSERT_TRUE(m.d.sync_directory());
        ASSERT_TRUE(m.file().sync());
        m.lose_power();
        EXPECT_TRUE(m.d.exists("f"));
    }
}

TEST(Disk, NamesAreInDoubtUntilTheyAreSynced) {
    int made = 0;
    int back = 0;
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        ASSERT_TRUE(m.file("old").sync());
        ASSERT_TRUE(m.d.remove("old"));
        (void)m.file("new");
        m.lose_power();
        made += m.d.exists("new") ? 1 : 0;
        back += m.d.exists("old") ? 1 : 0;

        if (m.d.exists("old")) {
            ASSERT_TRUE(m.d.remove("old"));
        }
        (void)m.file("newer");
        ASSERT_TRUE(m.d.sync_directory());
        m.lose_power();
        EXPECT_TRUE(m.d.exists("newer"));
        EXPECT_FALSE(m.d.exists("old"));
    }
    EXPECT_GT(made, 20);
    EXPECT_LT(made, 80);
    EXPECT_GT(back, 20);
    EXPECT_LT(back, 80);
}

TEST(Disk, AFailedSyncIsReportedAndALaterOneDoesNotCoverWhatItLeft) {
    bool lost = false;
    for (std::uint64_t const seed : sim::seeds(50)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaa")));
        ASSERT_TRUE(f.sync());
        m.d.set_sync_failure(1);
        ASSERT_TRUE(f.write(0, bytes("bbbb")));
        EXPECT_EQ(f.sync().error(), disk_error::sync_failed);
        EXPECT_EQ(all_of(m.d, "f"), "bbbb");
        m.d.set_sync_failure(0);
        ASSERT_TRUE(f.sync());
        m.lose_power();
        lost |= all_of(m.d, "f") != "bbbb";

        disk::file const again = m.file();
        ASSERT_TRUE(again.write(0, bytes("cccc")));
        ASSERT_TRUE(again.sync());
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f"), "cccc");
        EXPECT_EQ(m.d.counts().failed_syncs, 1U);
    }
    EXPECT_TRUE(lost);
}

TEST(Disk, NorDoesItCoverALengthThatAFailedSyncLeft) {
    std::set<std::string> cut;
    std::set<std::string> grown;
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaaaaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.truncate(2));
        m.d.set_sync_failure(1);
        EXPECT_FALSE(f.sync());
        m.d.set_sync_failure(0);
        ASSERT_TRUE(f.sync());
        m.lose_power();
        cut.insert(all_of(m.d, "f"));

        disk::file const g = m.file();
        ASSERT_TRUE(g.truncate(0));
        ASSERT_TRUE(g.write(0, bytes("aa")));
        ASSERT_TRUE(g.sync());
        ASSERT_TRUE(g.write(2, bytes("bbbbbb")));
        m.d.set_sync_failure(1);
        EXPECT_FALSE(g.sync());
        m.d.set_sync_failure(0);
        ASSERT_TRUE(g.sync());
        m.lose_power();
        grown.insert(all_of(m.d, "f"));

        disk::file const h = m.file();
        ASSERT_TRUE(h.truncate(0));
        ASSERT_TRUE(h.sync());
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f"), "") << "a length that was set again is covered";
    }
    EXPECT_EQ(cut, (std::set<std::string>{"aa", "aaaaaaaa"}));
    EXPECT_TRUE(grown.contains("aa"));
    EXPECT_TRUE(grown.contains("aabbbbbb"));
}

TEST(Disk, WhatIsWrittenAgainAfterAFailedSyncIsCoveredWhereverItIs) {
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        disk::file const f = m.file();
        ASSERT_TRUE(f.write(0, bytes("aaaa")));
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(f.write(4, bytes("bbbbbbbb")));
        m.d.set_sync_failure(1);
        EXPECT_FALSE(f.sync());
        m.d.set_sync_failure(0);
        ASSERT_TRUE(f.write(4, bytes("cccc")));  // beyond the length that is sure
        ASSERT_TRUE(f.sync());
        m.lose_power();
        EXPECT_EQ(all_of(m.d, "f").substr(0, 8), "aaaacccc");
    }
}

TEST(Disk, NorANameThatAFailedSyncLeft) {
    int made = 0;
    int made_in_directory = 0;
    int back = 0;
    for (std::uint64_t const seed : sim::seeds(100)) {
        machine m{seed};
        ASSERT_TRUE(m.file("old").sync());
        disk::file const f = m.file("new");
        m.d.set_sync_failure(1);
        EXPECT_FALSE(f.sync());
        (void)m.file("newer");
        ASSERT_TRUE(m.d.remove("old"));
        EXPECT_FALSE(m.d.sync_directory());
        m.d.set_sync_failure(0);
        ASSERT_TRUE(f.sync());
        ASSERT_TRUE(m.d.sync_directory());
        m.lose_power();
        made += m.d.exists("new") ? 1 : 0;
        made_in_directory += m.d.exists("newer") ? 1 : 0;
        back += m.d.exists("old") ? 1 : 0;

        (void)m.d.remove("new");
        ASSERT_TRUE(m.file("new").sync());
        m.lose_power();
        EXPECT_TRUE(m.d.exists("new")) << "a name that was made again is covered";
    }
    for (int const n : {made, made_in_directory, back}) {
        EXPECT_GT(n, 20);
        EXPECT_LT(n, 80);
    }
}

TEST(Disk, HandlesOfBeforeAPowerFailureAreDead) {
    machine m{1};
    disk::file const f = m.file();
    ASSERT_TRUE(f.sync());
    m.lose_power();
    std::vector<std::byte> to(1);
    EXPECT_EQ(f.write(0, bytes("x")).error(), disk_error::off);
    EXPECT_EQ(f.read(0, to).error(), disk_error::off);
    EXPECT_EQ(f.sync().error(), disk_error::off);
    EXPECT_EQ(f.truncate(0).error(), disk_error::off);
    EXPECT_EQ(f.size().error(), disk_error::off);
    EXPECT_EQ(all_of(m.d, "f"), "");
    m.d.power_off();
    EXPECT_EQ(m.d.open("f", disk::make::yes).error(), disk_error::off);
    EXPECT_FALSE(m.d.exists("f"));
    EXPECT_EQ(m.d.sync_directory().error(), disk_error::off);
    EXPECT_EQ(m.d.remove("f").error(), disk_error::off);
}

TEST(DiskDeathTest, NothingIsWrittenBeyondTheLastOffset) {
    machine m{1};
    disk::file const f = m.file();
    ASSERT_TRUE(f.write(0, bytes("hello world")));
    EXPECT_DEATH((void)f.write(UINT64_MAX - 2, bytes("abcd")), "a file ends at an offset");
}

TEST(Disk, FailsInTheMiddleOfTheChangeItWasToldTo) {
    machine m{1};
    disk::file const f = m.file();
    m.d.fail_after(3);
    EXPECT_TRUE(f.write(0, bytes("a")));
    EXPECT_TRUE(f.sync());
    EXPECT_EQ(m.failures, 0);
    EXPECT_EQ(f.write(1, bytes("b")).error(), disk_error::off);
    EXPECT_EQ(m.failures, 1);
    EXPECT_EQ(f.write(2, bytes("c")).error(), disk_error::off);
    m.d.power_on();
    EXPECT_EQ(all_of(m.d, "f").substr(0, 1), "a");
}

TEST(Disk, TheSameSeedForgetsTheSame) {
    for (std::uint64_t const seed : sim::seeds(20)) {
        std::vector<std::string> results;
        for (int i = 0; i < 2; ++i) {
            machine m{seed};
            disk::file const f = m.file();
            ASSERT_TRUE(f.write(0, bytes("some bytes that are not synced at all")));
            m.lose_power();
            results.push_back(m.d.exists("f") ? all_of(m.d, "f") : "absent");
        }
        EXPECT_EQ(results[0], results[1]);
    }
}

}  // namespace
