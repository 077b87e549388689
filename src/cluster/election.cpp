// Algorithm      Garcia-Molina, "Elections in a distributed computing system", IEEE Trans.
//                Computers 1982 (the Bully), for datagrams that get lost: nobody waits for a member
//                that may be dead, and an election that goes wrong (two members lead) is put right
//                by epochs instead of being prevented.
//
// Invariants
//   I1  highest_ is saved before it leaves this member, in a message or as its leader; it rises.
//   I2  leader_ is nothing or equal to highest_: a higher epoch, from wherever, ends the old one.
//   I3  a term in which this member leads is greater than every one it has seen (and so saved) in
//       any of its runs.
//
// Races considered
//   An answer of a member with a higher id may be lost or late: then both lead, the one with the
//   higher id in the higher term, as it has been told of our term or is told STALE.
//   A COORDINATOR comes while we ask: if its leader has a higher id we have lost; otherwise our
//   term is the one after it, as highest_ is read after the answers.
#include "rondo/cluster/election.hpp"

#include <algorithm>
#include <utility>

#include "rondo/cluster/bytes.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"

namespace rondo::cluster {

namespace {

constexpr std::uint8_t election_type = piece_types;
constexpr std::uint8_t coordinator_type = piece_types + 1;
constexpr std::uint8_t ok = piece_types;
constexpr std::uint8_t stale = piece_types + 1;

answer with_epoch(std::uint8_t type, epoch e) {
    answer a{type, {}};
    byte_writer{a.body}.put(e);
    return a;
}

std::optional<epoch> epoch_in(answer const& a) noexcept {
    byte_reader from{a.body};
    epoch const e = from.get_epoch();
    if (!from.complete()) return std::nullopt;
    return e;
}

}  // namespace

election::election(peer& self, std::vector<address> members, epoch_store& store,
                   election_options chosen)
    : self_(self),
      members_(std::move(members)),
      store_(store),
      options_(chosen),
      highest_(store.load()) {
    std::erase_if(members_, [this](address const& a) { return a.id == id(); });
}

task<void> election::run() {
    environment const& env = co_await this_environment();
    timers_ = &env.timers();
    heard_ = now();
    std::vector<task<void>> parts;
    parts.push_back(decide());
    for (address const& member : members_) parts.push_back(tell(member));
    auto const all = co_await when_all(std::move(parts));
    (void)all;
}

// --- what this member holds for true ---

// A higher epoch than all so far ends the one that was.
void election::see(epoch e) {
    if (e <= highest_) return;
    store_.save(e);  // I1
    highest_ = e;
    if (!leader_) return;
    if (leads()) ++counts_.stepped_down;
    heard_ = now();        // the new leader has its time to be heard
    follow(std::nullopt);  // I2
}

void election::follow(std::optional<epoch> e) {
    if (leader_ == e) return;
    leader_ = e;
    leadership_.send_replace({e, leads()});
    decision_.notify_one();
}

void election::lead() {
    epoch const mine{highest_.term + 1, id()};  // I3
    store_.save(mine);                          // I1
    highest_ = mine;
    ++counts_.led;
    follow(mine);
    beat_now_.notify_waiters();
}

bool election::admit(epoch e) {
    if (e < highest_) {
        ++counts_.stale;
        return false;
    }
    see(e);
    return true;
}

void election::step_down(epoch newer) { see(newer); }

void election::suspect(epoch silent) {
    if (leader_ != silent || leads()) return;
    suspected_ = silent;
    want_election();
}

void election::want_election() noexcept {
    wanted_ = true;
    decision_.notify_one();
}

// --- elections ---

task<void> election::decide() {
    while (!closed_) {
        if (std::exchange(wanted_, false)) {
            co_await hold_election();
        } else if (leads()) {
            co_await decision_.notified();
        } else {
            time_point const until = later(heard_, options_.silence);
            auto const told = co_await decision_.notified_until(until);
            (void)told;
            wanted_ = wanted_ || (!leads() && now() >= later(heard_, options_.silence));
        }
    }
    follow(std::nullopt);
    beat_now_.notify_waiters();  // each tell() ends too
}

task<void> election::hold_election() {
    ++counts_.elections;
    if (!leads()) follow(std::nullopt);
    std::vector<task<bool>> questions;
    questions.reserve(members_.size());
    for (address const& member : members_) questions.push_back(ask_for_a_higher(member));
    std::vector<bool> const higher = co_await when_all(std::move(questions));
    wanted_ = false;
    heard_ = now();  // one that has answered is waited for
    bool const lost = leader_ && leader_ != suspected_ && leader_->leader > id();
    if (closed_ || leads() || lost) co_return;
    if (std::ranges::find(higher, true) == higher.end()) lead();
}

// Asks everybody, as those with a lower id know epochs too.
task<bool> election::ask_for_a_higher(address member) {
    std::vector<std::byte> const nothing;
    auto const a =
        co_await self_.ask(member, election_type, nothing, options_.answer_time, highest_);
    if (!a && a.error() == ask_error::closed) closed_ = true;
    if (!a) co_return false;
    if (auto const e = epoch_in(*a)) see(*e);
    co_return member.id > id();
}

answer election::on_election(message const& m) {
    see(m.epoch);
    if (leads()) {
        beat_now_.notify_waiters();
    } else if (m.source.id < id()) {
        want_election();
    }
    return with_epoch(ok, highest_);
}

// --- leading ---

// Tells one member that this one leads, whenever it does.
task<void> election::tell(address member) {
    while (!closed_) {
        if (!leads()) {
            co_await beat_now_.notified();
            continue;
        }
        std::vector<std::byte> const nothing;
        auto const a =
            co_await self_.ask(member, coordinator_type, nothing, options_.beat, *leader_);
        if (!a) {
            if (a.error() == ask_error::closed) closed_ = true;
            continue;
        }
        if (auto const e = epoch_in(*a)) see(*e);
        time_point const again = later(now(), options_.beat);
        auto const early = co_await beat_now_.notified_until(again);
        (void)early;
    }
    decision_.notify_one();
}

answer election::on_coordinator(message const& m) {
    bool const honest = m.epoch.leader == m.source.id;
    if (!honest || !admit(m.epoch)) return with_epoch(stale, highest_);
    heard_ = now();
    follow(m.epoch);
    return with_epoch(ok, highest_);
}

bool election::serves(std::uint8_t type) noexcept {
    return type == election_type || type == coordinator_type;
}

answer election::serve(message const& m) {
    return m.type == election_type ? on_election(m) : on_coordinator(m);
}

}  // namespace rondo::cluster
