// Invariants
//   I1  of each resource, stock.committed is the sum of its takes, and at most its capacity: both
//       change in the transaction of commit() only.
//   I2  entries.state is the last of the steps of its key; both are written in one transaction.
//   I3  an entry is given to the caller only after the transaction that made it has returned.
#include "rondo/cluster/ledger.hpp"

#include <array>
#include <map>
#include <utility>

namespace rondo::cluster {

namespace {

constexpr std::array tables{
    "CREATE TABLE IF NOT EXISTS stock("
    "resource TEXT PRIMARY KEY, capacity INTEGER NOT NULL, committed INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS entries("
    "key TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL,"
    "card TEXT NOT NULL, price INTEGER NOT NULL,"
    "authorisation INTEGER NOT NULL, expires INTEGER NOT NULL, attempt INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS items("
    "key TEXT NOT NULL, resource TEXT NOT NULL, amount INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS items_of ON items(key)",
    "CREATE TABLE IF NOT EXISTS takes("
    "key TEXT NOT NULL, attempt INTEGER NOT NULL, resource TEXT NOT NULL,"
    "amount INTEGER NOT NULL, generation INTEGER NOT NULL, hop INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS takes_of ON takes(key)",
    "CREATE TABLE IF NOT EXISTS steps("
    "number INTEGER PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL,"
    "attempt INTEGER NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS steps_of ON steps(key)",
    "CREATE INDEX IF NOT EXISTS authorised ON entries(authorisation)",  // the last one is asked for
    "CREATE INDEX IF NOT EXISTS unresolved ON entries(authorisation) "
    "WHERE state IN ('PREPARED', 'COMMITTED')",
};

constexpr std::array names{"UNKNOWN", "PREPARED", "COMMITTED", "DELIVERED", "REFUNDED", "ABORTED"};

using amounts = std::map<std::string, std::int64_t>;

// False: the sum is more than a number can say.
bool add(amounts& to, std::string const& resource, std::int64_t amount) {
    std::int64_t& sum = to[resource];
    return !__builtin_add_overflow(sum, amount, &sum);
}

standing standing_of(std::string_view name) noexcept {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return static_cast<standing>(i);
    }
    return standing::unknown;
}

}  // namespace

char const* to_text(standing s) noexcept { return names[static_cast<std::size_t>(s)]; }

std::expected<ledger, cannot_open> ledger::open(std::string const& file,
                                                std::span<amount_of const> capacities,
                                                char const* vfs) {
    using because = cannot_open::because;
    std::expected<database, std::string> opened = database::open(file, vfs);
    if (!opened) return std::unexpected{cannot_open{because::storage, std::move(opened.error())}};
    ledger made{*std::move(opened)};
    std::optional<std::string> wrong;
    {
        transaction change{made.database_};
        made.make_tables();
        wrong = made.set_capacities(capacities);
        if (!wrong) change.commit();
    }
    if (made.failed()) return std::unexpected{cannot_open{because::storage, made.failure()}};
    if (wrong) return std::unexpected{cannot_open{because::capacity, *std::move(wrong)}};
    return made;
}

void ledger::make_tables() {
    for (char const* const sql : tables) database_.run(sql);
}

std::optional<std::string> ledger::set_capacities(std::span<amount_of const> capacities) {
    for (amount_of const& c : capacities) {
        database_.run(
            "INSERT INTO stock(resource, capacity) VALUES (?, ?) "
            "ON CONFLICT(resource) DO UPDATE SET capacity = excluded.capacity",
            c.resource, c.amount);
    }
    rows sold_out =
        database_.ask("SELECT resource, committed FROM stock WHERE committed > capacity");
    if (!sold_out.next()) return std::nullopt;
    return "of " + sold_out.text(0) + ", " + std::to_string(sold_out.number(1)) +
           " are sold already: its capacity cannot be less";
}

ledger_entry ledger::read(std::string_view key) {
    rows found = database_.ask(
        "SELECT state, reason, authorisation, expires, attempt FROM entries WHERE key = ?", key);
    if (!found.next()) return {};
    return {standing_of(found.text(0)), found.text(1), static_cast<std::uint64_t>(found.number(2)),
            moment{found.number(3)}, static_cast<std::uint64_t>(found.number(4))};
}

// Writes where the entry stands from now on.  I2
void ledger::step(std::string_view key, ledger_entry const& e, moment now) {
    database_.run("UPDATE entries SET state = ?, reason = ?, attempt = ? WHERE key = ?",
                  to_text(e.at), e.reason, e.attempt, key);
    database_.run("INSERT INTO steps(key, state, attempt, reason, at) VALUES (?, ?, ?, ?, ?)", key,
                  to_text(e.at), e.attempt, e.reason, now.count());
}

ledger::result ledger::over(transaction& change, ledger_entry e) {
    change.commit();
    if (failed()) return std::unexpected{storage_failed{}};  // I3
    return e;
}

ledger::result ledger::prepare(std::string_view key, proposal const& asked, judgement const& judge,
                               moment now, moment expires) {
    transaction change{database_};
    ledger_entry e = read(key);
    if (e.at == standing::unknown && !failed()) {
        std::optional<std::string> const refused = judge();
        e.at = refused ? standing::aborted : standing::prepared;
        e.reason = refused.value_or("");
        e.expires = expires;
        e.authorisation = static_cast<std::uint64_t>(
            database_.number("SELECT coalesce(max(authorisation), 0) + 1 FROM entries")
                .value_or(0));
        database_.run(
            "INSERT INTO entries(key, state, reason, card, price, authorisation, expires, attempt) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
            key, to_text(e.at), e.reason, asked.card, asked.price, e.authorisation,
            e.expires.count());
        for (amount_of const& i : asked.items) {
            database_.run("INSERT INTO items(key, resource, amount) VALUES (?, ?, ?)", key,
                          i.resource, i.amount);
        }
        step(key, e, now);
    }
    return over(change, std::move(e));
}

std::optional<std::string> ledger::why_not(std::string_view key, std::span<take const> takes) {
    amounts taken;
    amounts prepared;
    bool countable = true;
    for (take const& t : takes) {
        if (t.amount <= 0) return "conflict: a take of nothing";
        countable = countable && add(taken, t.resource, t.amount);
    }
    rows items = database_.ask("SELECT resource, amount FROM items WHERE key = ?", key);
    while (items.next()) countable = countable && add(prepared, items.text(0), items.number(1));
    if (!countable) return "conflict: more than can be counted";
    if (taken != prepared) return "conflict: what was taken is not what was ordered";
    for (auto const& [resource, amount] : taken) {
        std::optional<std::int64_t> const left =
            database_.number("SELECT capacity - committed FROM stock WHERE resource = ?", resource);
        if (!left) return "unknown flavour " + resource;
        if (amount > *left) return "conflict: not enough " + resource + " is left";  // I1
    }
    return std::nullopt;
}

ledger::result ledger::commit(std::string_view key, std::uint64_t attempt,
                              std::span<take const> takes, moment now) {
    transaction change{database_};
    ledger_entry e = read(key);
    if (e.at == standing::prepared) {
        std::optional<std::string> wrong =
            now > e.expires ? std::optional<std::string>{"expired"} : why_not(key, takes);
        e.at = wrong ? standing::aborted : standing::committed;
        e.reason = wrong ? *std::move(wrong) : "";
        e.attempt = attempt;
        step(key, e, now);
        if (e.at == standing::committed) {
            for (take const& t : takes) {  // I1
                database_.run("INSERT INTO takes VALUES (?, ?, ?, ?, ?, ?)", key, attempt,
                              t.resource, t.amount, t.generation, t.hop);
                database_.run("UPDATE stock SET committed = committed + ? WHERE resource = ?",
                              t.amount, t.resource);
            }
        }
    }
    return over(change, std::move(e));
}

ledger::result ledger::abort(std::string_view key, std::string_view reason, moment now) {
    proposal const nothing;
    auto const refused = [reason] { return std::optional<std::string>{reason}; };
    ledger_entry e = read(key);
    if (e.at == standing::unknown) return prepare(key, nothing, refused, now, now);
    transaction change{database_};
    if (e.at == standing::prepared) {
        e.at = standing::aborted;
        e.reason = reason;
        step(key, e, now);
    }
    return over(change, std::move(e));
}

ledger::result ledger::deliver(std::string_view key, std::uint64_t attempt, moment now) {
    transaction change{database_};
    ledger_entry e = read(key);
    if (e.at == standing::committed && e.attempt == attempt) {
        e.at = standing::delivered;
        step(key, e, now);
    }
    return over(change, std::move(e));
}

ledger::result ledger::refund(std::string_view key, std::string_view reason, moment now) {
    transaction change{database_};
    ledger_entry e = read(key);
    if (e.at == standing::committed) {
        e.at = standing::refunded;
        e.reason = reason;
        step(key, e, now);
    }
    return over(change, std::move(e));
}

ledger::result ledger::look(std::string_view key) {
    ledger_entry e = read(key);
    if (failed()) return std::unexpected{storage_failed{}};
    return e;
}

std::expected<std::vector<resource_level>, storage_failed> ledger::levels() {
    std::vector<resource_level> all;
    rows found = database_.ask("SELECT resource, capacity, committed FROM stock ORDER BY resource");
    while (found.next()) all.push_back({found.text(0), found.number(1), found.number(2)});
    if (failed()) return std::unexpected{storage_failed{}};
    return all;
}

std::expected<std::vector<std::string>, storage_failed> ledger::unresolved(std::size_t at_most) {
    std::vector<std::string> keys;
    rows found = database_.ask(
        "SELECT key FROM entries WHERE state IN ('PREPARED', 'COMMITTED') "
        "ORDER BY authorisation LIMIT ?",
        at_most);
    while (found.next()) keys.push_back(found.text(0));
    if (failed()) return std::unexpected{storage_failed{}};
    return keys;
}

}  // namespace rondo::cluster
