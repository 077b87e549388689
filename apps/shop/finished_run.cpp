#include "finished_run.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace rondo::shop {

namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using row = std::vector<std::string>;

// Not opened as read-only: what a killed process left half done is rolled back by who reads first.
class file_reader {
  public:
    explicit file_reader(std::string const& file) {
        sqlite3* db = nullptr;
        int const code = sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
        db_.reset(db);
        if (code != SQLITE_OK) problem_ = file + ": " + sqlite3_errstr(code);
        if (db != nullptr) sqlite3_busy_timeout(db, 5000);
    }

    std::vector<row> select(std::string const& sql) {
        std::vector<row> rows;
        char* error = nullptr;
        if (!problem_.empty()) return rows;
        sqlite3_exec(db_.get(), sql.c_str(), &collect, &rows, &error);
        if (error != nullptr) problem_ = std::string{error} + " in " + sql;
        sqlite3_free(error);
        return rows;
    }
    std::int64_t number(std::string const& sql) {
        std::vector<row> const rows = select(sql);
        return rows.empty() || rows[0].empty() ? 0 : std::atoll(rows[0][0].c_str());
    }
    std::string const& problem() const noexcept { return problem_; }

  private:
    struct closes {
        void operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
    };
    static int collect(void* to, int columns, char** values, char**) {
        row r;
        for (int i = 0; i < columns; ++i) r.emplace_back(values[i] != nullptr ? values[i] : "");
        static_cast<std::vector<row>*>(to)->push_back(std::move(r));
        return 0;
    }

    std::unique_ptr<sqlite3, closes> db_;
    std::string problem_;
};

struct rule {
    char const* name;
    char const* broken_by;  // a query for what breaks it: a text for each
};

constexpr rule rules[] = {
    {"I1 no flavour is oversold, at any prefix of the ledger",
     "SELECT DISTINCT s.resource || ' is oversold with ' || t.key FROM ("
     "  SELECT t.key, t.resource, sum(t.amount) OVER ("
     "    PARTITION BY t.resource ORDER BY c.number ROWS UNBOUNDED PRECEDING) AS so_far,"
     "    t.amount FROM takes t JOIN steps c ON c.key = t.key AND c.state = 'COMMITTED') t"
     " JOIN stock s ON s.resource = t.resource WHERE t.so_far > s.capacity OR t.amount <= 0"},
    {"I1 what the stock says was sold is what was taken",
     "SELECT resource || ': ' || committed FROM stock s WHERE committed <> "
     "(SELECT coalesce(sum(amount), 0) FROM takes t WHERE t.resource = s.resource)"},
    {"I2 every order has one way through the ledger, and a legal one",
     "SELECT key || ': ' || way FROM (SELECT key, group_concat(state, ' ') AS way FROM "
     "(SELECT key, state FROM steps ORDER BY key, number) GROUP BY key) WHERE way NOT IN "
     "('ABORTED', 'PREPARED ABORTED', 'PREPARED', 'PREPARED COMMITTED', "
     "'PREPARED COMMITTED DELIVERED', 'PREPARED COMMITTED REFUNDED')"},
    {"I2 an order stands where its last step was",
     "SELECT e.key || ': ' || e.state FROM entries e WHERE e.state IS NOT "
     "(SELECT state FROM steps s WHERE s.key = e.key ORDER BY number DESC LIMIT 1)"},
    {"I2 one attempt was committed, of just what was ordered",
     "SELECT e.key || ': takes differ' FROM entries e WHERE e.state IN "
     "('COMMITTED', 'DELIVERED', 'REFUNDED') AND ("
     "(SELECT count(DISTINCT attempt) FROM takes t WHERE t.key = e.key) <> 1 OR "
     "(SELECT group_concat(resource || amount) FROM (SELECT resource, sum(amount) AS amount "
     " FROM takes t WHERE t.key = e.key GROUP BY resource ORDER BY resource)) IS NOT "
     "(SELECT group_concat(resource || amount) FROM (SELECT resource, sum(amount) AS amount "
     " FROM items i WHERE i.key = e.key GROUP BY resource ORDER BY resource)))"},
    {"I2 nothing was taken for an order that is not committed",
     "SELECT t.key FROM takes t WHERE NOT EXISTS "
     "(SELECT 1 FROM steps s WHERE s.key = t.key AND s.state = 'COMMITTED')"},
    {"I3 what is charged is delivered or refunded, and no order is open",
     "SELECT key || ' is still ' || state FROM entries WHERE state IN ('PREPARED', 'COMMITTED')"},
};

// Of a screen whose journal is attached as j: %s is its number.
constexpr rule journal_rules[] = {
    {"I3 what a screen handed over is what the ledger says was delivered",
     "SELECT k || ': the journal says ' || outcome || ', the ledger ' || coalesce(state, 'nothing')"
     " FROM (SELECT %s || '-' || l.journal || '-' || l.line AS k, l.outcome, e.state FROM j.lines l"
     " LEFT JOIN entries e ON e.key = %s || '-' || l.journal || '-' || l.line"
     " WHERE l.step = 'done') WHERE NOT ("
     "(outcome LIKE 'delivered%%' AND state IS 'DELIVERED') OR "
     "(outcome LIKE 'refunded%%' AND state IS 'REFUNDED') OR "
     "(outcome LIKE 'aborted%%' AND state IS 'ABORTED'))"},
    // Without it: taken over by the leader; or its last answer came too late for the journal. What
    // was read and is not in the ledger was not begun.
    {"I9 every order that a screen has begun has come to its end, with the screen or without it",
     "SELECT k || ' is at ' || step || ', in the ledger ' || state FROM ("
     "SELECT %s || '-' || l.journal || '-' || l.line AS k, l.step, coalesce(e.state, '-') AS state"
     " FROM j.lines l LEFT JOIN entries e ON e.key = %s || '-' || l.journal || '-' || l.line"
     " WHERE l.step <> 'done') WHERE NOT (state IN ('ABORTED', 'REFUNDED') OR "
     "(step = 'cup' AND state = 'DELIVERED') OR (step = 'read' AND state = '-'))"},
    {"I7 every order of a screen in the ledger is in its journal",
     "SELECT key FROM entries WHERE key LIKE %s || '-%%' AND key NOT IN "
     "(SELECT %s || '-' || journal || '-' || line FROM j.lines)"},
    {"I2 the attempt that was charged is the one whose cup was fetched",
     "SELECT e.key FROM entries e JOIN j.lines l ON e.key = %s || '-' || l.journal || '-' || l.line"
     " WHERE e.state = 'DELIVERED' AND e.attempt <> l.attempt"},
};

std::string with_number(std::string_view sql, std::string const& number) {
    std::string text;
    for (std::size_t i = 0; i < sql.size(); ++i) {
        if (sql[i] == '%' && i + 1 < sql.size()) {
            ++i;
            text += sql[i] == 's' ? number : std::string{sql[i]};
        } else {
            text += sql[i];
        }
    }
    return text;
}

std::string sql_text(std::string const& text) {
    std::string q = "'";
    for (char const c : text) q += c == '\'' ? std::string{"''"} : std::string{c};
    return q + "'";
}

std::string ledger_in(std::string const& directory) { return directory + "/ledger.db"; }

bool is_number(std::string_view text) noexcept {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The numbers of screens that have a journal here.
std::set<std::string> journals_in(std::string const& directory) {
    std::set<std::string> numbers;
    std::error_code ignored;
    for (auto const& entry : fs::directory_iterator{directory, ignored}) {
        std::string const name = entry.path().filename().string();
        if (!name.starts_with("screen-") || !name.ends_with(".db")) continue;
        std::string number = name.substr(7, name.size() - 10);
        if (is_number(number)) numbers.insert(std::move(number));
    }
    return numbers;
}

// The numbers of screens that the ledger has orders of.
std::vector<std::string> screens_in(file_reader& ledger) {
    std::vector<std::string> numbers;
    for (row& r :
         ledger.select("SELECT DISTINCT substr(key, 1, instr(key, '-') - 1) FROM entries")) {
        if (is_number(r[0])) numbers.push_back(std::move(r[0]));
    }
    return numbers;
}

// A screen that has died before its journal had tables has begun no order: an empty one stands for
// it. And for one that is lost, whose orders are then in no journal.
void attach_journal(file_reader& to, std::string const& file) {
    std::error_code ignored;
    bool const there = fs::exists(file, ignored);
    to.select("ATTACH " + sql_text(there ? file : ":memory:") + " AS j");
    if (to.number("SELECT count(*) FROM j.sqlite_master WHERE name = 'lines'") != 0) return;
    to.select("DETACH j; ATTACH ':memory:' AS j");
    to.select("CREATE TABLE j.lines(journal, line, step, attempt, outcome)");
}

void collect(file_reader& from, char const* name, std::string const& sql,
             std::vector<invariant_check>& to) {
    auto at = std::ranges::find(to, name, &invariant_check::name);
    if (at == to.end()) at = to.insert(to.end(), {name, {}});
    for (row& r : from.select(sql)) at->violations.push_back(std::move(r[0]));
}

std::string euros(std::int64_t cents) {
    char text[32];
    std::snprintf(text, sizeof text, "%lld.%02lld", static_cast<long long>(cents / 100),
                  static_cast<long long>(cents % 100));
    return text;
}

constexpr char const* all_entries =
    "SELECT e.key, e.state, e.reason, e.card, e.price, e.attempt, e.authorisation,"
    " (SELECT coalesce(group_concat(amount || ' g ' || resource, ', '), '') FROM items i"
    "  WHERE i.key = e.key),"
    " (SELECT max(at) FROM steps s WHERE s.key = e.key) FROM entries e ORDER BY e.authorisation";

std::string as_text(std::vector<row> const& rows) {
    std::string text;
    std::int64_t charged = 0;
    std::int64_t refunded = 0;
    for (row const& r : rows) {
        std::int64_t const price = std::atoll(r[4].c_str());
        bool const was_charged = r[1] != "ABORTED" && r[1] != "PREPARED";
        if (was_charged) charged += price;
        if (r[1] == "REFUNDED") refunded += price;
        char line[160];
        std::snprintf(line, sizeof line, "%-24s %-10s %9s  ", r[0].c_str(), r[1].c_str(),
                      was_charged ? euros(price).c_str() : "-");
        text.append(line).append(r[7]);
        if (!r[2].empty()) text.append(" (").append(r[2]).append(")");
        text += '\n';
    }
    text += std::to_string(rows.size()) + " orders; charged " + euros(charged) + ", refunded " +
            euros(refunded) + "\n";
    return text;
}

std::string as_json(file_reader& from, std::vector<row> const& rows) {
    json::array orders;
    for (row const& r : rows) {
        json::array items;
        for (row const& i :
             from.select("SELECT resource, amount FROM items WHERE key = " + sql_text(r[0]))) {
            items.push_back({{"flavour", i[0]}, {"grams", std::atoll(i[1].c_str())}});
        }
        json::array steps;
        for (row const& s : from.select("SELECT state, at, reason FROM steps WHERE key = " +
                                        sql_text(r[0]) + " ORDER BY number")) {
            steps.push_back(
                {{"state", s[0]}, {"at_ms", std::atoll(s[1].c_str())}, {"reason", s[2]}});
        }
        orders.push_back({{"order", r[0]},
                          {"state", r[1]},
                          {"reason", r[2]},
                          {"card", r[3]},
                          {"price_cents", std::atoll(r[4].c_str())},
                          {"attempt", std::atoll(r[5].c_str())},
                          {"authorisation", std::atoll(r[6].c_str())},
                          {"items", std::move(items)},
                          {"steps", std::move(steps)}});
    }
    return json::serialize(orders) + "\n";
}

}  // namespace

std::expected<std::vector<invariant_check>, std::string> verify(std::string const& directory) {
    file_reader ledger{ledger_in(directory)};
    std::vector<invariant_check> checks;
    for (rule const& r : rules) collect(ledger, r.name, r.broken_by, checks);
    std::set<std::string> screens = journals_in(directory);
    for (std::string& number : screens_in(ledger)) screens.insert(std::move(number));
    for (std::string const& number : screens) {
        std::string file = directory;
        file.append("/screen-").append(number).append(".db");
        attach_journal(ledger, file);
        for (rule const& r : journal_rules) {
            collect(ledger, r.name, with_number(r.broken_by, number), checks);
        }
        ledger.select("DETACH j");
    }
    if (!ledger.problem().empty()) return std::unexpected{ledger.problem()};
    return checks;
}

std::expected<std::string, std::string> report(std::string const& directory, report_form form) {
    file_reader ledger{ledger_in(directory)};
    std::vector<row> const rows = ledger.select(all_entries);
    std::string text = form == report_form::text ? as_text(rows) : as_json(ledger, rows);
    if (!ledger.problem().empty()) return std::unexpected{ledger.problem()};
    return text;
}

std::expected<ledger_summary, std::string> summarise(std::string const& directory) {
    file_reader ledger{ledger_in(directory)};
    ledger_summary s;
    auto const count = [&ledger](char const* states) {
        return ledger.number("SELECT count(*) FROM entries WHERE state IN (" + std::string{states} +
                             ")");
    };
    s.delivered = count("'DELIVERED'");
    s.aborted = count("'ABORTED'");
    s.refunded = count("'REFUNDED'");
    s.open = count("'PREPARED', 'COMMITTED'");
    for (row const& r : ledger.select("SELECT resource, capacity, committed FROM stock")) {
        s.stock.push_back({r[0], std::atoll(r[1].c_str()), std::atoll(r[2].c_str())});
    }
    if (!ledger.problem().empty()) return std::unexpected{ledger.problem()};
    return s;
}

std::int64_t last_leader(std::string const& directory, std::uint32_t screens) {
    std::int64_t term = 0;
    std::int64_t leader = -1;
    constexpr std::int64_t first_screen = 65;  // its id in the cluster
    for (std::uint32_t s = 0; s < screens; ++s) {
        std::string const file = directory + "/screen-" + std::to_string(s) + ".db";
        if (!fs::exists(file)) continue;
        file_reader from{file};
        for (row const& r : from.select("SELECT term, leader FROM epoch")) {
            if (std::atoll(r[0].c_str()) <= term) continue;
            term = std::atoll(r[0].c_str());
            leader = std::atoll(r[1].c_str()) - first_screen;
        }
    }
    return leader;
}

}  // namespace rondo::shop
