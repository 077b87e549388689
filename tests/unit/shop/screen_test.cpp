// A screen, with a gateway that agrees to everything and a robot that keeps its cups, in the
// simulator.
#include "shop/screen.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/cluster/peer.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"
#include "shop/messages.hpp"
#include "support/child_process.hpp"

namespace rondo::shop {
namespace {

using namespace std::chrono_literals;

class Screen : public testing::Test {
  protected:
    void run_for(clock::duration d) {
        for (sim::node* const n : {&gateway_, &robot_, &screen_}) n->start();
        (void)world_.run_for(d);
    }
    // In the ledger, from before.
    void open_order(order_id oid) { unresolved_.push_back(std::move(oid)); }
    // What the robot and the gateway were asked for, and is about a cup. Not by the leader.
    std::vector<std::string> const& asked() const { return asked_; }

  private:
    static endpoint door_of(member_id id) { return {1000 + id, 7}; }

    task<cluster::answer> serve_as_gateway(cluster::message m) {
        switch (static_cast<request>(m.type)) {
            case request::prepare:
                open_order(unpack<proposal>(m.body)->oid);
                co_return answer_with(reply::ready, authorised{});
            case request::commit: {
                auto const paid = unpack<payment>(m.body);
                co_return answer_with(reply::finished, attempt_at{paid->oid, paid->attempt});
            }
            case request::cancel:
                asked_.push_back("cancel " + unpack<cancellation>(m.body)->oid);
                std::erase(unresolved_, unpack<cancellation>(m.body)->oid);
                co_return answer_with(reply::ack, ending{cluster::standing::refunded, "lost"});
            default: {
                remaining r{{{"mint", 1000}}, unresolved_};
                if (r.unresolved.size() > most_unresolved) {
                    r.unresolved.resize(most_unresolved);
                    unresolved_.erase(unresolved_.begin());  // the oldest ends meanwhile
                }
                co_return answer_with(reply::ready, r);
            }
        }
    }
    task<cluster::answer> serve_as_robot(cluster::message m) {
        switch (static_cast<request>(m.type)) {
            case request::recover:
                co_return answer_with(reply::ready, holding{});
            case request::dispatch: {
                auto const wanted = unpack<order_request>(m.body);
                co_return answer_with(reply::ready, cup{wanted->attempt, 0, {{"mint", 10, 1, 1}}});
            }
            case request::deliver:
                asked_.emplace_back("deliver");
                co_await sleep_for(1h);
                co_return answer_with(reply::gone);
            case request::discard:
                if (m.epoch == cluster::epoch{}) asked_.emplace_back("discard");
                co_return answer_with(reply::ack);
            default:
                co_return answer_with(reply::ack);
        }
    }

    task<void> be_gateway(sim::node* self) {
        auto const service = [this](cluster::message m) { return serve_as_gateway(std::move(m)); };
        cluster::peer me{self->bind(door_of(gateway_id)).value(), {}, {gateway_id, 1}, service};
        co_await me.run();
    }
    task<void> be_robot(sim::node* self) {
        auto const service = [this](cluster::message m) { return serve_as_robot(std::move(m)); };
        cluster::peer me{self->bind(door_of(robot_id(0))).value(), {}, {robot_id(0), 1}, service};
        co_await me.run();
    }
    task<void> be_screen(sim::node* self) {
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
        screen_options chosen;
        chosen.screens = {0};
        chosen.robots = 1;
        chosen.file = "orders";
        chosen.orders = {{1, "order", order{"7", "4242", {{"mint", 10}}}}};
        screen_tally const tally = co_await run_screen(std::move(here), std::move(chosen));
        (void)tally;
    }

    rondo::test::scratch_directory files_;
    sim::world world_;
    sim::network net_{world_};
    sim::node gateway_{world_, net_, 1000 + gateway_id,
                       [this](sim::node* self) { return be_gateway(self); }};
    sim::node robot_{world_, net_, 1000 + robot_id(0),
                     [this](sim::node* self) { return be_robot(self); }};
    sim::node screen_{world_, net_, 1000 + screen_id(0),
                      [this](sim::node* self) { return be_screen(self); }};
    std::vector<order_id> unresolved_;
    std::vector<std::string> asked_;
};

// It may be there still: then its robot keeps room for it in the container.
TEST_F(Screen, DiscardsACupThatItHasRefunded) {
    run_for(30s);
    ASSERT_EQ(asked().size(), 3U);
    EXPECT_EQ(asked()[0], "deliver");
    EXPECT_TRUE(asked()[1].starts_with("cancel 0-")) << asked()[1];
    EXPECT_EQ(asked()[2], "discard");
}

// An older journal was lost with its disk. The screen answers, so no leader takes its orders over.
TEST_F(Screen, EndsAnOrderOfItsOwnThatItsJournalDoesNotKnow) {
    open_order("0-lost-7");
    open_order("1-there-3");  // another screen's
    run_for(2s);
    ASSERT_FALSE(asked().empty());
    EXPECT_EQ(asked()[0], "cancel 0-lost-7");
    EXPECT_EQ(std::ranges::count(asked(), "cancel 1-there-3"), 0);
}

// The gateway names the oldest orders only.
TEST_F(Screen, EndsAnOrderThatItsJournalDoesNotKnowBehindManyOfOthers) {
    for (int i = 0; i < 9; ++i) open_order("1-there-" + std::to_string(i));
    open_order("0-lost-7");
    run_for(5s);
    EXPECT_EQ(std::ranges::count(asked(), "cancel 0-lost-7"), 1);
}

}  // namespace
}  // namespace rondo::shop
