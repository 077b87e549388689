// Who is there: signs of life of the predecessor, members that are missed, rings that have not
// heard of each other, and the start.
//
// Every way out of the ring has a way back that begins on either side: a member that hears of a
// higher ring than it has promised to be in asks to be taken in, and those inside look now and then
// for who is outside.
#include <algorithm>

#include "ring_messages.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_all.hpp"

namespace rondo::cluster {

namespace msg = ring_message;

void token_ring::repair() noexcept {
    repair_wanted_ = true;
    decision_.notify_one();
}

// A ring above what this member has promised was agreed on without it.
void token_ring::hear_of(ring_epoch const& e, member_id from) noexcept {
    highest_number_ = std::max(highest_number_, e.number);
    if (e <= promised_ || from == id()) return;
    join_to_ = from;
    decision_.notify_one();
}

// --- the predecessor ---

task<void> token_ring::inspect() {
    ring_epoch watched;
    int missed = 0;
    for (;;) {
        if (watched != ring_) missed = 0;
        watched = ring_;
        time_point const next = later(now(), options_.keep_alive);
        if (!alone() && !is_frozen()) {
            member_id const before = predecessor_of(id());
            bool const lives = co_await look_at(before);
            missed = lives ? 0 : missed + 1;
            if (missed >= options_.missed && ring_ == watched && !is_frozen()) {
                missed = 0;
                ++counts_.suspected;
                co_await accuse(before);
            }
        }
        co_await sleep_until(next);
    }
}

task<bool> token_ring::look_at(member_id m) {
    address const to = address_of(m);
    std::vector<std::byte> const body = msg::of_ring(ring_);
    auto const a = co_await self_.ask(to, msg::keep_alive, body, options_.keep_alive);
    if (!a) co_return false;
    hear_of(msg::ring_in(*a), m);
    co_return true;
}

answer token_ring::on_keep_alive(message const& m) {
    byte_reader from{m.body};
    ring_epoch const e = msg::get_ring(from);
    if (from.complete()) hear_of(e, m.source.id);
    return msg::answer_with(msg::yes, ring_);
}

// Tells the one before the dead, or if that is dead too the one before, and in the end itself.
task<void> token_ring::accuse(member_id dead) {
    ring_epoch const in = ring_;
    std::vector<std::byte> body = msg::of_ring(in);
    byte_writer{body}.put(dead);
    for (member_id m = predecessor_of(dead); m != id(); m = predecessor_of(m)) {
        address const to = address_of(m);
        auto const a = co_await self_.ask(to, msg::dead, body, options_.handshake);
        if (ring_ != in || is_frozen()) co_return;
        if (!a) continue;
        hear_of(msg::ring_in(*a), m);
        co_await sleep_for(options_.freeze);  // it has that long to begin
        break;
    }
    if (ring_ == in && !is_frozen()) repair();
}

answer token_ring::on_dead(message const& m) {
    byte_reader from{m.body};
    ring_epoch const e = msg::get_ring(from);
    (void)from.get<member_id>();  // for who reads along: everybody is asked in a handshake
    if (from.complete() && e == ring_ && !is_frozen()) repair();
    if (from.complete()) hear_of(e, m.source.id);
    return msg::answer_with(e < ring_ ? msg::stale : msg::yes, ring_);
}

// --- those outside ---

task<void> token_ring::look_outside() {
    for (std::size_t turn = 0;; ++turn) {
        co_await sleep_for(with_jitter(options_.keep_alive));
        if (ring_.number == 0 || is_frozen()) continue;
        std::vector<member_id> outside;
        for (address const& a : configured_) {
            if (!is_member(a.id)) outside.push_back(a.id);
        }
        if (outside.empty()) continue;
        bool const is_there = co_await look_at(outside[turn % outside.size()]);
        (void)is_there;  // one that is has heard of this ring, or this member of its
    }
}

// Asks for a place in a ring.
task<void> token_ring::join() {
    address const to = address_of(*join_to_);
    join_to_.reset();
    ++counts_.joins;
    std::vector<std::byte> const body = msg::of_ring(ring_);
    auto const a = co_await self_.ask(to, msg::join, body, options_.freeze);
    if (!a || is_frozen()) co_return;
    bool const refused = a->type != msg::yes;
    auto const begun =
        co_await decision_.notified_for(refused ? options_.keep_alive : options_.freeze);
    (void)begun;
}

// Not so often that a member which hears nothing keeps the ring frozen by asking again and again.
answer token_ring::on_join(message const& m) {
    byte_reader from{m.body};
    ring_epoch const e = msg::get_ring(from);
    if (!from.complete() || ring_.number == 0 || e > ring_) {
        return msg::answer_with(msg::later, ring_);
    }
    if (now() < later(committed_at_, 2 * options_.freeze)) {
        return msg::answer_with(msg::later, ring_);
    }
    repair();
    return msg::answer_with(msg::yes, ring_);
}

// In no ring yet: into one that is there, or the lowest of those that are there begins one.
task<void> token_ring::start() {
    std::vector<task<bool>> questions;
    std::vector<member_id> others;
    for (address const& a : configured_) {
        if (a.id == id()) continue;
        others.push_back(a.id);
        questions.push_back(look_at(a.id));
    }
    std::vector<bool> const answered = co_await when_all(std::move(questions));
    if (join_to_ || ring_.number != 0 || is_frozen()) co_return;
    member_id lowest = id();
    for (std::size_t i = 0; i < others.size(); ++i) {
        if (answered[i]) lowest = std::min(lowest, others[i]);
    }
    if (lowest == id()) {
        repair();
    } else {
        auto const begun = co_await decision_.notified_for(with_jitter(options_.freeze));
        (void)begun;
    }
}

}  // namespace rondo::cluster
