// database.hpp: a connection that closes itself, and results as text.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

namespace rondo::test {

class database {
  public:
    explicit database(char const* vfs, char const* name = "test.db") {
        sqlite3* db = nullptr;
        opened_ = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
        db_.reset(db);
        sqlite3_extended_result_codes(db, 1);
    }
    int opened() const noexcept { return opened_; }

    // The result code; what it selects is appended to the rows, with '|' behind each value.
    int run(std::string const& sql) {
        return sqlite3_exec(db_.get(), sql.c_str(), &collect, &rows_, nullptr);
    }
    std::string ask(std::string const& sql) {
        rows_.clear();
        int const code = run(sql);
        return code == SQLITE_OK ? rows_ : "error " + std::to_string(code);
    }

  private:
    struct closes {
        void operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
    };
    static int collect(void* to, int columns, char** values, char**) {
        for (int i = 0; i < columns; ++i) {
            *static_cast<std::string*>(to) += values[i] != nullptr ? values[i] : "NULL";
            *static_cast<std::string*>(to) += '|';
        }
        return 0;
    }

    int opened_ = SQLITE_OK;
    std::unique_ptr<sqlite3, closes> db_;
    std::string rows_;
};

}  // namespace rondo::test
