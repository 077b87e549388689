// Invariants
//   I1  a step is journalled before anything is sent that belongs to it.
//   I2  once a cup is `ready` its attempt is the only one that is ever committed: the screen does
//       not order again before the gateway has decided.
//   I3  `delivered` in the ledger is the handing over: the screen has the cup (`cup` is in the
//       journal) before it asks for that, and hands it over only if it is answered so.
#include "screen.hpp"

#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "journal.hpp"
#include "leader.hpp"
#include "messages.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"

namespace rondo::shop {

namespace {

using namespace std::chrono_literals;
using cluster::answer;
using cluster::message;
using cluster::standing;

// As the journal has it.
std::string outcome_of(std::optional<ending> const& e) {
    std::string const reason = e ? e->reason : "refused";
    if (e && e->at == standing::delivered) return "delivered";
    if (e && e->at == standing::refunded) return "refunded: " + reason;
    return "aborted: " + reason;
}

class screen {
  public:
    screen(place const& here, screen_options const& chosen, journal& book)
        : here_(here),
          options_(chosen),
          journal_(book),
          epochs_(book.storage(), here.fail),
          me_(
              here.bind(screen_id(chosen.number)), here.shared,
              {screen_id(chosen.number), here.incarnation},
              [this](message m) { return serve(std::move(m)); }, here.peer_options()),
          election_(me_, peers(), epochs_, chosen.election) {}

    task<screen_tally> run() {
        if (options_.shown) {
            options_.shown({[this] { return queues(); }, &me_.counts(), nullptr, &election_});
        }
        auto receiving = spawn(*here_.where, reporting(me_.run()));
        auto electing = spawn(*here_.where, reporting(election_.run()));
        auto leading = spawn(*here_.where, reporting(lead_when_elected()));
        co_await end_what_is_left_behind();
        auto forgetting = spawn(*here_.where, reporting(end_what_is_forgotten()));
        for (order_line const& line : options_.orders) {
            co_await serve_customer(&line);
        }
        here_.log->info("at the end of {}", options_.file);
        auto const forgotten = co_await forgetting.join();
        done_ = true;
        co_await wait_for_others();
        over_ = true;
        auto const led = co_await leading.join();
        electing.request_stop();
        auto const elected = co_await electing.join();
        if (options_.shown) options_.shown({});
        here_.log->info("{}", to_text(me_.counts()));
        me_.close();
        auto const received = co_await receiving.join();
        (void)led, (void)elected, (void)received, (void)forgotten;
        co_return tally_;
    }

  private:
    using ask_result = std::expected<answer, cluster::ask_error>;

    std::vector<queue_view> queues() const {
        std::vector<queue_view> all = queues_of(me_);
        if (leader_ == nullptr) return all;
        for (queue_view const& q : leader_->queues()) all.push_back(q);
        return all;
    }
    std::vector<cluster::address> peers() const {
        std::vector<cluster::address> all;
        for (std::uint32_t const s : options_.screens) {
            all.push_back(here_.address_of(screen_id(s)));
        }
        return all;
    }

    // --- what others ask ---

    task<answer> serve(message m) {
        if (cluster::election::serves(m.type)) co_return election_.serve(m);
        switch (static_cast<request>(m.type)) {
            case request::order: {
                answer const made = co_await take_order(std::move(m));
                co_return made;
            }
            case request::keepalive:
                co_return answer_with(reply::yes, presence{waiting_for_, done_});
            case request::recover:
                co_return on_recover(m);
            default:
                co_return answer_with(reply::nonsense);
        }
    }

    answer stale() const { return answer_with(reply::stale, known_epoch{election_.highest()}); }

    answer on_recover(message const& m) {
        if (!election_.admit(m.epoch)) return stale();
        holding h;
        if (waiting_for_) h.held.push_back(*waiting_for_);
        return answer_with(reply::ready, h);
    }

    // As the leader. Answered when a robot is ready, or has refused.
    task<answer> take_order(message m) {
        auto wanted = unpack<order_request>(m.body);
        if (!wanted) co_return answer_with(reply::nonsense);
        if (leader_ == nullptr || m.epoch != leader_->epoch()) co_return stale();
        auto ends = oneshot::channel<order_outcome>();
        leader_->order({*std::move(wanted), std::move(ends.sender)});
        auto const outcome = co_await ends.receiver.recv();
        if (!outcome) co_return stale();
        switch (outcome->kind) {
            case reply::ready:
                co_return answer_with(reply::ready, outcome->made);
            case reply::abort:
                co_return answer_with(reply::abort, why{outcome->reason});
            case reply::stale:
                co_return stale();
            default:
                co_return answer_with(reply::busy);
        }
    }

    task<void> lead_when_elected() {
        auto changes = election_.subscribe();
        while (!over_) {
            cluster::leadership const now = election_.current();
            if (!now.mine) {
                auto const changed = co_await changes.changed_for(200ms);
                (void)changed;
                continue;
            }
            here_.log->info("screen {} leads, in term {}", options_.number, now.leader->term);
            leader mine{here_,
                        me_,
                        election_,
                        *now.leader,
                        options_.patience,
                        options_.most,
                        options_.screens,
                        options_.robots};
            leader_ = &mine;
            while (!over_ && election_.current() == now) {
                auto const changed = co_await changes.changed_for(200ms);
                (void)changed;
            }
            leader_ = nullptr;
            co_await mine.stop();
            if (!over_) here_.log->info("screen {} leads no more", options_.number);
        }
    }

    // --- its customers ---

    // I1: from here on the step is on the disk.
    void write(order_line const& line, journalled const& state) {
        journal_.write(line.number, state);
        if (journal_.failed()) here_.fail(journal_.failure());
    }

    // An order whose line is not there any more, or not as it was read, cannot be gone on with:
    // what it was is not in the journal. It is aborted, or refunded if it was charged.
    task<void> end_what_is_left_behind() {
        std::vector<journal::open_line> left = journal_.left_behind(options_.orders);
        if (journal_.failed()) here_.fail(journal_.failure());
        for (journal::open_line& l : left) co_await cancel(&l);
    }

    task<void> cancel(journal::open_line* left) {
        std::string const reason = "its line is gone";
        order_id const oid = make_order_id(options_.number, left->journal, left->number);
        std::vector<std::byte> const body = pack(cancellation{oid, reason, true});
        answer const a = co_await ask_gateway(request::cancel, body);
        journalled& state = left->state;
        state.outcome = outcome_of(unpack<ending>(a.body));
        bool const has_cup = state.at >= step::ready && state.outcome != "delivered";
        if (has_cup) co_await discard(oid, &state, reason);
        state.at = step::done;
        journal_.write(*left);
        if (journal_.failed()) here_.fail(journal_.failure());
        here_.log->warn("{}: {}", oid, state.outcome);
        count(state.outcome);
    }

    // Its own orders that are open in the ledger and that its journal does not know: an older one
    // was lost with its disk. As this screen answers, nobody else takes them over. The gateway
    // names the oldest orders of all screens, so it is asked again while there may be more.
    // Customers need not wait for this: their orders are in the journal before the ledger.
    task<void> end_what_is_forgotten() {
        std::vector<std::byte> const nothing;
        for (;;) {
            answer const a = co_await ask_gateway(request::remains, nothing);
            auto const open = unpack<remaining>(a.body);
            if (!open) co_return;
            for (order_id const& oid : open->unresolved) co_await end_if_forgotten(&oid);
            if (journal_.failed()) here_.fail(journal_.failure());
            if (open->unresolved.size() < most_unresolved) co_return;
            co_await sleep_for(300ms);
        }
    }
    task<void> end_if_forgotten(order_id const* oid) {
        if (screen_of(*oid) != options_.number) co_return;
        if (journal_.knows(options_.number, *oid)) co_return;
        std::vector<std::byte> const body = pack(cancellation{*oid, "its journal is lost", true});
        answer const ended = co_await ask_gateway(request::cancel, body);
        here_.log->warn("{}: {}", *oid, outcome_of(unpack<ending>(ended.body)));
    }

    task<void> serve_customer(order_line const* line) {
        if (!line->read) {
            here_.log->error("{}:{}: {}", options_.file, line->number, line->read.error());
            ++tally_.skipped;
            co_return;
        }
        auto known = journal_.line(line->number, line->text);
        if (journal_.failed()) here_.fail(journal_.failure());
        if (!known) {
            here_.log->error("{}:{}: the line has changed since it was read first", options_.file,
                             line->number);
            ++tally_.skipped;
            co_return;
        }
        journalled state = *std::move(known);
        order_id const oid = make_order_id(options_.number, journal_.id(), line->number);
        if (state.at == step::read) co_await prepare(oid, line, &state);
        while (state.at == step::prepared || state.at == step::ordered) {
            co_await have_it_made(oid, line, &state);
        }
        if (state.at == step::ready) co_await commit(oid, line, &state);
        if (state.at == step::committed) co_await fetch(oid, line, &state);
        if (state.at == step::cup) co_await hand_over(oid, line, &state);
        count(state.outcome);
    }

    void count(std::string_view outcome) {
        if (outcome.starts_with("delivered")) ++tally_.delivered;
        if (outcome.starts_with("refunded")) ++tally_.refunded;
        if (outcome.starts_with("aborted")) ++tally_.aborted;
    }

    void end(order_line const& line, journalled& state, std::string outcome) {
        state.at = step::done;
        state.outcome = std::move(outcome);
        write(line, state);
        here_.log->info("order {} ({}:{}): {}", line.read->id, options_.file, line.number,
                        state.outcome);
    }

    // Until the gateway answers.
    task<answer> ask_gateway(request r, std::vector<std::byte> body) {
        for (;;) {
            cluster::address const gateway = here_.address_of(gateway_id);
            auto const a = co_await me_.ask(gateway, type(r), body, 5s);
            if (a && !is(*a, reply::busy)) co_return *a;
            co_await sleep_for(50ms);
        }
    }

    task<void> prepare(order_id oid, order_line const* line, journalled* state) {
        proposal p{oid, line->read->items, line->read->card, 0};
        for (item const& i : p.items) p.amount += i.grams;
        answer const a = co_await ask_gateway(request::prepare, pack(p));
        if (is(a, reply::ready)) {
            state->at = step::prepared;
            write(*line, *state);
        } else {
            auto const said = unpack<why>(a.body);
            end(*line, *state, "aborted: " + (said ? said->reason : "refused"));
        }
    }

    task<void> have_it_made(order_id oid, order_line const* line, journalled* state) {
        std::optional<cluster::epoch> const leader = co_await leader_known();
        if (!leader) co_return;
        state->at = step::ordered;
        state->attempt = (state->attempt / attempts_of_a_screen + 1) * attempts_of_a_screen;
        write(*line, *state);
        order_request const wanted{oid, state->attempt, line->read->items, {}};
        waiting_for_ = attempt_at{oid, state->attempt};
        task<ask_result> asking = me_.ask(here_.address_of(leader->leader), type(request::order),
                                          pack(wanted), 24h, *leader);
        task<void> losing = watch_leader(*leader);
        auto const first = co_await when_any(std::move(asking), std::move(losing));
        waiting_for_.reset();
        if (first.index() != 0) co_return;  // another leader is asked
        ask_result const& a = std::get<0>(first);
        if (!a) co_return;
        co_await on_made(oid, line, state, &*a);
    }

    task<void> on_made(order_id oid, order_line const* line, journalled* state, answer const* a) {
        std::optional<cup> made;
        if (is(*a, reply::ready)) made = unpack<cup>(a->body);
        if (made) {
            state->at = step::ready;
            state->attempt = made->attempt;
            state->robot = made->robot;
            state->takes = std::move(made->takes);
            write(*line, *state);
        } else if (is(*a, reply::abort)) {
            auto const said = unpack<why>(a->body);
            std::string const reason = said ? said->reason : "refused";
            std::vector<std::byte> const body = pack(cancellation{oid, reason, false});
            answer const cancelled = co_await ask_gateway(request::cancel, body);
            (void)cancelled;
            end(*line, *state, "aborted: " + reason);
        } else {
            if (is(*a, reply::stale)) {
                if (auto const e = unpack<known_epoch>(a->body)) election_.step_down(e->highest);
            }
            co_await sleep_for(100ms);
        }
    }

    task<std::optional<cluster::epoch>> leader_known() {
        auto changes = election_.subscribe();
        for (;;) {
            cluster::leadership const now = election_.current();
            if (now.leader) co_return now.leader;
            auto const changed = co_await changes.changed();
            if (!changed) co_return std::nullopt;
        }
    }

    // Ends when somebody else leads; a leader that is silent for too long is suspected.
    task<void> watch_leader(cluster::epoch e) {
        auto changes = election_.subscribe();
        std::vector<std::byte> const nothing;
        while (election_.current().leader == e) {
            auto const changed = co_await changes.changed_for(options_.patience.order_silence);
            if (changed || election_.current().leader != e) continue;
            auto const a = co_await me_.ask(here_.address_of(e.leader), type(request::keepalive),
                                            nothing, options_.patience.leader_silence, e);
            if (!a) election_.suspect(e);
        }
    }

    task<void> commit(order_id oid, order_line const* line, journalled* state) {
        payment const p{oid, state->attempt, state->takes};
        answer const a = co_await ask_gateway(request::commit, pack(p));
        if (is(a, reply::finished)) {
            auto const paid = unpack<attempt_at>(a.body);
            if (paid && paid->attempt != state->attempt) {
                here_.log->error("{}: another attempt was charged", oid);
            }
            state->at = step::committed;
            write(*line, *state);
            co_return;
        }
        auto const said = unpack<why>(a.body);
        std::string const reason = said ? said->reason : "refused";
        co_await discard(oid, state, reason);
        end(*line, *state, "aborted: " + reason);
    }

    // When the ledger has decided that nobody gets the cup. A robot that does not hear it throws it
    // away later.
    task<void> discard(order_id oid, journalled const* state, std::string reason) {
        journal_.write_waste(oid, state->attempt, reason);
        if (journal_.failed()) here_.fail(journal_.failure());  // I1
        std::vector<std::byte> const body = pack(attempt_at{oid, state->attempt});
        auto const a = co_await me_.ask(here_.address_of(robot_id(state->robot)),
                                        type(request::discard), body, 500ms);
        (void)a;
    }

    task<void> fetch(order_id oid, order_line const* line, journalled* state) {
        std::vector<std::byte> const wanted = pack(attempt_at{oid, state->attempt});
        auto const a = co_await me_.ask(here_.address_of(robot_id(state->robot)),
                                        type(request::deliver), wanted, options_.patience.cup_wait);
        if (a && is(*a, reply::ack)) {
            state->at = step::cup;
            write(*line, *state);
            co_return;
        }
        std::string const reason = "the cup was lost with robot " + std::to_string(state->robot);
        std::vector<std::byte> const body = pack(cancellation{oid, reason, true});
        answer const refunded = co_await ask_gateway(request::cancel, body);
        (void)refunded;
        co_await discard(oid, state, reason);  // it may only be out of reach
        end(*line, *state, "refunded: " + reason);
    }

    task<void> hand_over(order_id oid, order_line const* line, journalled* state) {
        std::vector<std::byte> const body = pack(attempt_at{oid, state->attempt});
        answer const a = co_await ask_gateway(request::delivered, body);
        auto const now = unpack<ending>(a.body);
        if (now && now->at == standing::delivered) {  // I3
            end(*line, *state, "delivered");
        } else {
            journal_.write_waste(oid, state->attempt, "it was taken over");
            end(*line, *state, "refunded: " + (now ? now->reason : "refused"));
        }
    }

    // --- the end ---

    // Until all screens are at their ends. One that is gone may have left an order open, which
    // whoever leads takes over: then until the ledger has none of it.
    task<void> wait_for_others() {
        environment const& env = co_await this_environment();
        std::map<std::uint32_t, time_point> heard;  // of those that are not at their ends
        for (std::uint32_t const s : options_.screens) heard[s] = env.timers().now();
        heard.erase(options_.number);
        std::set<std::uint32_t> gone;  // of these
        while (!heard.empty()) {
            co_await look_at_others(&heard, &gone);
            bool over = gone.size() == heard.size();
            if (over && !gone.empty()) over = co_await has_no_order_of(&gone);
            if (over) break;
            co_await sleep_for(300ms);
        }
        here_.log->info("all screens are done");
        co_await sleep_for(options_.patience.farewell);
    }

    task<void> look_at_others(std::map<std::uint32_t, time_point>* heard,
                              std::set<std::uint32_t>* gone) {
        environment const& env = co_await this_environment();
        std::vector<std::byte> const nothing;
        for (auto at = heard->begin(); at != heard->end();) {
            auto const [s, last] = *at;
            auto const a = co_await me_.ask(here_.address_of(screen_id(s)),
                                            type(request::keepalive), nothing, 500ms);
            std::optional<presence> p;
            if (a) p = unpack<presence>(a->body);
            if (a) {
                at->second = env.timers().now();
                gone->erase(s);
            } else if (env.timers().now() - last > options_.patience.screen_gone) {
                if (gone->insert(s).second) here_.log->warn("screen {} is gone", s);
            }
            at = p && p->done ? heard->erase(at) : std::next(at);
        }
    }

    task<bool> has_no_order_of(std::set<std::uint32_t> const* screens) {
        std::vector<std::byte> const nothing;
        answer const a = co_await ask_gateway(request::remains, nothing);
        auto const known = unpack<remaining>(a.body);
        if (!known || known->unresolved.size() == most_unresolved) co_return false;  // or more
        for (order_id const& oid : known->unresolved) {
            auto const s = screen_of(oid);
            if (s && screens->contains(*s)) co_return false;
        }
        co_return true;
    }

    place const& here_;
    screen_options const& options_;
    journal& journal_;
    durable_epoch epochs_;
    cluster::peer me_;
    cluster::election election_;
    leader* leader_ = nullptr;  // while this screen leads
    std::optional<attempt_at> waiting_for_;
    bool done_ = false;
    bool over_ = false;
    screen_tally tally_;
};

}  // namespace

task<screen_tally> run_screen(place here, screen_options chosen) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string id;
    for (std::uint64_t rest = here.random(); id.size() < 8; rest >>= 4U) id += digits[rest & 15U];
    auto opened = journal::open(here.file("screen-" + std::to_string(chosen.number) + ".db"),
                                chosen.file, id, here.vfs);
    if (!opened) {
        here.fail(opened.error());
        co_return screen_tally{};
    }
    screen s{here, chosen, *opened};
    screen_tally const tally = co_await s.run();
    co_return tally;
}

}  // namespace rondo::shop
