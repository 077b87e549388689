// simulated_shop.hpp: a whole shop in the simulator, with faults, and its invariants.
//
// One seed is one run: how many robots and screens, what is ordered and in stock, what the network
// does, and what goes wrong when. Afterwards everything is put right, but for robots and screens
// that stay away in some runs (one of each is always there), and every order has to end. Invariants
// are checked after every turn, of the member whose turn it was and of what all have to agree on.
//
//   I1  of no flavour more is committed than there is, at every step of the ledger
//   I2  every order is prepared once and committed at most once, in a legal order of states; a line
//       of a file is one order
//   I3  what is delivered was committed; in the end, charged means delivered or refunded
//   I4  a generation of a token has one holder; places that a robot accepts rise
//   I5  an epoch has one leader; what a screen or robot follows does not fall
//   I6  in the end no token shows more than the ledger has, if a leader has said farewell since the
//       last fault, and since the ring was repaired; else as soon as there is one again
//       (docs/shop.md says why). Nor less, but for what is reserved for cups that there are
//   I7  what a screen was told is in the ledger, also after crashes; steps are only added to it
//   I8  every queue is within its bound, also where that is small
//   I9  once faults stop every order ends within `bound`
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rondo/cluster/election.hpp"
#include "rondo/cluster/token_ring.hpp"
#include "rondo/sim/network.hpp"
#include "rondo/sim/node.hpp"
#include "rondo/sim/random.hpp"
#include "rondo/sim/world.hpp"
#include "rondo/sim_sqlite/vfs.hpp"
#include "shop/container.hpp"
#include "shop/gateway.hpp"
#include "shop/members.hpp"
#include "shop/place.hpp"
#include "shop/robot.hpp"
#include "shop/screen.hpp"

namespace rondo::shop::test {

enum class fault : std::uint8_t {
    crash_gateway,
    crash_robot,
    crash_screen,
    crash_leader,
    crash_in_write,
    sync_fails,
    pause,
    cut_one_way,
    cut_from_leader,  // a screen does not hear it any more: two of them lead
    cut_off,          // one member from all others
};
inline constexpr std::size_t faults = 10;
char const* describe(fault f) noexcept;

struct simulation_result {
    std::string violation;  // the first one; empty: none
    bool counts = false;    // a fault came while an order was under way
    std::map<fault, int> happened;
    int stayed_away = 0;                               // members, for good
    std::map<std::string, std::uint64_t> transitions;  // of rings, elections and peers
    std::map<std::string, int> steps;                  // of the ledger, by state
    std::set<std::string> reasons;                     // of what was aborted or refunded
    std::size_t orders = 0;
    clock::duration took{};  // by the virtual clock
    std::uint64_t trace = 0;
};

struct simulation_options {
    std::uint64_t seed = 1;
    int most_faults = 8;  // a shorter schedule with the same beginning
    bool shown = false;   // what happens, line by line, on stdout
    clock::duration bound = std::chrono::seconds{20};
};

class simulated_shop {
  public:
    explicit simulated_shop(simulation_options chosen);
    ~simulated_shop();
    simulated_shop(simulated_shop const&) = delete;
    simulated_shop& operator=(simulated_shop const&) = delete;

    simulation_result run();

  private:
    struct member;
    struct reader;
    struct ledger_step {
        std::string key;
        std::string state;
        std::uint64_t attempt = 0;
        std::string reason;

        friend bool operator==(ledger_step const&, ledger_step const&) = default;
    };

    void draw_plan();
    void add_member(member_id id);
    task<void> live(member_id id, sim::node* self);
    place place_of(member_id id, sim::node* self);
    void start(member& m);
    void run_for(clock::duration span);
    void apply_fault();
    void crash(member& m);
    member& pick(bool (*of_kind)(member_id));
    member* leading();
    void put_right();
    void leave_some_away(bool (*of_kind)(member_id));
    void add_transitions(member& m);
    bool is_resolved(member_id screen) const;
    bool all_ended();
    bool all_closed() const;
    void after_turn_of(executor const& whose);
    void check(member& m);
    void check_ledger();
    void check_steps(std::vector<ledger_step> const& now);
    void check_journal(member& m);
    void check_tokens(member& m);
    void check_leader(member const& m);
    void check_followed(member_id id, cluster::epoch const& now);
    void check_queues(member const& m);
    std::string too_much_is_left();
    std::string too_little_is_left();
    void expect_nothing(std::string what);
    std::map<std::string, std::uint64_t> ledger_has();
    bool has_cup(reservation const& r);
    void violate(std::string what);
    void note(std::string const& what) const;
    double seconds() const;

    simulation_options options_;
    sim::random_source random_;
    sim::world world_;
    sim::network network_;
    stock stock_;
    clock::duration scoop_{};
    std::chrono::milliseconds authorisation_ = std::chrono::seconds{15};
    times patience_;
    limits most_;
    std::vector<std::uint32_t> robots_;
    std::vector<std::uint32_t> screens_;
    std::map<member_id, std::vector<order_line>> orders_;
    std::map<member_id, std::unique_ptr<member>> members_;
    std::vector<ledger_step> ledger_;
    std::map<std::string, std::vector<std::string>> states_;  // of each order so far
    std::map<std::string, std::string> order_of_;             // a screen and line, whatever journal
    std::map<cluster::epoch, cluster::member_run> leaders_;
    std::map<member_id, cluster::epoch> followed_;
    std::size_t under_way_ = 0;
    bool open_again_ = false;
    simulation_result result_;
};

// Of a run that failed: the shortest schedule of faults with which it still does.
int shortest_schedule(std::uint64_t seed, int most);

}  // namespace rondo::shop::test
