// Invariants
//   I1  a token is held only inside one scope of OrderHandler, which waits for no other one there.
//   I2  a token that has been here shows reservations of runs that are in the ring, and of this one
//       only those of cups that it makes or holds. Whoever has died, and whatever older copy the
//       token was made anew from, nothing stays reserved for a cup that is not there.
//   I3  what was paid for is used when the cup is fetched; else a reservation is put back. Then the
//       attempt cannot be charged any more: it was aborted before it was ready, a screen discards
//       it because the ledger has aborted or refunded the order, the leader for the same reason or
//       because the screen has another one made; the screen orders something else, which it does
//       when that has ended; or its card is no longer authorised. Or nobody knows: its robot is
//       gone.
//       If that cup was paid for, or if the robot comes back with it, the token shows too much for
//       a while; the ledger does not sell it.
#include "robot.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "container.hpp"
#include "journal.hpp"
#include "messages.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sync/notify.hpp"

namespace rondo::shop {

namespace {

using namespace std::chrono_literals;
using cluster::answer;
using cluster::message;

constexpr clock::duration housekeeping = 250ms;

// An attempt at an order, from when it was asked for.
struct made_cup {
    enum class state : std::uint8_t { wanted, ready, aborted, fetched };

    std::uint64_t number = 0;
    std::vector<item> items;
    state now = state::wanted;
    bool discarded = false;
    std::vector<cluster::take> takes;
    std::string reason;
    time_point since{};            // it was asked for; then since it was made, or aborted
    std::uint64_t last_asked = 0;  // the request that waits for it
};

// What a leader has told of the stock.
class shelf {
  public:
    explicit shelf(clock::duration age) : age_(age) {}

    void learn(std::vector<level> const& levels, time_point now) {
        if (levels.empty()) return;
        levels_ = levels;
        since_ = now;
    }
    bool knows_any() const noexcept { return !levels_.empty(); }
    std::vector<level> const& levels() const noexcept { return levels_; }
    std::optional<std::uint64_t> ledger_has(std::string_view flavour) const {
        for (level const& l : levels_) {
            if (l.flavour == flavour) return l.left;
        }
        return std::nullopt;
    }
    // What the ledger has only falls: to clamp to what it had is right at any time, but to top up
    // would bring back what was sold since.
    void correct(std::string_view flavour, container& c, time_point now) const {
        std::optional<std::uint64_t> const has = ledger_has(flavour);
        if (!has) return;
        c.clamp(*has);
        if (now - since_ <= age_) c.top_up(*has);
    }

  private:
    clock::duration age_;
    std::vector<level> levels_;
    time_point since_{};
};

class robot {
  public:
    robot(place const& here, robot_options const& chosen, cluster::database& storage)
        : here_(here),
          options_(chosen),
          storage_(storage),
          epochs_(storage, here.fail),
          highest_(epochs_.load()),
          self_{robot_id(chosen.number), here.incarnation},
          shelf_(2 * chosen.patience.levels_age),
          me_(
              here.bind(robot_id(chosen.number)), here.shared, self_,
              [this](message m) { return RobotReceiver(std::move(m)); }, here.peer_options()),
          ring_(
              me_, members(),
              [this](std::vector<cluster::token> lost, std::vector<std::string> held) {
                  return renew(std::move(lost), std::move(held));
              },
              ring_options(),
              [this](std::string const& name, cluster::token_place const&,
                     std::vector<std::byte>& content) { on_arrival(name, content); }) {}

    task<void> run() {
        environment const& env = co_await this_environment();
        timers_ = &env.timers();
        if (options_.shown) {
            options_.shown({[this] { return queues(); }, &me_.counts(), &ring_, nullptr, &highest_,
                            [this](std::uint64_t n) { return has_cup(n); }});
        }
        auto receiving = spawn(*here_.where, reporting(me_.run()));
        auto inspecting = spawn(*here_.where, reporting(RobotInspector()));
        co_await OrderHandler();
    }

  private:
    using key = std::pair<order_id, std::uint64_t>;

    cluster::ring_options ring_options() const {
        cluster::ring_options o = options_.tokens;
        o.jitter_seed = static_cast<std::uint32_t>(here_.random());
        return o;
    }
    std::vector<queue_view> queues() const {
        std::vector<queue_view> all = queues_of(me_);
        all.push_back({"cups", cups_.size(), options_.most.cups});
        return all;
    }
    std::vector<cluster::address> members() const {
        std::vector<cluster::address> all;
        for (std::uint32_t const r : options_.ring) all.push_back(here_.address_of(robot_id(r)));
        return all;
    }
    time_point now() const noexcept { return timers_ != nullptr ? timers_->now() : time_point{}; }

    // --- RobotReceiver ---

    task<answer> RobotReceiver(message m) {
        if (cluster::token_ring::serves(m.type)) co_return ring_.serve(m);
        switch (static_cast<request>(m.type)) {
            case request::dispatch: {
                answer const made = co_await on_dispatch(std::move(m));
                co_return made;
            }
            case request::newleader:
                co_return on_new_leader(m);
            case request::recover:
                co_return admit(m.epoch) ? answer_with(reply::ready, held()) : stale();
            case request::keepalive:
                co_return admit(m.epoch) ? answer_with(reply::yes, presence{current_, false})
                                         : stale();
            case request::deliver:
                co_return on_deliver(m);
            case request::discard:
                co_return on_discard(m);
            default:
                co_return answer_with(reply::nonsense);
        }
    }

    answer stale() const { return answer_with(reply::stale, known_epoch{highest_}); }

    bool admit(cluster::epoch e) {
        if (e < highest_) return false;
        if (e > highest_) {
            epochs_.save(e);
            highest_ = e;
            here_.log->info("screen {} leads, in term {}", number_of(e.leader), e.term);
        }
        return true;
    }

    answer on_new_leader(message const& m) {
        if (!admit(m.epoch)) return stale();
        auto const known = unpack<levels_known>(m.body);
        if (!known) return answer_with(reply::nonsense);
        learn(known->levels);
        return answer_with(reply::ack);
    }

    // A flavour that no token is known of needs one.
    void learn(std::vector<level> const& levels) {
        shelf_.learn(levels, now());
        std::vector<cluster::token_view> const tokens = ring_.tokens();
        for (level const& l : levels) {
            bool there = false;
            for (cluster::token_view const& t : tokens) there = there || t.name == l.flavour;
            if (there || now() < next_repair_ || !ring_.has_room_for(l.flavour)) continue;
            next_repair_ = now() + 1s;
            ring_.repair();
        }
    }

    holding held() const {
        holding h;
        for (auto const& [k, c] : cups_) {
            bool const has = c.now == made_cup::state::wanted || c.now == made_cup::state::ready;
            if (has && h.held.size() < most_held) h.held.push_back({k.first, k.second});
        }
        return h;
    }

    task<answer> on_dispatch(message m) {
        if (!admit(m.epoch)) co_return stale();
        auto wanted = unpack<order_request>(m.body);
        if (!wanted) co_return answer_with(reply::nonsense);
        learn(wanted->levels);
        throw_away_cups_before(wanted->oid);
        key const k{wanted->oid, wanted->attempt};
        if (!cups_.contains(k)) {
            bool const ready = !current_ && shelf_.knows_any() && make_room();
            if (!ready) co_return answer_with(reply::busy);
            made_cup c;
            c.number = ++last_cup_;
            c.items = std::move(wanted->items);
            c.since = now();
            cups_.emplace(k, std::move(c));
            current_ = attempt_at{k.first, k.second};
            wanted_.notify_one();
        }
        // Only the last request waits: who asks again does not wait for the one before any more,
        // and a peer serves only so many at once.
        std::uint64_t const mine = ++requests_;
        cups_.at(k).last_asked = mine;
        made_.notify_waiters();
        for (;;) {
            auto const at = cups_.find(k);
            if (at == cups_.end() || at->second.last_asked != mine) {
                co_return answer_with(reply::busy);
            }
            made_cup const& c = at->second;
            if (c.now == made_cup::state::aborted) {
                co_return answer_with(reply::abort, why{c.reason});
            }
            if (c.now != made_cup::state::wanted) {
                co_return answer_with(reply::ready, cup{k.second, options_.number, c.takes});
            }
            co_await made_.notified();
        }
    }

    // Those that nobody needs any more make room.
    bool make_room() {
        if (cups_.size() < options_.most.cups) return true;
        auto oldest = cups_.end();
        for (auto at = cups_.begin(); at != cups_.end(); ++at) {
            bool const over = at->second.now == made_cup::state::fetched ||
                              at->second.now == made_cup::state::aborted;
            if (over && (oldest == cups_.end() || at->second.since < oldest->second.since)) {
                oldest = at;
            }
        }
        if (oldest == cups_.end()) return false;
        cups_.erase(oldest);
        return true;
    }

    answer on_deliver(message const& m) {
        auto const read = unpack<attempt_at>(m.body);
        if (!read) return answer_with(reply::nonsense);
        auto const at = cups_.find({read->oid, read->attempt});
        if (at == cups_.end()) return answer_with(reply::gone);
        made_cup& c = at->second;
        if (c.now == made_cup::state::ready) c.now = made_cup::state::fetched;
        return answer_with(c.now == made_cup::state::fetched ? reply::ack : reply::gone);
    }

    // By the leader it must be the one of now; screens do not say who leads.
    answer on_discard(message const& m) {
        bool const by_leader = m.epoch != cluster::epoch{};
        if (by_leader && !admit(m.epoch)) return stale();
        auto const read = unpack<attempt_at>(m.body);
        if (!read) return answer_with(reply::nonsense);
        auto const at = cups_.find({read->oid, read->attempt});
        if (at != cups_.end()) throw_away(at, "discarded");
        return answer_with(reply::ack);
    }

    // One that is being made goes when it is made. One that was fetched stays, as what was in it is
    // used, also if its screen does not know that it has it. Says which one is the next.
    std::map<key, made_cup>::iterator throw_away(std::map<key, made_cup>::iterator at,
                                                 std::string_view reason) {
        made_cup& c = at->second;
        if (c.now == made_cup::state::wanted) c.discarded = true;
        if (c.now == made_cup::state::ready) waste(at->first, reason);
        bool const stays = c.now == made_cup::state::wanted || c.now == made_cup::state::fetched;
        return stays ? std::next(at) : cups_.erase(at);  // I3
    }

    // A screen has one order at a time, in the order of its file: what it had before has ended.
    void throw_away_cups_before(order_id const& oid) {
        for (auto at = cups_.begin(); at != cups_.end();) {
            bool const over = is_before(at->first.first, oid);
            at = over ? throw_away(at, "its order has ended") : std::next(at);
        }
    }

    void waste(key const& k, std::string_view reason) {
        storage_.run("INSERT INTO waste VALUES (?, ?, ?)", k.first, k.second, reason);
        if (storage_.failed()) here_.fail(storage_.failure());
    }

    // --- OrderHandler ---

    task<void> OrderHandler() {
        for (;;) {
            if (!current_) {
                auto const woken = co_await wanted_.notified_for(housekeeping);
                (void)woken;
            }
            if (current_) {
                key const wanted{current_->oid, current_->attempt};
                co_await make(wanted);
                current_.reset();
                made_.notify_waiters();
            }
            co_await tidy_up();
        }
    }

    task<void> make(key k) {
        std::map<std::string, std::uint32_t> grams;
        for (item const& i : cups_.at(k).items) grams[i.flavour] += i.grams;
        std::string refused;
        for (auto const& [flavour, amount] : grams) {
            if (!shelf_.ledger_has(flavour)) {
                refused = "unknown flavour " + flavour;
                break;
            }
            if (!ring_.has_room_for(flavour)) {
                refused = "robots have no room for " + flavour;
                break;
            }
            std::optional<std::string> const problem = co_await scoop(k, flavour, amount);
            if (problem) {
                refused = *problem;
                break;
            }
        }
        made_cup& c = cups_.at(k);
        c.since = now();
        if (c.discarded) {
            // Not aborted: who asks for it once more gets it made, and no refusal of the order.
            here_.log->info("{} is discarded", k.first);
            cups_.erase(k);  // I3
        } else if (refused.empty()) {
            c.now = made_cup::state::ready;
            here_.log->info("{} is ready", k.first);
        } else {
            c.takes.clear();
            c.now = made_cup::state::aborted;  // I3
            c.reason = refused;
            here_.log->info("{} is aborted: {}", k.first, refused);
        }
    }

    // Nothing, or why not. A token that has no room for another cup is waited for again: there may
    // be some when this robot or another one has thrown an old one away.
    task<std::optional<std::string>> scoop(key k, std::string flavour, std::uint32_t grams) {
        for (;;) {
            {
                cluster::held_token token = co_await ring_.take(flavour);  // I1
                container::taken const taken = reserve(k, flavour, grams, token);
                if (taken == container::taken::not_enough) {
                    co_return "not enough " + flavour + " is left";
                }
                if (taken == container::taken::yes) {
                    if (options_.scoop > clock::duration{}) co_await sleep_for(options_.scoop);
                    co_return std::nullopt;
                }
            }
            throw_away_old_cups();
            if (cups_.at(k).discarded) co_return "discarded";
            co_await sleep_for(20ms);
        }
    }

    container::taken reserve(key const& k, std::string const& flavour, std::uint32_t grams,
                             cluster::held_token& token) {
        container c = container::read(token.content()).value_or(container{});
        update(flavour, c);
        made_cup& made = cups_.at(k);
        container::taken const taken =
            c.reserve({self_, made.number, grams}, options_.most.reserved);
        if (taken == container::taken::yes) {
            made.takes.push_back({flavour, grams, token.place().gen.count, token.place().hop});
        }
        token.content() = c.write();
        return taken;
    }

    // What a token shows is brought up to date whenever it is here.
    void update(std::string const& flavour, container& c) const {
        c.settle([this](reservation const& r) { return fate_of(r); });
        shelf_.correct(flavour, c, now());
    }

    container::fate fate_of(reservation const& r) const {
        using enum container::fate;
        if (r.robot != self_) return ring_.is_in_ring(r.robot) ? kept : put_back;  // I2
        made_cup const* const c = find_cup(r.cup);
        if (c == nullptr || c->now == made_cup::state::aborted) return put_back;  // I3
        return c->now == made_cup::state::fetched ? used : kept;
    }

    made_cup const* find_cup(std::uint64_t number) const {
        for (auto const& [k, c] : cups_) {
            if (c.number == number) return &c;
        }
        return nullptr;
    }
    bool has_cup(std::uint64_t number) const {
        made_cup const* const c = find_cup(number);
        return c != nullptr &&
               (c->now == made_cup::state::wanted || c->now == made_cup::state::ready);
    }

    // Between orders: tokens that stay here are brought up to date, old cups are thrown away.
    task<void> tidy_up() {
        say_ring();
        for (cluster::token_view const& t : ring_.tokens()) {
            bool const stays = ring_.members().size() <= 1;
            if (!stays || t.state != cluster::token_state::here) continue;
            cluster::held_token token = co_await ring_.take(t.name);
            on_arrival(t.name, token.content());
        }
        throw_away_old_cups();
    }

    void throw_away_old_cups() {
        time_point const too_old = now() - options_.patience.cup_kept;
        for (auto at = cups_.begin(); at != cups_.end();) {
            if (at->second.since > too_old || at->second.now == made_cup::state::wanted) {
                ++at;
                continue;
            }
            if (at->second.now == made_cup::state::ready) waste(at->first, "nobody fetched it");
            at = cups_.erase(at);
        }
    }

    void on_arrival(std::string const& name, std::vector<std::byte>& content) {
        std::optional<container> c = container::read(content);
        if (!c) return;
        update(name, *c);
        content = c->write();
    }

    // --- RobotInspector ---

    task<void> RobotInspector() { co_await ring_.run(); }

    void say_ring() {
        std::vector<member_id> now = ring_.members();
        if (now == last_ring_) return;
        last_ring_ = std::move(now);
        std::string text;
        for (member_id const m : last_ring_) {
            if (!text.empty()) text += ':';
            text += std::to_string(number_of(m));
        }
        here_.log->info("the ring is {}", text.empty() ? "broken" : text);
    }

    // The contents of tokens that nobody has: from the best copy, clamped to what the ledger has.
    // They are brought up to date (on_arrival) when it is clear who is in the ring.
    task<std::vector<cluster::token>> renew(std::vector<cluster::token> lost,
                                            std::vector<std::string> held) {
        std::vector<cluster::token> made;
        for (cluster::token& t : lost) {
            std::optional<container> c = container::read(t.content);
            std::optional<std::uint64_t> const has = shelf_.ledger_has(t.name);
            if (!c) c.emplace(has.value_or(0));
            if (has) c->clamp(*has);
            here_.log->info("the token of {} is made anew with {} g", t.name, c->left());
            held.push_back(t.name);
            made.push_back({std::move(t.name), c->write()});
        }
        for (level const& l : shelf_.levels()) {
            bool there = false;
            for (std::string const& name : held) there = there || name == l.flavour;
            if (there) continue;
            here_.log->info("the token of {} is made with {} g", l.flavour, l.left);
            made.push_back({l.flavour, container{l.left}.write()});
        }
        co_return made;
    }

    place const& here_;
    robot_options const& options_;
    cluster::database& storage_;
    durable_epoch epochs_;
    cluster::epoch highest_;
    cluster::member_run self_;
    shelf shelf_;
    timer_service* timers_ = nullptr;
    std::map<key, made_cup> cups_;
    std::optional<attempt_at> current_;
    std::uint64_t last_cup_ = 0;
    std::uint64_t requests_ = 0;  // for cups
    time_point next_repair_{};
    std::vector<member_id> last_ring_;
    notify wanted_;  // for OrderHandler
    notify made_;    // for those who wait for a cup
    cluster::peer me_;
    cluster::token_ring ring_;
};

}  // namespace

task<void> run_robot(place here, robot_options chosen) {
    auto opened = cluster::database::open(
        here.file("robot-" + std::to_string(chosen.number) + ".db"), here.vfs);
    if (!opened) {
        here.fail(opened.error());
        co_return;
    }
    opened->run("CREATE TABLE IF NOT EXISTS waste(oid TEXT, attempt INTEGER, reason TEXT)");
    robot r{here, chosen, *opened};
    here.log->info("robot {} listens at {}", chosen.number,
                   to_text(here.endpoint_of(robot_id(chosen.number))));
    co_await r.run();
}

}  // namespace rondo::shop
