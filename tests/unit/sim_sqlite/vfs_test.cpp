#include "rondo/sim_sqlite/vfs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "database.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/seeds.hpp"

namespace {

using namespace std::chrono_literals;
using rondo::task;
using rondo::test::database;
namespace sim = rondo::sim;

task<void> idle(sim::node*) { co_return; }

struct machine {
    explicit machine(std::uint64_t seed = 1) : world({.seed = seed}) { node.start(); }
    ~machine() { node.crash(); }
    machine(machine const&) = delete;
    machine& operator=(machine const&) = delete;

    sim::world world;
    sim::network net{world};
    sim::node node{world, net, 1, idle};
    sim::sqlite_vfs files{node};
};

TEST(SqliteVfs, IsADatabaseLikeAnyOther) {
    machine m;
    database db{m.files.name()};
    ASSERT_EQ(db.opened(), SQLITE_OK);
    EXPECT_EQ(db.run("CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y')"), SQLITE_OK);
    EXPECT_EQ(db.ask("SELECT * FROM t ORDER BY a"), "1|x|2|y|");
    EXPECT_EQ(db.ask("PRAGMA temp_store=FILE; CREATE TEMP TABLE u AS SELECT * FROM t;"
                     "SELECT count(*) FROM u"),
              "2|");
    EXPECT_EQ(db.ask("PRAGMA integrity_check"), "ok|");
    EXPECT_TRUE(m.node.disk().exists("test.db"));
}

TEST(SqliteVfs, ConnectionsOfOneNodeLockEachOtherOut) {
    machine m;
    database one{m.files.name()};
    database two{m.files.name()};
    ASSERT_EQ(one.run("CREATE TABLE t(a)"), SQLITE_OK);
    ASSERT_EQ(one.run("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)"), SQLITE_OK);
    EXPECT_EQ(two.run("BEGIN IMMEDIATE"), SQLITE_BUSY);
    EXPECT_EQ(two.ask("SELECT count(*) FROM t"), "0|");
    ASSERT_EQ(one.run("COMMIT"), SQLITE_OK);
    EXPECT_EQ(two.ask("SELECT count(*) FROM t"), "1|");
    ASSERT_EQ(two.run("BEGIN; SELECT * FROM t"), SQLITE_OK);
    ASSERT_EQ(one.run("BEGIN; INSERT INTO t VALUES (2)"), SQLITE_OK);
    EXPECT_EQ(one.run("COMMIT"), SQLITE_BUSY);  // two still reads
    ASSERT_EQ(two.run("COMMIT"), SQLITE_OK);
    EXPECT_EQ(one.run("COMMIT"), SQLITE_OK);
}

TEST(SqliteVfs, TakesTimeAndChanceFromTheWorld) {
    auto const drawn = [](std::uint64_t seed) {
        machine m{seed};
        database db{m.files.name()};
        return db.ask("SELECT random(), hex(randomblob(8))");
    };
    EXPECT_EQ(drawn(1), drawn(1));
    EXPECT_NE(drawn(1), drawn(2));

    machine m;
    database db{m.files.name()};
    EXPECT_EQ(db.ask("SELECT datetime('now')"), "2026-01-01 00:00:00|");
    m.world.advance(36h);
    EXPECT_EQ(db.ask("SELECT datetime('now')"), "2026-01-02 12:00:00|");
}

TEST(SqliteVfs, AFailedSyncIsReportedAndTheTransactionIsNotThere) {
    machine m;
    {
        database db{m.files.name()};
        ASSERT_EQ(db.run("PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL;"
                         "CREATE TABLE t(a); INSERT INTO t VALUES (1)"),
                  SQLITE_OK);
        m.node.disk().set_sync_failure(1);
        EXPECT_EQ(db.run("INSERT INTO t VALUES (2)"), SQLITE_IOERR_FSYNC);
        m.node.disk().set_sync_failure(0);
    }
    m.node.crash();
    m.node.start();
    database db{m.files.name()};
    EXPECT_EQ(db.ask("SELECT * FROM t"), "1|");
    EXPECT_EQ(db.ask("PRAGMA integrity_check"), "ok|");
}

TEST(SqliteVfs, AConnectionOfBeforeACrashIsDeadAndHarmless) {
    machine m;
    std::optional<database> old{m.files.name()};
    ASSERT_EQ(old->run("PRAGMA synchronous=EXTRA; CREATE TABLE t(a)"), SQLITE_OK);
    ASSERT_EQ(old->run("BEGIN; INSERT INTO t VALUES (1)"), SQLITE_OK);
    m.node.crash();
    EXPECT_NE(old->run("COMMIT"), SQLITE_OK);
    old.reset();
    m.node.start();
    database db{m.files.name()};
    EXPECT_EQ(db.ask("SELECT count(*) FROM t"), "0|");
}

// --- crashes in the middle of commits ---

// Writes pairs, each in a transaction, and notes those whose commit has returned. The program of a
// node: every crash ends it, every start goes on.
class pairs {
  public:
    pairs(std::uint64_t seed, std::string settings)
        : settings_(std::move(settings)), world_({.seed = seed}) {}

    void run() {
        node_.start();
        for (int i = 0; i < 8; ++i) {
            node_.crash_in_write(1 + world_.random().below(60));
            (void)world_.run_for(5s);
            if (world_.random().chance(0.3)) node_.crash();
            if (!node_.is_up()) node_.start();
        }
        node_.crash_in_write(0);
        node_.crash();
        node_.start();
        check();
        node_.crash();
    }

    bool half = false;  // one of a pair, or a damaged file
    bool lost = false;  // a commit that had returned
    std::size_t committed() const noexcept { return committed_.size(); }

  private:
    task<void> program(sim::node* self) {
        database db{files_.name()};
        (void)db.run(settings_);
        (void)db.run("CREATE TABLE IF NOT EXISTS t(n, side)");
        for (;;) {
            co_await rondo::sleep_for(100ms);
            int const n = ++next_;
            std::string const text = std::to_string(n);
            int const code = db.run("BEGIN; INSERT INTO t VALUES (" + text + ", 'left'), (" + text +
                                    ", 'right'); COMMIT");
            if (code == SQLITE_OK && self->is_up()) committed_.insert(n);
            if (code != SQLITE_OK) (void)db.run("ROLLBACK");
        }
    }
    void check() {
        database db{files_.name()};
        (void)db.run("PRAGMA locking_mode=EXCLUSIVE");  // or a WAL could not be read
        std::string const sound = db.ask("PRAGMA integrity_check");
        std::string const halves =
            db.ask("SELECT count(*) FROM (SELECT n FROM t GROUP BY n HAVING count(*) <> 2)");
        half = sound != "ok|" || halves != "0|";
        for (int const n : committed_) {
            lost |= db.ask("SELECT count(*) FROM t WHERE n = " + std::to_string(n)) != "2|";
        }
    }

    std::string settings_;
    int next_ = 0;
    std::set<int> committed_;
    sim::world world_;
    sim::network net_{world_};
    sim::node node_{world_, net_, 1, [this](sim::node* n) { return program(n); }};
    sim::sqlite_vfs files_{node_};
};

struct verdict {
    int half = 0;
    int lost = 0;
    std::size_t committed = 0;
};

verdict try_seeds(std::uint64_t count, std::string const& settings) {
    verdict v;
    for (std::uint64_t const seed : sim::seeds(count)) {
        pairs p{seed, settings};
        p.run();
        v.committed += p.committed();
        v.half += p.half ? 1 : 0;
        v.lost += p.lost ? 1 : 0;
        if (!p.half && !p.lost) continue;
        std::printf("RONDO_SEED=%llu: %s\n", static_cast<unsigned long long>(seed),
                    p.half ? "half a transaction" : "a commit was lost");
    }
    return v;
}

class DurableSettings : public testing::TestWithParam<char const*> {};

TEST_P(DurableSettings, ACommitSurvivesEveryCrashAndNothingIsHalf) {
    verdict const v = try_seeds(60, GetParam());
    EXPECT_EQ(v.half, 0);
    EXPECT_EQ(v.lost, 0);
    EXPECT_GT(v.committed, 0U);
}

// (A file becomes one with a WAL in a transaction with a journal that is deleted: hence EXTRA.)
INSTANTIATE_TEST_SUITE_P(SqliteVfs, DurableSettings,
                         testing::Values("PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL",
                                         "PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL",
                                         "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA",
                                         "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=EXTRA;"
                                         "PRAGMA journal_mode=WAL"));

// As SQLite documents it: a journal that was deleted may be back after a power failure.
TEST(SqliteVfs, FindsThatFullWithADeletedJournalMayLoseACommitButNeverHalf) {
    verdict const v = try_seeds(60, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL");
    EXPECT_EQ(v.half, 0);
    if (sim::seeds(60).size() > 1) {
        EXPECT_GT(v.lost, 0);
    }
}

TEST(SqliteVfs, FindsThatWithoutSyncsTransactionsAreTorn) {
    verdict const v = try_seeds(60, "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF");
    if (sim::seeds(60).size() > 1) {
        EXPECT_GT(v.half + v.lost, 0);
    }
}

}  // namespace
