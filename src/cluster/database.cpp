#include "rondo/cluster/database.hpp"

#include <sqlite3.h>

#include <utility>

namespace rondo::cluster {

namespace {

constexpr int patience_with_readers_ms = 5000;

}  // namespace

void database::closes::operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
void rows::finalizes::operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }

std::expected<database, std::string> database::open(std::string const& file, char const* vfs) {
    database made;
    made.file_ = file;
    sqlite3* connection = nullptr;
    constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int const code = sqlite3_open_v2(file.c_str(), &connection, flags, vfs);
    made.connection_.reset(connection);
    if (code != SQLITE_OK) {
        return std::unexpected{"cannot open " + file + ": " + sqlite3_errstr(code)};
    }
    sqlite3_extended_result_codes(connection, 1);
    sqlite3_busy_timeout(connection, patience_with_readers_ms);
    made.run("PRAGMA journal_mode=TRUNCATE");
    made.run("PRAGMA synchronous=FULL");
    made.run("PRAGMA foreign_keys=ON");
    if (made.failed()) return std::unexpected{made.failure()};
    return made;
}

void database::fail(std::string_view during) {
    if (failed()) return;
    int const code = sqlite3_extended_errcode(connection_.get());
    failure_ = file_ + ": " + sqlite3_errmsg(connection_.get()) + " (" + std::to_string(code) +
               ") in " + std::string{during};
}

rows database::prepare(std::string_view sql) {
    sqlite3_stmt* made = nullptr;
    if (!failed()) {
        int const code = sqlite3_prepare_v2(connection_.get(), sql.data(),
                                            static_cast<int>(sql.size()), &made, nullptr);
        if (code != SQLITE_OK) fail(sql);
    }
    return {*this, made};
}

bool rows::next() {
    if (!statement_ || database_->failed()) return false;
    int const code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) database_->fail(sqlite3_sql(statement_.get()));
    return false;
}

std::int64_t rows::number(int column) const noexcept {
    return sqlite3_column_int64(statement_.get(), column);
}

std::string rows::text(int column) const {
    auto const* const bytes = sqlite3_column_text(statement_.get(), column);
    if (bytes == nullptr) return {};
    auto const length = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return {reinterpret_cast<char const*>(bytes), length};
}

void rows::bind(int at, std::int64_t value) {
    if (statement_) bound(sqlite3_bind_int64(statement_.get(), at, value));
}

void rows::bind(int at, std::string_view value) {
    if (!statement_) return;
    bound(sqlite3_bind_text64(statement_.get(), at, value.data(), value.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8));
}

// A statement is not run with a parameter that it did not get.
void rows::bound(int code) {
    if (code != SQLITE_OK) database_->fail(sqlite3_sql(statement_.get()));
}

void transaction::commit() {
    database_.run("COMMIT");
    over_ = true;
}

// After a failure nothing is run: the next process finds the journal and rolls back.
transaction::~transaction() {
    if (!over_) database_.run("ROLLBACK");
}

}  // namespace rondo::cluster
