// Permits of a bounded mpsc channel: room that is reserved for a value to come.
#include "rondo/sync/mpsc_permit.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <utility>
#include <vector>

#include "rondo/core/spawn.hpp"
#include "rondo/core/task.hpp"
#include "rondo/core/this_task.hpp"
#include "rondo/core/when_any.hpp"
#include "rondo/sync/mpsc_bounded.hpp"
#include "support/counted.hpp"
#include "support/manual_loop.hpp"

namespace rondo {
namespace {

using namespace std::chrono_literals;
using mpsc::channel;
using mpsc::recv_error;
using mpsc::reserve_error;
using mpsc::try_recv_error;
using mpsc::try_reserve_error;
using test::census;
using test::counted;
using test::manual_loop;

using numbers = std::vector<int>;

// Sends and says when it is done.
task<bool> send_noted(mpsc::sender<int> tx, int n, numbers& done) {
    auto const sent = co_await tx.send(n);
    done.push_back(n);
    co_return sent.has_value();
}

task<std::expected<int, recv_error>> receive(mpsc::receiver<int>& rx) {
    co_return co_await rx.recv();
}

TEST(MpscPermit, ReserveHasBounds) {
    manual_loop loop;
    stop_source stop;
    stop.request_stop();
    auto [tx, rx] = channel<int>(1);
    EXPECT_TRUE(tx.try_send(0));
    auto t =
        spawn(loop, [](mpsc::sender<int>& s, stop_token k) -> task<std::vector<reserve_error>> {
            std::vector<reserve_error> why;
            environment const& env = co_await this_environment();
            time_point const later = env.timers().now() + 1h;
            auto one = co_await s.reserve(k);
            why.push_back(one.error());
            one = co_await s.reserve_for(1ms);
            why.push_back(one.error());
            one = co_await s.reserve_until(later);
            why.push_back(one.error());
            auto many = co_await s.reserve_many(1, k);
            why.push_back(many.error());
            many = co_await s.reserve_many_for(1, 1ms);
            why.push_back(many.error());
            many = co_await s.reserve_many_until(1, later);
            why.push_back(many.error());
            auto owned = co_await s.reserve_owned(k);
            why.push_back(owned.error());
            owned = co_await s.reserve_owned_for(1ms);
            why.push_back(owned.error());
            owned = co_await s.reserve_owned_until(later);
            why.push_back(owned.error());
            co_return why;
        }(tx, stop.token()));
    loop.advance(2h);
    using enum reserve_error;
    EXPECT_EQ(t.blocking_join().value(),
              (std::vector{stopped, timed_out, timed_out, stopped, timed_out, timed_out, stopped,
                           timed_out, timed_out}));
    time_point const now = clock::now();
    EXPECT_EQ(tx.blocking_reserve(stop.token()).error(), stopped);
    EXPECT_EQ(tx.blocking_reserve_for(0s).error(), timed_out);
    EXPECT_EQ(tx.blocking_reserve_until(now).error(), timed_out);
    EXPECT_EQ(tx.blocking_reserve_many(1, stop.token()).error(), stopped);
    EXPECT_EQ(tx.blocking_reserve_many_for(1, 0s).error(), timed_out);
    EXPECT_EQ(tx.blocking_reserve_many_until(1, now).error(), timed_out);
    EXPECT_EQ(tx.blocking_reserve_owned(stop.token()).error(), stopped);
    EXPECT_EQ(tx.blocking_reserve_owned_for(0s).error(), timed_out);
    EXPECT_EQ(tx.blocking_reserve_owned_until(now).error(), timed_out);
    EXPECT_EQ(tx.strong_count(), 1U) << "a request that failed keeps no sender";
    EXPECT_EQ(rx.try_recv(), 0);
    EXPECT_EQ(tx.capacity(), 1U);
}

// --- permits ---------------------------------------------------------------------------------

TEST(MpscPermit, APermitSendsWithoutWaitingAndOnce) {
    auto [tx, rx] = channel<int>(1);
    auto room = tx.blocking_reserve();
    ASSERT_TRUE(room);
    EXPECT_EQ(tx.try_reserve().error(), try_reserve_error::full);
    EXPECT_TRUE(room->send(7));
    EXPECT_EQ(rx.try_recv(), 7);
    EXPECT_EQ(tx.capacity(), 1U);
    EXPECT_DEATH((void)room->send(8), "good for one value");
}

TEST(MpscPermit, APermitThatIsDroppedGivesItsRoomToTheNextInLine) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    std::optional room{std::move(*tx.try_reserve())};
    numbers done;
    spawn(loop, send_noted(tx, 1, done)).detach();
    loop.run_ready();
    EXPECT_TRUE(done.empty());
    room.reset();
    loop.run_ready();
    EXPECT_EQ(done, numbers{1});
}

TEST(MpscPermit, PermitsMoveAndAreAssigned) {
    auto [tx, rx] = channel<int>(3);
    auto a = std::move(*tx.try_reserve());
    auto b = std::move(*tx.try_reserve());
    EXPECT_EQ(tx.capacity(), 1U);
    a = std::move(b);
    EXPECT_EQ(tx.capacity(), 2U);
    EXPECT_TRUE(a.send(1));
    auto many = std::move(*tx.try_reserve_many(2));
    auto elsewhere = std::move(many);
    EXPECT_TRUE(many.empty());
    EXPECT_EQ(elsewhere.size(), 2U);
}

TEST(MpscPermit, ManyPermitsAreTakenTogetherAndHandedOutOneByOne) {
    auto [tx, rx] = channel<int>(3);
    {
        auto room = tx.blocking_reserve_many(3);
        ASSERT_TRUE(room);
        EXPECT_EQ(room->size(), 3U);
        EXPECT_EQ(tx.capacity(), 0U);
        EXPECT_TRUE(room->next()->send(1));
        auto one = room->next();
        EXPECT_EQ(room->size(), 1U);
        EXPECT_TRUE(one->send(2));
    }
    EXPECT_EQ(tx.capacity(), 1U) << "the third was dropped";
    EXPECT_EQ(rx.try_recv(), 1);
    EXPECT_EQ(rx.try_recv(), 2);
    auto room = tx.try_reserve_many(1);
    (void)room->next();
    EXPECT_FALSE(room->next()) << "none is left";
    EXPECT_TRUE(room->empty());
}

TEST(MpscPermit, MoreThanThereWillEverBeIsRefusedAndNoneIsGranted) {
    auto [tx, rx] = channel<int>(2);
    EXPECT_EQ(tx.blocking_reserve_many(3).error(), reserve_error::too_many);
    EXPECT_EQ(tx.try_reserve_many(3).error(), try_reserve_error::too_many);
    EXPECT_EQ(tx.try_reserve_many(SIZE_MAX).error(), try_reserve_error::too_many);
    EXPECT_EQ(tx.try_reserve_many(0)->size(), 0U);
    EXPECT_TRUE(tx.try_send(1));
    EXPECT_EQ(tx.try_reserve_many(2).error(), try_reserve_error::full);
    EXPECT_TRUE(tx.try_send(2));
    EXPECT_TRUE(tx.blocking_reserve_many(0)) << "nothing is there for the asking, also when full";
    rx.close();
    EXPECT_EQ(tx.try_reserve_many(0).error(), try_reserve_error::closed);
    EXPECT_EQ(tx.blocking_reserve_many(1).error(), reserve_error::closed);
}

TEST(MpscPermit, ABigRequestIsNotOvertakenBySmallOnes) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(2);
    EXPECT_TRUE(tx.try_send(0));
    EXPECT_TRUE(tx.try_send(1));
    numbers done;
    spawn(loop,
          [](mpsc::sender<int> s, numbers& d) -> task<void> {
              auto room = co_await s.reserve_many(2);
              d.push_back(2);
              (void)room->next()->send(2);
              (void)room->next()->send(3);
          }(tx, done))
        .detach();
    spawn(loop, send_noted(tx, 4, done)).detach();
    loop.run_ready();
    EXPECT_EQ(rx.try_recv(), 0);
    loop.run_ready();
    EXPECT_TRUE(done.empty());
    EXPECT_EQ(rx.try_recv(), 1);
    loop.run_ready();
    EXPECT_EQ(done, numbers{2});
    EXPECT_EQ(rx.try_recv(), 2);
    loop.run_ready();
    EXPECT_EQ(done, (numbers{2, 4}));
}

TEST(MpscPermit, AnOwnedPermitIsASender) {
    auto [tx, rx] = channel<int>(2);
    auto room = tx.blocking_reserve_owned();
    ASSERT_TRUE(room);
    auto other = tx.try_reserve_owned();
    auto const [tx2, rx2] = channel<int>(1);
    EXPECT_TRUE(room->same_channel(tx));
    EXPECT_TRUE(room->same_channel(*other));
    EXPECT_FALSE(room->same_channel(tx2));
    EXPECT_EQ(tx.strong_count(), 3U);
    {
        auto const gone = std::move(tx);
    }
    EXPECT_FALSE(rx.is_closed());
    auto sender = room->send(7);
    ASSERT_TRUE(sender);
    EXPECT_EQ(rx.try_recv(), 7);
    auto const released = other->release();
    EXPECT_EQ(released.capacity(), 2U);
    EXPECT_TRUE(released.same_channel(*sender));
    EXPECT_TRUE(sender->try_send(8));
}

TEST(MpscPermit, AnOwnedPermitThatIsDroppedGivesRoomAndSenderBack) {
    auto [tx, rx] = channel<int>(1);
    {
        auto room = tx.try_reserve_owned();
        EXPECT_EQ(tx.capacity(), 0U);
        auto const moved = std::move(*room);
        EXPECT_EQ(tx.strong_count(), 2U);
    }
    EXPECT_EQ(tx.capacity(), 1U);
    EXPECT_EQ(tx.strong_count(), 1U);
}

// The last owner of a channel goes with the assignment; its room is given back before that. (It is
// the address sanitizer that sees whether it is.)
TEST(MpscPermit, AnOwnedPermitThatIsReplacedGivesItsRoomBackToAChannelThatIsThere) {
    auto room = [] {
        auto const [tx, rx] = channel<int>(1);
        return tx.try_reserve_owned().value();
    }();
    auto [tx, rx] = channel<int>(1);
    room = tx.try_reserve_owned().value();
    EXPECT_TRUE(room.same_channel(tx));
    EXPECT_EQ(tx.capacity(), 0U);
    EXPECT_EQ(tx.strong_count(), 2U);
    EXPECT_TRUE(room.send(7));
    EXPECT_EQ(rx.try_recv(), 7);
}

// --- the end ---------------------------------------------------------------------------------

TEST(MpscPermit, AClosedReceiverWaitsAsLongAsPermitsAreOut) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(3);
    std::optional one{std::move(*tx.try_reserve())};
    std::optional many{std::move(*tx.try_reserve_many(2))};
    rx.close();
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::empty) << "something may still come";
    auto first = spawn(loop, receive(rx));
    loop.run_ready();
    EXPECT_FALSE(first.ended());
    EXPECT_TRUE(one->send(7));
    loop.run_ready();
    EXPECT_EQ(first.blocking_join().value(), 7);
    auto second = spawn(loop, receive(rx));
    loop.run_ready();
    (void)many->next();
    loop.run_ready();
    EXPECT_FALSE(second.ended());
    many.reset();
    EXPECT_FALSE(second.ended()) << "never inside a destructor";
    loop.run_ready();
    EXPECT_EQ(second.blocking_join().value().error(), recv_error::closed);
    EXPECT_EQ(rx.try_recv().error(), try_recv_error::closed);
}

TEST(MpscPermit, AClosedReceiverLearnsThatAnOwnedPermitWasReleased) {
    manual_loop loop;
    auto [tx, rx] = channel<int>(1);
    auto room = tx.try_reserve_owned();
    rx.close();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    auto const sender = room->release();
    loop.run_ready();
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
}

// The room it was granted is what the closed receiver waits for.
TEST(MpscPermit, AClosedReceiverLearnsThatAReserveWasStopped) {
    manual_loop loop, elsewhere;
    auto [tx, rx] = channel<int>(1);
    EXPECT_TRUE(tx.try_send(0));
    auto reserves = spawn(elsewhere, [](mpsc::sender<int>& s) -> task<void> {
        (void)co_await when_any(s.reserve(), sleep_for(1ms));
    }(tx));
    elsewhere.run_ready();
    EXPECT_EQ(rx.try_recv(), 0) << "now it is granted";
    elsewhere.pass(1ms);
    rx.close();
    auto t = spawn(loop, receive(rx));
    loop.run_ready();
    EXPECT_FALSE(t.ended());
    elsewhere.run_ready();
    EXPECT_TRUE(reserves.ended());
    loop.run_ready();
    ASSERT_TRUE(t.ended());
    EXPECT_EQ(t.blocking_join().value().error(), recv_error::closed);
}

TEST(MpscPermit, APermitOfAReceiverThatIsGoneGivesTheValueBack) {
    census among;
    auto [tx, rx] = channel<counted>(2);
    auto room = tx.try_reserve();
    auto owned = tx.try_reserve_owned();
    {
        auto const gone = std::move(rx);
    }
    EXPECT_EQ(room->send(counted{among, 7}).error().number, 7);
    EXPECT_EQ(owned->send(counted{among, 8}).error().number, 8);
    EXPECT_EQ(among.alive(), 0);
}

}  // namespace
}  // namespace rondo
