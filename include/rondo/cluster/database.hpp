// database.hpp: a file of SQLite whose commits survive a power failure; the first failure is final.
//
//   auto opened = cluster::database::open("ledger.db");
//   cluster::database& db = *opened;
//   cluster::transaction change{db};
//   db.run("UPDATE stock SET committed = committed + ? WHERE name = ?", 250, "lemon");
//   change.commit();
//   if (db.failed()) end_the_process(db.failure());
//
// Guarantee      what commit() covers is on the disk when it returns and failed() is false:
//                journal_mode=TRUNCATE, synchronous=FULL. (DELETE would need the directory synced
//                after the journal is gone, which FULL does not do: docs/sim.md.)
// Failure        the first error of any call stays: from then on nothing is written, every query is
//                empty, failed() is true. After a sync that failed nobody knows what is on the disk
//                (a later one that succeeds does not cover it), so the only safe thing is to end
//                the process and let the next one read what is there.
// Readers        other processes may read meanwhile; a commit waits for them for five seconds.
// Thread safety  none.
#pragma once

#include <concepts>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rondo::cluster {

// The rows of a query, one at a time; gone before its database.
class rows {
  public:
    // The next one is there.
    bool next();
    std::int64_t number(int column) const noexcept;
    std::string text(int column) const;

  private:
    friend class database;
    struct finalizes {
        void operator()(sqlite3_stmt* s) const noexcept;
    };

    rows(class database& db, sqlite3_stmt* s) noexcept : database_(&db), statement_(s) {}
    void bind(int at, std::int64_t value);
    void bind(int at, std::string_view value);
    void bound(int code);

    class database* database_;
    std::unique_ptr<sqlite3_stmt, finalizes> statement_;
};

template <class T>
concept database_value = std::integral<T> || std::convertible_to<T, std::string_view>;

class database {
  public:
    // The error says which file, and what SQLite says of it. vfs: one of SQLite's, by its name.
    static std::expected<database, std::string> open(std::string const& file,
                                                     char const* vfs = nullptr);

    // One statement with its parameters. run() carries it out and drops what it selects.
    template <database_value... Ts>
    rows ask(std::string_view sql, Ts const&... parameters) {
        rows made = prepare(sql);
        int at = 0;
        (bind(made, ++at, parameters), ...);
        return made;
    }
    template <database_value... Ts>
    void run(std::string_view sql, Ts const&... parameters) {
        rows made = ask(sql, parameters...);
        while (made.next()) {
        }
    }
    // The number in the first column of the first row.
    template <database_value... Ts>
    std::optional<std::int64_t> number(std::string_view sql, Ts const&... parameters) {
        rows made = ask(sql, parameters...);
        if (!made.next()) return std::nullopt;
        return made.number(0);
    }

    bool failed() const noexcept { return !failure_.empty(); }
    std::string const& failure() const noexcept { return failure_; }

  private:
    friend rows;
    struct closes {
        void operator()(sqlite3* db) const noexcept;
    };

    database() = default;
    rows prepare(std::string_view sql);
    void fail(std::string_view during);
    template <class T>
    static void bind(rows& to, int at, T const& value) {
        if constexpr (std::integral<T>) {
            to.bind(at, static_cast<std::int64_t>(value));
        } else {
            to.bind(at, std::string_view{value});
        }
    }

    std::string file_;
    std::string failure_;
    std::unique_ptr<sqlite3, closes> connection_;
};

// All changes until commit(), or none.
class transaction {
  public:
    explicit transaction(database& db) : database_(db) { database_.run("BEGIN IMMEDIATE"); }
    ~transaction();
    transaction(transaction const&) = delete;
    transaction& operator=(transaction const&) = delete;

    // It is on the disk, unless the database has failed.
    void commit();

  private:
    database& database_;
    bool over_ = false;
};

}  // namespace rondo::cluster
