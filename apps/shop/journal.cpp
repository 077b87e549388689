#include "journal.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rondo::shop {

namespace {

constexpr std::array names{"read", "prepared", "ordered", "ready", "committed", "cup", "done"};

step step_of(std::string_view name) noexcept {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return static_cast<step>(i);
    }
    return step::read;
}

std::string hex(std::span<unsigned char const> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (unsigned char const b : bytes) {
        text += digits[b >> 4U];
        text += digits[b & 15U];
    }
    return text;
}

std::string digest_of(std::string_view text) {
    std::array<unsigned char, 32> digest{};
    unsigned length = 0;
    EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
    return hex(digest);
}

// The takes of a cup as they are sent.
std::string to_blob(std::vector<cluster::take> const& takes) {
    std::vector<std::byte> const bytes = pack(cup{0, 0, takes});
    return hex({reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size()});
}

unsigned digit(char c) noexcept { return static_cast<unsigned>(c >= 'a' ? c - 'a' + 10 : c - '0'); }

std::vector<cluster::take> from_blob(std::string_view text) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(digit(text[i]) << 4U | digit(text[i + 1])));
    }
    auto const read = unpack<cup>(bytes);
    return read ? read->takes : std::vector<cluster::take>{};
}

// The columns of journalled, in their order, from this one on.
journalled state_in(cluster::rows const& r, int first) {
    return {step_of(r.text(first)), static_cast<std::uint64_t>(r.number(first + 1)),
            static_cast<std::uint32_t>(r.number(first + 2)), from_blob(r.text(first + 3)),
            r.text(first + 4)};
}

}  // namespace

char const* to_text(step s) noexcept { return names[static_cast<std::size_t>(s)]; }

durable_epoch::durable_epoch(cluster::database& db, std::function<void(std::string const&)> fail)
    : database_(db), fail_(std::move(fail)) {
    database_.run(
        "CREATE TABLE IF NOT EXISTS epoch(one INTEGER PRIMARY KEY, term INTEGER, leader INTEGER)");
}

cluster::epoch durable_epoch::load() {
    cluster::rows r = database_.ask("SELECT term, leader FROM epoch");
    if (!r.next()) return {};
    return {static_cast<std::uint64_t>(r.number(0)), static_cast<cluster::member_id>(r.number(1))};
}

void durable_epoch::save(cluster::epoch highest) {
    database_.run("INSERT OR REPLACE INTO epoch VALUES (1, ?, ?)", highest.term, highest.leader);
    if (database_.failed()) fail_(database_.failure());
}

std::expected<journal, std::string> journal::open(std::string const& database_file,
                                                  std::string const& orders_file,
                                                  std::string const& id, char const* vfs) {
    auto opened = cluster::database::open(database_file, vfs);
    if (!opened) return std::unexpected{std::move(opened.error())};
    journal made{*std::move(opened), orders_file};
    cluster::database& db = made.database_;
    {
        cluster::transaction change{db};
        db.run("CREATE TABLE IF NOT EXISTS files(name TEXT PRIMARY KEY, journal TEXT NOT NULL)");
        db.run(
            "CREATE TABLE IF NOT EXISTS lines(journal TEXT NOT NULL, line INTEGER NOT NULL,"
            "digest TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL,"
            "robot INTEGER NOT NULL, takes TEXT NOT NULL, outcome TEXT NOT NULL,"
            "PRIMARY KEY (journal, line))");
        db.run(
            "CREATE TABLE IF NOT EXISTS waste(oid TEXT NOT NULL, attempt INTEGER NOT NULL,"
            "reason TEXT NOT NULL)");
        db.run("INSERT INTO files VALUES (?, ?) ON CONFLICT DO NOTHING", orders_file, id);
        change.commit();
    }
    {
        cluster::rows r = db.ask("SELECT journal FROM files WHERE name = ?", orders_file);
        if (r.next()) made.id_ = r.text(0);
    }
    if (db.failed()) return std::unexpected{db.failure()};
    return made;
}

std::expected<journalled, journal::refused> journal::line(std::uint32_t number,
                                                          std::string_view text) {
    std::string const digest = digest_of(text);
    {
        cluster::rows r = database_.ask(
            "SELECT digest, step, attempt, robot, takes, outcome FROM lines "
            "WHERE journal = ? AND line = ?",
            id_, number);
        if (r.next()) {
            if (r.text(0) != digest) return std::unexpected{refused::changed};
            return state_in(r, 1);
        }
    }
    database_.run("INSERT INTO lines VALUES (?, ?, ?, 'read', 0, 0, '', '')", id_, number, digest);
    return journalled{};
}

std::vector<journal::open_line> journal::left_behind(std::span<order_line const> lines) {
    std::vector<open_line> all;
    cluster::rows r = database_.ask(
        "SELECT journal, line, digest, step, attempt, robot, takes, outcome FROM lines "
        "WHERE step <> 'done' ORDER BY journal, line");
    while (r.next()) {
        auto const number = static_cast<std::uint32_t>(r.number(1));
        auto const at = std::ranges::find(lines, number, &order_line::number);
        bool const goes_on =
            r.text(0) == id_ && at != lines.end() && at->read && r.text(2) == digest_of(at->text);
        if (!goes_on) all.push_back({r.text(0), number, state_in(r, 3)});
    }
    return all;
}

bool journal::knows(std::uint32_t screen, std::string_view oid) {
    return database_.number(
               "SELECT count(*) FROM lines WHERE ? || '-' || journal || '-' || line = ?", screen,
               oid) != 0;
}

void journal::write(open_line const& now) {
    journalled const& s = now.state;
    database_.run(
        "UPDATE lines SET step = ?, attempt = ?, robot = ?, takes = ?, outcome = ? "
        "WHERE journal = ? AND line = ?",
        to_text(s.at), s.attempt, s.robot, to_blob(s.takes), s.outcome, now.journal, now.number);
}

void journal::write_waste(std::string_view oid, std::uint64_t attempt, std::string_view reason) {
    // A screen that starts again between this and the end of the order comes here again.
    database_.run(
        "INSERT INTO waste SELECT ?1, ?2, ?3 "
        "WHERE NOT EXISTS (SELECT 1 FROM waste WHERE oid = ?1 AND attempt = ?2)",
        oid, attempt, reason);
}

}  // namespace rondo::shop
