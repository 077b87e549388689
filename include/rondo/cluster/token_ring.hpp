// token_ring.hpp: named tokens that go round a ring of members, which is repaired when one dies.
//
//   cluster::token_ring ring{me, members, renew};            // me: the peer, whose service has
//   if (token_ring::serves(m.type)) co_return ring.serve(m);
//   spawn(where, ring.run());
//   {
//       held_token lemon = co_await ring.take("lemon");      // when it comes round
//       change(lemon.content());
//   }                                                        // it goes on to the next member
//
// A token is a name and some bytes. Its place is (generation, hop): a generation is made by one
// member in one of its runs, and each passing is a hop. What is sent is not used any more, and kept
// until it is acknowledged; a member accepts only what is greater than all it has seen.
//
// The ring has an epoch. A member asks its predecessor for a sign of life (KEEPALIVE); when that is
// missing it tells the one before (ROBOTDEAD), or if that is dead too the one before that, and in
// the end itself. Who is told asks everybody (HANDSHAKE), which freezes the passing, and collects
// what each one holds and knows; then it says who is in the ring from now on and where the tokens
// are (RING_COMMIT). A token that none of them holds is made anew, in a new generation, from the
// best copy, by `renew`. The highest epoch wins; a freeze that is not ended in time leads to a new
// handshake. A member that was left out learns it from who it talks to (STALE) and is taken in
// again (JOIN). One that starts has to be taken in too, as it knows nothing of its past.
//
// Guarantee      (I4) a generation of a token has at most one holder, whatever is lost, repeated,
//                overtaken or wrongly suspected; the places that a run of a member accepts rise.
// Not guaranteed that there is one token of a name: while members do not hear each other there may
//                be several generations. When they do again the lower ones are dropped.
// Liveness       some time after crashes and cuts have ended all members are in one ring, and each
//                token that `renew` gives comes to each of them again and again.
// Taking turns   a token stays for one take() at each visit, then goes on; without one it stays for
//                `linger`. In a ring of one it stays.
// One at a time  take() while a token is held is a programmer's error: two members that each hold
//                what the other one waits for would wait for ever.
// Lost tokens    a held token may be taken away by a repair (is_valid()): when this member was left
//                out of a ring that made another one. What was done with it is in the old
//                generation.
// Limits         16 members, 16 tokens, names of 24 bytes, contents of 512.
// Stop           run() ends when it is stopped. Tokens stay where they are, and are missed.
// Thread safety  none, as of the peer.
// Lifetime       longer than run(), take() and every held_token; shorter than the peer.
// Example        examples/cluster/round_table.cpp
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/cluster/message.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/notify.hpp"

namespace rondo::cluster {

// Nobody else makes the same: the count rises, and the maker is in it.
struct generation {
    std::uint64_t count = 0;
    member_run maker;

    friend auto operator<=>(generation const&, generation const&) = default;
};

struct token_place {
    generation gen;
    std::uint64_t hop = 0;

    friend auto operator<=>(token_place const&, token_place const&) = default;
};

struct ring_epoch {
    std::uint64_t number = 0;  // 0: no ring
    member_run coordinator;

    friend auto operator<=>(ring_epoch const&, ring_epoch const&) = default;
};

struct token {
    std::string name;
    std::vector<std::byte> content;
};

enum class token_state : std::uint8_t {
    elsewhere,  // what is known of it is a copy
    here,
    taken,  // here, and held by the program
    sent,   // not acknowledged
};

struct token_view {
    std::string name;
    token_state state = token_state::elsewhere;
    token_place place;
    std::vector<std::byte> content;
};

struct ring_options {
    clock::duration keep_alive = std::chrono::milliseconds{500};
    int missed = 3;  // signs of life, then a member is dead
    clock::duration freeze = std::chrono::seconds{1};
    // For an answer to a handshake; with what `renew` takes it is less than the freeze.
    clock::duration handshake = std::chrono::milliseconds{400};
    clock::duration linger = std::chrono::milliseconds{5};
    // A token that is waited for and has not come for so long is looked for by a handshake.
    clock::duration overdue = std::chrono::seconds{3};
    std::uint32_t jitter_seed = 1;
};

struct ring_counts {
    std::uint64_t accepted = 0;   // tokens
    std::uint64_t passed = 0;     // and acknowledged
    std::uint64_t repeated = 0;   // not greater than what was seen
    std::uint64_t stale = 0;      // messages of older rings, refused
    std::uint64_t suspected = 0;  // predecessors
    std::uint64_t handshakes = 0;
    std::uint64_t commits = 0;
    std::uint64_t joins = 0;
    std::uint64_t made = 0;  // tokens, by this member
    std::uint64_t lost = 0;  // held ones that were taken away
    std::uint64_t freezes_timed_out = 0;
};

class token_ring;

// A token that is held. It goes on when this is gone.
class [[nodiscard("the token goes on at once")]] held_token {
  public:
    held_token(held_token&& other) noexcept
        : ring_(std::exchange(other.ring_, nullptr)), slot_(other.slot_), place_(other.place_) {}
    held_token& operator=(held_token&&) = delete;
    ~held_token();

    // False when a repair took it away: what is written to it from then on is lost.
    bool is_valid() const noexcept;
    token_place const& place() const noexcept { return place_; }
    // Those that it had, and may be given others; at most 512 bytes. It is valid.
    std::vector<std::byte>& content() noexcept;

  private:
    friend token_ring;
    held_token(token_ring& r, std::size_t slot, token_place const& p) noexcept
        : ring_(&r), slot_(slot), place_(p) {}

    token_ring* ring_;
    std::size_t slot_;
    token_place place_;
};

class token_ring {
  public:
    static constexpr std::size_t most_members = 16;
    static constexpr std::size_t most_tokens = 16;
    static constexpr std::size_t longest_name = 24;
    static constexpr std::size_t longest_content = 512;

    // Gives the contents of the tokens to be made, when nobody holds them: of those that are lost,
    // from the best copy that is known, and of those that have never been there (neither lost nor
    // held). One that it does not give is not made, and is missing until a later handshake. It has
    // a third of the freeze; when it takes longer it is stopped, and nothing is made.
    using renewal =
        std::function<task<std::vector<token>>(std::vector<token> lost, std::vector<std::string>)>;
    // Sees each token that is accepted, and may change its content at once.
    using arrival = std::function<void(std::string const& name, token_place const& place,
                                       std::vector<std::byte>& content)>;

    // The ring in its order, this member among them.
    token_ring(peer& self, std::vector<address> ring, renewal renew, ring_options chosen = {},
               arrival arrived = {});
    ~token_ring();
    token_ring(token_ring const&) = delete;
    token_ring& operator=(token_ring const&) = delete;

    // Takes part until it is stopped. Once.
    task<void> run();

    // For the peer's service: the messages of the ring, and their answers.
    static bool serves(std::uint8_t type) noexcept;
    answer serve(message const& m);

    // Waits until the token is here. There is room for its name.
    task<held_token> take(std::string name);
    // There is a token of this name, or there may be one: a ring has 16 names, and forgets none.
    bool has_room_for(std::string_view name) const noexcept;
    // Asks for a handshake: because there is a new token to be made, say.
    void repair() noexcept;

    // In the order of the ring; empty while this member is in none.
    std::vector<member_id> members() const;
    // This run of a member is in the ring: not an earlier one.
    bool is_in_ring(member_run const& m) const noexcept;
    ring_epoch epoch() const noexcept { return ring_; }
    bool is_frozen() const noexcept { return promised_ > ring_; }
    // All that is known of tokens, by name. One that was never here has no place and no content.
    std::vector<token_view> tokens() const;
    ring_counts const& counts() const noexcept { return counts_; }

  private:
    friend held_token;

    // What this member knows of a token. The place of its copy is that which it has seen last in
    // its own hands; that of a commit it has only heard of may be higher.
    struct slot {
        std::string name;
        token_state state = token_state::elsewhere;
        token_place seen;
        token_place place;
        std::vector<std::byte> content;
        time_point since{};    // it is here
        bool visited = false;  // it was taken since it came
        std::size_t waiting = 0;
        notify changed;  // for carry()
        notify arrived;  // for take()
    };
    class waiting_mark;
    struct report;
    struct commitment;

    member_id id() const noexcept { return self_.self().id; }
    time_point now() const noexcept { return timers_ != nullptr ? timers_->now() : time_point{}; }
    clock::duration with_jitter(clock::duration d) noexcept;
    address address_of(member_id m) const noexcept;
    bool alone() const noexcept { return members_.size() <= 1; }
    bool is_member(member_id m) const noexcept;
    member_id successor() const noexcept;
    member_id predecessor_of(member_id m) const noexcept;

    // passing: token_ring.cpp
    slot* find(std::string_view name) noexcept;
    slot* find_or_make(std::string_view name);
    task<void> carry(std::size_t index);
    task<void> pass(slot* s);
    bool may_send(slot const& s, token_place const& p, ring_epoch const& in) const noexcept;
    void put_here(slot& s, token_place const& p, std::vector<std::byte> content);
    void give_back(std::size_t index, token_place const& p) noexcept;
    answer on_token(message const& m);

    // finding out who is there: ring_inspection.cpp
    task<void> inspect();
    task<void> accuse(member_id dead);
    task<void> look_outside();
    task<bool> look_at(member_id m);
    task<void> start();
    task<void> join();
    void hear_of(ring_epoch const& e, member_id from) noexcept;
    answer on_keep_alive(message const& m);
    answer on_dead(message const& m);
    answer on_join(message const& m);

    // agreeing on a ring: ring_repair.cpp
    task<void> coordinate();
    task<void> hold_handshake();
    task<std::optional<report>> ask_for_report(member_id m, ring_epoch e);
    task<std::optional<commitment>> decide(ring_epoch e, std::vector<report> reports);
    task<void> tell_commit(member_id m, std::vector<std::byte> body);
    report own_report() const;
    bool promise(ring_epoch const& e) noexcept;
    void apply(commitment const& c);
    answer on_handshake(message const& m);
    answer on_commit(message const& m);

    peer& self_;
    std::vector<address> const configured_;
    renewal const renew_;
    ring_options const options_;
    arrival const arrived_;
    std::minstd_rand jitter_;
    timer_service* timers_ = nullptr;

    ring_epoch ring_;      // that this member is in
    ring_epoch promised_;  // the highest it was asked into; nothing below it is agreed to
    std::uint64_t highest_number_ = 0;  // of epochs that were heard of
    std::vector<member_run> members_;   // of ring_, in its order
    time_point frozen_until_{};
    time_point committed_at_{};
    std::array<slot, most_tokens> slots_;
    std::size_t taken_ = 0;

    bool repair_wanted_ = false;
    std::optional<member_id> join_to_;
    notify decision_;  // for coordinate()
    ring_counts counts_;
};

}  // namespace rondo::cluster
