// A leader with a robot, in the simulator; of its screens nobody is there, or one in some tests.
#include "shop/leader.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
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
    void end_order(order_id const& oid) { std::erase(unresolved_, oid); }
    // Before its own order the leader has this one made, of another screen. And the container has
    // room for one cup only.
    void order_first(order_id oid) { first_ = std::move(oid); }
    // From the beginning: there is room for no cup at all.
    void fill_container() { made_ = "9-j-9"; }
    // To the first request to discard something.
    void lose_answer() { loses_answer_ = true; }
    // Of the order of a screen, if that was aborted.
    std::string const& reason() const { return reason_; }
    // What the robot has begun to make, and what it was to discard.
    std::vector<std::string> const& asked() const { return asked_; }
    void cut_other_off() { net_.cut(1000 + screen_id(1), 1000 + screen_id(0)); }
    void heal() { net_.heal(); }
    // The process of the leader, when it has asked screen 1 next; and the answer is lost.
    void stop_leader_when_it_asks() { stops_leader_ = true; }
    bool leader_is_stopped() const { return screen_.is_paused(); }
    void let_leader_go_on() { screen_.resume(); }
    // That the leader asked the gateway to cancel.
    std::size_t taken_over() const { return taken_over_; }

  private:
    static endpoint door_of(member_id id) { return {1000 + id, 7}; }

    task<cluster::answer> serve_as_robot(cluster::message m) {
        switch (static_cast<request>(m.type)) {
            case request::recover:
                co_return answer_with(reply::ready, holding{});
            case request::dispatch: {
                auto const wanted = unpack<order_request>(m.body);
                bool const ready = made_.empty() || made_ == wanted->oid;
                if (!ready) co_return answer_with(reply::busy);
                if (made_.empty()) asked_.push_back("make " + wanted->oid);
                made_ = wanted->oid;
                co_return answer_with(reply::ready, cup{wanted->attempt, 0, {}});
            }
            case request::discard: {
                if (std::exchange(loses_answer_, false)) co_await sleep_for(1h);
                auto const unwanted = unpack<attempt_at>(m.body);
                asked_.push_back("discard " + unwanted->oid);
                if (made_ == unwanted->oid) made_.clear();
                co_return answer_with(reply::ack);
            }
            default:
                co_return answer_with(reply::ack);
        }
    }
    static task<cluster::answer> serve_as_screen(cluster::message) {
        co_return answer_with(reply::nonsense);
    }

    task<cluster::answer> serve_as_other_screen() {
        if (std::exchange(stops_leader_, false)) {
            screen_.pause();
            co_await sleep_for(1h);
        }
        co_return answer_with(reply::yes, presence{});
    }
    task<cluster::answer> serve_as_gateway(cluster::message m) {
        if (static_cast<request>(m.type) == request::cancel) {
            ++taken_over_;
            std::erase(unresolved_, unpack<cancellation>(m.body)->oid);
        }
        remaining r{{{"mint", 1000}}, unresolved_};
        if (r.unresolved.size() > most_unresolved) r.unresolved.resize(most_unresolved);
        co_return answer_with(reply::ready, r);
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
                         [this](cluster::message const&) { return serve_as_other_screen(); }};
        co_await me.run();
    }
    task<void> be_robot(sim::node* self) {
        cluster::peer me{self->bind(door_of(robot_id(0))).value(),
                         {},
                         {robot_id(0), 1},
                         [this](cluster::message m) { return serve_as_robot(std::move(m)); }};
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
        std::vector<std::uint32_t> screens(most_screens);
        std::iota(screens.begin(), screens.end(), 0U);
        leader mine{here, me, elections, {1, screen_id(0)}, patience, {}, screens, 1};
        time_point const begun = self->now();
        if (!first_.empty()) {
            auto made_first = oneshot::channel<order_outcome>();
            order_request wanted{first_, attempts_of_a_screen, {{"mint", 1}}, {}};
            mine.order({std::move(wanted), std::move(made_first.sender)});
            auto const outcome = co_await made_first.receiver.recv();
            EXPECT_TRUE(outcome && outcome->kind == reply::ready);
        }
        auto ends = oneshot::channel<order_outcome>();
        mine.order({{"0-j-1", attempts_of_a_screen, {{"mint", 1}}, {}}, std::move(ends.sender)});
        auto const made = co_await ends.receiver.recv();
        if (made && made->kind == reply::ready) took_ = self->now() - begun;
        if (made && made->kind == reply::abort) reason_ = made->reason;
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
    order_id first_;
    std::string reason_;
    bool loses_answer_ = false;
    bool stops_leader_ = false;
    order_id made_;  // the cup that the robot has
    std::vector<std::string> asked_;
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

TEST_F(Leading, AScreenThatALeaderDidNotHearWhileItWasStoppedKeepsItsOrder) {
    start();
    start_customers();
    open_order("1-j-1");
    run_for(5s);
    stop_leader_when_it_asks();
    run_for(5s);
    ASSERT_TRUE(leader_is_stopped());
    run_for(12s);
    let_leader_go_on();
    run_for(20s);
    EXPECT_EQ(taken_over(), 0U);
}

// The gateway names eight of them at a time.
TEST_F(Leading, TheOrdersOfAllScreensThatAreGoneAreTakenOverInTime) {
    for (std::uint32_t s = 1; s < most_screens; ++s) open_order(std::to_string(s) + "-j-1");
    start();
    start_customers();
    cut_other_off();
    run_for(18s);  // the rest is made within the 20 s of I9
    EXPECT_EQ(taken_over(), most_screens - 1);
}

TEST_F(Leading, AScreenThatComesBackKeepsWhatItOrdersThen) {
    start();
    start_customers();
    cut_other_off();
    run_for(20s);
    for (int n = 0; n < 30; ++n) {  // whenever the leader looks
        heal();
        open_order("1-j-" + std::to_string(n));
        run_for(1650ms);
        end_order("1-j-" + std::to_string(n));
        cut_other_off();
        run_for(12s + n * 50ms);
    }
    EXPECT_EQ(taken_over(), 0U);
}

// Also if the robot is asked for another order all the time, which waits for just that.
TEST_F(Leading, WhatWasMadeForAScreenThatIsGoneMakesRoomForOthers) {
    order_first("1-j-1");
    open_order("1-j-1");
    open_order("0-j-1");
    start();
    start_customers();
    cut_other_off();
    lose_answer();
    run_for(15s);
    EXPECT_EQ(taken_over(), 1U);
    std::vector<std::string> const expected{"make 1-j-1", "discard 1-j-1", "make 0-j-1"};
    EXPECT_EQ(asked(), expected);
    EXPECT_TRUE(took());
}

TEST_F(Leading, ARobotWaitsForRoomNoLongerWhenTheOrderHasEnded) {
    fill_container();
    open_order("0-j-1");
    start();
    start_customers();
    run_for(5s);
    EXPECT_EQ(reason(), "");
    end_order("0-j-1");
    run_for(2s);
    EXPECT_EQ(reason(), "it has ended");
    EXPECT_EQ(asked(), std::vector<std::string>{"discard 0-j-1"});
}

TEST_F(Leading, AnOrderIsOpenAsLongAsTheGatewayMayHaveMoreThanItNames) {
    fill_container();
    for (std::size_t n = 0; n < most_unresolved; ++n) open_order("1-j-" + std::to_string(n));
    open_order("0-j-1");
    start();
    start_customers();
    run_for(5s);
    EXPECT_EQ(reason(), "");
}

}  // namespace
}  // namespace rondo::shop
