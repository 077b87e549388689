// A leader with a robot, in the simulator; of its screens nobody is there, or one in some tests.
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

    // Screen 1 and a gateway, which has no open order yet.
    void start_customers() {
        gateway_.start();
        other_.start();
    }
    void open_order(order_id oid) { unresolved_.push_back(std::move(oid)); }
    void cut_other_off() { net_.cut(1000 + screen_id(1), 1000 + screen_id(0)); }
    void heal() { net_.heal(); }
    // That the leader asked the gateway to cancel.
    std::size_t taken_over() const { return taken_over_; }

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

    static task<cluster::answer> serve_as_other_screen(cluster::message) {
        co_return answer_with(reply::yes, presence{});
    }
    task<cluster::answer> serve_as_gateway(cluster::message m) {
        if (static_cast<request>(m.type) == request::cancel) {
            ++taken_over_;
            unresolved_.clear();
        }
        co_return answer_with(reply::ready, remaining{{{"mint", 1000}}, unresolved_});
    }

    task<void> be_gateway(sim::node* self) {
        cluster::peer me{self->bind(door_of(gateway_id)).value(),
                         {},
                         {gateway_id, 1},
                         [this](cluster::message m) { return serve_as_gateway(std::move(m)); }};
        co_await me.run();
    }
    task<void> be_other_screen(sim::node* self) {
        cluster::peer me{self->bind(door_of(screen_id(1))).value(),
                         {},
                         {screen_id(1), 1},
                         serve_as_other_screen};
        co_await me.run();
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
    sim::node gateway_{world_, net_, 1000 + gateway_id,
                       [this](sim::node* self) { return be_gateway(self); }};
    sim::node other_{world_, net_, 1000 + screen_id(1),
                     [this](sim::node* self) { return be_other_screen(self); }};
    std::vector<order_id> unresolved_;
    std::size_t taken_over_ = 0;
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

// However long the leader has had no reason to ask for it.
TEST_F(Leading, AScreenThatIsSilentForAMomentKeepsItsOrder) {
    start();
    start_customers();
    run_for(20s);
    open_order("1-j-1");
    cut_other_off();
    run_for(3s);
    heal();
    run_for(20s);
    EXPECT_EQ(taken_over(), 0U);
    cut_other_off();  // again: what counts is the last silence
    run_for(3s);
    EXPECT_EQ(taken_over(), 0U);
}

TEST_F(Leading, TheOrderOfAScreenThatIsGoneIsTakenOver) {
    start();
    start_customers();
    open_order("1-j-1");
    cut_other_off();
    run_for(9s);
    EXPECT_EQ(taken_over(), 0U);
    run_for(5s);
    EXPECT_EQ(taken_over(), 1U);
}

}  // namespace
}  // namespace rondo::shop
