// Telling and asking: what arrives, and what comes back when it cannot.
#include "rondo/actor/address.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rondo/actor/actor.hpp"
#include "rondo/actor/message.hpp"
#include "rondo/core/spawn.hpp"
#include "unit/actor/actors.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using actor::ask_error;
using actor::tell_error;
using test::add;
using test::counter;
using test::fail;
using test::total;
using wait_until = test::pause;

using counter_address = actor::address_of<counter>;

class ActorAddress : public test::ActorTest {};

TEST_F(ActorAddress, WhatIsToldIsReceivedInOrder) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    EXPECT_TRUE(numbers.try_tell(add{1}));
    EXPECT_TRUE(numbers.try_tell(add{2}));
    auto const sum = result_of(numbers.ask(total{}));
    EXPECT_EQ(sum, 3);
}

TEST_F(ActorAddress, AskingWithoutAReplyWaitsUntilItWasReceived) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    join_handle<std::expected<void, ask_error>> asking = spawn(loop, numbers.ask(add{5}));
    EXPECT_FALSE(asking.ended());
    loop.run_ready();
    EXPECT_TRUE(asking.blocking_join()->has_value());
    EXPECT_EQ(life.progress()->received, 1U);
}

TEST_F(ActorAddress, AFullMailboxGivesTheMessageBack) {
    auto [numbers, life] = actor::spawn<counter>(loop, {.mailbox = 1});
    EXPECT_TRUE(numbers.try_tell(add{1}));
    auto const told = numbers.try_tell(add{7});
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().why, tell_error::full);
    EXPECT_EQ(told.error().value.n, 7);
    loop.run_ready();
}

task<std::expected<void, actor::untold<add>>> tell(counter_address to, add message) {
    co_return co_await to.tell(message);
}

TEST_F(ActorAddress, ATellerWaitsForRoom) {
    auto [numbers, life] = actor::spawn<counter>(loop, {.mailbox = 1});
    notify go;
    EXPECT_TRUE(numbers.try_tell(wait_until{&go}));
    loop.run_ready();  // it waits inside receive()
    EXPECT_TRUE(numbers.try_tell(add{1}));
    auto telling = spawn(loop, tell(numbers, add{2}));
    loop.run_ready();
    EXPECT_FALSE(telling.ended());
    go.notify_one();
    loop.run_ready();
    EXPECT_TRUE(telling.blocking_join()->has_value());
    EXPECT_EQ(result_of(numbers.ask(total{})), 3);
}

TEST_F(ActorAddress, ATellerThatWaitsTooLongHasItsMessageBack) {
    auto [numbers, life] = actor::spawn<counter>(loop, {.mailbox = 1});
    notify go;
    EXPECT_TRUE(numbers.try_tell(wait_until{&go}));
    loop.run_ready();
    EXPECT_TRUE(numbers.try_tell(add{1}));
    auto telling = spawn(loop, [](counter_address to) -> task<int> {
        auto const told = co_await to.tell_for(add{9}, 10ms);
        co_return !told && told.error().why == tell_error::timed_out ? told.error().value.n : 0;
    }(numbers));
    loop.advance(10ms);
    EXPECT_EQ(*telling.blocking_join(), 9);
    go.notify_one();
}

TEST_F(ActorAddress, ADeadlineEndsATellAndAnAskLikeADurationThatEndsThen) {
    auto [numbers, life] = actor::spawn<counter>(loop, {.mailbox = 1});
    notify go;
    EXPECT_TRUE(numbers.try_tell(wait_until{&go}));
    loop.run_ready();
    EXPECT_TRUE(numbers.try_tell(add{1}));
    time_point const then = loop.timers().now() + 10ms;
    auto telling = spawn(loop, [](counter_address to, time_point d) -> task<int> {
        auto const told = co_await to.tell_until(add{9}, d);
        co_return !told && told.error().why == tell_error::timed_out ? told.error().value.n : 0;
    }(numbers, then));
    auto asking = spawn(loop, numbers.ask_until(total{}, then));
    loop.advance(9ms);
    EXPECT_FALSE(telling.ended() || asking.ended());
    loop.advance(1ms);
    EXPECT_EQ(*telling.blocking_join(), 9);
    EXPECT_EQ(asking.blocking_join()->error(), ask_error::timed_out);
    go.notify_one();
}

TEST_F(ActorAddress, AnAskThatTakesTooLongTimesOutAndItsAnswerGoesNowhere) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    notify go;
    EXPECT_TRUE(numbers.try_tell(wait_until{&go}));
    auto asking = spawn(loop, numbers.ask_for(total{}, 1s));
    loop.advance(999ms);
    EXPECT_FALSE(asking.ended());
    loop.advance(1ms);
    EXPECT_EQ(asking.blocking_join()->error(), ask_error::timed_out);
    go.notify_one();
    loop.run_ready();
    EXPECT_EQ(life.progress()->received, 2U);
}

TEST_F(ActorAddress, AnAskIsStoppedByItsToken) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    notify go;
    stop_source enough;
    EXPECT_TRUE(numbers.try_tell(wait_until{&go}));
    auto asking = spawn(loop, numbers.ask(total{}, enough.token()));
    loop.run_ready();
    enough.request_stop();
    loop.run_ready();
    EXPECT_EQ(asking.blocking_join()->error(), ask_error::stopped);
    go.notify_one();
}

TEST_F(ActorAddress, AnAskThatMakesTheActorFailIsUnanswered) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    EXPECT_EQ(result_of(numbers.ask(fail{})).error(), ask_error::unanswered);
    EXPECT_EQ(loop.unobserved().size(), 1U);
}

TEST_F(ActorAddress, WhoEndedCannotBeToldOrAsked) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    EXPECT_FALSE(numbers.is_closed());
    life.drain();
    loop.run_ready();
    EXPECT_TRUE(numbers.is_closed());
    EXPECT_EQ(numbers.try_tell(add{1}).error().why, tell_error::closed);
    EXPECT_EQ(result_of(numbers.ask(total{})).error(), ask_error::closed);
}

TEST_F(ActorAddress, OneWhoWaitsHearsOfTheEnd) {
    auto [numbers, life] = actor::spawn<counter>(loop);
    auto watching =
        spawn(loop, [](counter_address of) -> task<void> { co_await of.closed(); }(numbers));
    loop.run_ready();
    EXPECT_FALSE(watching.ended());
    life.drain();
    loop.run_ready();
    EXPECT_TRUE(watching.ended());
}

TEST_F(ActorAddress, AddressesOfOneActorAreEqual) {
    auto [a, life_of_a] = actor::spawn<counter>(loop);
    auto [b, life_of_b] = actor::spawn<counter>(loop);
    counter_address const copy = a;
    EXPECT_TRUE(copy == a);
    EXPECT_FALSE(copy == b);
}

TEST_F(ActorAddress, SaysHowMuchRoomThereIs) {
    auto [numbers, life] = actor::spawn<counter>(loop, {.mailbox = 3});
    EXPECT_TRUE(numbers.try_tell(add{1}));
    EXPECT_EQ(numbers.capacity(), 2U);
    EXPECT_EQ(numbers.max_capacity(), 3U);
    loop.run_ready();
    EXPECT_EQ(numbers.capacity(), 3U);
}

// --- what a message may be ---

struct parcel {
    using reply = std::unique_ptr<std::string>;
    std::unique_ptr<std::string> content;
};

class echo {
  public:
    using accepts = actor::messages<parcel>;
    task<std::unique_ptr<std::string>> receive(parcel p) { co_return std::move(p.content); }
};

task<std::string> send_parcel(actor::address<parcel> to) {
    parcel p{std::make_unique<std::string>("fragile")};
    auto const back = co_await to.ask(std::move(p));
    co_return back ? **back : std::string{};
}

TEST_F(ActorAddress, MessagesAndRepliesAreMovedThrough) {
    auto [it, life] = actor::spawn<echo>(loop);
    EXPECT_EQ(result_of(send_parcel(it)), "fragile");
}

TEST_F(ActorAddress, AMessageThatNobodyReceivedIsDestroyed) {
    auto const content = std::make_shared<int>(1);
    struct note {
        std::shared_ptr<int> content;
    };
    class reader {
      public:
        using accepts = actor::messages<note>;
        void receive(note const&) noexcept {}
    };
    {
        auto [it, life] = actor::spawn<reader>(loop);
        EXPECT_TRUE(it.try_tell(note{content}));
        EXPECT_EQ(content.use_count(), 2);
        life.request_stop();
        loop.run_ready();
    }
    EXPECT_EQ(content.use_count(), 1);
}

}  // namespace
}  // namespace rondo
