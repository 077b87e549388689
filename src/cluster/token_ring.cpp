// Passing tokens. Who is in the ring is found out in ring_inspection.cpp and agreed in
// ring_repair.cpp.
//
// Invariants
//   I1  a generation is made by one run of one member, once (ring_repair.cpp).
//   I2  hop h + 1 of a generation is offered by the run that held hop h, in one epoch of the ring,
//       to one run of one member: a repair drops what was sent and is not acknowledged, and a run
//       is in a ring only if it promised, in that same run, to be.
//   I3  what a run accepts, and what it has seen in commits, rises. So it accepts an offer once.
//   I4  follows: a generation has at most one holder. (Of its hops only the highest that was
//       accepted can be held, as an offer is made by giving up the hop before it.)
//
// Races considered
//   An acknowledgement is lost and the token offered again: the place was seen, it is acknowledged
//   again (I3).
//   A receiver crashes after it passed the token on, starts again and is offered the old hop: the
//   new run is in no ring before a repair, and refuses (I2).
//   A handshake freezes the sender, and the receiver accepts before it is frozen itself: the
//   receiver reports it as held. Or it does not answer the handshake: then the token is made anew,
//   in another generation, and that of the receiver is dropped when it comes back.
#include "rondo/cluster/token_ring.hpp"

#include <algorithm>
#include <utility>

#include "ring_messages.hpp"
#include "rondo/core/assert.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"

namespace rondo::cluster {

namespace msg = ring_message;

namespace {

constexpr clock::duration pause_of_later = std::chrono::milliseconds{20};

}  // namespace

// Somebody waits for a token, as long as this lives.
class token_ring::waiting_mark {
  public:
    explicit waiting_mark(slot& s) noexcept : slot_(s) { ++slot_.waiting; }
    ~waiting_mark() {
        --slot_.waiting;
        slot_.changed.notify_one();
    }
    waiting_mark(waiting_mark const&) = delete;
    waiting_mark& operator=(waiting_mark const&) = delete;

  private:
    slot& slot_;
};

token_ring::token_ring(peer& self, std::vector<address> ring, renewal renew, ring_options chosen,
                       arrival arrived)
    : self_(self),
      configured_(std::move(ring)),
      renew_(std::move(renew)),
      options_(chosen),
      arrived_(std::move(arrived)),
      jitter_(chosen.jitter_seed) {
    RONDO_ASSERT(configured_.size() <= most_members, "a ring has at most 16 members");
    RONDO_ASSERT(std::ranges::count(configured_, id(), &address::id) == 1,
                 "a member is in its ring, once");
}

token_ring::~token_ring() { RONDO_ASSERT(taken_ == 0, "a ring outlives the tokens it gave"); }

task<void> token_ring::run() {
    environment const& env = co_await this_environment();
    timers_ = &env.timers();
    std::vector<task<void>> parts;
    parts.push_back(coordinate());
    parts.push_back(inspect());
    parts.push_back(look_outside());
    for (std::size_t i = 0; i < most_tokens; ++i) parts.push_back(carry(i));
    auto const all = co_await when_all(std::move(parts));
    (void)all;
}

bool token_ring::serves(std::uint8_t type) noexcept {
    return type >= msg::keep_alive && type <= msg::token;
}

answer token_ring::serve(message const& m) {
    switch (m.type) {
        case msg::token:
            return on_token(m);
        case msg::keep_alive:
            return on_keep_alive(m);
        case msg::dead:
            return on_dead(m);
        case msg::handshake:
            return on_handshake(m);
        case msg::commit:
            return on_commit(m);
        default:
            return on_join(m);
    }
}

// --- taking ---

task<held_token> token_ring::take(std::string name) {
    RONDO_ASSERT(taken_ == 0, "nobody holds one token while waiting for another");
    slot* const s = find_or_make(name);
    RONDO_ASSERT(s != nullptr, "a ring has at most 16 tokens, with names of 24 bytes");
    environment const& env = co_await this_environment();
    waiting_mark const here{*s};
    while (s->state != token_state::here || s->visited) {
        time_point const overdue = later(env.timers().now(), options_.overdue);
        auto const came = co_await s->arrived.notified_until(overdue);
        if (!came) repair();
    }
    s->state = token_state::taken;
    ++taken_;
    co_return held_token{*this, static_cast<std::size_t>(s - slots_.data()), s->place};
}

void token_ring::give_back(std::size_t index, token_place const& p) noexcept {
    --taken_;
    slot& s = slots_[index];
    if (s.state != token_state::taken || s.place != p) return;  // it was taken away
    s.state = token_state::here;
    s.visited = !alone();
    s.changed.notify_one();
    if (alone()) s.arrived.notify_one();
}

held_token::~held_token() {
    if (ring_ != nullptr) ring_->give_back(slot_, place_);
}

bool held_token::is_valid() const noexcept {
    token_ring::slot const& s = ring_->slots_[slot_];
    return s.state == token_state::taken && s.place == place_;
}

std::vector<std::byte>& held_token::content() noexcept {
    RONDO_ASSERT(is_valid(), "a token that was taken away has no content");
    return ring_->slots_[slot_].content;
}

// --- passing ---

// One of these looks after each token.
task<void> token_ring::carry(std::size_t index) {
    slot& s = slots_[index];
    for (;;) {
        bool const may_go = s.state == token_state::here && !alone() && !is_frozen();
        bool const is_wanted = s.waiting > 0 && !s.visited;
        if (!may_go || is_wanted) {
            co_await s.changed.notified();
            continue;
        }
        time_point const until = later(s.since, options_.linger);
        if (!s.visited && now() < until) {
            auto const told = co_await s.changed.notified_until(until);
            (void)told;
            continue;
        }
        co_await pass(&s);
    }
}

// Offers the token to the next member until that has it, or the ring is about to change.
task<void> token_ring::pass(slot* s) {
    RONDO_ASSERT(s->content.size() <= longest_content, "a content has at most 512 bytes");
    s->state = token_state::sent;  // not used from here on
    ++s->place.hop;
    s->seen = s->place;
    token_place const offered = s->place;
    ring_epoch const in = ring_;
    address const to = address_of(successor());
    std::vector<std::byte> body;
    byte_writer w{body};
    msg::put(w, in);
    msg::put(w, offered);
    w.put_text(s->name).put_bytes(s->content);
    while (may_send(*s, offered, in)) {
        auto const a = co_await self_.ask(to, msg::token, body, options_.keep_alive);
        if (s->state != token_state::sent || s->place != offered) co_return;
        if (!a && a.error() == ask_error::closed) co_return;
        if (!a) continue;
        if (a->type == msg::yes) {
            s->state = token_state::elsewhere;
            ++counts_.passed;
            co_return;
        }
        if (a->type == msg::stale) hear_of(msg::ring_in(*a), to.id);
        co_await sleep_for(pause_of_later);
    }
}

bool token_ring::may_send(slot const& s, token_place const& p,
                          ring_epoch const& in) const noexcept {
    return s.state == token_state::sent && s.place == p && ring_ == in && !is_frozen();
}

answer token_ring::on_token(message const& m) {
    byte_reader from{m.body};
    ring_epoch const e = msg::get_ring(from);
    token_place const p = msg::get_place(from);
    std::string const name = from.get_text(longest_name);
    std::span const content = from.get_bytes(longest_content);
    if (!from.complete()) return msg::answer_with(msg::stale, ring_);
    if (e < ring_) {
        ++counts_.stale;
        return msg::answer_with(msg::stale, ring_);
    }
    if (e > promised_) hear_of(e, m.source.id);
    if (e != ring_ || is_frozen()) return msg::answer_with(msg::later, ring_);
    slot* const s = find_or_make(name);
    if (s == nullptr) return msg::answer_with(msg::later, ring_);
    if (p <= s->seen) {  // I3
        ++counts_.repeated;
        return msg::answer_with(msg::yes, ring_);
    }
    ++counts_.accepted;
    put_here(*s, p, {content.begin(), content.end()});
    return msg::answer_with(msg::yes, ring_);
}

void token_ring::put_here(slot& s, token_place const& p, std::vector<std::byte> content) {
    if (s.state == token_state::taken) ++counts_.lost;
    s.state = token_state::here;
    s.seen = p;
    s.place = p;
    s.content = std::move(content);
    s.since = now();
    s.visited = false;
    if (arrived_) arrived_(s.name, s.place, s.content);
    s.arrived.notify_one();
    s.changed.notify_one();
}

// --- what is known ---

bool token_ring::has_room_for(std::string_view name) const noexcept {
    bool const is_name = !name.empty() && name.size() <= longest_name;
    return is_name && std::ranges::any_of(
                          slots_, [&](slot const& s) { return s.name == name || s.name.empty(); });
}

token_ring::slot* token_ring::find(std::string_view name) noexcept {
    auto const at = std::ranges::find(slots_, name, &slot::name);
    return at == slots_.end() || name.empty() ? nullptr : &*at;
}

token_ring::slot* token_ring::find_or_make(std::string_view name) {
    if (!has_room_for(name)) return nullptr;
    if (slot* const known = find(name)) return known;
    auto const free = std::ranges::find(slots_, std::string{}, &slot::name);
    free->name = name;
    return &*free;
}

std::vector<token_view> token_ring::tokens() const {
    std::vector<token_view> all;
    for (slot const& s : slots_) {
        if (s.seen != token_place{}) all.push_back({s.name, s.state, s.place, s.content});
    }
    std::ranges::sort(all, {}, &token_view::name);
    return all;
}

std::vector<member_id> token_ring::members() const {
    std::vector<member_id> all;
    for (member_run const& m : members_) all.push_back(m.id);
    return all;
}

bool token_ring::is_in_ring(member_run const& m) const noexcept {
    return std::ranges::find(members_, m) != members_.end();
}

bool token_ring::is_member(member_id m) const noexcept {
    return std::ranges::find(members_, m, &member_run::id) != members_.end();
}

member_id token_ring::successor() const noexcept {
    auto const at = std::ranges::find(members_, id(), &member_run::id);
    return at + 1 == members_.end() ? members_.front().id : (at + 1)->id;
}

member_id token_ring::predecessor_of(member_id m) const noexcept {
    auto const at = std::ranges::find(members_, m, &member_run::id);
    return at == members_.begin() ? members_.back().id : (at - 1)->id;
}

address token_ring::address_of(member_id m) const noexcept {
    auto const at = std::ranges::find(configured_, m, &address::id);
    return at == configured_.end() ? address{{}, m} : *at;
}

// Up to half as much again.
clock::duration token_ring::with_jitter(clock::duration d) noexcept {
    return d + d / 2 * static_cast<clock::rep>(jitter_() % 1024) / 1024;
}

}  // namespace rondo::cluster
