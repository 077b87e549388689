// A robot, alone in its ring, and somebody who leads it, in the simulator.
#include "shop/robot.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/cluster/peer.hpp"
#include "rondo/core/spawn.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"
#include "shop/container.hpp"
#include "shop/messages.hpp"
#include "support/child_process.hpp"

namespace rondo::shop {
namespace {

using namespace std::chrono_literals;

struct wish {
    std::vector<level> levels;  // of the ledger, as the leader knows it
    std::string flavour;
    clock::duration patience = 20s;
    bool again = false;  // the attempt is that of the wish before
    order_id oid = "0-j-1";
    request what = request::dispatch;
};

class Robot : public testing::Test {
  protected:
    // What becomes of orders of one scoop each, and is answered of their cups, one after the other.
    std::vector<std::string> outcomes_of(std::vector<wish> wishes) {
        wishes_ = std::move(wishes);
        robot_.start();
        leader_.start();
        (void)world_.run_for(10min);
        return outcomes_;
    }
    // How long it takes to fill in a scoop.
    void set_scoop(clock::duration d) { scoop_ = d; }
    // After all wishes.
    bool is_alive() const { return alive_; }

  private:
    static endpoint door_of(member_id id) { return {1000 + id, 7}; }
    static task<cluster::answer> serve_as_screen(cluster::message) {
        co_return answer_with(reply::nonsense);
    }

    task<void> be_robot(sim::node* self) {
        place here;
        here.where = self;
        here.network = self;
        here.endpoint_of = door_of;
        here.incarnation = 1;
        here.random = [] { return std::uint64_t{1}; };
        here.directory = files_.path().string();
        here.fail = here.cannot_start = [](std::string const& why) { ADD_FAILURE() << why; };
        here.log = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::null_sink_mt>());
        robot_options chosen;
        chosen.ring = {0};
        chosen.scoop = scoop_;
        co_await run_robot(std::move(here), std::move(chosen));
    }

    task<void> be_leader(sim::node* self) {
        cluster::peer me{
            self->bind(door_of(screen_id(0))).value(), {}, {screen_id(0), 1}, serve_as_screen};
        auto const receiving = spawn(*self, me.run());
        cluster::address const robot{door_of(robot_id(0)), robot_id(0)};
        cluster::epoch const mine{1, screen_id(0)};
        std::uint64_t attempt = 0;
        for (wish const& w : wishes_) {
            if (!w.again) ++attempt;
            std::vector<std::byte> body = pack(attempt_at{w.oid, attempt});
            if (w.what == request::dispatch) {
                body = pack(order_request{w.oid, attempt, {{w.flavour, 10}}, w.levels});
            }
            auto const a = co_await me.ask(robot, type(w.what), body, w.patience, mine);
            outcomes_.push_back(a ? text_of(*a) : "no answer");
        }
        std::vector<std::byte> const nothing;
        auto const sign = co_await me.ask(robot, type(request::keepalive), nothing, 1s, mine);
        alive_ = sign && is(*sign, reply::yes);
        co_await sleep_for(1h);
    }
    static std::string text_of(cluster::answer const& a) {
        if (is(a, reply::ready)) return "ready";
        if (is(a, reply::ack)) return "ack";
        if (is(a, reply::gone)) return "gone";
        auto const said = unpack<why>(a.body);
        return is(a, reply::abort) && said ? said->reason : "something else";
    }

    rondo::test::scratch_directory files_;
    sim::world world_;
    sim::network net_{world_};
    sim::node robot_{world_, net_, 1000 + robot_id(0),
                     [this](sim::node* self) { return be_robot(self); }};
    sim::node leader_{world_, net_, 1000 + screen_id(0),
                      [this](sim::node* self) { return be_leader(self); }};
    std::vector<wish> wishes_;
    std::vector<std::string> outcomes_;
    clock::duration scoop_{};
    bool alive_ = false;
};

// So many flavours, from this one on, with a kilo of each.
std::vector<level> flavours(int from, int count) {
    std::vector<level> all;
    for (int i = 0; i < count; ++i) all.push_back({"flavour" + std::to_string(from + i), 1000});
    return all;
}

// What is sold may change, at most 16 flavours at a time; a ring of tokens has room for 16 in all.
TEST_F(Robot, HasNoRoomForASeventeenthFlavour) {
    std::vector<std::string> const expected{
        "ready",
        "ready",
        "unknown flavour flavour16",
        "robots have no room for flavour16",  // though it is sold now
        "ready",                              // those that there were go on
        "unknown flavour flavour0",           // but for the one that is not sold any more
    };
    EXPECT_EQ(outcomes_of({{flavours(0, 16), "flavour0"},
                           {flavours(0, 16), "flavour15"},
                           {flavours(0, 16), "flavour16"},
                           {flavours(1, 16), "flavour16"},
                           {flavours(1, 16), "flavour1"},
                           {flavours(1, 16), "flavour0"}}),
              expected);
}

TEST_F(Robot, MakesNoMoreThanThereIs) {
    std::vector<std::string> const expected{"ready", "not enough mint is left"};
    EXPECT_EQ(outcomes_of({{{{"mint", 15}}, "mint"}, {{{"mint", 15}}, "mint"}}), expected);
}

// A container has room for 16 reservations. Those of cups that nobody fetches are put back when
// they are old enough, also if the robot has an order that waits for just that.
TEST_F(Robot, ThrowsOldCupsAwayWhileAnOrderWaitsForTheirRoom) {
    std::vector<wish> wishes(container::most_reserved, {{{"mint", 1000}}, "mint"});
    wishes.push_back({{{"mint", 1000}}, "mint", 5min});
    EXPECT_EQ(outcomes_of(wishes), std::vector<std::string>(wishes.size(), "ready"));
}

wish about_the_last(request what) { return {{}, {}, 20s, true, "0-j-1", what}; }

TEST_F(Robot, HasNoCupAnyMoreThatWasDiscarded) {
    std::vector<std::string> const expected{"ready", "ack", "gone"};
    EXPECT_EQ(outcomes_of({{{{"mint", 15}}, "mint"},
                           about_the_last(request::discard),
                           about_the_last(request::deliver)}),
              expected);
}

// If only the answer was lost to a screen, what was in it does not come back into the container.
TEST_F(Robot, DoesNotForgetACupThatWasFetchedBeforeItIsDiscarded) {
    std::vector<std::string> const expected{"ready", "ack", "ack", "ack"};
    EXPECT_EQ(outcomes_of({{{{"mint", 15}}, "mint"},
                           about_the_last(request::deliver),
                           about_the_last(request::discard),
                           about_the_last(request::deliver)}),
              expected);
}

// A screen has one order at a time, in the order of its file.
TEST_F(Robot, ThrowsAwayWhatAScreenHasOrderedBefore) {
    std::vector<std::string> const expected{"ready", "not enough mint is left",
                                            "not enough mint is left", "ready"};
    EXPECT_EQ(outcomes_of({{{{"mint", 15}}, "mint", 20s, false, "0-j-9"},
                           {{{"mint", 15}}, "mint", 20s, false, "0-k-10"},  // another file
                           {{{"mint", 15}}, "mint", 20s, false, "1-j-10"},  // another screen
                           {{{"mint", 15}}, "mint", 20s, false, "0-j-10"}}),
              expected);
}

// A leader asks every second for what takes longer: one request of an attempt is enough to wait.
TEST_F(Robot, AnswersHoweverOftenItWasAskedForWhatItMakes) {
    std::vector<wish> wishes(2 * cluster::peer_options{}.served_at_once,
                             {{{"mint", 1000}}, "mint", 100ms, true});
    set_scoop(1h);
    EXPECT_EQ(outcomes_of(wishes), std::vector<std::string>(wishes.size(), "no answer"));
    EXPECT_TRUE(is_alive());
}

}  // namespace
}  // namespace rondo::shop
