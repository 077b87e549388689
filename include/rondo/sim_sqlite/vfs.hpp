// vfs.hpp: SQLite on the disk of a simulated node.
//
//   sim::node server{w, net, 1, serve};
//   sim::sqlite_vfs files{server};
//   sqlite3_open_v2("ledger.db", &db, flags, files.name());        // in the program of the node
//
// The program takes the name of a VFS; over a real disk it is null. All else is SQLite as it is.
//
// Guarantee      files are on the node's disk (sim/disk.hpp) and have its faults: a crash loses or
//                tears what was not synced, a sync may fail, and node::crash_in_write() cuts the
//                power between any two steps of a commit. After a crash every call of an old
//                connection fails with SQLITE_IOERR, and closing it changes nothing.
// Seeded         what SQLite draws (nonces, random(), names of temporary files) comes from the
//                world's seed, and its time of day is the world's clock, from 2026-01-01 on. For
//                that the VFS made last is SQLite's default while it lives, and SQLite's generator,
//                which is one for the process, is reset when one is made or goes. So one world at a
//                time uses SQLite in a process.
// Durability     is what the program asks for. With a rollback journal, synchronous=FULL does not
//                sync the directory after the journal was deleted: a power failure may bring the
//                journal back and undo the commit. journal_mode=TRUNCATE or synchronous=EXTRA do
//                not have that gap. The simulation finds it: tests/unit/sim_sqlite.
// Not simulated  memory-mapped files, shared memory: WAL works with locking_mode=EXCLUSIVE.
// Lifetime       after the node, and gone before it; connections are closed before both: crash the
//                node first if it is up.
// Thread safety  none, as of the world.
#pragma once

#include <memory>

#include "rondo/sim/node.hpp"

namespace rondo::sim {

class sqlite_vfs {
  public:
    explicit sqlite_vfs(node& on);
    // The node is off, or has no connection open.
    ~sqlite_vfs();
    sqlite_vfs(sqlite_vfs const&) = delete;
    sqlite_vfs& operator=(sqlite_vfs const&) = delete;

    // For sqlite3_open_v2(), as long as this lives.
    char const* name() const noexcept;

  private:
    class registration;
    std::unique_ptr<registration> registration_;
};

}  // namespace rondo::sim
