// Agreeing on a ring and on where its tokens are: a handshake and a commit.
//
// Algorithm      a promise and an acceptance as in Paxos (Lamport, "The part-time parliament"), but
//                without a majority: who does not answer is left out, and effects are fenced
//                elsewhere. A promise is never taken back: a freeze that times out leads to a
//                handshake with a higher epoch, not back into the old ring.
//
// Invariants
//   R1  promised_ and ring_ rise in each run; nothing of a ring below ring_ is accepted, and while
//       promised_ > ring_ no token is accepted or offered.
//   R2  a run is in a ring only if it promised that ring and stands in the commit, by its run: one
//       that starts again cannot be brought back by a message that was under way.
//   R3  a token stays where it is if its holder is in the highest ring that was reported and nobody
//       has seen a higher place. Any other is made anew, with a count above all that was seen, in
//       the name of the coordinator's run. So no generation is made twice.
//
// Why a token that was sent and not acknowledged is not sent again in the new ring: the member it
// was sent to may have it, outside. Its copy is as good as the token, and the new generation safe.
#include <algorithm>
#include <map>
#include <utility>

#include "ring_messages.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/core/assert.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"
#include "rondo/core/with_timeout.hpp"

namespace rondo::cluster {

namespace msg = ring_message;

// What one member says of itself in a handshake.
struct token_ring::report {
    struct entry {
        std::string name;
        bool held = false;
        token_place seen;
        token_place place;
        std::vector<std::byte> content;
    };

    member_run who;
    ring_epoch ring;
    std::vector<entry> entries;
};

struct token_ring::commitment {
    struct entry {
        std::string name;
        token_place place;
        member_id holder = 0;
    };

    ring_epoch ring;
    std::vector<member_run> members;
    std::vector<entry> tokens;
    std::vector<token> made;  // not sent: the coordinator holds them
};

namespace {

// Entries of tokens as long as they fit.
constexpr std::size_t room_for_entries = longest_body - 64;

// A commit fits into one message: decide() makes no more than a ring has. What is held was made in
// an earlier one.
static_assert(20 + 2 + 12 * token_ring::most_members + 2 +
                  (2 + token_ring::longest_name + 1 + 28) * token_ring::most_tokens <=
              longest_body);

}  // namespace

task<void> token_ring::coordinate() {
    for (;;) {
        if (is_frozen() && now() >= frozen_until_) {
            ++counts_.freezes_timed_out;
            co_await hold_handshake();
        } else if (is_frozen()) {
            auto const told = co_await decision_.notified_until(frozen_until_);
            (void)told;
        } else if (repair_wanted_) {
            co_await hold_handshake();
        } else if (join_to_) {
            co_await join();
        } else if (ring_.number == 0) {
            co_await start();
        } else {
            co_await decision_.notified();
        }
    }
}

// --- the coordinator ---

task<void> token_ring::hold_handshake() {
    ++counts_.handshakes;
    repair_wanted_ = false;
    std::uint64_t const number = std::max(highest_number_, promised_.number) + 1;
    ring_epoch const e{number, self_.self()};
    bool const promised = promise(e);
    RONDO_ASSERT(promised, "a coordinator begins above all it has heard of");

    std::vector<task<std::optional<report>>> questions;
    for (address const& a : configured_) {
        if (a.id != id()) questions.push_back(ask_for_report(a.id, e));
    }
    std::vector<std::optional<report>> answers = co_await when_all(std::move(questions));
    std::vector<report> reports{own_report()};
    for (std::optional<report>& r : answers) {
        if (r) reports.push_back(*std::move(r));
    }
    // Somebody is at a higher one: its commit comes, or the freeze times out.
    if (promised_ != e || highest_number_ > e.number) co_return;
    std::optional<commitment> const c = co_await decide(e, std::move(reports));
    if (!c || promised_ != e) co_return;
    apply(*c);
    for (token const& t : c->made) {
        slot* const s = find(t.name);
        ++counts_.made;
        put_here(*s, s->seen, t.content);
    }

    std::vector<std::byte> body = msg::of_ring(e);
    byte_writer w{body};
    w.put_length(c->members.size());
    for (member_run const& m : c->members) w.put(m);
    w.put_length(c->tokens.size());
    for (commitment::entry const& t : c->tokens) {
        auto const holder = std::ranges::find(c->members, t.holder, &member_run::id);
        w.put_text(t.name).put(static_cast<std::uint8_t>(holder - c->members.begin()));
        msg::put(w, t.place);
    }
    std::vector<task<void>> messages;
    for (member_run const& m : c->members) {
        if (m.id != id()) messages.push_back(tell_commit(m.id, body));
    }
    auto const told = co_await when_all(std::move(messages));
    (void)told;
}

// All pages of it.
task<std::optional<token_ring::report>> token_ring::ask_for_report(member_id m, ring_epoch e) {
    address const to = address_of(m);
    report r;
    for (bool more = true; more;) {
        std::vector<std::byte> body = msg::of_ring(e);
        byte_writer{body}.put_length(r.entries.size());
        auto const a = co_await self_.ask(to, msg::handshake, body, options_.handshake);
        if (!a) co_return std::nullopt;
        if (a->type != msg::report) {
            highest_number_ = std::max(highest_number_, msg::ring_in(*a).number);
            co_return std::nullopt;
        }
        byte_reader from{a->body};
        r.who = from.get_run();
        r.ring = msg::get_ring(from);
        more = from.get<std::uint8_t>() != 0;
        std::size_t const count = from.get_length();
        for (std::size_t i = 0; i < count && from.ok(); ++i) {
            report::entry t;
            t.name = from.get_text(longest_name);
            t.held = from.get<std::uint8_t>() != 0;
            t.seen = msg::get_place(from);
            t.place = msg::get_place(from);
            std::span const content = from.get_bytes(longest_content);
            t.content.assign(content.begin(), content.end());
            r.entries.push_back(std::move(t));
        }
        if (!from.complete() || (more && count == 0)) co_return std::nullopt;
    }
    co_return r;
}

task<std::optional<token_ring::commitment>> token_ring::decide(ring_epoch e,
                                                               std::vector<report> reports) {
    struct knowledge {
        token_place seen;
        report::entry const* best = nullptr;
        std::optional<member_id> holder;
    };
    commitment c;
    c.ring = e;
    ring_epoch highest;
    std::map<std::string, knowledge> known;
    for (report const& r : reports) {
        highest = std::max(highest, r.ring);
        for (report::entry const& t : r.entries) {
            knowledge& k = known[t.name];
            k.seen = std::max(k.seen, t.seen);
            if (k.best == nullptr || t.place > k.best->place) k.best = &t;
        }
    }
    for (address const& a : configured_) {
        auto const r =
            std::ranges::find(reports, a.id, [](report const& one) { return one.who.id; });
        if (r == reports.end()) continue;
        c.members.push_back(r->who);
        for (report::entry const& t : r->entries) {
            bool const stays = t.held && r->ring == highest && t.place == known[t.name].seen;
            if (stays) known[t.name].holder = r->who.id;  // R3
        }
    }
    std::vector<token> lost;
    std::vector<std::string> held;
    for (auto const& [name, k] : known) {
        if (k.holder) {
            held.push_back(name);
            c.tokens.push_back({name, k.seen, *k.holder});
        } else if (k.best->place != token_place{}) {
            lost.push_back({name, k.best->content});
        }
    }
    task<std::vector<token>> making = renew_(std::move(lost), std::move(held));
    auto renewed = co_await with_timeout(std::move(making), options_.freeze / 3);
    if (!renewed) co_return c;
    for (token& t : *renewed) {
        bool const is_new =
            std::ranges::find(c.tokens, t.name, &commitment::entry::name) == c.tokens.end();
        // Each member has room for so many names, of which this one may not have heard of all.
        bool const has_room = known.contains(t.name) || known.size() < most_tokens;
        bool const fits = has_room && c.tokens.size() < most_tokens;
        if (!is_new || !fits || find_or_make(t.name) == nullptr) continue;
        RONDO_ASSERT(t.content.size() <= longest_content, "a content has at most 512 bytes");
        token_place const p{{known[t.name].seen.gen.count + 1, self_.self()}, 0};
        c.tokens.push_back({t.name, p, id()});
        c.made.push_back(std::move(t));
    }
    co_return c;
}

task<void> token_ring::tell_commit(member_id m, std::vector<std::byte> body) {
    address const to = address_of(m);
    auto const a = co_await self_.ask(to, msg::commit, body, options_.freeze);
    if (a) highest_number_ = std::max(highest_number_, msg::ring_in(*a).number);
}

// --- everybody ---

// From here on nothing of a lower ring counts, and nothing is passed before a commit.
bool token_ring::promise(ring_epoch const& e) noexcept {
    if (e < promised_ || e == ring_) return false;
    if (e == promised_) return true;  // it is asked for another page
    promised_ = e;                    // R1
    highest_number_ = std::max(highest_number_, e.number);
    frozen_until_ = later(now(), with_jitter(options_.freeze));
    join_to_.reset();
    decision_.notify_one();
    return true;
}

token_ring::report token_ring::own_report() const {
    report r{self_.self(), ring_, {}};
    for (slot const& s : slots_) {
        if (s.seen == token_place{}) continue;
        bool const held = s.state == token_state::here || s.state == token_state::taken;
        r.entries.push_back({s.name, held, s.seen, s.place, s.content});
    }
    return r;
}

answer token_ring::on_handshake(message const& m) {
    byte_reader from{m.body};
    ring_epoch const e = msg::get_ring(from);
    std::size_t const first = from.get_length();
    bool const honest = from.complete() && e.coordinator == m.source;
    if (!honest || !promise(e)) return msg::answer_with(msg::stale, promised_);
    report const r = own_report();
    std::vector<std::byte> entries;
    std::size_t next = first;
    for (; next < r.entries.size(); ++next) {
        std::vector<std::byte> entry;
        byte_writer w{entry};
        report::entry const& t = r.entries[next];
        w.put_text(t.name).put(static_cast<std::uint8_t>(t.held));
        msg::put(w, t.seen);
        msg::put(w, t.place);
        w.put_bytes(t.content);
        if (entries.size() + entry.size() > room_for_entries) break;
        entries.insert(entries.end(), entry.begin(), entry.end());
    }
    answer a{msg::report, {}};
    byte_writer w{a.body};
    w.put(r.who);
    msg::put(w, r.ring);
    w.put(static_cast<std::uint8_t>(next < r.entries.size()));
    w.put_length(next > first ? next - first : 0);
    a.body.insert(a.body.end(), entries.begin(), entries.end());
    return a;
}

answer token_ring::on_commit(message const& m) {
    byte_reader from{m.body};
    commitment c;
    c.ring = msg::get_ring(from);
    std::size_t const members = from.get_length();
    for (std::size_t i = 0; i < members && from.ok(); ++i) c.members.push_back(from.get_run());
    std::size_t const tokens = from.get_length();
    for (std::size_t i = 0; i < tokens && from.ok(); ++i) {
        std::string name = from.get_text(longest_name);
        std::size_t const holder = from.get<std::uint8_t>();
        token_place const p = msg::get_place(from);
        if (!from.ok() || holder >= c.members.size())
            return msg::answer_with(msg::stale, promised_);
        c.tokens.push_back({std::move(name), p, c.members[holder].id});
    }
    if (from.complete() && c.ring == ring_) return msg::answer_with(msg::yes, ring_);
    bool const honest = from.complete() && c.ring.coordinator == m.source;
    bool const ours = std::ranges::find(c.members, self_.self()) != c.members.end();  // R2
    if (!honest || !ours || c.ring != promised_) {
        ++counts_.stale;
        return msg::answer_with(msg::stale, promised_);
    }
    apply(c);
    return msg::answer_with(msg::yes, ring_);
}

void token_ring::apply(commitment const& c) {
    ++counts_.commits;
    ring_ = c.ring;
    members_ = c.members;
    committed_at_ = now();
    repair_wanted_ = false;
    for (commitment::entry const& t : c.tokens) find_or_make(t.name);
    for (slot& s : slots_) {
        auto const at = std::ranges::find(c.tokens, s.name, &commitment::entry::name);
        bool const stays = at != c.tokens.end() && at->holder == id() && at->place == s.place &&
                           (s.state == token_state::here || s.state == token_state::taken);
        if (!stays) {
            if (s.state == token_state::taken) ++counts_.lost;
            s.state = token_state::elsewhere;
            if (at != c.tokens.end()) s.seen = std::max(s.seen, at->place);
        }
        s.since = now();
        if (alone()) s.visited = false;  // it cannot go round and come back
        s.changed.notify_one();
        if (stays) s.arrived.notify_one();
    }
    decision_.notify_one();
}

}  // namespace rondo::cluster
