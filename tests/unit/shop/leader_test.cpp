// A leader with a robot, in the simulator; of its screens nobody is there.
#include "shop/leader.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rondo/core/this_task.hpp"
#include "rondo/sim/node.hpp"

namespace rondo::shop {
namespace {

using namespace std::chrono_literals;

class nowhere final : public cluster::epoch_store {
  public:
    cluster::epoch load() override { return {}; }
    void save(cluster::epoch) override {}
};

class Leading : public testing::Test {
  protected:
    void run_for(clock::duration d) { (void)world_.run_for(d); }
    std::vector<std::exception_ptr> take_unobserved() { return world_.take_unobserved(); }
    // Nobody knows where that one is: a fault of the program.
    void lose_address_of(member_id id) { lost_ = id; }
    void start() {
        robot_.start();
        screen_.start();
    }
    // Until the order of a screen is ready, from when its leader began.
    std::optional<clock::duration> took() const { return took_; }

  private:
    static endpoint door_of(member_id id) { return {1000 + id, 7}; }

    static task<cluster::answer> serve_as_robot(cluster::message m) {
        switch (static_cast<request>(m.type)) {
            case request::recover:
                co_return answer_with(reply::ready, holding{});
            case request::dispatch:
                co_return answer_with(reply::ready, cup{});
            default:
                co_return answer_with(reply::ack);
        }
    }
    static task<cluster::answer> serve_as_screen(cluster::message) {
        co_return answer_with(reply::nonsense);
    }

    task<void> be_robot(sim::node* self) {
        cluster::peer me{
            self->bind(door_of(robot_id(0))).value(), {}, {robot_id(0), 1}, serve_as_robot};
        co_await me.run();
    }
    task<void> be_leader(sim::node* self) {
        place here;
        here.where = self;
        here.endpoint_of = [this](member_id id) {
            if (lost_ == id) throw std::runtime_error{"nobody knows"};
            return door_of(id);
        };
        here.log = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::null_sink_mt>());
        cluster::peer me{
            self->bind(door_of(screen_id(0))).value(), {}, {screen_id(0), 1}, serve_as_screen};
        auto receiving = spawn(*self, me.run());
        nowhere store;
        std::vector<cluster::address> const nobody;
        cluster::election elections{me, nobody, store};
        times const patience;
        std::vector<std::uint32_t> const screens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        leader mine{here, me, elections, {1, screen_id(0)}, patience, {}, screens, 1};
        time_point const begun = self->now();
        auto ends = oneshot::channel<order_outcome>();
        mine.order({{"0-j-1", attempts_of_a_screen, {{"mint", 1}}, {}}, std::move(ends.sender)});
        auto const made = co_await ends.receiver.recv();
        if (made && made->kind == reply::ready) took_ = self->now() - begun;
        co_await sleep_for(1h);
    }

    sim::world world_;
    sim::network net_{world_};
    sim::node robot_{world_, net_, 1000 + robot_id(0),
                     [this](sim::node* self) { return be_robot(self); }};
    sim::node screen_{world_, net_, 1000 + screen_id(0),
                      [this](sim::node* self) { return be_leader(self); }};
    std::optional<member_id> lost_;
    std::optional<clock::duration> took_;
};

TEST_F(Leading, OrdersDoNotWaitForScreensThatAreNotThere) {
    start();
    run_for(10s);
    ASSERT_TRUE(took());
    EXPECT_LT(*took(), 200ms);  // what one of them is waited for
}

TEST_F(Leading, ADutyThatFailsIsHeardOfAtOnce) {
    lose_address_of(gateway_id);
    start();
    run_for(1s);
    EXPECT_EQ(take_unobserved().size(), 1U);
}

TEST_F(Leading, AnActorThatFailsIsHeardOfAtOnce) {
    lose_address_of(robot_id(0));
    start();
    run_for(1s);
    EXPECT_EQ(take_unobserved().size(), 2U);  // the OrderResolver, and the duty to tell it
}

}  // namespace
}  // namespace rondo::shop
