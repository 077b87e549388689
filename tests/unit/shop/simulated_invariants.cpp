// What has to hold at every moment of a simulated run, and when all is quiet. The files of the
// members are read as they are on their disks, by connections of the checks' own.
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shop/messages.hpp"
#include "simulated_member.hpp"
#include "simulated_shop.hpp"

namespace rondo::shop::test {

// A connection of the check's own to the files of a member, as long as that is up.
struct simulated_shop::reader {
    reader(member& m, std::string const& file) {
        int const code = sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, m.files.name());
        if (code != SQLITE_OK) close();
    }
    ~reader() { close(); }
    reader(reader const&) = delete;
    reader& operator=(reader const&) = delete;

    void close() { sqlite3_close(std::exchange(db, nullptr)); }
    // Calls for each row; false when it cannot be read.
    template <class F>
    bool each(char const* sql, F row) {
        sqlite3_stmt* s = nullptr;
        if (db == nullptr || sqlite3_prepare_v2(db, sql, -1, &s, nullptr) != SQLITE_OK)
            return false;
        int code = SQLITE_ROW;
        while ((code = sqlite3_step(s)) == SQLITE_ROW) row(s);
        sqlite3_finalize(s);
        return code == SQLITE_DONE;
    }
    static std::string text(sqlite3_stmt* s, int column) {
        auto const* const t = sqlite3_column_text(s, column);
        return t == nullptr ? std::string{} : std::string{reinterpret_cast<char const*>(t)};
    }
    static std::uint64_t number(sqlite3_stmt* s, int column) {
        return static_cast<std::uint64_t>(sqlite3_column_int64(s, column));
    }

    sqlite3* db = nullptr;
};

void simulated_shop::violate(std::string what) {
    if (!result_.violation.empty()) return;
    note("VIOLATION: " + what);
    result_.violation = std::move(what);
}

void simulated_shop::expect_nothing(std::string what) {
    if (!what.empty()) violate(std::move(what));
}

// What a member shows and writes changes in its own turns only.
void simulated_shop::after_turn_of(executor const& whose) {
    if (!result_.violation.empty()) return;
    for (auto& [id, m] : members_) {
        if (&whose == &m->node) check(*m);
    }
}

void simulated_shop::check(member& m) {
    if (!m.node.is_up()) return;
    if (m.shown.ring != nullptr) m.ring = m.shown.ring->counts();
    if (m.shown.election != nullptr) m.election = m.shown.election->counts();
    if (m.shown.traffic != nullptr) m.traffic = *m.shown.traffic;
    member& gateway = *members_[gateway_id];
    if (m.id == gateway_id) check_ledger();
    bool const known = gateway.node.is_up() && gateway.changes_seen == gateway.changes();
    if (is_screen(m.id) && known) check_journal(m);
    check_tokens(m);
    check_leader(m);
    check_queues(m);
}

// Read again only when something was written.
void simulated_shop::check_ledger() {
    member& m = *members_[gateway_id];
    if (!m.node.is_up() || m.changes() == m.changes_seen) return;
    reader r{m, "ledger.db"};
    std::vector<ledger_step> now;
    bool const read = r.each(
        "SELECT key, state, attempt, reason FROM steps ORDER BY number", [&](sqlite3_stmt* s) {
            now.push_back(
                {reader::text(s, 0), reader::text(s, 1), reader::number(s, 2), reader::text(s, 3)});
        });
    if (!read) return;
    m.changes_seen = m.changes();
    if (now.size() < ledger_.size() || !std::equal(ledger_.begin(), ledger_.end(), now.begin())) {
        violate("I7: the ledger has forgotten or changed a step");
    }
    check_steps(now);
    ledger_ = std::move(now);
    bool const whole = r.each(
        "SELECT s.resource, s.capacity, coalesce((SELECT sum(t.amount) FROM takes t JOIN entries e "
        "ON e.key = t.key AND e.attempt = t.attempt WHERE t.resource = s.resource AND e.state IN "
        "('COMMITTED', 'DELIVERED', 'REFUNDED')), 0) FROM stock s",
        [&](sqlite3_stmt* s) {
            if (sqlite3_column_int64(s, 2) > sqlite3_column_int64(s, 1)) {
                violate("I1: " + reader::text(s, 0) + " is oversold");
            }
        });
    if (!whole) violate("the ledger cannot be read");
}

void simulated_shop::check_steps(std::vector<ledger_step> const& now) {
    static std::map<std::string, std::set<std::string>> const legal{
        {"", {"PREPARED", "ABORTED"}},
        {"PREPARED", {"COMMITTED", "ABORTED"}},
        {"COMMITTED", {"DELIVERED", "REFUNDED"}},
        {"DELIVERED", {}},
        {"REFUNDED", {}},
        {"ABORTED", {}}};
    for (std::size_t i = ledger_.size(); i < now.size(); ++i) {
        ledger_step const& s = now[i];
        std::vector<std::string>& way = states_[s.key];
        std::string const before = way.empty() ? "" : way.back();
        if (!legal.at(before).contains(s.state)) {
            violate("I2: " + s.key + " goes from " + before + " to " + s.state);
        }
        std::string const line = s.key.substr(0, s.key.find('-')) + s.key.substr(s.key.rfind('-'));
        if (order_of_.try_emplace(line, s.key).first->second != s.key) {
            violate("I2: " + s.key + " was ordered before, as " + order_of_[line]);
        }
        note("ledger: " + s.key + " " + s.state);
        way.push_back(s.state);
        ++result_.steps[s.state];
        std::string const kind = s.reason.substr(0, s.reason.find_first_of("0123456789"));
        if (!s.reason.empty()) result_.reasons.insert(kind);
        constexpr std::string_view unknown = "unknown flavour ";
        if (s.reason.starts_with(unknown) && find(stock_, s.reason.substr(unknown.size()))) {
            violate(s.key + " was refused, but what it orders is sold");
        }
        if (s.reason == "discarded") violate(s.key + " was aborted, but only an attempt was");
    }
    under_way_ = 0;
    for (auto const& [key, way] : states_) {
        if (way.back() == "PREPARED" || way.back() == "COMMITTED") ++under_way_;
    }
}

void simulated_shop::check_journal(member& m) {
    if (!m.node.is_up() || m.changes() == m.changes_seen) return;
    reader r{m, "screen-" + std::to_string(number_of(m.id)) + ".db"};
    std::size_t done = 0;
    bool const read =
        r.each("SELECT journal, line, step, outcome FROM lines", [&](sqlite3_stmt* s) {
            std::string const step = reader::text(s, 2);
            std::string const outcome = reader::text(s, 3);
            std::string const key = make_order_id(number_of(m.id), reader::text(s, 0),
                                                  static_cast<std::uint32_t>(reader::number(s, 1)));
            if (step == "done") ++done;
            auto const at = states_.find(key);
            std::vector<std::string> const way =
                at == states_.end() ? std::vector<std::string>{} : at->second;
            auto const had = [&](char const* state) {
                return std::ranges::find(way, state) != way.end();
            };
            if ((step == "prepared" || step == "ordered" || step == "ready") && !had("PREPARED")) {
                violate("I7: " + key + " is not prepared in the ledger, but was told so");
            }
            if ((step == "committed" || step == "cup") && !had("COMMITTED")) {
                violate("I7: " + key + " is not committed in the ledger, but was told so");
            }
            std::string const last = way.empty() ? "" : way.back();
            if ((outcome.starts_with("delivered") && last != "DELIVERED") ||
                (outcome.starts_with("refunded") && last != "REFUNDED") ||
                (outcome.starts_with("aborted") && last != "ABORTED")) {
                violate("I3: " + key + " was " + outcome + ", the ledger says " + last);
            }
        });
    if (!read) return;
    m.changes_seen = m.changes();
    m.lines_done = done;
}

void simulated_shop::check_tokens(member& m) {
    m.held.clear();
    if (m.shown.ring == nullptr) return;
    for (cluster::token_view const& t : m.shown.ring->tokens()) {
        bool const holds =
            t.state == cluster::token_state::here || t.state == cluster::token_state::taken;
        if (holds) m.held.push_back({t.name, t.place.gen});
        cluster::token_place& last = m.places[t.name];
        if (t.place < last) violate("I4: a robot goes back to an older token of " + t.name);
        last = t.place;
    }
    for (auto& [id, other] : members_) {
        if (other.get() == &m || !other->node.is_up()) continue;
        for (held_token const& t : m.held) {
            if (std::ranges::find(other->held, t) == other->held.end()) continue;
            violate("I4: two robots hold one generation of " + t.name);
        }
    }
}

void simulated_shop::check_leader(member const& m) {
    if (m.shown.followed != nullptr) check_followed(m.id, *m.shown.followed);
    if (m.shown.election == nullptr) return;
    cluster::leadership const now = m.shown.election->current();
    if (!now.leader) return;
    check_followed(m.id, *now.leader);
    if (!now.mine) return;
    cluster::member_run const run{m.id, m.node.starts()};
    if (leaders_.try_emplace(*now.leader, run).first->second != run) {
        violate("I5: an epoch has two leaders");
    }
}

// Also over restarts.
void simulated_shop::check_followed(member_id id, cluster::epoch const& now) {
    if (now < followed_[id]) violate("I5: " + name_of(id) + " follows a lower epoch");
    followed_[id] = now;
}

void simulated_shop::check_queues(member const& m) {
    if (!m.shown.queues) return;
    for (queue_view const& q : m.shown.queues()) {
        if (q.length <= q.bound) continue;
        violate("I8: " + name_of(m.id) + " has " + std::to_string(q.length) + " " + q.name +
                ", the bound is " + std::to_string(q.bound));
    }
}

// When all is quiet: of open orders, and of what tokens show.
std::string simulated_shop::too_much_is_left() {
    for (auto const& [key, way] : states_) {
        if (way.back() == "PREPARED" || way.back() == "COMMITTED") {
            return "I3: " + key + " is still " + way.back();
        }
    }
    std::map<std::string, std::uint64_t> left = ledger_has();
    for (auto& [id, m] : members_) {
        if (m->shown.ring == nullptr) continue;
        for (cluster::token_view const& t : m->shown.ring->tokens()) {
            if (t.state == cluster::token_state::elsewhere) continue;
            auto const c = container::read(t.content);
            if (!c || c->left() <= left[t.name]) continue;
            return "I6: a token shows " + std::to_string(c->left()) + " g of " + t.name +
                   ", the ledger has " + std::to_string(left[t.name]);
        }
    }
    return {};
}

std::map<std::string, std::uint64_t> simulated_shop::ledger_has() {
    std::map<std::string, std::uint64_t> left;
    reader r{*members_[gateway_id], "ledger.db"};
    bool const read =
        r.each("SELECT resource, capacity - committed FROM stock",
               [&](sqlite3_stmt* s) { left[reader::text(s, 0)] = reader::number(s, 1); });
    if (!read) violate("the ledger cannot be read");
    return left;
}

bool simulated_shop::has_cup(reservation const& r) {
    auto const at = members_.find(r.robot.id);
    if (at == members_.end() || !at->second->node.is_up()) return false;
    member& robot = *at->second;
    return robot.node.starts() == r.robot.incarnation && robot.shown.has_cup(r.cup);
}

// What the ledger has, but no token shows, and is reserved for no cup that there is.
std::string simulated_shop::too_little_is_left() {
    std::map<std::string, std::uint64_t> shown;
    for (auto& [id, m] : members_) {
        if (!m->node.is_up() || m->shown.ring == nullptr) continue;
        for (cluster::token_view const& t : m->shown.ring->tokens()) {
            auto c = container::read(t.content);
            if (!c || t.state == cluster::token_state::elsewhere) continue;
            c->settle([&](reservation const& r) {
                return has_cup(r) ? container::fate::put_back : container::fate::used;
            });
            shown[t.name] = std::max(shown[t.name], c->left());
        }
    }
    for (auto const& [name, left] : ledger_has()) {
        if (shown[name] >= left) continue;
        return "I6: of " + std::to_string(left) + " g of " + name + " robots know only " +
               std::to_string(shown[name]);
    }
    return {};
}

}  // namespace rondo::shop::test
