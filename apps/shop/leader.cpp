#include "leader.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"

namespace rondo::shop {

namespace {

using namespace std::chrono_literals;
using cluster::answer;

constexpr std::size_t most_late = 4;

void reply_to(oneshot::sender<order_outcome>& to, order_outcome outcome) {
    auto const unheard = to.send(std::move(outcome));
    (void)unheard;  // who asked has gone, and asks again
}

order_outcome outcome_of(answer const& a) {
    order_outcome o;
    if (is(a, reply::ready)) {
        auto read = unpack<cup>(a.body);
        if (read) {
            o.kind = reply::ready;
            o.made = *std::move(read);
        }
    } else if (is(a, reply::abort)) {
        auto read = unpack<why>(a.body);
        o.kind = reply::abort;
        o.reason = read ? std::move(read->reason) : "no reason was given";
    } else if (is(a, reply::stale)) {
        o.kind = reply::stale;
    }
    return o;
}

order_outcome has_ended() { return {reply::abort, {}, "it has ended"}; }

}  // namespace

// --- OrderCoordinator ---

void OrderCoordinator::receive(ResolverActorMessage m) {
    robots_.emplace(m.robot, robot{std::move(m.resolver)});
}

void OrderCoordinator::receive(OrderActorMessage m) {
    auto const known = open_.find(m.wanted.oid);
    if (known != open_.end()) {
        auto& late = known->second.late;
        if (late.size() == most_late) late.erase(late.begin());
        late.push_back(std::move(m.answer));
        return;
    }
    // Those that are being made count too: they wait again if their robot falls.
    if (open_.size() >= context_->most.open_orders) return reply_to(m.answer, {});
    discard_cups_before(m.wanted.oid);
    open_[m.wanted.oid].since = context_->questions;
    queue_.push_back(std::move(m));
    assign();
}

void OrderCoordinator::receive(FreeRobotActorMessage m) {
    auto const at = robots_.find(m.robot);
    if (at == robots_.end()) return;
    if (at->second.now == state::fallen || at->second.now == state::unknown) {
        context_->here.log->info("robot {} is there", m.robot);
    }
    at->second.now = state::free;
    for (attempt_at& a : m.held) {
        if (context_->is_unwanted(m.robot, a)) continue;
        if (being_made_.contains(a.oid)) {
            context_->discard(m.robot, std::move(a));
        } else {
            know_cup(m.robot, a.oid, a.attempt);
        }
    }
    if (m.ended) {
        if (m.outcome.kind == reply::ready) {
            know_cup(m.robot, *m.ended, m.outcome.made.attempt);
        }
        end(*m.ended, m.outcome);
    }
    assign();
}

void OrderCoordinator::receive(FallenRobotActorMessage m) {
    auto const at = robots_.find(m.robot);
    if (at == robots_.end()) return;
    context_->here.log->warn("robot {} does not answer", m.robot);
    at->second.now = state::fallen;
    std::erase_if(cups_, [&](auto const& c) { return c.second.robot == m.robot; });
    if (m.order && context_->ended.contains(m.order->wanted.oid)) {
        drop(*std::move(m.order));
    } else if (m.order) {
        being_made_.erase(m.order->wanted.oid);
        m.order->wanted.attempt = ++m.order->counted;
        queue_.push_front(*std::move(m.order));
    }
    assign();
}

// What was prepared before that question, and is not open now, has ended. What came later may be
// open, and not in the answer.
void OrderCoordinator::receive(LedgerActorMessage m) {
    auto const is_over = [&m](order_id const& oid, std::uint64_t since) {
        return since < m.question && !m.open.contains(oid);
    };
    discard_cups([&](order_id const& of, held_cup const& c) { return is_over(of, c.since); });
    for (auto const& [oid, order] : open_) {
        if (being_made_.contains(oid) && is_over(oid, order.since)) context_->ended.insert(oid);
    }
    for (auto at = queue_.begin(); at != queue_.end();) {
        if (!is_over(at->wanted.oid, open_.at(at->wanted.oid).since)) {
            ++at;
            continue;
        }
        OrderActorMessage order = std::move(*at);
        at = queue_.erase(at);
        drop(std::move(order));
    }
    assign();
}

void OrderCoordinator::drop(OrderActorMessage order) {
    context_->here.log->info("{} is not made any more: it has ended", order.wanted.oid);
    reply_to(order.answer, has_ended());
    end(order.wanted.oid, has_ended());
}

void OrderCoordinator::know_cup(std::uint32_t number, order_id const& oid, std::uint64_t attempt) {
    auto const [first, last] = cups_.equal_range(oid);
    bool const known = std::any_of(first, last, [&](auto const& c) {
        return c.second.robot == number && c.second.attempt == attempt;
    });
    if (known || cups_.size() >= context_->most.known_cups) return;
    cups_.emplace(oid, held_cup{number, attempt, context_->questions});
}

void OrderCoordinator::end(order_id const& oid, order_outcome const& outcome) {
    auto const at = open_.find(oid);
    if (at == open_.end()) return;
    for (auto& late : at->second.late) reply_to(late, outcome);
    open_.erase(at);
    being_made_.erase(oid);
    context_->ended.erase(oid);
}

template <class Over>
void OrderCoordinator::discard_cups(Over const& is_over) {
    std::erase_if(cups_, [&](auto const& c) {
        bool const over = is_over(c.first, c.second);
        if (over) context_->discard(c.second.robot, {c.first, c.second.attempt});
        return over;
    });
}

void OrderCoordinator::discard_cups_before(order_id const& oid) {
    discard_cups([&](order_id const& of, held_cup const&) { return is_before(of, oid); });
}

// In turn, so that all of them work.
std::optional<std::uint32_t> OrderCoordinator::robot_for(OrderActorMessage& order) {
    order_id const& oid = order.wanted.oid;
    auto const [first, last] = cups_.equal_range(oid);
    std::optional<held_cup> held;  // the latest of a robot that is free
    bool waits = false;
    for (auto at = first; at != last; ++at) {
        held_cup const& c = at->second;
        state const now = robots_.at(c.robot).now;
        if (now == state::free && (!held || c.attempt > held->attempt)) held = c;
        waits = waits || now == state::busy;
    }
    if (held) {
        discard_cups([&](order_id const& of, held_cup const& c) {
            return of == oid && (c.robot != held->robot || c.attempt != held->attempt);
        });
        order.wanted.attempt = held->attempt;
        return held->robot;
    }
    if (waits) return std::nullopt;
    auto at = robots_.upper_bound(last_given_);
    for (std::size_t i = 0; i < robots_.size(); ++i, ++at) {
        if (at == robots_.end()) at = robots_.begin();
        if (at->second.now == state::free) return at->first;
    }
    return std::nullopt;
}

void OrderCoordinator::assign() {
    for (auto at = queue_.begin(); at != queue_.end();) {
        std::optional<std::uint32_t> const number = robot_for(*at);
        if (!number) {
            ++at;
            continue;
        }
        OrderActorMessage order = std::move(*at);
        at = queue_.erase(at);
        give(*number, std::move(order));
    }
    context_->waiting = queue_.size();
    context_->open = open_.size();
    context_->known_cups = cups_.size();
}

void OrderCoordinator::give(std::uint32_t number, OrderActorMessage order) {
    robot& to = robots_.at(number);
    last_given_ = number;
    being_made_.insert(order.wanted.oid);
    auto told = to.resolver.try_tell(std::move(order));
    if (told) {
        to.now = state::busy;
    } else {  // its actor has ended: so has this leader
        end(told.error().value.wanted.oid, {reply::stale, {}, {}});
    }
}

// --- OrderResolver ---

task<bool> OrderResolver::is_alive() {
    std::vector<std::byte> const nothing;
    cluster::address const robot = context_->here.address_of(robot_id(robot_));
    auto const a = co_await context_->me.ask(robot, type(request::keepalive), nothing,
                                             context_->patience.robot_silence, context_->mine);
    co_return a.has_value();
}

task<std::optional<order_outcome>> OrderResolver::have_it_made(order_request wanted) {
    environment const& env = co_await this_environment();
    cluster::address const robot = context_->here.address_of(robot_id(robot_));
    while (!context_->ended.contains(wanted.oid)) {
        wanted.levels = context_->fresh_levels(env.timers().now());
        auto const a = co_await context_->me.ask(robot, type(request::dispatch), pack(wanted),
                                                 context_->patience.order_silence, context_->mine);
        if (a) {
            order_outcome outcome = outcome_of(*a);
            if (outcome.kind != reply::busy) co_return outcome;
            co_await sleep_for(50ms);
        } else if (a.error() == cluster::ask_error::closed) {
            co_return order_outcome{reply::stale, {}, {}};
        } else {
            bool const alive = co_await is_alive();
            if (!alive) co_return std::nullopt;
        }
    }
    context_->discard(robot_, {wanted.oid, wanted.attempt});  // it may wait for room for it
    co_return has_ended();
}

task<void> OrderResolver::receive(OrderActorMessage m) {
    order_id const oid = m.wanted.oid;
    std::optional<order_outcome> outcome = co_await have_it_made(m.wanted);
    if (!outcome) {
        FallenRobotActorMessage fallen{robot_, std::move(m)};
        auto const told = co_await coordinator_.tell(std::move(fallen));
        (void)told;
        co_await receive(RecogniseActorMessage{});
        co_return;
    }
    reply_to(m.answer, *outcome);
    FreeRobotActorMessage free{robot_, oid, *std::move(outcome), {}};
    auto const told = co_await coordinator_.tell(std::move(free));
    (void)told;
}

task<void> OrderResolver::receive(RecogniseActorMessage) {
    cluster::address const robot = context_->here.address_of(robot_id(robot_));
    std::vector<std::byte> const nothing;
    for (;;) {
        auto const a =
            co_await context_->me.ask(robot, type(request::recover), nothing, 1s, context_->mine);
        if (!a && a.error() == cluster::ask_error::closed) co_return;
        if (!a) continue;
        if (is(*a, reply::stale)) {
            if (auto const e = unpack<known_epoch>(a->body)) {
                context_->elections.step_down(e->highest);
            }
            co_await sleep_for(100ms);
            continue;
        }
        auto held = unpack<holding>(a->body);
        FreeRobotActorMessage free{robot_, std::nullopt, {}, {}};
        if (held) free.held = std::move(held->held);
        auto const told = co_await coordinator_.tell(std::move(free));
        (void)told;
        co_return;
    }
}

// --- LeaderReceiver ---

void LeaderReceiver::receive(OrderActorMessage m) {
    auto told = coordinator_.try_tell(std::move(m));
    if (!told) reply_to(told.error().value.answer, {});
}

// --- leader ---

leader::leader(place const& here, cluster::peer& me, cluster::election& elections,
               cluster::epoch mine, times const& patience, limits most,
               std::vector<std::uint32_t> screens, std::uint32_t robots)
    : context_{here, me, elections, mine, patience, most},
      screens_(std::move(screens)),
      robots_(robots),
      actors_(*here.where),
      duties_(*here.where) {
    auto const coordinator = actors_.start<OrderCoordinator>(
        "OrderCoordinator", [this] { return OrderCoordinator{context_}; }, {.mailbox = 256});
    for (std::uint32_t r = 0; r < robots_; ++r) {
        auto const resolver = actors_.start<OrderResolver>(
            "OrderResolver " + std::to_string(r),
            [this, coordinator, r] { return OrderResolver{context_, coordinator, r}; },
            {.mailbox = 2});
        (void)coordinator.try_tell(ResolverActorMessage{r, resolver});
        (void)resolver.try_tell(RecogniseActorMessage{});
        duties_.spawn(reporting(tell_robot(r)));
    }
    receiver_ = actors_.start<LeaderReceiver>(
        "LeaderReceiver", [coordinator] { return LeaderReceiver{coordinator}; });
    for (std::uint32_t const s : screens_) duties_.spawn(reporting(recognise(s)));
    duties_.spawn(reporting(watch_ledger(coordinator)));
    duties_.spawn(reporting(take_over()));
}

void leader::order(OrderActorMessage m) {
    auto told = receiver_->try_tell(std::move(m));
    if (!told) reply_to(told.error().value.answer, {});
}

std::vector<queue_view> leader::queues() const {
    std::size_t most_unwanted = 0;  // of a robot
    for (auto const& [robot, cups] : context_.unwanted) {
        most_unwanted = std::max(most_unwanted, cups.size());
    }
    return {{"orders that wait", context_.waiting, context_.most.open_orders},
            {"open orders", context_.open, context_.most.open_orders},
            {"known cups", context_.known_cups, context_.most.known_cups},
            {"unwanted cups", most_unwanted, context_.most.cups}};
}

task<void> leader::stop() {
    actors_.request_stop();
    co_await duties_.shutdown();
    auto const ended = co_await actors_.join();
    (void)ended;
}

task<void> leader::recognise(std::uint32_t screen) {
    std::vector<std::byte> const nothing;
    cluster::address const at = context_.here.address_of(screen_id(screen));
    auto const a =
        co_await context_.me.ask(at, type(request::recover), nothing, 200ms, context_.mine);
    std::optional<holding> waits;
    if (a) waits = unpack<holding>(a->body);
    if (!waits) co_return;
    for (attempt_at const& w : waits->held) {
        context_.here.log->info("screen {} waits for {}", screen, w.oid);
    }
}

task<void> leader::watch_ledger(coordinator_address coordinator) {
    environment const& env = co_await this_environment();
    cluster::address const gateway = context_.here.address_of(gateway_id);
    std::vector<std::byte> const nothing;
    for (;;) {
        time_point const asked = env.timers().now();
        std::uint64_t const question = ++context_.questions;
        auto const a =
            co_await context_.me.ask(gateway, type(request::remains), nothing, 1s, context_.mine);
        if (!a && a.error() == cluster::ask_error::closed) co_return;
        std::optional<remaining> read;
        if (a) read = unpack<remaining>(a->body);
        if (read) {
            context_.known = {std::move(read->levels), asked};
            unresolved_ = std::move(read->unresolved);
            bool const all = unresolved_.size() < most_unresolved;
            std::set<order_id> open{unresolved_.begin(), unresolved_.end()};
            if (all) (void)coordinator.try_tell(LedgerActorMessage{question, std::move(open)});
        }
        co_await sleep_for(300ms);
    }
}

// Who leads and what is left, again and again: tokens are clamped to it. And which of its cups
// nobody wants.
task<void> leader::tell_robot(std::uint32_t number) {
    environment const& env = co_await this_environment();
    cluster::address const robot = context_.here.address_of(robot_id(number));
    for (;;) {
        std::vector<std::byte> const body =
            pack(levels_known{context_.fresh_levels(env.timers().now())});
        auto const a =
            co_await context_.me.ask(robot, type(request::newleader), body, 500ms, context_.mine);
        if (!a && a.error() == cluster::ask_error::closed) co_return;
        std::optional<known_epoch> newer;
        if (a && is(*a, reply::stale)) newer = unpack<known_epoch>(a->body);
        if (newer) context_.elections.step_down(newer->highest);
        co_await discard_unwanted(number);
        co_await sleep_for(500ms);
    }
}

task<void> leader::discard_unwanted(std::uint32_t number) {
    cluster::address const robot = context_.here.address_of(robot_id(number));
    std::vector<attempt_at>& all = context_.unwanted[number];
    while (!all.empty()) {
        attempt_at const cup = all.front();
        auto const a = co_await context_.me.ask(robot, type(request::discard), pack(cup), 500ms,
                                                context_.mine);
        if (!a || !is(*a, reply::ack)) co_return;  // another time
        std::erase(all, cup);
    }
}

// The orders of a screen that is gone for good are aborted, or refunded if they were charged.
task<void> leader::take_over() {
    environment const& env = co_await this_environment();
    bool waits = false;  // an order of a screen that is silent
    for (;;) {
        co_await sleep_for(waits ? 400ms : 1s);  // then the gateway names others
        waits = false;
        // Screens are asked after that: one that has come back with a new order is there.
        std::vector<order_id> const unresolved = unresolved_;
        co_await look_at_screens(&unresolved);
        for (order_id const& oid : unresolved) {
            auto const s = screen_of(oid);
            auto const at = s ? silent_since_.find(*s) : silent_since_.end();
            if (at == silent_since_.end()) continue;
            waits = true;
            if (env.timers().now() - at->second < context_.patience.screen_gone) continue;
            context_.here.log->warn("{} is taken over: its screen is gone", oid);
            std::vector<std::byte> const body = pack(cancellation{oid, "its screen is gone", true});
            cluster::address const gateway = context_.here.address_of(gateway_id);
            auto const a =
                co_await context_.me.ask(gateway, type(request::cancel), body, 1s, context_.mine);
            if (!a) break;  // it does not answer: another time
        }
    }
}

// All of them at once. Also those whose orders the gateway does not name yet: it names the oldest,
// and how long a screen is silent has to be known by the time it names theirs.
task<void> leader::look_at_screens(std::vector<order_id> const* unresolved) {
    std::set<std::uint32_t> all{screens_.begin(), screens_.end()};
    for (order_id const& oid : *unresolved) {
        if (auto const s = screen_of(oid)) all.insert(*s);
    }
    std::erase_if(silent_since_, [&](auto const& s) { return !all.contains(s.first); });
    std::vector<task<void>> asking;
    for (std::uint32_t const s : all) asking.push_back(look_at(s));
    auto const asked = co_await when_all(std::move(asking));
    (void)asked;
}

task<void> leader::look_at(std::uint32_t screen) {
    constexpr clock::duration patience = 500ms;
    environment const& env = co_await this_environment();
    time_point const asked = env.timers().now();
    bool alive = screen_id(screen) == context_.me.self().id;
    if (!alive && screen < most_of_a_kind) {
        std::vector<std::byte> const nothing;
        cluster::address const at = context_.here.address_of(screen_id(screen));
        auto const a = co_await context_.me.ask(at, type(request::keepalive), nothing, patience,
                                                context_.mine);
        alive = a.has_value();
    }
    time_point const now = env.timers().now();
    if (alive) {
        silent_since_.erase(screen);
    } else if (now - asked > 2 * patience) {
        silent_since_.insert_or_assign(screen, now);  // it was this process that heard nobody
    } else {
        silent_since_.try_emplace(screen, asked);
    }
}

}  // namespace rondo::shop
