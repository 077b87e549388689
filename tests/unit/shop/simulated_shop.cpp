#include "simulated_shop.hpp"

#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "shop/messages.hpp"
#include "simulated_member.hpp"

namespace rondo::shop::test {

using namespace std::chrono_literals;

namespace {

constexpr clock::duration short_while = 20ms;
constexpr std::uint32_t never_there = 9;  // a screen
constexpr std::chrono::milliseconds beginning_of_2026{1'767'225'600'000};

endpoint door_of(member_id id) { return {host_of(id), 7}; }

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

simulated_shop::simulated_shop(simulation_options chosen)
    : options_(chosen),
      random_(chosen.seed),
      world_({.seed = chosen.seed,
              .after_turn = [this](executor const& whose) { after_turn_of(whose); }}),
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
    if (random_.chance(0.3)) {  // containers are full now and then, but not for long
        most_.reserved = 1 + random_.below(2);
        authorisation_ = 5s;
        patience_.cup_kept = 6s;
    }
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
        o.authorisation = authorisation_;
        o.shown = [&m](view v) { m.shown = std::move(v); };
        co_await run_gateway(here, o);
    } else if (is_robot(id)) {
        robot_options o;
        o.number = number_of(id);
        o.ring = robots_;
        o.tokens.linger = 50ms;
        o.scoop = scoop_;
        o.patience = patience_;
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
        o.patience = patience_;
        o.patience.screen_gone = 500ms;  // so that orders are taken over of those who come back
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
    m.held.clear();
    if (m.node.is_up()) m.node.crash();
    m.over = false;
    m.node.start();
}

// --- the run ---

simulation_result simulated_shop::run() {
    auto const count = 1 + static_cast<int>(random_.below(8));
    for (int i = 0; i < count; ++i) {
        run_for(random_.between(0ms, i == 0 || random_.chance(0.6) ? 500ms : 3s));
        for (int wait = 0; wait < 50 && under_way_ == 0; ++wait) run_for(short_while);
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
        (void)world_.run_for(std::min<clock::duration>(short_while, end - world_.now()));
        // A journal can be compared only while the ledger can be read: that may be after the last
        // turn of its screen.
        for (auto& [id, m] : members_) check(*m);
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
