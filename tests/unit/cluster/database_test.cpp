#include "rondo/cluster/database.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/child_process.hpp"

namespace {

using rondo::cluster::database;
using rondo::cluster::rows;
using rondo::cluster::transaction;
using rondo::test::scratch_directory;

TEST(Database, KeepsWhatWasCommittedAndNothingElse) {
    scratch_directory const in;
    std::string const file = in.path() / "a.db";
    {
        database db = database::open(file).value();
        db.run("CREATE TABLE t(n INTEGER, s TEXT)");
        {
            transaction change{db};
            db.run("INSERT INTO t VALUES (?, ?)", 7, std::string{"seven"});
            change.commit();
        }
        transaction const change{db};
        db.run("INSERT INTO t VALUES (?, ?)", 8, "eight");
    }
    database db = database::open(file).value();
    rows found = db.ask("SELECT n, s FROM t");
    ASSERT_TRUE(found.next());
    EXPECT_EQ(found.number(0), 7);
    EXPECT_EQ(found.text(1), "seven");
    EXPECT_FALSE(found.next());
    EXPECT_FALSE(db.failed());
}

TEST(Database, TheFirstFailureIsFinal) {
    scratch_directory const in;
    database db = database::open(in.path() / "a.db").value();
    db.run("CREATE TABLE t(n)");
    db.run("INSERT INTO nowhere VALUES (1)");
    EXPECT_TRUE(db.failed());
    EXPECT_NE(db.failure().find("no such table"), std::string::npos) << db.failure();
    db.run("INSERT INTO t VALUES (1)");
    EXPECT_FALSE(db.number("SELECT count(*) FROM t"));
    database again = database::open(in.path() / "a.db").value();
    EXPECT_EQ(again.number("SELECT count(*) FROM t"), 0);
}

TEST(Database, AParameterThatIsNotTakenIsAFailure) {
    scratch_directory const in;
    std::string const file = in.path() / "a.db";
    {
        database db = database::open(file).value();
        db.run("CREATE TABLE t(n)");
        db.run("INSERT INTO t VALUES (1)", 1);  // one too many
        EXPECT_TRUE(db.failed());
        EXPECT_NE(db.failure().find("INSERT"), std::string::npos) << db.failure();
    }
    database db = database::open(file).value();
    EXPECT_EQ(db.number("SELECT count(*) FROM t"), 0);
}

TEST(Database, SaysWhichFileCannotBeOpened) {
    auto const opened = database::open("/no/such/directory/a.db");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().find("/no/such/directory/a.db"), std::string::npos);
}

TEST(Database, AFileThatIsNoDatabaseIsRefused) {
    scratch_directory const in;
    std::string const file = in.write("a.db", std::string(5000, 'x'));
    EXPECT_FALSE(database::open(file));
}

}  // namespace
