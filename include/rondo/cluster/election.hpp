// election.hpp: who leads: the member with the highest id that is there (Bully), in epochs.
//
//   cluster::election leading{me, members, store};          // me: the peer, whose service has
//   if (election::serves(m.type)) co_return leading.serve(m);
//   spawn(where, leading.run());
//   auto changes = leading.subscribe();
//   while (co_await changes.changed()) use(*changes.borrow_and_update());
//
// An epoch is a term and the member that leads in it; a higher one is newer. Every member holds an
// election when it starts, when it has not heard of its leader for `silence`, when a member with a
// lower id holds one, and when it is told to suspect(). It asks all members (ELECTION). If one with
// a higher id answers within `answer_time`, that one will lead, and is waited for; otherwise the
// member itself leads, in a term that is one more than the highest it has seen, and says so to all
// members again and again (COORDINATOR): that is also what they hear of it.
//
// Guarantee      an epoch has one leader, in one of its runs: a term is saved before it is used.
//                The epoch that a member has accepted never falls, not even over a restart: it is
//                saved before it is answered, and who comes with a lower one is answered STALE and
//                the epoch that is known. A leader that learns of a higher epoch steps down.
// Not guaranteed that there is one leader: while members do not hear each other there may be
//                several, each in its own epoch. Effects are to be fenced by the epoch (admit()) or
//                where they become real. Once messages get through, one of them is left.
// Liveness       some time after crashes and cuts have ended everybody has the same leader. When
//                all start at once, or one starts again, it is the highest of those that are there.
// Stop           run() ends when it is stopped, or asks with a peer that is closed.
// Exceptions     of the store: from run(), or to whom serve(), admit() or step_down() was called
//                by. Nothing was answered, sent or accepted then that is not saved.
// Thread safety  none, as of the peer.
// Lifetime       longer than run(); shorter than the peer.
// Example        examples/cluster/who_leads.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "rondo/cluster/message.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/task.hpp"
#include "rondo/sync/notify.hpp"
#include "rondo/sync/watch.hpp"

namespace rondo::cluster {

// Keeps the highest epoch that a member has seen, over restarts.
class epoch_store {
  public:
    // A term of 0 if nothing was saved.
    virtual epoch load() = 0;
    // What is saved is durable when it returns.
    virtual void save(epoch highest) = 0;

  protected:
    ~epoch_store() = default;
};

struct election_options {
    clock::duration silence = std::chrono::milliseconds{700};      // of the leader, then it is gone
    clock::duration answer_time = std::chrono::milliseconds{200};  // for an ELECTION
    clock::duration beat = std::chrono::milliseconds{200};         // of COORDINATOR
};

struct leadership {
    std::optional<epoch> leader;  // nothing while it is not known
    bool mine = false;

    friend bool operator==(leadership const&, leadership const&) = default;
};

struct election_counts {
    std::uint64_t elections = 0;
    std::uint64_t led = 0;
    std::uint64_t stepped_down = 0;
    std::uint64_t stale = 0;  // messages of lower epochs, refused
};

class election {
  public:
    // The members are all of the cluster; whether the peer itself is among them does not matter.
    election(peer& self, std::vector<address> members, epoch_store& store,
             election_options chosen = {});
    election(election const&) = delete;
    election& operator=(election const&) = delete;

    // Takes part until it is stopped. Once.
    task<void> run();

    // For the peer's service: the messages of elections, and their answers.
    static bool serves(std::uint8_t type) noexcept;
    answer serve(message const& m);

    leadership current() const { return *leadership_.borrow(); }
    bool leads() const noexcept { return leader_ && leader_->leader == id(); }
    // The highest that was seen; not less than that of the leader.
    epoch highest() const noexcept { return highest_; }
    watch::receiver<leadership> subscribe() const noexcept { return leadership_.subscribe(); }

    // A message of this epoch came from somebody who says that it leads: false if that is the past.
    bool admit(epoch e);
    // Somebody answered STALE with this epoch.
    void step_down(epoch newer);
    // The leader of this epoch does not answer, whatever is heard of it: hold an election.
    void suspect(epoch silent);

    election_counts const& counts() const noexcept { return counts_; }

  private:
    member_id id() const noexcept { return self_.self().id; }
    time_point now() const noexcept { return timers_ != nullptr ? timers_->now() : time_point{}; }
    task<void> decide();
    task<void> hold_election();
    task<bool> ask_for_a_higher(address member);
    task<void> tell(address member);
    void lead();
    void see(epoch e);
    void follow(std::optional<epoch> e);
    void want_election() noexcept;
    answer on_election(message const& m);
    answer on_coordinator(message const& m);

    peer& self_;
    std::vector<address> members_;  // the others
    epoch_store& store_;
    election_options const options_;
    timer_service* timers_ = nullptr;
    epoch highest_;
    std::optional<epoch> leader_;
    std::optional<epoch> suspected_;
    time_point heard_{};  // of the leader, or of an election that will have one
    bool wanted_ = true;  // an election; the first one when it starts
    bool closed_ = false;
    notify decision_;  // for decide()
    notify beat_now_;  // for each tell()
    watch::sender<leadership> leadership_{leadership{}};
    election_counts counts_;
};

}  // namespace rondo::cluster
