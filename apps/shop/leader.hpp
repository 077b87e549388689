// leader.hpp: the leader among the screens: it hands the orders of all of them to free robots.
//
// Actors         by the names of the design they come from:
//                LeaderReceiver    takes the orders of screens
//                OrderCoordinator  knows which robots are free; orders wait in its queue
//                OrderResolver     one for each robot: has it make one order after the other
// Messages       OrderActorMessage (an order), FreeRobotActorMessage (a robot is free again),
//                FallenRobotActorMessage (it does not answer: its order goes to another one).
//
// Attempts       a screen counts its attempts in steps of `attempts_of_a_screen`; the leader counts
//                up from there for each robot it tries, also after one that was asked again for an
//                attempt of an earlier leader. So no two robots make the same attempt.
// Recovery       a leader begins by asking all robots what they hold: an order that a robot has
//                made, or is making, is asked of that robot again, with its attempt. If there are
//                several cups of it, the latest that a free robot has is asked for, and the others
//                are discarded, as all are when another robot makes it meanwhile: the screen asks
//                one leader at a time, so nobody can pay for them any more. (Nor is a busy robot
//                waited for that has a later one: what it makes may need the room of this one.)
//                Screens are asked too, all at once, and orders do not wait for that: they
//                come from them anyway.
// Ended orders   what the ledger does not have open any more would be made for nobody: the order of
//                a screen that is gone was taken over, or one that has started again has ended it.
//                It is dropped, and its cups are discarded, a second later or so: else they would
//                keep room in the containers that others wait for. But not while the gateway has
//                more open orders than it names: then robots throw old cups away by themselves.
//                What a screen had before it orders something else has ended too.
// Bounds         orders that wait or are being made, and all mailboxes; one order too many is
//                answered busy. Of cups that are to be discarded, as many as a robot may have.
// A fallen robot is asked again and again, and is free again when it answers.
// End            stop() ends all actors; who waits for an answer hears nothing (and asks anew).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "limits.hpp"
#include "messages.hpp"
#include "place.hpp"
#include "rondo/actor/actor.hpp"
#include "rondo/cluster/election.hpp"
#include "rondo/cluster/peer.hpp"
#include "rondo/core/join_set.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/sync/oneshot.hpp"
#include "times.hpp"
#include "view.hpp"

namespace rondo::shop {

inline constexpr std::uint64_t attempts_of_a_screen = 1U << 16U;

struct order_outcome {
    reply kind = reply::busy;  // ready, abort, stale or busy
    cup made;
    std::string reason;
};

struct OrderActorMessage {
    order_request wanted;
    oneshot::sender<order_outcome> answer;
    // The last attempt that this leader has counted for it; the one that is wanted may be another,
    // which a robot has made for an earlier leader.
    std::uint64_t counted = wanted.attempt;
};

struct FreeRobotActorMessage {
    std::uint32_t robot = 0;
    std::optional<order_id> ended;   // that it has made, or refused
    order_outcome outcome{};         // of that
    std::vector<attempt_at> held{};  // what it has when it was recognised
};

struct FallenRobotActorMessage {
    std::uint32_t robot = 0;
    std::optional<OrderActorMessage> order{};  // that it should have made
};

// Says to an OrderResolver: find out whether the robot is there.
struct RecogniseActorMessage {};

// Says to the OrderCoordinator which OrderResolver a robot has.
using resolver_address = actor::address<OrderActorMessage, RecogniseActorMessage>;
struct ResolverActorMessage {
    std::uint32_t robot = 0;
    resolver_address resolver;
};

// Says to the OrderCoordinator all that was open in the ledger, some time after that question.
struct LedgerActorMessage {
    std::uint64_t question = 0;
    std::set<order_id> open;
};
using coordinator_address =
    actor::address<OrderActorMessage, FreeRobotActorMessage, FallenRobotActorMessage,
                   ResolverActorMessage, LedgerActorMessage>;

// What the leader knows of the stock, and since when.
struct known_levels {
    std::vector<level> levels;
    time_point since{};
};

// What all parts of a leader share.
struct leading_context {
    place const& here;
    cluster::peer& me;
    cluster::election& elections;
    cluster::epoch mine;
    times const& patience;
    limits most{};
    known_levels known{};
    std::uint64_t questions = 0;  // to the gateway, what is open in its ledger
    // Of the orders that robots are making: those that have ended in the ledger.
    std::set<order_id> ended{};
    // Of each robot: cups that nobody will pay for, until it has heard that.
    std::map<std::uint32_t, std::vector<attempt_at>> unwanted{};
    // Of the OrderCoordinator, after each message.
    std::size_t waiting = 0;
    std::size_t open = 0;
    std::size_t known_cups = 0;

    // By leader::tell_robot(), not by the OrderResolver: that may have an order which waits for the
    // room of just this cup.
    void discard(std::uint32_t robot, attempt_at cup) {
        std::vector<attempt_at>& all = unwanted[robot];
        if (all.size() < most.cups) all.push_back(std::move(cup));
    }
    bool is_unwanted(std::uint32_t robot, attempt_at const& cup) const {
        auto const of = unwanted.find(robot);
        return of != unwanted.end() && std::ranges::find(of->second, cup) != of->second.end();
    }
    // What the gateway said, unless that was too long ago.
    std::vector<level> fresh_levels(time_point now) const {
        return now - known.since <= patience.levels_age ? known.levels : std::vector<level>{};
    }
};

class OrderCoordinator {
  public:
    using accepts =
        actor::messages<OrderActorMessage, FreeRobotActorMessage, FallenRobotActorMessage,
                        ResolverActorMessage, LedgerActorMessage>;

    explicit OrderCoordinator(leading_context& c) noexcept : context_(&c) {}

    void receive(OrderActorMessage m);
    void receive(FreeRobotActorMessage m);
    void receive(FallenRobotActorMessage m);
    void receive(ResolverActorMessage m);
    void receive(LedgerActorMessage m);

  private:
    enum class state : std::uint8_t { unknown, free, busy, fallen };
    struct robot {
        resolver_address resolver;
        state now = state::unknown;
    };
    struct held_cup {
        std::uint32_t robot = 0;
        std::uint64_t attempt = 0;
        std::uint64_t since = 0;  // this question: what is open later is in the answers after it
    };
    struct open_order {
        std::uint64_t since = 0;                             // as above
        std::vector<oneshot::sender<order_outcome>> late{};  // who asked for it once more
    };

    // Gives free robots what waits; at the end of every message.
    void assign();
    // A screen has one order at a time: what it had before has ended.
    void discard_cups_before(order_id const& oid);
    template <class Over>
    void discard_cups(Over const& is_over);
    // A free robot for this order: the one that holds it already, or any other.
    std::optional<std::uint32_t> robot_for(OrderActorMessage& order);
    void give(std::uint32_t number, OrderActorMessage order);
    void end(order_id const& oid, order_outcome const& outcome);
    void drop(OrderActorMessage order);
    void know_cup(std::uint32_t number, order_id const& oid, std::uint64_t attempt);

    leading_context* context_;
    std::map<std::uint32_t, robot> robots_;
    std::deque<OrderActorMessage> queue_;
    std::map<order_id, open_order> open_;  // that are queued or being made
    std::set<order_id> being_made_;        // of these, those that a robot was given
    std::multimap<order_id, held_cup> cups_;
    std::uint32_t last_given_ = 0;
};

class OrderResolver {
  public:
    using accepts = actor::messages<OrderActorMessage, RecogniseActorMessage>;

    OrderResolver(leading_context& c, coordinator_address to, std::uint32_t robot)
        : context_(&c), coordinator_(std::move(to)), robot_(robot) {}

    task<void> receive(OrderActorMessage m);
    task<void> receive(RecogniseActorMessage);

  private:
    // Nothing: the robot does not answer any more.
    task<std::optional<order_outcome>> have_it_made(order_request wanted);
    task<bool> is_alive();

    leading_context* context_;
    coordinator_address coordinator_;
    std::uint32_t robot_;
};

class LeaderReceiver {
  public:
    using accepts = actor::messages<OrderActorMessage>;

    explicit LeaderReceiver(coordinator_address to) : coordinator_(std::move(to)) {}

    void receive(OrderActorMessage m);

  private:
    coordinator_address coordinator_;
};

class leader {
  public:
    leader(place const& here, cluster::peer& me, cluster::election& elections, cluster::epoch mine,
           times const& patience, limits most, std::vector<std::uint32_t> screens,
           std::uint32_t robots);

    // Answered later, or at once when there is no room.
    void order(OrderActorMessage m);
    cluster::epoch epoch() const noexcept { return context_.mine; }
    std::vector<queue_view> queues() const;
    // All actors have ended.
    task<void> stop();

  private:
    // Tells a screen who leads, so that it orders here what it waits for.
    task<void> recognise(std::uint32_t screen);
    task<void> watch_ledger(coordinator_address coordinator);
    task<void> tell_robot(std::uint32_t number);
    task<void> discard_unwanted(std::uint32_t number);
    task<void> take_over();
    task<void> look_at_screens(std::vector<order_id> const* unresolved);
    task<void> look_at(std::uint32_t screen);

    leading_context context_;
    std::vector<std::uint32_t> screens_;
    std::uint32_t robots_;
    std::vector<order_id> unresolved_;  // as the gateway said last
    // Of the screens that did not answer when they were asked last.
    std::map<std::uint32_t, time_point> silent_since_;
    actor::supervisor actors_;
    std::optional<actor::address_of<LeaderReceiver>> receiver_;
    join_set<void> duties_;
};

}  // namespace rondo::shop
