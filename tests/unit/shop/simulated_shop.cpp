#include "simulated_shop.hpp"

#include <spdlog/sinks/base_sink.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "rondo/core/this_task.hpp"
#include "shop/messages.hpp"

namespace rondo::shop::test {

using namespace std::chrono_literals;

namespace {

constexpr clock::duration step_of_checks = 20ms;
constexpr std::uint32_t never_there = 9;  // a screen
constexpr std::chrono::milliseconds beginning_of_2026{1'767'225'600'000};

sim::host host_of(member_id id) noexcept { return 1000 + id; }
endpoint door_of(member_id id) { return {host_of(id), 7}; }

std::string name_of(member_id id) {
    if (id == gateway_id) return "gateway";
    return (is_robot(id) ? "robot " : "screen ") + std::to_string(number_of(id));
}

sim::conditions draw_conditions(sim::random_source& r) {
    constexpr std::array losses{0.0, 0.05, 0.15, 0.3};
    sim::conditions c;
    c.most_delay = r.between(1ms, 30ms);
    c.loss = r.pick(losses);
    c.duplication = r.chance(0.5) ? 0.1 : 0;
    c.straggling = r.chance(0.5) ? 0.05 : 0;
    c.straggle = 400ms;
    return c;
}

// Lines of the log, with the virtual time.
class trace_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  public:
    trace_sink(sim::world& w, std::string who) : world_(w), who_(std::move(who)) {}

  private:
    void sink_it_(spdlog::details::log_msg const& m) override {
        double const s = std::chrono::duration<double>(world_.now().time_since_epoch()).count();
        std::printf("  %8.3f  %-9s %.*s\n", s, who_.c_str(), static_cast<int>(m.payload.size()),
                    m.payload.data());
    }
    void flush_() override {}

    sim::world& world_;
    std::string who_;
};

}  // namespace

char const* describe(fault f) noexcept {
    constexpr std::array names{"crash gateway",   "crash robot",  "crash screen", "crash leader",
                               "crash in write",  "failing sync", "pause",        "one-way cut",
                               "cut from leader", "cut off"};
    static_assert(names.size() == faults);
    return names[static_cast<std::size_t>(f)];
}

struct simulated_shop::member {
    member(simulated_shop& in, member_id who)
        : id(who),
          node(in.world_, in.network_, host_of(who),
               [&in, who](sim::node* self) { return in.live(who, self); }),
          files(node) {}
    ~member() {
        if (node.is_up()) node.crash();
    }
    member(member const&) = delete;
    member& operator=(member const&) = delete;

    // Synced or not: what was told and not synced has to be seen before a crash takes it away.
    std::uint64_t changes() noexcept {
        return node.disk().counts().writes + node.disk().counts().syncs;
    }

    member_id id;
    sim::node node;
    sim::sqlite_vfs files;
    view shown;                      // while it is up
    std::uint64_t changes_seen = 0;  // of its disk
    bool ended = false;              // a screen that is not to be started again
    bool away = false;               // for good
    bool over = false;               // its program is
    std::size_t lines_done = 0;
    time_point starts_at = time_point::max();
    time_point resumes_at = time_point::max();
    std::map<std::string, cluster::token_place> places;  // in this run
    // In this run, as they were seen last.
    cluster::ring_counts ring;
    cluster::election_counts election;
    cluster::peer_counts traffic;
};

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

simulated_shop::simulated_shop(simulation_options chosen)
    : options_(chosen),
      random_(chosen.seed),
      world_({.seed = chosen.seed}),
      network_(world_, draw_conditions(random_)) {
    draw_plan();
    add_member(gateway_id);
    for (std::uint32_t const r : robots_) add_member(robot_id(r));
    for (std::uint32_t const s : screens_) add_member(screen_id(s));
}

simulated_shop::~simulated_shop() = default;

void simulated_shop::draw_plan() {
    constexpr std::array names{"lemon", "mint", "vanilla"};
    std::size_t const flavours = 1 + random_.below(names.size());
    for (std::size_t i = 0; i < flavours; ++i) {
        stock_.push_back({names[i], static_cast<std::int64_t>(300 + random_.below(1500)), 1250});
    }
    scoop_ = random_.between(0ms, 200ms);
    if (random_.chance(0.3)) most_.open_orders = 1 + random_.below(2);
    auto const robots = static_cast<std::uint32_t>(1 + random_.below(4));
    auto const screens = static_cast<std::uint32_t>(1 + random_.below(3));
    for (std::uint32_t r = 0; r < robots; ++r) robots_.push_back(r);
    for (std::uint32_t s = 0; s < screens; ++s) {
        screens_.push_back(s);
        std::vector<order_line>& lines = orders_[screen_id(s)];
        auto const count = static_cast<std::uint32_t>(2 + random_.below(4));
        for (std::uint32_t n = 1; n <= count; ++n) {
            order o{std::to_string(n), "4242", {}};
            std::uint64_t const items = 1 + random_.below(3);
            for (std::uint64_t i = 0; i < items; ++i) {
                // Named: g++ 12 does not draw in the order of a braced list.
                bool const unknown = random_.chance(0.02);
                std::string const name = unknown ? "tar" : stock_[random_.below(flavours)].name;
                auto const grams = static_cast<std::uint32_t>(50 + random_.below(300));
                o.items.push_back({name, grams});
            }
            std::string const text = "order " + std::to_string(n);
            lines.push_back({n, text, std::move(o)});
            ++result_.orders;
        }
    }
}

void simulated_shop::add_member(member_id id) {
    members_[id] = std::make_unique<member>(*this, id);
    members_[id]->starts_at = world_.now() + random_.between(0ms, 300ms);
}

// --- what runs on the nodes ---

place simulated_shop::place_of(member_id id, sim::node* self) {
    place p;
    p.where = self;
    p.network = self;
    p.endpoint_of = door_of;
    p.shared.cluster = options_.seed;
    p.incarnation = self->starts();
    p.random = [self] { return self->random().next(); };
    p.wall_clock = [self] {
        auto const since = self->now().time_since_epoch();
        return beginning_of_2026 + std::chrono::duration_cast<std::chrono::milliseconds>(since);
    };
    p.vfs = members_[id]->files.name();
    p.fail = [this, id, self](std::string const& reason) {
        note(name_of(id) + " ends: " + reason);
        if (!self->is_up()) return;
        self->crash();
    };
    p.cannot_start = p.fail;
    p.log = std::make_shared<spdlog::logger>(name_of(id));
    if (options_.shown) p.log->sinks().push_back(std::make_shared<trace_sink>(world_, name_of(id)));
    if (!options_.shown) p.log->set_level(spdlog::level::off);
    return p;
}

task<void> simulated_shop::live(member_id id, sim::node* self) {
    place const here = place_of(id, self);
    member& m = *members_[id];
    if (id == gateway_id) {
        gateway_options o;
        o.sold = stock_;
        o.rejection = 0.05;
        o.authorisation = 15s;
        o.shown = [&m](view v) { m.shown = std::move(v); };
        co_await run_gateway(here, o);
    } else if (is_robot(id)) {
        robot_options o;
        o.number = number_of(id);
        o.ring = robots_;
        o.tokens.linger = 50ms;
        o.scoop = scoop_;
        o.most = most_;
        o.shown = [&m](view v) { m.shown = std::move(v); };
        co_await run_robot(here, o);
    } else {
        screen_options o;
        o.number = number_of(id);
        o.screens = screens_;
        if (open_again_) o.screens.push_back(never_there);
        o.robots = static_cast<std::uint32_t>(robots_.size());
        o.file = "orders";
        o.orders = orders_[id];
        o.patience.screen_gone = 3s;  // so that orders are taken over from screens that come back
        o.most = most_;
        o.shown = [&m](view v) { m.shown = std::move(v); };
        screen_tally const tally = co_await run_screen(here, o);
        (void)tally;
        m.ended = m.over = self->is_up();  // or it has failed in this turn
    }
}

void simulated_shop::start(member& m) {
    m.starts_at = time_point::max();
    if (m.away || m.ended || (m.node.is_up() && !m.over)) return;
    add_transitions(m);
    m.shown = {};
    m.places.clear();
    if (m.node.is_up()) m.node.crash();
    m.over = false;
    m.node.start();
}

// --- the run ---

simulation_result simulated_shop::run() {
    auto const count = 1 + static_cast<int>(random_.below(8));
    for (int i = 0; i < count; ++i) {
        run_for(random_.between(0ms, i == 0 || random_.chance(0.6) ? 500ms : 3s));
        for (int wait = 0; wait < 50 && under_way_ == 0; ++wait) run_for(step_of_checks);
        if (i < options_.most_faults) apply_fault();
    }
    run_for(random_.between(0ms, 2s));
    put_right();
    bool const farewell_follows = !all_ended();
    time_point const bound = world_.now() + options_.bound;
    while (!all_ended() && result_.violation.empty()) {
        if (world_.now() >= bound) {
            violate("I9: not every order has ended in time");
            break;
        }
        run_for(100ms);
    }
    for (int wait = 0; farewell_follows && wait < 100 && !all_closed(); ++wait) run_for(100ms);
    // Who has died with the last fault may be missed only when the leader has gone.
    bool const all_there = result_.stayed_away == 0;
    if (farewell_follows && all_there) expect_nothing(too_much_is_left());
    // The shop opens again, and waits for a screen that does not come: so that there is a leader,
    // which tells the robots what is left.
    note("the shop opens again");
    open_again_ = true;
    for (auto& [id, m] : members_) {
        if (is_screen(id)) m->over = true;
        m->ended = false;
        start(*m);
    }
    run_for(4s);
    if (all_there) expect_nothing(too_much_is_left());
    for (time_point const end = world_.now() + options_.bound; result_.violation.empty();) {
        std::string wrong = too_much_is_left();
        if (wrong.empty()) wrong = too_little_is_left();
        if (wrong.empty()) break;
        if (world_.now() >= end) expect_nothing(std::move(wrong));
        run_for(100ms);
    }
    for (auto& [id, m] : members_) add_transitions(*m);
    result_.took = world_.now().time_since_epoch();
    result_.trace = world_.trace_hash();
    return result_;
}

void simulated_shop::run_for(clock::duration span) {
    time_point const end = world_.now() + span;
    while (world_.now() < end && result_.violation.empty()) {
        for (auto& [id, m] : members_) {
            if (world_.now() >= m->starts_at) start(*m);
            if (world_.now() >= m->resumes_at) {
                m->resumes_at = time_point::max();
                if (m->node.is_paused()) m->node.resume();
            }
            // One that ended by itself, as its disk failed, is started again by who looks after it.
            bool const waits = m->starts_at != time_point::max();
            if (m->node.is_up() || waits || m->away) continue;
            m->shown = {};
            m->starts_at = world_.now() + 500ms;
        }
        (void)world_.run_for(std::min<clock::duration>(step_of_checks, end - world_.now()));
        check();
    }
}

simulated_shop::member& simulated_shop::pick(bool (*of_kind)(member_id)) {
    std::vector<member*> fitting;
    for (auto& [id, m] : members_) {
        if (of_kind(id)) fitting.push_back(m.get());
    }
    return *fitting[random_.below(fitting.size())];
}

simulated_shop::member* simulated_shop::leading() {
    for (auto& [id, m] : members_) {
        if (m->node.is_up() && m->shown.election != nullptr && m->shown.election->leads())
            return m.get();
    }
    return nullptr;
}

void simulated_shop::crash(member& m) {
    if (m.node.is_up()) m.node.crash();
    m.shown = {};
    m.starts_at = world_.now() + random_.between(0ms, 3s);
}

void simulated_shop::apply_fault() {
    auto const f = static_cast<fault>(random_.below(faults));
    auto const anybody = [](member_id) { return true; };
    member* m = nullptr;
    switch (f) {
        case fault::crash_gateway:
            m = members_[gateway_id].get();
            break;
        case fault::crash_robot:
            m = &pick(is_robot);
            break;
        case fault::crash_screen:
            m = &pick(is_screen);
            break;
        case fault::crash_leader:
        case fault::cut_from_leader:
            m = leading();
            break;
        default:
            m = &pick(anybody);
    }
    if (m == nullptr || !m->node.is_up()) return;
    note(std::string{describe(f)} + ": " + name_of(m->id));
    ++result_.happened[f];
    if (under_way_ > 0) result_.counts = true;
    switch (f) {
        case fault::crash_in_write:
            m->node.crash_in_write(1 + random_.below(12));
            break;
        case fault::sync_fails:
            m->node.disk().set_sync_failure(0.3);
            break;
        case fault::pause:
            if (!m->node.is_paused()) m->node.pause();
            m->resumes_at = world_.now() + random_.between(100ms, 6s);
            break;
        case fault::cut_one_way:
            network_.cut(host_of(m->id), host_of(pick(anybody).id));
            break;
        case fault::cut_from_leader:
            network_.cut(host_of(m->id), host_of(pick(is_screen).id));
            break;
        case fault::cut_off:
            for (auto& [id, other] : members_) {
                if (id == m->id) continue;
                network_.cut(host_of(m->id), host_of(id));
                network_.cut(host_of(id), host_of(m->id));
            }
            break;
        default:
            crash(*m);
    }
}

// In some runs. One is always left, and of screens one that is not at its end.
void simulated_shop::leave_some_away(bool (*of_kind)(member_id)) {
    if (!random_.chance(0.3)) return;
    std::size_t there = 0;
    for (auto& [id, m] : members_) there += of_kind(id) && !m->ended ? 1U : 0U;
    for (auto& [id, m] : members_) {
        if (!of_kind(id) || m->ended || there <= 1 || !random_.chance(0.5)) continue;
        note(name_of(id) + " stays away");
        crash(*m);
        m->starts_at = time_point::max();
        m->away = true;
        --there;
        ++result_.stayed_away;
    }
}

void simulated_shop::put_right() {
    note("everything is put right");
    leave_some_away(is_robot);
    leave_some_away(is_screen);
    network_.heal();
    network_.set(sim::conditions{});
    for (auto& [id, m] : members_) {
        m->node.crash_in_write(0);
        m->node.disk().set_sync_failure(0);
        if (m->node.is_paused()) m->node.resume();
        start(*m);
    }
}

// Of screens that stay away: as far as they had come. Nobody is there to end that when all others
// have said farewell; then it is left to who opens the shop again.
bool simulated_shop::all_ended() {
    for (auto& [id, m] : members_) {
        if (!is_screen(id)) continue;
        if (m->away ? !is_resolved(id) && !all_closed() : m->lines_done < orders_[id].size()) {
            return false;
        }
    }
    return true;
}

bool simulated_shop::is_resolved(member_id screen) const {
    return std::ranges::none_of(states_, [&](auto const& order) {
        std::string const& last = order.second.back();
        return screen_of(order.first) == number_of(screen) &&
               (last == "PREPARED" || last == "COMMITTED");
    });
}

bool simulated_shop::all_closed() const {
    for (auto const& [id, m] : members_) {
        if (is_screen(id) && !m->away && !m->over) return false;
    }
    return true;
}

// What is to have happened somewhere in many runs.
void simulated_shop::add_transitions(member& m) {
    cluster::ring_counts const r = std::exchange(m.ring, {});
    cluster::election_counts const e = std::exchange(m.election, {});
    cluster::peer_counts const p = std::exchange(m.traffic, {});
    std::pair<char const*, std::uint64_t> const seen[]{
        {"token passed", r.passed},
        {"token repeated", r.repeated},
        {"token made", r.made},
        {"token taken away", r.lost},
        {"robot suspected", r.suspected},
        {"handshake", r.handshakes},
        {"ring committed", r.commits},
        {"join", r.joins},
        {"freeze timed out", r.freezes_timed_out},
        {"stale ring", r.stale},
        {"election", e.elections},
        {"led", e.led},
        {"stepped down", e.stepped_down},
        {"stale leader", e.stale},
        {"request repeated", p.repeated},
        {"late answer", p.unasked},
        {"sent again", p.sent_again},
    };
    for (auto const& [what, times] : seen) result_.transitions[what] += times;
}

// --- invariants ---

void simulated_shop::violate(std::string what) {
    if (!result_.violation.empty()) return;
    note("VIOLATION: " + what);
    result_.violation = std::move(what);
}

void simulated_shop::expect_nothing(std::string what) {
    if (!what.empty()) violate(std::move(what));
}

void simulated_shop::check() {
    for (auto& [id, m] : members_) {
        if (!m->node.is_up()) continue;
        if (m->shown.ring != nullptr) m->ring = m->shown.ring->counts();
        if (m->shown.election != nullptr) m->election = m->shown.election->counts();
        if (m->shown.traffic != nullptr) m->traffic = *m->shown.traffic;
    }
    check_ledger();
    member& gateway = *members_[gateway_id];
    bool const known = gateway.node.is_up() && gateway.changes_seen == gateway.changes();
    for (auto& [id, m] : members_) {
        if (is_screen(id) && known) check_journal(*m);
    }
    check_tokens();
    check_leaders();
    check_queues();
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

void simulated_shop::check_tokens() {
    std::set<std::pair<std::string, cluster::generation>> held;
    for (auto& [id, m] : members_) {
        if (!m->node.is_up() || m->shown.ring == nullptr) continue;
        for (cluster::token_view const& t : m->shown.ring->tokens()) {
            bool const holds =
                t.state == cluster::token_state::here || t.state == cluster::token_state::taken;
            if (holds && !held.insert({t.name, t.place.gen}).second) {
                violate("I4: two robots hold one generation of " + t.name);
            }
            cluster::token_place& last = m->places[t.name];
            if (t.place < last) violate("I4: a robot goes back to an older token of " + t.name);
            last = t.place;
        }
    }
}

void simulated_shop::check_leaders() {
    for (auto& [id, m] : members_) {
        if (!m->node.is_up()) continue;
        if (m->shown.followed != nullptr) check_followed(id, *m->shown.followed);
        if (m->shown.election == nullptr) continue;
        cluster::leadership const now = m->shown.election->current();
        if (!now.leader) continue;
        check_followed(id, *now.leader);
        if (!now.mine) continue;
        cluster::member_run const run{id, m->node.starts()};
        if (leaders_.try_emplace(*now.leader, run).first->second != run) {
            violate("I5: an epoch has two leaders");
        }
    }
}

// Also over restarts.
void simulated_shop::check_followed(member_id id, cluster::epoch const& now) {
    if (now < followed_[id]) violate("I5: " + name_of(id) + " follows a lower epoch");
    followed_[id] = now;
}

void simulated_shop::check_queues() {
    for (auto& [id, m] : members_) {
        if (!m->node.is_up() || !m->shown.queues) continue;
        for (queue_view const& q : m->shown.queues()) {
            if (q.length <= q.bound) continue;
            violate("I8: " + name_of(id) + " has " + std::to_string(q.length) + " " + q.name +
                    ", the bound is " + std::to_string(q.bound));
        }
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

void simulated_shop::note(std::string const& what) const {
    if (options_.shown) std::printf("  %8.3f  %s\n", seconds(), what.c_str());
}

double simulated_shop::seconds() const {
    return std::chrono::duration<double>(world_.now().time_since_epoch()).count();
}

int shortest_schedule(std::uint64_t seed, int most) {
    for (int n = 0; n < most; ++n) {
        simulated_shop s{{.seed = seed, .most_faults = n}};
        if (!s.run().violation.empty()) return n;
    }
    return most;
}

}  // namespace rondo::shop::test
